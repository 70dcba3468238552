//===- KernelNames.h - names that several layers know -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_KERNELNAMES_H
#define CKOPT_BASE_KERNELNAMES_H

#include <string_view>

namespace ckopt {

/// How symbols of kernels begin that join updates behind the plan. Plans do not
/// know them, so profiles have one line for what all of them took.
inline constexpr std::string_view kJoinedKernel = "k_joined_";

/// Returns whether it is the symbol of such a kernel.
inline bool isJoinedKernel(std::string_view symbol) {
  return symbol.substr(0, kJoinedKernel.size()) == kJoinedKernel;
}

} // namespace ckopt

#endif // CKOPT_BASE_KERNELNAMES_H
