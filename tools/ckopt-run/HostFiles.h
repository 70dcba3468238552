//===- HostFiles.h - arrays in files, without any library -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_RUN_HOSTFILES_H
#define CKOPT_TOOLS_CKOPT_RUN_HOSTFILES_H

#include "ckopt/Base/DType.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ckopt::run {

/// A row-major array of one element type.
struct HostArray {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<char> data;

  int64_t elements() const;
};

/// Returns the shape as text: "2x3x4", "scalar".
std::string shapeText(const int64_t *shape, int64_t rank);

/// Reads a whole file into `bytes`; on failure returns false and sets `error`.
bool readFile(const std::string &path, std::vector<char> &bytes,
              std::string &error);
/// Writes a file beside `path` and renames it, so that `path` is either
/// complete or unchanged.
bool writeFile(const std::string &path, const std::vector<char> &bytes,
               std::string &error);

/// Parses numpy's .npy.
bool parseNpy(const std::vector<char> &bytes, HostArray &array,
              std::string &error);
std::vector<char> formatNpy(const HostArray &array);

/// Tensors of a .safetensors file, in the order of their data.
struct NamedArray {
  std::string name;
  HostArray array;
};
/// Reads a safetensors file, or a checkpoint that several ranks wrote.
bool readSafetensors(const std::string &path, std::vector<NamedArray> &arrays,
                     std::string &error);
bool parseSafetensors(const std::vector<char> &bytes,
                      std::vector<NamedArray> &arrays, std::string &error);

} // namespace ckopt::run

#endif // CKOPT_TOOLS_CKOPT_RUN_HOSTFILES_H
