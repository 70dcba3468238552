//===- DeviceSpeeds.h - speeds of a GPU for others --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_CUDA_DEVICESPEEDS_H
#define CKOPT_TARGET_CUDA_DEVICESPEEDS_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace ckopt {

/// What planners of other compilers' steps need of the table of devices: rates
/// of libraries' products by the type of their operands, of memory and of
/// elementwise operations, each a second.
struct DeviceSpeeds {
  std::string device;   ///< of the table (docs/cuda.md, `--device-rates`)
  bool isKnown = false; ///< by its name; else the nearest by its capability
  double multiprocessors = 0;
  double f32 = 0, tf32 = 0, halves = 0; ///< operations of products
  double bandwidth = 0;                 ///< bytes
  double vector = 0;                    ///< operations
};

/// Returns the speeds of the device that a driver calls `name`, of compute
/// capability `sm` (90 for 9.0).
DeviceSpeeds findDeviceSpeeds(llvm::StringRef name, unsigned sm);

} // namespace ckopt

#endif // CKOPT_TARGET_CUDA_DEVICESPEEDS_H
