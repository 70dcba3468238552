//===- DeviceFacts.h - what a device is, before anything runs on it -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_DEVICEFACTS_H
#define CKOPT_LIB_RUNTIME_CUDA_DEVICEFACTS_H

#include "Core/Status.h"
#include "Driver.h"

namespace ckopt::runtime::cuda {

/// Opens device `ordinal` and asks it what it is.
ckrt_status describeDevice(const Driver &cuda, int ordinal, Device &device,
                           ckrt_device_facts &facts);

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_DEVICEFACTS_H
