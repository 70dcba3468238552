//===- Backend.cpp - where a session's arena lies and its steps run -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Backend.h"
#include "ckopt/Base/DType.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace ckopt::runtime;

Backend::~Backend() = default;
SharedDevice::~SharedDevice() = default;

bool ckopt::runtime::areFinite(DType dtype, const char *from, int64_t bytes) {
  return dispatchDType(dtype, [&](auto zero) {
    using T = decltype(zero);
    bool finite = true;
    if constexpr (!std::is_integral_v<T>)
      for (int64_t at = 0; at < bytes; at += int64_t(sizeof(T))) {
        T value;
        std::memcpy(&value, from + at, sizeof(T));
        finite &= std::isfinite(static_cast<double>(value));
      }
    return finite;
  });
}

ckrt_status Backend::lookFrom(const TensorInfo &tensor, int64_t begin,
                              bool &finite) {
  constexpr int64_t kPieceBytes = int64_t(4) << 20;
  for (; begin < tensor.bytes && finite; begin += kPieceBytes) {
    int64_t size = std::min(kPieceBytes, tensor.bytes - begin);
    const char *bytes = nullptr;
    if (ckrt_status status = read(tensor, begin, size, bytes))
      return status;
    finite = areFinite(tensor.dtype, bytes, size);
  }
  return CKRT_OK;
}

ckrt_status Backend::fetch(const TensorInfo &tensor) {
  const char *bytes = nullptr;
  ckrt_status status = read(tensor, 0, tensor.bytes, bytes);
  if (status == CKRT_OK)
    copied.assign(bytes, bytes + tensor.bytes);
  return status;
}

ckrt_status Backend::fetched(const TensorInfo &, const char *&bytes) {
  bytes = copied.data();
  return CKRT_OK;
}

ckrt_status Backend::allFinite(const std::vector<const TensorInfo *> &tensors,
                               bool &finite) {
  finite = true;
  for (const TensorInfo *tensor : tensors)
    if (ckrt_status status = lookFrom(*tensor, 0, finite))
      return status;
  return CKRT_OK;
}

ckrt_status Backend::timeLaunches(size_t, const LaunchTiming &) {
  return fail(CKRT_INVALID_ARGUMENT,
              "ckrt_time_launches: the step runs on the CPU, which has no "
              "launches (ckrt_set_profile times its calls)");
}

ckrt_status Backend::libraryChoices(ckrt_library_hook, void *) {
  return fail(CKRT_INVALID_ARGUMENT,
              "ckrt_library_choices: the step runs on the CPU, whose libraries "
              "were chosen when it was compiled");
}
