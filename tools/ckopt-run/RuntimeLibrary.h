//===- RuntimeLibrary.h - the runtime that an artifact needs ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_RUN_RUNTIMELIBRARY_H
#define CKOPT_TOOLS_CKOPT_RUN_RUNTIMELIBRARY_H

#include <string>

namespace ckopt::run {

/// Opens the library that runs `artifact`: libckopt_cuda for a folder, which
/// needs NVIDIA's driver alone, else libckopt_runtime with oneDNN and OpenBLAS.
/// After it the entries of ckrt.h can be called. False with the reason.
bool openRuntime(const std::string &artifact, std::string &error);

} // namespace ckopt::run

#endif // CKOPT_TOOLS_CKOPT_RUN_RUNTIMELIBRARY_H
