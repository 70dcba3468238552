//===- Safetensors.h - the header of safetensors files ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A safetensors file is eight bytes of header length, a JSON header, and the
// data. The parser checks the whole header before anything reads the data:
// grammar, types, shapes, sizes, bounds, overlaps, holes, duplicate names.
//
// Files that ckopt wrote have checksums among their metadata, so that a flipped
// bit is an error instead of another run: one for each tensor's bytes, and one
// for the header, its own digits read as zeros. The parser compares the
// header's; who reads a tensor's data compares that with its entry's. Files of
// other programs have none.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_SAFETENSORS_H
#define CKOPT_BASE_SAFETENSORS_H

#include "ckopt/Base/DType.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ckopt {

using StringMetadata = std::map<std::string, std::string>;

/// The metadata of the header's checksum; with a dot and a tensor's name, of
/// that tensor's.
inline constexpr const char *kChecksumKey = "ckopt.checksum";

/// A tensor's bytes are [begin, end) of the file's data.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
  std::optional<uint64_t> hash; ///< of its bytes (ContentHash)
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors; ///< in the order of their data
  StringMetadata metadata;               ///< without checksums
  bool hasChecksum = false;
  std::string_view data; ///< what follows the header
};

/// Parses and checks the header. Returns "" on success, else a description of
/// the defect. `header.data` points into `bytes`.
std::string parseSafetensorsHeader(std::string_view bytes,
                                   SafetensorsHeader &header);

/// Adds the header's checksum to metadata, which has zeros in its place;
/// `header` was made of them.
void addHeaderChecksum(std::string_view header, StringMetadata &metadata);

} // namespace ckopt

#endif // CKOPT_BASE_SAFETENSORS_H
