//===- CpuFeatures.h - what this CPU can do ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CPU_CPUFEATURES_H
#define CKOPT_LIB_RUNTIME_CPU_CPUFEATURES_H

#include <string>
#include <vector>

namespace ckopt::runtime {

/// Returns the CPU features of the list that this machine or its kernel lacks.
std::vector<std::string>
missingCpuFeatures(const std::vector<std::string> &features);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CPU_CPUFEATURES_H
