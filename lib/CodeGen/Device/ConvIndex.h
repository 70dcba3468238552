//===- ConvIndex.h - element offsets of convolutions ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_DEVICE_CONVINDEX_H
#define CKOPT_LIB_CODEGEN_DEVICE_CONVINDEX_H

#include "Emit/Emitter.h"

namespace ckopt::codegen {

/// Computes element offsets of a convolution's tensors.
struct ConvIndex {
  explicit ConvIndex(const runtime::ConvDesc &desc)
      : desc(desc), channelsIn(desc.inChannels / desc.groups),
        channelsOut(desc.outChannels / desc.groups) {}

  runtime::ConvDesc desc;
  int64_t channelsIn, channelsOut; ///< channels of a group

  int64_t window() const { return product(extents(desc.kernel)); }
  int64_t pointsIn() const { return product(extents(desc.in)); }
  int64_t pointsOut() const { return product(extents(desc.out)); }
  /// Returns whether input and output points are the same.
  bool isPointwise() const;
  bool isStrided() const {
    return llvm::any_of(extents(desc.strides), [](int64_t s) { return s > 1; });
  }
  /// Returns whether depth() numbers a weight's elements (channel of the group,
  /// window point) in memory order.
  bool isWeightInOrder() const {
    return desc.channelsLast == desc.weightsLast || window() == 1;
  }
  /// Returns whether a weight's input channels are neighbors in memory.
  bool isWeightAlongChannels() const {
    return desc.weightsLast || window() == 1;
  }

  /// Returns the number of a row, column or depth in i32, if all offsets fit
  /// and windows make the offsets long to compute: tiles of 128 x 128 have few
  /// registers for addresses. Offsets have the type of the numbers that they
  /// are computed from.
  Value narrow(Emitter &e, Value number) const;

  /// Returns an activation's offset by image, channel and point.
  Value input(Emitter &e, Value image, Value channel,
              ArrayRef<Value> point) const {
    return activation(e, image, channel, point, desc.in, desc.inChannels);
  }
  Value output(Emitter &e, Value image, Value channel,
               ArrayRef<Value> point) const {
    return activation(e, image, channel, point, desc.out, desc.outChannels);
  }
  /// Returns an activation's offset for a point given as a single number, so
  /// that its divisors remain visible.
  Value flatActivation(Emitter &e, Value number, Value channel, int64_t points,
                       int64_t channels) const;
  /// Returns a weight's offset if `number` is to be split into channel and
  /// window point.
  Value weight(Emitter &e, Value out, Value number) const;
  /// Returns a weight's offset by out channel, channel of the group and window.
  Value weight(Emitter &e, Value out, Value in, ArrayRef<Value> at) const;

  /// Splits k into channel and window point; the channel is innermost if it is
  /// so in memory.
  std::pair<Value, SmallVector<Value>> depth(Emitter &e, Value k,
                                             int64_t channels) const;
  /// Splits a row number into image and point.
  std::pair<Value, SmallVector<Value>> point(Emitter &e, Value number,
                                             const int64_t (&sizes)[3]) const;
  /// Returns the number of a group's channel among all channels.
  static Value channelOf(Emitter &e, Value group, Value channel,
                         int64_t ofGroup) {
    return e.add(e.mul(group, e.constant(group.getType(), ofGroup)), channel);
  }

  /// Returns the input point under window point `at` of output point `out`, and
  /// whether it lies inside.
  SmallVector<Value> under(Emitter &e, ArrayRef<Value> out, ArrayRef<Value> at,
                           Value &inside) const;
  /// Returns the output point whose window point `at` lies on input point `in`,
  /// and whether there is one.
  SmallVector<Value> over(Emitter &e, ArrayRef<Value> in, ArrayRef<Value> at,
                          Value &inside) const;

  /// Adds 0 <= i < size to the condition `inside`.
  static void require(Emitter &e, Value &inside, Value i, int64_t size);

private:
  SmallVector<int64_t> extents(const int64_t (&sizes)[3]) const {
    return SmallVector<int64_t>(sizes, sizes + desc.rank);
  }
  static int64_t product(ArrayRef<int64_t> sizes);
  Value activation(Emitter &e, Value image, Value channel,
                   ArrayRef<Value> point, const int64_t (&sizes)[3],
                   int64_t channels) const;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_DEVICE_CONVINDEX_H
