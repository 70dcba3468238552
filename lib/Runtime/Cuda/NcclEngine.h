//===- NcclEngine.h - messages between processes by NCCL --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Carries a World's messages over the devices if there is no MPI: host bytes go
// through a device buffer outside of the arena.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_NCCLENGINE_H
#define CKOPT_LIB_RUNTIME_CUDA_NCCLENGINE_H

#include "Comm/Mpi/Engine.h"
#include "IdFile.h"

namespace ckopt::runtime::cuda {

/// Connects the ranks and their devices; null with the reason. The process has
/// one such engine.
const MessageEngine *openNcclEngine(const IdFile &file, MessageText &error);

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_NCCLENGINE_H
