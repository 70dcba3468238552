//===- CudaSearch.h - where cuBLASLt and cuDNN lie --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: CUDA's libraries lie where the loader does not look: in folders of a
// toolkit, more often in those of a Python package that PyTorch needs. Method:
// programs, never the runtime, look for them before they make a session, in
// this order: CKOPT_CUBLASLT or CKOPT_CUDNN, the loader's own places,
// /usr/local/cuda*, nvidia/*/lib below the folders that the Python on the PATH
// imports from. Guarantee: only files are chosen that are there.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_CUDASEARCH_H
#define CKOPT_RUNTIME_CUDASEARCH_H

#include "ckopt/Runtime/Manifest.h"

#include <string>
#include <vector>

namespace ckopt::runtime {

/// Returns the folders beside the loader's, in order; starts Python once.
std::vector<std::string> cudaLibraryFolders();

/// Returns the first of the files that one of the folders has, "" if none has
/// any: an earlier name counts before an earlier folder.
std::string findInFolders(const std::vector<std::string> &names,
                          const std::vector<std::string> &folders);

/// Sets CKOPT_NCCL in the same way, for ranks on devices.
void chooseNccl();

/// Sets CKOPT_CUBLASLT and CKOPT_CUDNN for this process where a launch needs
/// the library, the variable is unset and the loader does not find it; leaves
/// them where nothing does. The same for CKOPT_NCCL in a step of several ranks.
void chooseCudaLibraries(const Manifest &manifest);

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_CUDASEARCH_H
