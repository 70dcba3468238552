//===- Safetensors.h - the header of safetensors files ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A safetensors file is eight bytes of header length, a JSON header, and the
// data. The parser checks the whole header before anything reads the data:
// grammar, types, shapes, sizes, bounds, overlaps, holes, duplicate names.
//
// Files that ckopt wrote have checksums in their metadata, so that a flipped
// bit is an error: one for each tensor's bytes, and one for the header,
// computed with zeros in place of its own digits. The parser checks the
// header's; the reader of a tensor's data checks the tensor's. Files of other
// programs have none.
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

/// The metadata key of the header's checksum; followed by a dot and a tensor's
/// name, that of the tensor's.
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
  std::string_view data; ///< the bytes after the header
};

/// Parses and checks the header. Returns "" on success, else a description of
/// the defect. `header.data` points into `bytes`.
std::string parseSafetensorsHeader(std::string_view bytes,
                                   SafetensorsHeader &header);

/// Puts the header's checksum into metadata, which has zeros in its place;
/// `header` is the header with these zeros.
void addHeaderChecksum(std::string_view header, StringMetadata &metadata);

} // namespace ckopt

#endif // CKOPT_BASE_SAFETENSORS_H
