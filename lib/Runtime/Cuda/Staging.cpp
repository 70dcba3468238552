//===- Staging.cpp - host memory between user and arena -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Staging.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

static bool isStaged(const TensorInfo &tensor) {
  switch (tensor.role) {
  case TensorRole::Input:
  case TensorRole::Target:
  case TensorRole::Seed:
  case TensorRole::Step:
  case TensorRole::LearningRate:
  case TensorRole::Loss:
    return tensor.bytes > 0;
  case TensorRole::Parameter:
  case TensorRole::Frozen:
  case TensorRole::State:
  case TensorRole::OptimizerState:
  case TensorRole::Constant:
  case TensorRole::Output:
  case TensorRole::Gradient:
  case TensorRole::Copy:
    return false;
  }
  return false;
}

Result Staging::create() {
  std::map<size_t, int64_t> places;
  for (size_t i = 0; i < manifest.tensors.size(); ++i)
    if (isStaged(manifest.tensors[i])) {
      places[i] = size;
      size += (manifest.tensors[i].bytes + 63) / 64 * 64;
    }
  if (places.empty())
    return kSuccess;
  void *allocated = nullptr;
  Result result = driver.memHostAlloc(&allocated, static_cast<size_t>(size), 0);
  if (result != kSuccess)
    return result;
  memory = static_cast<char *>(allocated);
  for (auto [index, place] : places) {
    Slot &slot = slots[index];
    slot.bytes = memory + place;
    result = driver.eventCreate(&slot.copied, kEventDisableTiming);
    if (result != kSuccess)
      return result;
  }
  return kSuccess;
}

Staging::~Staging() {
  for (auto &[index, slot] : slots)
    if (slot.copied)
      (void)driver.eventDestroy(slot.copied);
  if (memory)
    (void)driver.memFreeHost(memory);
}

Staging::Slot *Staging::find(const TensorInfo &tensor) {
  auto found =
      slots.find(static_cast<size_t>(&tensor - manifest.tensors.data()));
  return found == slots.end() ? nullptr : &found->second;
}
