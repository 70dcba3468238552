//===- DeviceConvolution.cpp - convolutions as implicit GEMMs -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Describes convolutions as products of matrices. With o an output point, i an
// input point, w a point of the window:
//
//   forward          m = (image, o)      n = out channel   k = (channel, w)
//   input gradient   m = (image, i)      n = in channel    k = (channel, w)
//   weight gradient  m = out channel     n = (channel, w)  k = (image, o)
//
// one batch a group. Channels-last tensors put the channel innermost in k, so
// that neighbouring threads load neighbouring words.
//
//===----------------------------------------------------------------------===//
#include "Device/ConvIndex.h"
#include "Device/DeviceContraction.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using runtime::PrimitiveKind;
using runtime::ProductPrecision;

/// Loads if `inside` holds; returns zero otherwise.
static Value loadInside(Emitter &e, Type type, unsigned lanes, Value inside,
                        function_ref<Value()> load) {
  if (!inside)
    return load();
  if (lanes > 1)
    type = VectorType::get({int64_t(lanes)}, type);
  return e
      .ifThen(
          inside, [&] { return SmallVector<Value>{load()}; },
          [&] {
            return SmallVector<Value>{
                arith::ConstantOp::create(e.b, e.b.getZeroAttr(type))};
          })
      .front();
}

/// Loads the input's element under an output point and a channel and window
/// point, both as numbers; zero where the window leaves the input.
static Value loadInput(const ConvIndex &conv, Operand x, OperandForm form,
                       Emitter &e, Value group, Value output, Value depth,
                       unsigned lanes) {
  auto [channel, at] = conv.depth(e, depth, conv.channelsIn);
  Value all = ConvIndex::channelOf(e, group, channel, conv.channelsIn);
  if (conv.isPointwise())
    return x.load(e,
                  conv.flatActivation(e, output, all, conv.pointsIn(),
                                      conv.desc.inChannels),
                  lanes, form);
  auto [image, out] = conv.point(e, output, conv.desc.out);
  Value inside;
  SmallVector<Value> in = conv.under(e, out, at, inside);
  return loadInside(e, form.type, lanes, inside, [&] {
    return x.load(e, conv.input(e, image, all, in), lanes, form);
  });
}

static DeviceGemm describeForward(const ConvIndex &conv, Operand x, Operand w,
                                  Operand y, ProductPrecision precision) {
  const bool last = conv.desc.channelsLast;
  DeviceGemm gemm;
  gemm.batch = conv.desc.groups;
  gemm.m = conv.desc.batch * conv.pointsOut();
  gemm.n = conv.channelsOut;
  gemm.k = conv.channelsIn * conv.window();
  gemm.type = computeType(y.element);
  OperandForm form = gemm.operand = operandForm(x, w, gemm.type, precision);
  gemm.a = [=](Emitter &e, Value group, Value m, Value k, unsigned lanes) {
    return loadInput(conv, x, form, e, group, m, k, lanes);
  };
  gemm.b = [=](Emitter &e, Value group, Value k, Value n, unsigned lanes) {
    Value out = ConvIndex::channelOf(e, group, n, conv.channelsOut);
    return w.load(e, conv.weight(e, out, k), lanes, form);
  };
  gemm.store = [=](Emitter &e, Value group, Value m, Value n, Value v) {
    Value channel = ConvIndex::channelOf(e, group, n, conv.channelsOut);
    y.store(e,
            conv.flatActivation(e, m, channel, conv.pointsOut(),
                                conv.desc.outChannels),
            v);
  };
  gemm.aAlongK = last;
  gemm.bAlongN = false;
  gemm.cAlongN = last;
  gemm.aLanes = last ? x.lanes(true, conv.channelsIn)
                     : x.lanes(conv.isPointwise(), conv.pointsIn());
  gemm.bLanes = w.lanes(conv.isWeightInOrder(), gemm.k);
  gemm.cLanes = y.lanes(true, last ? conv.channelsOut : conv.pointsOut());
  return gemm;
}

