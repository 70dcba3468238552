//===- KernelNames.h - names that several layers know -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_KERNELNAMES_H
#define CKOPT_BASE_KERNELNAMES_H

#include <string_view>

namespace ckopt {

/// Prefix of the symbols of kernels that join updates after planning. Plans do
/// not know them, so profiles have one entry for all of them together.
inline constexpr std::string_view kJoinedKernel = "k_joined_";

/// Returns whether a symbol has this prefix.
inline bool isJoinedKernel(std::string_view symbol) {
  return symbol.substr(0, kJoinedKernel.size()) == kJoinedKernel;
}

} // namespace ckopt

#endif // CKOPT_BASE_KERNELNAMES_H
