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
/// needs only NVIDIA's driver, else libckopt_runtime with oneDNN and OpenBLAS.
/// Functions of ckrt.h can be called afterwards. On failure returns false and
/// sets `error`.
bool openRuntime(const std::string &artifact, std::string &error);

} // namespace ckopt::run

#endif // CKOPT_TOOLS_CKOPT_RUN_RUNTIMELIBRARY_H
