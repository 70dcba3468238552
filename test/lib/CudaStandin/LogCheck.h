//===- LogCheck.h - what a device did against what was planned --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_LOGCHECK_H
#define CKOPT_TEST_LIB_CUDASTANDIN_LOGCHECK_H

#include "ckopt/Runtime/Manifest.h"

#include <set>
#include <string>

namespace standin {

struct LogFacts {
  int64_t runs = 0;     ///< functions that ran to their end
  int64_t launches = 0; ///< launches of those functions
  int64_t copies = 0;   ///< copies between tensors and the host
};

/// Checks the stand-in's log of one process that made one session on the
/// artifact:
///  - only the arena and one piece of pinned memory were allocated, and all was
///    given back; nothing was refused;
///  - every copy moves one tensor's bytes (with `pattern`, also a block of the
///    arena, for checks);
///  - the launches form whole functions of the manifest, in order, each launch
///    with the addresses and scalars of the table (a library's product as many
///    times as it has batches that the library cannot run at once).
/// `own` are the primitives that our own kernels run in the place of a library.
/// Empty, or the first line that is wrong, with the reason.
std::string checkLog(const ckopt::runtime::Manifest &manifest,
                     const std::string &log, bool pattern,
                     const std::set<int32_t> &own, LogFacts &facts);

} // namespace standin

#endif // CKOPT_TEST_LIB_CUDASTANDIN_LOGCHECK_H
