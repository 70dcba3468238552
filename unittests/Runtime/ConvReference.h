//===- ConvReference.h - a convolution as a list of products ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_RUNTIME_CONVREFERENCE_H
#define CKOPT_UNITTESTS_RUNTIME_CONVREFERENCE_H

#include "ckopt/Runtime/Primitive.h"

namespace ckopt::runtime::test {

/// Offset of (n, channel, point) in an activation.
inline int64_t at(const ConvDesc &c, int64_t channels, const int64_t *extent,
                  int64_t n, int64_t channel, const int64_t *p) {
  int64_t points = extent[0] * extent[1] * extent[2];
  int64_t point = (p[0] * extent[1] + p[1]) * extent[2] + p[2];
  return c.channelsLast ? (n * points + point) * channels + channel
                        : (n * channels + channel) * points + point;
}

/// Offset of (out channel, channel of the group, window point) in the weights.
inline int64_t weightAt(const ConvDesc &c, int64_t f, int64_t ch, int64_t tap) {
  int64_t channels = c.inChannels / c.groups;
  int64_t taps = c.kernel[0] * c.kernel[1] * c.kernel[2];
  return c.weightsLast ? (f * taps + tap) * channels + ch
                       : (f * channels + ch) * taps + tap;
}

/// Calls fn(x offset, w offset, y offset) for every product of the convolution.
template <typename Fn> void forEachProduct(const ConvDesc &c, Fn fn) {
  int64_t filters = c.outChannels / c.groups;
  int64_t channels = c.inChannels / c.groups;
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t f = 0; f < c.outChannels; ++f)
      for (int64_t o = 0; o < c.out[0] * c.out[1] * c.out[2]; ++o)
        for (int64_t ch = 0; ch < channels; ++ch)
          for (int64_t k = 0; k < c.kernel[0] * c.kernel[1] * c.kernel[2];
               ++k) {
            int64_t out[3] = {o / (c.out[1] * c.out[2]),
                              o / c.out[2] % c.out[1], o % c.out[2]};
            int64_t tap[3] = {k / (c.kernel[1] * c.kernel[2]),
                              k / c.kernel[2] % c.kernel[1], k % c.kernel[2]};
            int64_t in[3];
            bool inside = true;
            for (int d = 0; d < 3; ++d) {
              in[d] =
                  out[d] * c.strides[d] + tap[d] * c.dilations[d] - c.padsLo[d];
              inside &= in[d] >= 0 && in[d] < c.in[d];
            }
            if (inside)
              fn(at(c, c.inChannels, c.in, n, f / filters * channels + ch, in),
                 weightAt(c, f, ch, k), at(c, c.outChannels, c.out, n, f, out));
          }
}

/// The elements of the input, the weights and the output.
struct Sizes {
  explicit Sizes(const ConvDesc &c)
      : x(c.batch * c.inChannels * c.in[0] * c.in[1] * c.in[2]),
        w(c.outChannels * (c.inChannels / c.groups) * c.kernel[0] *
          c.kernel[1] * c.kernel[2]),
        y(c.batch * c.outChannels * c.out[0] * c.out[1] * c.out[2]) {}
  int64_t x, w, y;
};

} // namespace ckopt::runtime::test

#endif // CKOPT_UNITTESTS_RUNTIME_CONVREFERENCE_H
