//===- Nccl.h - NCCL, opened at run time ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of NCCL's public interface that moves bytes between devices, from
// version 2.7 on, which every later one keeps. NCCL's sums are not used, since
// NCCL chooses their order.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_NCCL_H
#define CKOPT_LIB_RUNTIME_CUDA_NCCL_H

#include "Driver.h"

namespace ckopt::runtime::cuda {

/// The id of a communicator, which rank 0 makes and all ranks get.
struct NcclId {
  char internal[128];
};

enum NcclNumber : int {
  kNcclSuccess = 0,
  kNcclInvalidUsage = 5, ///< for example, of one device that two ranks share
  kNcclRemoteError = 6,  ///< another process or the network has failed
  kNcclInProgress = 7,
  kNcclByte = 0, ///< the type ncclInt8
};

struct NcclEntries {
#define CKOPT_ENTRY(member, symbol, result, parameters)                        \
  result(*member) parameters;
#include "NcclEntries.def"
#undef CKOPT_ENTRY

  /// Opens NCCL once for the process (CKOPT_NCCL names another file); null with
  /// the reason.
  static const NcclEntries *open(std::string &error);
  /// Returns "2.21.5", for example.
  std::string version() const;
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_NCCL_H
