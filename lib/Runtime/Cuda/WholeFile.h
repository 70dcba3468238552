//===- WholeFile.h - files beside an artifact -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_WHOLEFILE_H
#define CKOPT_LIB_RUNTIME_CUDA_WHOLEFILE_H

#include <string>

namespace ckopt::runtime::cuda {

/// Replaces a regular file, or that which a link names, by one with these
/// bytes, which appear at once. Returns 0 or an errno; then the old file is as
/// it was.
int replaceFile(const std::string &path, const std::string &bytes);

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_WHOLEFILE_H
