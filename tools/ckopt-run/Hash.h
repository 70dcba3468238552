//===- Hash.h - a hash of bytes ---------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_RUN_HASH_H
#define CKOPT_TOOLS_CKOPT_RUN_HASH_H

#include <cstddef>
#include <cstdint>

namespace ckopt::run {

/// FNV-1a with 64 bits, which detects accidental changes.
class Hash {
public:
  void add(const void *data, size_t size) {
    auto *bytes = static_cast<const unsigned char *>(data);
    for (size_t i = 0; i < size; ++i)
      value = (value ^ bytes[i]) * 0x100000001B3ull;
  }
  uint64_t value = 0xCBF29CE484222325ull;
};

} // namespace ckopt::run

#endif // CKOPT_TOOLS_CKOPT_RUN_HASH_H
