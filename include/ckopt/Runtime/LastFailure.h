//===- LastFailure.h - the runtime's last error in pieces -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_LASTFAILURE_H
#define CKOPT_RUNTIME_LASTFAILURE_H

#include "ckopt/Base/MessageText.h"
#include "ckopt/Runtime/Export.h"

namespace ckopt::runtime {

/// ckrt_last_error() with the settings that it names, for programs whose
/// settings are not flags.
CKRT_EXPORT const MessageText &lastFailure();

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_LASTFAILURE_H
