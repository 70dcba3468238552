//===- ToldError.h - errors whose cause was told before ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_TOLDERROR_H
#define CKOPT_SUPPORT_TOLDERROR_H

#include "ckopt/Support/Error.h"

namespace ckopt {

/// Says only where work stopped: why was told as a diagnostic, which whoever
/// keeps diagnostics shows in its place.
class ToldError : public llvm::ErrorInfo<ToldError, CkoptError> {
public:
  static char ID;
  using ErrorInfo::ErrorInfo;
};

llvm::Error toldError(ExitCode code, const llvm::Twine &message);

} // namespace ckopt

#endif // CKOPT_SUPPORT_TOLDERROR_H
