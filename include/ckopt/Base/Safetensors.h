//===- Safetensors.h - the header of safetensors files ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A safetensors file is eight bytes of header length, a JSON header, and the
// data. The parser checks the whole header before anything reads the data:
// grammar, types, shapes, sizes, bounds, overlaps, holes, duplicate names.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_SAFETENSORS_H
#define CKOPT_BASE_SAFETENSORS_H

#include "ckopt/Base/DType.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ckopt {

using StringMetadata = std::map<std::string, std::string>;

/// A tensor's bytes are [begin, end) of the file's data.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors; ///< in the order of their data
  StringMetadata metadata;
  std::string_view data; ///< what follows the header
};

/// Parses and checks the header. Returns "" on success, else a description of
/// the defect. `header.data` points into `bytes`.
std::string parseSafetensorsHeader(std::string_view bytes,
                                   SafetensorsHeader &header);

} // namespace ckopt

#endif // CKOPT_BASE_SAFETENSORS_H
