//===- CudaSearch.h - finds cuBLASLt, cuDNN and NCCL ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: CUDA's libraries often lie where the loader does not look: in
// folders of a toolkit, or in those of a Python package that PyTorch needs.
// Method: programs, never the runtime, look for them before they make a
// session, in this order: CKOPT_CUBLASLT or CKOPT_CUDNN, the loader's own
// places, /usr/local/cuda*, nvidia/*/lib below the folders that the Python on
// the PATH imports from. Guarantee: a file that is chosen exists.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_CUDASEARCH_H
#define CKOPT_RUNTIME_CUDASEARCH_H

#include "ckopt/Runtime/Manifest.h"

#include <string>
#include <vector>

namespace ckopt::runtime {

/// Returns the folders other than the loader's, in order; starts Python once.
std::vector<std::string> cudaLibraryFolders();

/// Returns the first of the files that one of the folders has, "" if none has
/// any: an earlier name counts before an earlier folder.
std::string findInFolders(const std::vector<std::string> &names,
                          const std::vector<std::string> &folders);

/// Sets CKOPT_NCCL in the same way, for ranks on devices.
void chooseNccl();

/// For each library that a launch needs: sets CKOPT_CUBLASLT or CKOPT_CUDNN for
/// this process if the variable is unset, the loader does not find the library,
/// and a folder has it. The same for CKOPT_NCCL in a step of several ranks.
void chooseCudaLibraries(const Manifest &manifest);

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_CUDASEARCH_H
