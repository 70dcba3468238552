//===- ImageResize.cpp - parts of images in another size ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two passes, along rows and along columns, with weights in fixed point of 22
// bits, as Pillow has them (Resample.c), so that networks see the pixels that
// they were trained on elsewhere. Only what the part needs is computed:
// O(part * filter).
//
//===----------------------------------------------------------------------===//
#include "ImageResize.h"
#include <algorithm>
#include <cmath>

namespace ckopt {

namespace {
constexpr int kBits = 22; ///< of a weight, behind the point

/// The pixels of a line that one pixel of the scaled line is made of.
struct Taps {
  int64_t first = 0;
  std::vector<int32_t> weights;
};
} // namespace

/// Makes the taps of pixel `at` of `size`, scaled from `length` pixels.
static Taps makeTaps(int64_t at, int64_t size, int64_t length) {
  const double scale = double(length) / double(size);
  const double stretch = std::max(scale, 1.0);
  const double center = (double(at) + 0.5) * scale;
  Taps taps;
  taps.first = std::max<int64_t>(int64_t(center - stretch + 0.5), 0);
  const int64_t end =
      std::min<int64_t>(int64_t(center + stretch + 0.5), length);
  std::vector<double> weights;
  double sum = 0;
  for (int64_t x = taps.first; x < end; ++x) {
    const double distance =
        std::abs((double(x) - center + 0.5) * (1.0 / stretch));
    weights.push_back(distance < 1 ? 1 - distance : 0);
    sum += weights.back();
  }
  for (double weight : weights) {
    const double share = sum != 0 ? weight / sum : weight;
    taps.weights.push_back(int32_t(0.5 + share * (1 << kBits)));
  }
  return taps;
}

static uint8_t toByte(int64_t sum) {
  return uint8_t(std::clamp<int64_t>(sum >> kBits, 0, 255));
}

Image resizeImage(const Image &image, const ImageBox &from, int64_t width,
                  int64_t height, const ImageBox &part) {
  const int64_t channels = image.channels;
  Image result;
  result.width = part.width;
  result.height = part.height;
  result.channels = channels;
  result.pixels.assign(size_t(part.width * part.height * channels), 0);
  // The part of the scaled image that exists.
  const int64_t left = std::max<int64_t>(part.left, 0);
  const int64_t top = std::max<int64_t>(part.top, 0);
  const int64_t right = std::min(part.left + part.width, width);
  const int64_t bottom = std::min(part.top + part.height, height);
  if (left >= right || top >= bottom)
    return result;
  std::vector<Taps> columns, rows;
  for (int64_t x = left; x < right; ++x)
    columns.push_back(makeTaps(x, width, from.width));
  for (int64_t y = top; y < bottom; ++y)
    rows.push_back(makeTaps(y, height, from.height));
  const int64_t firstRow = rows.front().first;
  const int64_t endRow =
      rows.back().first + int64_t(rows.back().weights.size());
  const int64_t lineBytes = (right - left) * channels;
  constexpr int64_t kHalf = int64_t(1) << (kBits - 1);
  std::vector<uint8_t> lines(size_t((endRow - firstRow) * lineBytes));
  for (int64_t y = firstRow; y < endRow; ++y) {
    const uint8_t *in = image.pixels.data() +
                        ((from.top + y) * image.width + from.left) * channels;
    uint8_t *out = lines.data() + (y - firstRow) * lineBytes;
    for (const Taps &taps : columns)
      for (int64_t c = 0; c < channels; ++c) {
        int64_t sum = kHalf;
        for (size_t i = 0; i < taps.weights.size(); ++i)
          sum += int64_t(in[(taps.first + int64_t(i)) * channels + c]) *
                 taps.weights[i];
        *out++ = toByte(sum);
      }
  }
  for (int64_t y = top; y < bottom; ++y) {
    const Taps &taps = rows[size_t(y - top)];
    const uint8_t *in = lines.data() + (taps.first - firstRow) * lineBytes;
    uint8_t *out = result.pixels.data() +
                   ((y - part.top) * part.width + left - part.left) * channels;
    for (int64_t x = 0; x < lineBytes; ++x) {
      int64_t sum = kHalf;
      for (size_t i = 0; i < taps.weights.size(); ++i)
        sum += int64_t(in[int64_t(i) * lineBytes + x]) * taps.weights[i];
      out[x] = toByte(sum);
    }
  }
  return result;
}

} // namespace ckopt
