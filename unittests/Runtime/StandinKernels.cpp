//===- StandinKernels.cpp - kernels of the hand-made device artifact ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CPU code that the stand-in driver runs instead of the PTX of CudaFixture.h:
// one function for each kernel, with the parameters of a launch.
//
//===----------------------------------------------------------------------===//
#include <cstdint>

#define KERNEL(name)                                                           \
  extern "C" __attribute__((visibility("default"))) void name##__emul(         \
      void *const *params)

template <typename T> static T *pointer(void *const *params, int index) {
  return *static_cast<T *const *>(params[index]);
}

/// y = w * x + c, element by element of n.
KERNEL(k_axpy) {
  auto *w = pointer<float>(params, 0), *x = pointer<float>(params, 1);
  auto *c = pointer<float>(params, 2), *y = pointer<float>(params, 3);
  int64_t n = *static_cast<int64_t *>(params[4]);
  for (int64_t i = 0; i < n; ++i)
    y[i] = w[i] * x[i] + c[i];
}

/// loss = sum of y over n, by a partial sum in the scratch.
KERNEL(k_sum) {
  auto *y = pointer<float>(params, 0), *loss = pointer<float>(params, 1);
  int64_t n = *static_cast<int64_t *>(params[2]);
  auto *scratch = pointer<float>(params, 3);
  scratch[0] = 0;
  for (int64_t i = 0; i < n; ++i)
    scratch[0] += y[i];
  *loss = scratch[0];
}

/// w -= lr * x.
KERNEL(k_update) {
  auto *w = pointer<float>(params, 0), *x = pointer<float>(params, 1);
  auto *lr = pointer<float>(params, 2), *out = pointer<float>(params, 3);
  for (int64_t i = 0; i < 4; ++i)
    out[i] = w[i] - *lr * x[i];
}

/// Writes one byte behind the arena of 768 bytes (its scratch).
KERNEL(k_spill) { pointer<char>(params, 0)[3] = 1; }