static DeviceGemm describeInputGrad(const ConvIndex &conv, Operand dy,
                                    Operand w, Operand dx,
                                    ProductPrecision precision) {
  const bool last = conv.desc.channelsLast;
  DeviceGemm gemm;
  gemm.batch = conv.desc.groups;
  gemm.m = conv.desc.batch * conv.pointsIn();
  gemm.n = conv.channelsIn;
  gemm.k = conv.channelsOut * conv.window();
  gemm.type = computeType(dx.element);
  OperandForm form = gemm.operand = operandForm(dy, w, gemm.type, precision);
  gemm.a = [=](Emitter &e, Value group, Value m, Value k, unsigned lanes) {
    auto [channel, at] = conv.depth(e, k, conv.channelsOut);
    Value all = ConvIndex::channelOf(e, group, channel, conv.channelsOut);
    if (conv.isPointwise())
      return dy.load(e,
                     conv.flatActivation(e, m, all, conv.pointsOut(),
                                         conv.desc.outChannels),
                     lanes, form);
    auto [image, in] = conv.point(e, m, conv.desc.in);
    Value inside;
    SmallVector<Value> out = conv.over(e, in, at, inside);
    return loadInside(e, form.type, lanes, inside, [&] {
      return dy.load(e, conv.output(e, image, all, out), lanes, form);
    });
  };
  gemm.b = [=](Emitter &e, Value group, Value k, Value n, unsigned lanes) {
    auto [channel, at] = conv.depth(e, k, conv.channelsOut);
    Value out = ConvIndex::channelOf(e, group, channel, conv.channelsOut);
    return w.load(e, conv.weight(e, out, n, at), lanes, form);
  };
  gemm.store = [=](Emitter &e, Value group, Value m, Value n, Value v) {
    Value channel = ConvIndex::channelOf(e, group, n, conv.channelsIn);
    dx.store(e,
             conv.flatActivation(e, m, channel, conv.pointsIn(),
                                 conv.desc.inChannels),
             v);
  };
  gemm.aAlongK = last;
  gemm.bAlongN = conv.window() == 1;
  gemm.cAlongN = last;
  gemm.aLanes = last ? dy.lanes(true, conv.channelsOut)
                     : dy.lanes(conv.isPointwise(), conv.pointsOut());
  gemm.bLanes = w.lanes(gemm.bAlongN, conv.channelsIn);
  gemm.cLanes = dx.lanes(true, last ? conv.channelsIn : conv.pointsIn());
  return gemm;
}

static DeviceGemm describeWeightGrad(const ConvIndex &conv, Operand x,
                                     Operand dy, Operand dw,
                                     ProductPrecision precision) {
  const bool last = conv.desc.channelsLast;
  DeviceGemm gemm;
  gemm.batch = conv.desc.groups;
  gemm.m = conv.channelsOut;
  gemm.n = conv.channelsIn * conv.window();
  gemm.k = conv.desc.batch * conv.pointsOut();
  gemm.type = computeType(dw.element);
  OperandForm form = gemm.operand = operandForm(x, dy, gemm.type, precision);
  gemm.a = [=](Emitter &e, Value group, Value m, Value k, unsigned lanes) {
    Value channel = ConvIndex::channelOf(e, group, m, conv.channelsOut);
    return dy.load(e,
                   conv.flatActivation(e, k, channel, conv.pointsOut(),
                                       conv.desc.outChannels),
                   lanes, form);
  };
  gemm.b = [=](Emitter &e, Value group, Value k, Value n, unsigned lanes) {
    return loadInput(conv, x, form, e, group, k, n, lanes);
  };
  gemm.store = [=](Emitter &e, Value group, Value m, Value n, Value v) {
    Value out = ConvIndex::channelOf(e, group, m, conv.channelsOut);
    dw.store(e, conv.weight(e, out, n), v);
  };
  gemm.aAlongK = !last;
  gemm.bAlongN = last;
  gemm.aLanes = dy.lanes(true, last ? conv.channelsOut : conv.pointsOut());
  gemm.bLanes = last ? x.lanes(true, conv.channelsIn)
                     : x.lanes(conv.isPointwise(), conv.pointsIn());
  gemm.cLanes = dw.lanes(conv.isWeightInOrder(), gemm.n);
  return gemm;
}

DeviceGemm codegen::describeConvolution(const runtime::PrimitiveDesc &desc,
                                        Operand first, Operand second,
                                        Operand result) {
  ConvIndex conv(desc.conv);
  switch (desc.kind) {
  case PrimitiveKind::ConvForward:
    return describeForward(conv, first, second, result, desc.precision);
  case PrimitiveKind::ConvInputGrad:
    return describeInputGrad(conv, first, second, result, desc.precision);
  case PrimitiveKind::ConvWeightGrad:
    return describeWeightGrad(conv, first, second, result, desc.precision);
  case PrimitiveKind::MatMul:
    break;
  }
  llvm_unreachable("kinds of convolutions are listed above");
}
