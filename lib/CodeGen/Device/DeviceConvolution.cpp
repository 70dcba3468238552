//===- DeviceConvolution.cpp - convolutions as implicit GEMMs -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Describes convolutions as matmuls. With o an output point, i an input point,
// w a point of the window:
//
//   forward          m = (image, o)      n = out channel   k = (channel, w)
//   input gradient   m = (image, i)      n = in channel    k = (channel, w)
//   weight gradient  m = out channel     n = (channel, w)  k = (image, o)
//
// one batch a group; input gradients of strided convolutions are several such
// matmuls (StridedGrad.cpp). Channels-last tensors put the channel innermost in
// k, so that neighboring threads load neighboring words.
//
//===----------------------------------------------------------------------===//
#include "ConvIndex.h"
#include "DeviceContraction.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using runtime::PrimitiveKind;
using runtime::ProductPrecision;

namespace {

/// The input or the output of a convolution, as a matrix of points and
/// channels.
struct Activation {
  ConvIndex conv;
  Operand operand;
  bool isInput;

  int64_t channels() const {
    return isInput ? conv.channelsIn : conv.channelsOut;
  }
  int64_t points() const {
    return isInput ? conv.pointsIn() : conv.pointsOut();
  }

  /// Returns the offset of a group's channel at a point, given by their
  /// numbers.
  Value offset(Emitter &e, Value group, Value point, Value channel) const {
    Value all = ConvIndex::channelOf(e, conv.narrow(e, group),
                                     conv.narrow(e, channel), channels());
    return flat(e, conv.narrow(e, point), all);
  }
  /// Finds the element that is multiplied with a point of the other activation
  /// for `depth`, a channel and window point; zero if there is none or `inside`
  /// does not hold.
  Place placeMet(Emitter &e, Value group, Value other, Value depth,
                 Value inside) const;

  /// Lanes of elements along the innermost dimension in memory.
  unsigned lanes() const {
    return operand.lanes(true, conv.desc.channelsLast ? channels() : points());
  }
  /// The same, for elements that placeMet() loads.
  unsigned lanesMet() const {
    return conv.desc.channelsLast ? operand.lanes(true, channels())
                                  : operand.lanes(conv.isPointwise(), points());
  }

  /// How often windows read an element of an image with few channels: a tile
  /// covers so little of it that it stays in the multiprocessor's cache
  /// meanwhile.
  double readsMet() const {
    constexpr int64_t kFewBits = 8 * 32;
    if (!conv.desc.channelsLast || !isInput ||
        channels() * operand.element.getIntOrFloatBitWidth() > kFewBits)
      return 1;
    double reads = double(conv.window());
    for (int64_t d = 0; d < conv.desc.rank; ++d)
      reads /= double(conv.desc.strides[d]);
    return std::max(reads, 1.0);
  }

private:
  Value flat(Emitter &e, Value point, Value channel) const {
    return conv.flatActivation(e, point, channel, points(),
                               isInput ? conv.desc.inChannels
                                       : conv.desc.outChannels);
  }
};

} // namespace

Place Activation::placeMet(Emitter &e, Value group, Value other, Value depth,
                           Value inside) const {
  group = conv.narrow(e, group);
  other = conv.narrow(e, other);
  depth = conv.narrow(e, depth);
  auto [channel, at] = conv.depth(e, depth, channels());
  Value all = ConvIndex::channelOf(e, group, channel, channels());
  if (conv.isPointwise())
    return operand.place(e, flat(e, other, all), inside);
  auto [image, out] =
      conv.point(e, other, isInput ? conv.desc.out : conv.desc.in);
  SmallVector<Value> met =
      isInput ? conv.under(e, out, at, inside) : conv.over(e, out, at, inside);
  Place place = operand.place(e,
                              isInput ? conv.input(e, image, all, met)
                                      : conv.output(e, image, all, met),
                              inside);
  place.isShared = readsMet() > 1;
  return place;
}

/// Makes a matmul for one group, m by n, over k.
static DeviceGemm startGemm(const ConvIndex &conv, int64_t m, int64_t n,
                            int64_t k, Operand first, Operand second,
                            Operand result, ProductPrecision precision) {
  DeviceGemm gemm;
  gemm.batch = conv.desc.groups;
  gemm.m = m;
  gemm.n = n;
  gemm.k = k;
  gemm.type = computeType(result.element);
  gemm.operand = operandForm(first, second, gemm.type, precision);
  gemm.aElement = first.element;
  gemm.bElement = second.element;
  gemm.cElement = result.element;
  return gemm;
}

