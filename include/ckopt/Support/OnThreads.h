//===- OnThreads.h - independent pieces of work on threads ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_ONTHREADS_H
#define CKOPT_SUPPORT_ONTHREADS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <cstdint>

namespace ckopt {

/// Calls `work` for each number below `count`, on up to `threads` threads (0:
/// the cores), of which the caller's is one. Numbers are begun in their order,
/// and none is begun after a failure. Returns the failure of the lowest number:
/// that of a loop on one thread.
llvm::Error onThreads(int64_t threads, int64_t count,
                      llvm::function_ref<llvm::Error(int64_t)> work);

} // namespace ckopt

#endif // CKOPT_SUPPORT_ONTHREADS_H
