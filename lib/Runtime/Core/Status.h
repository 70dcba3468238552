//===- Status.h - how the runtime's entries fail ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CORE_STATUS_H
#define CKOPT_LIB_RUNTIME_CORE_STATUS_H

#include "ckopt/Base/MessageText.h"
#include "ckopt/Runtime/ckrt.h"

namespace ckopt::runtime {

/// Records `text` for ckrt_last_error() and returns `status`.
ckrt_status fail(ckrt_status status, const MessageText &text);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CORE_STATUS_H
