//===- NameList.h - names in messages ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_NAMELIST_H
#define CKOPT_SUPPORT_NAMELIST_H

#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace ckopt {

/// How many names a remark lists; --verbose has all.
constexpr size_t kNamesInRemarks = 8;

/// Lists names like this: "'a', 'b' and 7 more".
std::string listNames(llvm::ArrayRef<std::string> names, size_t most = 4);

} // namespace ckopt

#endif // CKOPT_SUPPORT_NAMELIST_H
