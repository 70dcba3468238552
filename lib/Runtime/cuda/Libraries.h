//===- Libraries.h - all library kernels of a program -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_LIBRARIES_H
#define CKOPT_LIB_RUNTIME_CUDA_LIBRARIES_H

#include "../Session.h"
#include "Library.h"
#include "LockFile.h"

#include <memory>

namespace ckopt::runtime::cuda {

/// Library kernels, one for each primitive that a launch names. They belong to
/// the context that was current when they were made, and must be destroyed
/// before it.
class Libraries {
public:
  /// Opens the libraries that the manifest needs and fixes every algorithm, as
  /// the lock file says where it lists them. Without primitives nothing is
  /// opened.
  ckrt_status create(const Manifest &manifest, const std::string &lockPath,
                     const ckrt_device_report &device);
  /// Launches a primitive; on failure returns false and sets the reason.
  bool enqueue(int32_t primitive, const Places &places, Stream stream,
               std::string &error) const {
    return kernels[static_cast<size_t>(primitive)]->enqueue(places, stream,
                                                            error);
  }

private:
  ckrt_status makeKernel(const Manifest &manifest, size_t primitive,
                         int64_t workspace);

  std::unique_ptr<Library> blas, dnn;
  LockFile lock;
  std::vector<std::unique_ptr<LibraryKernel>> kernels; ///< by primitive
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_LIBRARIES_H
