//===- StridedGrad.cpp - input gradients of strided convolutions ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: with strides s, only some window points lie over an output point:
// for an input point i those w where i + pad - w * dilation is a multiple of s.
// A sum over all window points would multiply by zero for the others, three
// times out of four with strides of 2. Method: input points are divided in
// classes by i mod s; the window points of a class are w0, w0 + g, w0 + 2g,
// ..., and output points follow from them without a division. Each class is a
// separate matmul, in a separate launch. Guarantee: every input point is in one
// class; the remaining terms of its sum keep their order.
//
//===----------------------------------------------------------------------===//
#include "ConvIndex.h"
#include "DeviceContraction.h"
#include "Kinds/GeneratedKernel.h"

#include <numeric>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

namespace {

/// One dimension of a class: input points first + stride * q for q < points,
/// and window points tap + tapStep * t for t < taps, which lie over output
/// points q + out - outStep * t.
struct ClassAxis {
  int64_t first, points;
  int64_t tap = 0, tapStep = 1, taps = 0;
  int64_t out = 0, outStep = 0;
};

struct InputClass {
  ConvIndex conv;
  SmallVector<ClassAxis> axes;

  int64_t points() const {
    int64_t all = 1;
    for (const ClassAxis &axis : axes)
      all *= axis.points;
    return all;
  }
  int64_t taps() const {
    int64_t all = 1;
    for (const ClassAxis &axis : axes)
      all *= axis.taps;
    return all;
  }

  /// Splits a row into image and number q of each dimension.
  SmallVector<Value> row(Emitter &e, Value m) const {
    SmallVector<int64_t> sizes{conv.desc.batch};
    for (const ClassAxis &axis : axes)
      sizes.push_back(axis.points);
    return split(e, m, sizes);
  }
  /// Splits a depth into channel and number t of each dimension; the channel is
  /// innermost if it is so in memory.
  std::pair<Value, SmallVector<Value>> depth(Emitter &e, Value k) const {
    SmallVector<int64_t> sizes;
    for (const ClassAxis &axis : axes)
      sizes.push_back(axis.taps);
    bool last = conv.desc.channelsLast;
    sizes.insert(last ? sizes.end() : sizes.begin(), conv.channelsOut);
    SmallVector<Value> parts = split(e, k, sizes);
    Value channel = last ? parts.back() : parts.front();
    parts.erase(last ? parts.end() - 1 : parts.begin());
    return {channel, parts};
  }
  /// Returns the window points of numbers t.
  SmallVector<Value> window(Emitter &e, ArrayRef<Value> numbers) const {
    SmallVector<Value> at;
    for (auto [axis, t] : llvm::zip_equal(axes, numbers))
      at.push_back(affine(e, t, axis.tapStep, axis.tap));
    return at;
  }
  static Value affine(Emitter &e, Value x, int64_t factor, int64_t offset) {
    auto number = [&](int64_t n) { return e.constant(x.getType(), n); };
    return e.add(e.mul(x, number(factor)), number(offset));
  }
};

} // namespace

/// Describes the class of points `first` + stride * q of dimension d.
static ClassAxis axisOf(const runtime::ConvDesc &desc, int64_t d,
                        int64_t first) {
  int64_t stride = desc.strides[d], dilation = desc.dilations[d];
  ClassAxis axis{first, int64_t(llvm::divideCeil(desc.in[d] - first, stride))};
  axis.tapStep = stride / std::gcd(stride, dilation);
  axis.outStep = dilation * axis.tapStep / stride;
  for (int64_t w = 0; w < std::min(axis.tapStep, desc.kernel[d]); ++w) {
    int64_t over = first + desc.padsLo[d] - w * dilation;
    if (over % stride)
      continue;
    axis.tap = w;
    axis.taps = llvm::divideCeil(desc.kernel[d] - w, axis.tapStep);
    axis.out = over / stride;
    break;
  }
  return axis;
}

static DeviceGemm describeClass(const InputClass &part, DeviceGemm gemm,
                                Operand dy, Operand w, Operand dx) {
  const ConvIndex &conv = part.conv;
  gemm.m = conv.desc.batch * part.points();
  gemm.k = conv.channelsOut * part.taps();
  gemm.a = [=](Emitter &e, Value group, Value m, Value k, Value inside) {
    SmallVector<Value> row = part.row(e, conv.narrow(e, m));
    auto [channel, numbers] = part.depth(e, conv.narrow(e, k));
    channel = ConvIndex::channelOf(e, conv.narrow(e, group), channel,
                                   conv.channelsOut);
    SmallVector<Value> out;
    for (auto [d, axis] : llvm::enumerate(part.axes)) {
      Value over = e.sub(InputClass::affine(e, row[d + 1], 1, axis.out),
                         InputClass::affine(e, numbers[d], axis.outStep, 0));
      ConvIndex::require(e, inside, over, conv.desc.out[d]);
      out.push_back(over);
    }
    return dy.place(e, conv.output(e, row[0], channel, out), inside);
  };
  gemm.b = [=](Emitter &e, Value group, Value k, Value n, Value inside) {
    auto [channel, numbers] = part.depth(e, conv.narrow(e, k));
    Value out = ConvIndex::channelOf(e, conv.narrow(e, group), channel,
                                     conv.channelsOut);
    return w.place(
        e, conv.weight(e, out, conv.narrow(e, n), part.window(e, numbers)),
        inside);
  };
  gemm.store = [=](Emitter &e, Value group, Value m, Value n, Value v) {
    SmallVector<Value> row = part.row(e, conv.narrow(e, m)), point;
    Value channel = ConvIndex::channelOf(e, conv.narrow(e, group),
                                         conv.narrow(e, n), conv.channelsIn);
    for (auto [d, axis] : llvm::enumerate(part.axes))
      point.push_back(
          InputClass::affine(e, row[d + 1], conv.desc.strides[d], axis.first));
    dx.store(e, conv.input(e, row[0], channel, point), v);
  };
  if (!conv.desc.channelsLast) // neighboring points are of other classes
    gemm.aLanes = gemm.cLanes = 1;
  return gemm;
}

SmallVector<DeviceGemm, 0> codegen::describeStridedGrad(const ConvIndex &conv,
                                                        const DeviceGemm &whole,
                                                        Operand dy, Operand w,
                                                        Operand dx) {
  const runtime::ConvDesc &desc = conv.desc;
  int64_t classes = 1;
  for (int64_t d = 0; d < desc.rank; ++d)
    classes *= std::min(desc.strides[d], desc.in[d]);
  SmallVector<DeviceGemm, 0> result;
  for (int64_t number = 0; number < classes; ++number) {
    InputClass part{conv, {}};
    int64_t rest = number;
    for (int64_t d = 0; d < desc.rank; ++d) {
      int64_t count = std::min(desc.strides[d], desc.in[d]);
      part.axes.push_back(axisOf(desc, d, rest % count));
      rest /= count;
    }
    result.push_back(describeClass(part, whole, dy, w, dx));
  }
  return result;
}
