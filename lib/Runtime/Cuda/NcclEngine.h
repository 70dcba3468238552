//===- NcclEngine.h - messages between processes by NCCL --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Carries a World's messages over the devices where there is no MPI: bytes of
// the host go through a buffer of the device, outside of the arena.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_NCCLENGINE_H
#define CKOPT_LIB_RUNTIME_CUDA_NCCLENGINE_H

#include "Comm/Mpi/Engine.h"
#include "IdFile.h"

namespace ckopt::runtime::cuda {

/// Meets the other ranks and connects their devices; null with the reason. The
/// process has one such engine.
const MessageEngine *openNcclEngine(const IdFile &file, MessageText &error);

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_NCCLENGINE_H
