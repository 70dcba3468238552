//===- DeviceFlights.h - collectives that go on beside kernels --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pairs a device step's calls that begin collectives with those that wait for
// them. A wait's first result is the first result of its start.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CORE_DEVICEFLIGHTS_H
#define CKOPT_LIB_RUNTIME_CORE_DEVICEFLIGHTS_H

#include "ckopt/Runtime/Manifest.h"

namespace ckopt::runtime {

/// Returns for each call the start that it waits for, -1 if it waits for none.
/// Sets `error` where a wait has no start, or a start has no wait. Indices and
/// launches must be sound.
std::vector<int64_t> startsOfWaits(const Manifest &m, std::string &error);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CORE_DEVICEFLIGHTS_H
