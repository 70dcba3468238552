//===- ContentHash.h - hash of file contents --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_CONTENTHASH_H
#define CKOPT_BASE_CONTENTHASH_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace ckopt {

/// A hash of 64 bits against accidental changes: multiply and xorshift for each
/// word of 8 bytes. Bytes are added in order, in multiples of 8 bytes except
/// for the last call.
class ContentHash {
public:
  void add(const void *data, size_t size) {
    auto *bytes = static_cast<const char *>(data);
    for (size_t at = 0; at < size; at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + at, size - at < 8 ? size - at : 8);
      hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 29;
    }
    total += size;
  }
  uint64_t value() const { return hash ^ (total * 0xD6E8FEB86659FD93ull); }

  static uint64_t of(const void *data, size_t size) {
    ContentHash hash;
    hash.add(data, size);
    return hash.value();
  }

private:
  uint64_t hash = 0x243F6A8885A308D3ull, total = 0;
};

/// The form of a hash in files: 16 hexadecimal digits.
inline std::string hexText(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = text.size(); i-- > 0; value >>= 4)
    text[i] = "0123456789abcdef"[value & 15];
  return text;
}

} // namespace ckopt

#endif // CKOPT_BASE_CONTENTHASH_H
