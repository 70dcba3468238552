//===- Shape.cpp - sizes of tensors from outside --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/Shape.h"

#include <algorithm>

std::string ckopt::shapeString(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d)
    text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

std::string ckopt::countElements(std::span<const int64_t> shape,
                                 int64_t elementSize, int64_t &count) {
  count = 0;
  for (int64_t extent : shape)
    if (extent < 0)
      return "shape " + shapeString(shape) + " has a negative extent";
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    return "";
  int64_t bytes = elementSize;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      return "shape " + shapeString(shape) +
             " has more bytes than an address can count";
  count = bytes / elementSize;
  return "";
}
