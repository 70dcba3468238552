//===- ConvIndex.cpp - element offsets of convolutions --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ConvIndex.h"
#include "DeviceContraction.h"
#include "Kinds/GeneratedKernel.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// Returns a constant of v's type.
static Value numberLike(Emitter &e, Value v, int64_t number) {
  return e.constant(v.getType(), number);
}

Value ConvIndex::narrow(Emitter &e, Value number) const {
  int64_t most = std::max({desc.inChannels * pointsIn() * desc.batch,
                           desc.outChannels * pointsOut() * desc.batch,
                           desc.outChannels * channelsIn * window()});
  // Numbers beyond the shape, whose elements are not read, may be larger.
  if (isPointwise() || most >= int64_t(1) << 30)
    return number;
  return arith::TruncIOp::create(e.b, e.b.getI32Type(), number);
}

int64_t ConvIndex::product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

bool ConvIndex::isPointwise() const {
  bool same = window() == 1;
  for (int64_t d = 0; d < desc.rank; ++d)
    same &= desc.in[d] == desc.out[d] && desc.strides[d] == 1 &&
            desc.padsLo[d] == 0;
  return same;
}

Value ConvIndex::activation(Emitter &e, Value image, Value channel,
                            ArrayRef<Value> point, const int64_t (&sizes)[3],
                            int64_t channels) const {
  SmallVector<int64_t> spatial = extents(sizes);
  int64_t points = product(spatial);
  SmallVector<Value> at{image, channel};
  SmallVector<int64_t> strides{points * channels,
                               desc.channelsLast ? 1 : points};
  int64_t stride = desc.channelsLast ? channels : 1;
  SmallVector<int64_t> own(spatial.size());
  for (size_t d = spatial.size(); d-- > 0; stride *= spatial[d])
    own[d] = stride;
  llvm::append_range(at, point);
  llvm::append_range(strides, own);
  return linear(e, at, strides);
}

Value ConvIndex::flatActivation(Emitter &e, Value number, Value channel,
                                int64_t points, int64_t channels) const {
  SmallVector<Value> at = split(e, number, {desc.batch, points});
  return linear(e, {at[0], channel, at[1]},
                {points * channels, desc.channelsLast ? 1 : points,
                 desc.channelsLast ? channels : 1});
}

Value ConvIndex::weight(Emitter &e, Value out, Value number) const {
  if (isWeightInOrder())
    return linear(e, {out, number}, {channelsIn * window(), 1});
  auto [channel, at] = depth(e, number, channelsIn);
  return weight(e, out, channel, at);
}

Value ConvIndex::weight(Emitter &e, Value out, Value in,
                        ArrayRef<Value> at) const {
  SmallVector<int64_t> sizes = extents(desc.kernel);
  SmallVector<Value> values{out, in};
  llvm::append_range(values, at);
  SmallVector<int64_t> strides(values.size());
  int64_t stride = desc.weightsLast ? channelsIn : 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d])
    strides[d + 2] = stride;
  strides[1] = desc.weightsLast ? 1 : stride;
  strides[0] = channelsIn * window();
  return linear(e, values, strides);
}

std::pair<Value, SmallVector<Value>> ConvIndex::depth(Emitter &e, Value k,
                                                      int64_t channels) const {
  SmallVector<int64_t> sizes = extents(desc.kernel);
  if (desc.channelsLast)
    sizes.push_back(channels);
  else
    sizes.insert(sizes.begin(), channels);
  SmallVector<Value> parts = split(e, k, sizes);
  Value channel = desc.channelsLast ? parts.back() : parts.front();
  parts.erase(desc.channelsLast ? parts.end() - 1 : parts.begin());
  return {channel, parts};
}

std::pair<Value, SmallVector<Value>>
ConvIndex::point(Emitter &e, Value number, const int64_t (&sizes)[3]) const {
  SmallVector<int64_t> all = extents(sizes);
  all.insert(all.begin(), desc.batch);
  SmallVector<Value> parts = split(e, number, all);
  Value image = parts.front();
  parts.erase(parts.begin());
  return {image, parts};
}

void ConvIndex::require(Emitter &e, Value &inside, Value i, int64_t size) {
  // One unsigned comparison suffices, because negative numbers become large.
  Value fits = e.cmpi(arith::CmpIPredicate::ult, i, numberLike(e, i, size));
  inside = inside ? e.andi(inside, fits) : fits;
}

SmallVector<Value> ConvIndex::under(Emitter &e, ArrayRef<Value> out,
                                    ArrayRef<Value> at, Value &inside) const {
  SmallVector<Value> result;
  for (int64_t d = 0; d < desc.rank; ++d) {
    Value i = e.add(e.mul(out[d], numberLike(e, out[d], desc.strides[d])),
                    e.mul(at[d], numberLike(e, at[d], desc.dilations[d])));
    i = e.sub(i, numberLike(e, i, desc.padsLo[d]));
    require(e, inside, i, desc.in[d]);
    result.push_back(i);
  }
  return result;
}

SmallVector<Value> ConvIndex::over(Emitter &e, ArrayRef<Value> in,
                                   ArrayRef<Value> at, Value &inside) const {
  SmallVector<Value> result;
  for (int64_t d = 0; d < desc.rank; ++d) {
    Value o = e.sub(e.add(in[d], numberLike(e, in[d], desc.padsLo[d])),
                    e.mul(at[d], numberLike(e, at[d], desc.dilations[d])));
    if (desc.strides[d] != 1) {
      Value stride = numberLike(e, o, desc.strides[d]);
      Value quotient = arith::DivSIOp::create(e.b, o, stride);
      Value whole =
          e.cmpi(arith::CmpIPredicate::eq, e.mul(quotient, stride), o);
      // A negative o may be zero after division, so test it before.
      whole = e.andi(whole,
                     e.cmpi(arith::CmpIPredicate::sge, o, numberLike(e, o, 0)));
      inside = inside ? e.andi(inside, whole) : whole;
      o = quotient;
    }
    require(e, inside, o, desc.out[d]);
    result.push_back(o);
  }
  return result;
}
