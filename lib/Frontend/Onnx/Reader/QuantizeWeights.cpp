//===- QuantizeWeights.cpp - the numbers of a weight in few bits ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each group of numbers has one scale: its largest magnitude over the largest
// integer (over the largest level, 1, for nf4). Numbers are divided by it and
// rounded to nearest in f32, one row at a time. O(numbers), memory of a row.
//
//===----------------------------------------------------------------------===//
#include "QuantizeWeights.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace ckopt;
using namespace ckopt::onnx_frontend;

const std::array<float, 16> onnx_frontend::kNf4Levels = {-1.0f,
                                                         -0.6961928009986877f,
                                                         -0.5250730514526367f,
                                                         -0.39491748809814453f,
                                                         -0.28444138169288635f,
                                                         -0.18477343022823334f,
                                                         -0.09105003625154495f,
                                                         0.0f,
                                                         0.07958029955625534f,
                                                         0.16093020141124725f,
                                                         0.24611230194568634f,
                                                         0.33791524171829224f,
                                                         0.44070982933044434f,
                                                         0.5626170039176941f,
                                                         0.7229568362236023f,
                                                         1.0f};

static float largestOf(QuantizedType type) {
  return type == QuantizedType::Int8   ? 127.0f
         : type == QuantizedType::Int4 ? 7.0f
                                       : 1.0f;
}

uint64_t QuantizedWeight::bytes() const {
  auto count = uint64_t(value.numElements());
  return type == QuantizedType::Int8 ? count : count / 2;
}

llvm::Expected<std::vector<float>> QuantizedWeight::scales() const {
  std::vector<float> scales(size_t(numScales()), 0.0f);
  for (int64_t i = 0, row = 0; row < rows(); ++row)
    for (int64_t column = 0; column < columns(); ++column, ++i) {
      float magnitude = std::fabs(float(value.getDouble(i)));
      if (!std::isfinite(magnitude))
        return inputError("element " + indexString(i, value.shape()) +
                          " is not finite");
      float &scale = scales[size_t(groupOf(row, column))];
      scale = std::max(scale, magnitude);
    }
  for (float &scale : scales) {
    scale /= largestOf(type);
    if (scale < std::numeric_limits<float>::min())
      scale = 1; // all of the group becomes zero
  }
  return scales;
}

/// Returns the number of the level that is nearest; of two, the upper one.
static int levelOf(float number) {
  int level = 0;
  while (level < 15 &&
         number >=
             (kNf4Levels[size_t(level)] + kNf4Levels[size_t(level) + 1]) / 2)
    ++level;
  return level;
}

llvm::Error QuantizedWeight::store(
    const std::vector<float> &scales,
    llvm::function_ref<llvm::Error(llvm::StringRef)> take) const {
  std::string bytes;
  for (int64_t i = 0, row = 0; row < rows(); ++row) {
    bytes.clear();
    for (int64_t column = 0; column < columns(); ++column, ++i) {
      float number =
          float(value.getDouble(i)) / scales[size_t(groupOf(row, column))];
      float most = largestOf(type);
      int code = type == QuantizedType::Nf4
                     ? levelOf(number)
                     : int(std::nearbyint(std::clamp(number, -most, most)));
      if (type == QuantizedType::Int8) {
        bytes += char(code);
        continue;
      }
      unsigned nibble = unsigned(code + (offset ? 8 : 0)) & 15u;
      if (column % 2)
        bytes.back() = char((unsigned char)bytes.back() | (nibble << 4));
      else
        bytes += char(nibble);
    }
    if (llvm::Error error = take(bytes))
      return error;
  }
  return llvm::Error::success();
}
