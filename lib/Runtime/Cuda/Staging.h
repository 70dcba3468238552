//===- Staging.h - host memory between user and arena -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pinned memory for tensors that are copied in every step (batches, seed, step,
// learning rate, the loss): each has its own slot, so that the host goes on
// while the copy runs. All other tensors are copied through pageable memory,
// and the host waits.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_STAGING_H
#define CKOPT_LIB_RUNTIME_CUDA_STAGING_H

#include "Engine.h"

#include <map>

namespace ckopt::runtime::cuda {

/// One allocation of pinned memory, split into slots. Its context must be
/// current at every call and in the destructor.
class Staging {
public:
  /// A tensor's memory, and the event after its last copy to the device.
  struct Slot {
    char *bytes = nullptr;
    Event copied = nullptr;
  };

  Staging(const Driver &driver, const Manifest &manifest)
      : driver(driver), manifest(manifest) {}
  ~Staging();
  Staging(const Staging &) = delete;
  Staging &operator=(const Staging &) = delete;

  Result create();
  /// Returns the tensor's slot, or null if it has none.
  Slot *find(const TensorInfo &tensor);
  int64_t bytes() const { return size; }

private:
  const Driver &driver;
  const Manifest &manifest;
  char *memory = nullptr;
  int64_t size = 0;
  std::map<size_t, Slot> slots; ///< by index of the tensor
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_STAGING_H
