//===- CudaCapabilities.h - what code for GPUs is made for ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compiler makes code for some compute capabilities (`--sm`), and devices
// of others run the best of these. Messages of the runtime name it.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_CUDACAPABILITIES_H
#define CKOPT_RUNTIME_CUDACAPABILITIES_H

#include <cstdint>

namespace ckopt::runtime {

/// No code of ckopt runs on devices of less.
constexpr int32_t kLeastCapability = 80;

/// Returns the capability whose code is the best one that a device runs. 8.7
/// has the memory of 8.0, and what lies between 9.0 and 12.0 that of 9.0.
constexpr int32_t codeCapability(int32_t sm) {
  return sm >= 120              ? 120
         : sm >= 90             ? 90
         : sm == 86 || sm == 89 ? sm
                                : kLeastCapability;
}

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_CUDACAPABILITIES_H