/// Makes the matmul's rows the points of one activation, its columns the
/// channels, and its k the channels and window points of the other one.
static DeviceGemm describePoints(const ConvIndex &conv, Activation from,
                                 Operand w, Activation to,
                                 ProductPrecision precision) {
  const bool last = conv.desc.channelsLast;
  DeviceGemm gemm = startGemm(conv, conv.desc.batch * to.points(),
                              to.channels(), from.channels() * conv.window(),
                              from.operand, w, to.operand, precision);
  gemm.a = [=](Emitter &e, Value group, Value m, Value k, Value inside) {
    return from.placeMet(e, group, m, k, inside);
  };
  gemm.store = [=](Emitter &e, Value group, Value m, Value n, Value v) {
    to.operand.store(e, to.offset(e, group, m, n), v);
  };
  gemm.aAlongK = last;
  gemm.cAlongN = last;
  gemm.aLanes = from.lanesMet();
  gemm.aReads = from.readsMet();
  gemm.cLanes = to.lanes();
  return gemm;
}

static DeviceGemm describeForward(const ConvIndex &conv, Operand x, Operand w,
                                  Operand y, ProductPrecision precision) {
  DeviceGemm gemm =
      describePoints(conv, {conv, x, true}, w, {conv, y, false}, precision);
  gemm.b = [=](Emitter &e, Value group, Value k, Value n, Value inside) {
    Value out = ConvIndex::channelOf(e, conv.narrow(e, group),
                                     conv.narrow(e, n), conv.channelsOut);
    return w.place(e, conv.weight(e, out, conv.narrow(e, k)), inside);
  };
  gemm.bAlongN = false;
  gemm.bLanes = w.lanes(conv.isWeightInOrder(), gemm.k);
  return gemm;
}

static DeviceGemm describeInputGrad(const ConvIndex &conv, Operand dy,
                                    Operand w, Operand dx,
                                    ProductPrecision precision) {
  DeviceGemm gemm =
      describePoints(conv, {conv, dy, false}, w, {conv, dx, true}, precision);
  gemm.b = [=](Emitter &e, Value group, Value k, Value n, Value inside) {
    auto [channel, at] = conv.depth(e, conv.narrow(e, k), conv.channelsOut);
    Value out = ConvIndex::channelOf(e, conv.narrow(e, group), channel,
                                     conv.channelsOut);
    return w.place(e, conv.weight(e, out, conv.narrow(e, n), at), inside);
  };
  gemm.bAlongN = conv.isWeightAlongChannels();
  gemm.bLanes = w.lanes(gemm.bAlongN, conv.channelsIn);
  return gemm;
}

static DeviceGemm describeWeightGrad(const ConvIndex &conv, Operand x,
                                     Operand dy, Operand dw,
                                     ProductPrecision precision) {
  const bool last = conv.desc.channelsLast;
  DeviceGemm gemm =
      startGemm(conv, conv.channelsOut, conv.channelsIn * conv.window(),
                conv.desc.batch * conv.pointsOut(), x, dy, dw, precision);
  gemm.aElement = dy.element;
  gemm.bElement = x.element;
  Activation input{conv, x, true}, output{conv, dy, false};
  gemm.a = [=](Emitter &e, Value group, Value m, Value k, Value inside) {
    return output.operand.place(e, output.offset(e, group, k, m), inside);
  };
  gemm.b = [=](Emitter &e, Value group, Value k, Value n, Value inside) {
    return input.placeMet(e, group, k, n, inside);
  };
  gemm.store = [=](Emitter &e, Value group, Value m, Value n, Value v) {
    Value out = ConvIndex::channelOf(e, conv.narrow(e, group),
                                     conv.narrow(e, m), conv.channelsOut);
    dw.store(e, conv.weight(e, out, conv.narrow(e, n)), v);
  };
  gemm.aAlongK = !last;
  gemm.bAlongN = last;
  gemm.aLanes = output.lanes();
  gemm.bLanes = input.lanesMet();
  gemm.bReads = input.readsMet();
  gemm.cLanes = dw.lanes(conv.isWeightInOrder(), gemm.n);
  return gemm;
}

SmallVector<DeviceGemm, 0>
codegen::describeConvolution(const runtime::PrimitiveDesc &desc, Operand first,
                             Operand second, Operand result) {
  ConvIndex conv(desc.conv);
  switch (desc.kind) {
  case PrimitiveKind::ConvForward:
    return {describeForward(conv, first, second, result, desc.precision)};
  case PrimitiveKind::ConvInputGrad: {
    DeviceGemm whole =
        describeInputGrad(conv, first, second, result, desc.precision);
    if (conv.isStrided())
      return describeStridedGrad(conv, whole, first, second, result);
    return {whole};
  }
  case PrimitiveKind::ConvWeightGrad:
    return {describeWeightGrad(conv, first, second, result, desc.precision)};
  case PrimitiveKind::MatMul:
  case PrimitiveKind::Attention:
  case PrimitiveKind::AttentionGrad:
  case PrimitiveKind::AllReduce:
  case PrimitiveKind::Rank:
  case PrimitiveKind::AllGather:
  case PrimitiveKind::ReduceScatter:
  case PrimitiveKind::Broadcast:
  case PrimitiveKind::OwnRows:
  case PrimitiveKind::CollectiveWait:
    break;
  }
  llvm_unreachable("kinds of convolutions are listed above");
}
