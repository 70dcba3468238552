//===- DeviceContraction.cpp - products and convolutions on a GPU ---------===//
//
// The ops that the CPU leaves to a library, as implicit GEMMs: which element of
// memory a(m, k) and b(k, n) mean follows from the primitive's descriptor. With
// o an output point, i an input point, w a point of the window:
//
//   forward          m = (image, o)      n = out channel   k = (channel, w)
//   input gradient   m = (image, i)      n = in channel    k = (channel, w)
//   weight gradient  m = out channel     n = (channel, w)  k = (image, o)
//
// one batch a group. Channels-last tensors put the channel innermost in k, so
// that neighbouring threads load neighbouring words.
//
//===----------------------------------------------------------------------===//
#include "DeviceGemm.h"
#include "GeneratedKernel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using runtime::ConvDesc;
using runtime::MatMulDesc;
using runtime::PrimitiveKind;

namespace {

/// A tensor of the kernel that code reads and writes by element offsets.
struct Operand {
  unsigned number; ///< argument of the kernel
  Type element;

  /// Elements that fill 16 bytes.
  int64_t wide() const {
    return 128 / int64_t(element.getIntOrFloatBitWidth());
  }
  /// As many elements as a number is a multiple of where vectors fit: wide()
  /// if `lies` and all of `numbers` are multiples of it, else 1.
  unsigned lanes(bool lies, ArrayRef<int64_t> numbers) const {
    for (int64_t number : numbers)
      lies &= number % wide() == 0;
    return lies ? unsigned(wide()) : 1;
  }

  /// `lanes` neighbours from there on, each as an `as`.
  Value load(Emitter &e, Value offset, unsigned lanes, Type as) const {
    auto many = [&](Type type) {
      return lanes == 1 ? type : VectorType::get({int64_t(lanes)}, type);
    };
    ++(lanes == 1 ? e.report.broadcasts : e.report.unitLoads);
    Value v = LLVM::LoadOp::create(e.b, many(element), address(e, offset),
                                   element.getIntOrFloatBitWidth() / 8);
    return as == element ? v : arith::ExtFOp::create(e.b, many(as), v);
  }
  void store(Emitter &e, Value offset, Value v) const {
    Type type = element;
    if (auto vector = dyn_cast<VectorType>(v.getType()))
      type = vector.clone(element);
    if (v.getType() != type)
      v = arith::TruncFOp::create(e.b, type, v);
    LLVM::StoreOp::create(e.b, v, address(e, offset),
                          element.getIntOrFloatBitWidth() / 8);
  }

private:
  Value address(Emitter &e, Value offset) const {
    Value base = e.argument(number);
    return LLVM::GEPOp::create(e.b, base.getType(), element, base,
                               ArrayRef<LLVM::GEPArg>{offset});
  }
};

/// The type that elements of a and b have in shared memory.
Type operandType(Operand a, Operand b, Type sums) {
  bool half = a.element.isF16() || a.element.isBF16();
  return half && a.element == b.element ? a.element : sums;
}

/// sum of values[i] * strides[i].
Value linear(Emitter &e, ArrayRef<Value> values, ArrayRef<int64_t> strides) {
  Value sum = e.index(0);
  for (auto [v, stride] : llvm::zip_equal(values, strides))
    if (stride)
      sum = e.add(sum, stride == 1 ? v : e.mul(v, e.index(stride)));
  return sum;
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

DeviceGemm describeProduct(const MatMulDesc &desc, Operand a, Operand b,
                           Operand c) {
  DeviceGemm gemm;
  gemm.batch = desc.batch[0] * desc.batch[1];
  gemm.m = desc.m;
  gemm.n = desc.n;
  gemm.k = desc.k;
  gemm.type = computeType(c.element);
  Type type = gemm.operand = operandType(a, b, gemm.type);
  auto offset = [desc](Emitter &e, Value batch, Value row, Value column,
                       const int64_t (&batches)[2], int64_t rowStride,
                       int64_t columnStride) {
    SmallVector<Value> at = split(e, batch, {desc.batch[0], desc.batch[1]});
    return linear(e, {at[0], at[1], row, column},
                  {batches[0], batches[1], rowStride, columnStride});
  };
  gemm.a = [=](Emitter &e, Value batch, Value row, Value column,
               unsigned lanes) {
    return a.load(
        e, offset(e, batch, row, column, desc.aBatch, desc.aRow, desc.aCol),
        lanes, type);
  };
  gemm.b = [=](Emitter &e, Value batch, Value row, Value column,
               unsigned lanes) {
    return b.load(
        e, offset(e, batch, row, column, desc.bBatch, desc.bRow, desc.bCol),
        lanes, type);
  };
  gemm.store = [=](Emitter &e, Value batch, Value row, Value column, Value v) {
    c.store(e, offset(e, batch, row, column, desc.cBatch, desc.cRow, desc.cCol),
            v);
  };
  gemm.aAlongK = desc.aCol == 1;
  gemm.bAlongN = desc.bCol == 1;
  gemm.cAlongN = desc.cCol == 1;
  // Stride 1 along one dimension; all others start at multiples.
  auto lanes = [](Operand x, int64_t stride, int64_t extent, int64_t other,
                  const int64_t (&batches)[2]) {
    return x.lanes(stride == 1, {extent, other, batches[0], batches[1]});
  };
  gemm.aLanes = gemm.aAlongK
                    ? lanes(a, desc.aCol, desc.k, desc.aRow, desc.aBatch)
                    : lanes(a, desc.aRow, desc.m, desc.aCol, desc.aBatch);
  gemm.bLanes = gemm.bAlongN
                    ? lanes(b, desc.bCol, desc.n, desc.bRow, desc.bBatch)
                    : lanes(b, desc.bRow, desc.k, desc.bCol, desc.bBatch);
  gemm.cLanes = gemm.cAlongN
                    ? lanes(c, desc.cCol, desc.n, desc.cRow, desc.cBatch)
                    : lanes(c, desc.cRow, desc.m, desc.cCol, desc.cBatch);
  return gemm;
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// Element offsets of a convolution's tensors.
struct ConvIndex {
  explicit ConvIndex(const ConvDesc &desc)
      : desc(desc), channelsIn(desc.inChannels / desc.groups),
        channelsOut(desc.outChannels / desc.groups) {}

  ConvDesc desc;
  int64_t channelsIn, channelsOut; ///< of a group

  SmallVector<int64_t> extents(const int64_t (&sizes)[3]) const {
    return SmallVector<int64_t>(sizes, sizes + desc.rank);
  }
  static int64_t product(ArrayRef<int64_t> sizes) {
    int64_t result = 1;
    for (int64_t size : sizes)
      result *= size;
    return result;
  }
  int64_t window() const { return product(extents(desc.kernel)); }
  int64_t pointsIn() const { return product(extents(desc.in)); }
  int64_t pointsOut() const { return product(extents(desc.out)); }
  /// Whether input and output points are the same.
  bool isPointwise() const {
    bool same = window() == 1;
    for (int64_t d = 0; d < desc.rank; ++d)
      same &= desc.in[d] == desc.out[d] && desc.strides[d] == 1 &&
              desc.padsLo[d] == 0;
    return same;
  }
  /// Whether (channel of the group, window point) numbers a weight's elements
  /// in the order of memory when depth() splits it.
  bool isWeightInOrder() const { return !desc.channelsLast || window() == 1; }

  /// An activation's element: image, channel, point.
  Value activation(Emitter &e, Value image, Value channel,
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
  Value input(Emitter &e, Value image, Value channel,
              ArrayRef<Value> point) const {
    return activation(e, image, channel, point, desc.in, desc.inChannels);
  }
  Value output(Emitter &e, Value image, Value channel,
               ArrayRef<Value> point) const {
    return activation(e, image, channel, point, desc.out, desc.outChannels);
  }
  /// An activation's element where the point is one number, so that multiples
  /// of it show.
  Value flatActivation(Emitter &e, Value number, Value channel, int64_t points,
                       int64_t channels) const {
    SmallVector<Value> at = split(e, number, {desc.batch, points});
    return linear(e, {at[0], channel, at[1]},
                  {points * channels, desc.channelsLast ? 1 : points,
                   desc.channelsLast ? channels : 1});
  }
  /// A weight's element where `number` splits into channel and window point.
  Value weight(Emitter &e, Value out, Value number) const {
    if (isWeightInOrder())
      return linear(e, {out, number}, {channelsIn * window(), 1});
    auto [channel, at] = depth(e, number, channelsIn);
    return weight(e, out, channel, at);
  }
  /// A weight's element: row-major [out channel, channel of the group, window].
  Value weight(Emitter &e, Value out, Value in, ArrayRef<Value> at) const {
    SmallVector<int64_t> sizes = extents(desc.kernel);
    SmallVector<Value> values{out, in};
    llvm::append_range(values, at);
    SmallVector<int64_t> strides(values.size());
    int64_t stride = 1;
    for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d])
      strides[d + 2] = stride;
    strides[1] = stride;
    strides[0] = stride * channelsIn;
    return linear(e, values, strides);
  }

  /// k of activations against weights: channel and window point; the channel
  /// innermost where it is in memory.
  std::pair<Value, SmallVector<Value>> depth(Emitter &e, Value k,
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
  /// Image and point of a row number.
  std::pair<Value, SmallVector<Value>> point(Emitter &e, Value number,
                                             const int64_t (&sizes)[3]) const {
    SmallVector<int64_t> all = extents(sizes);
    all.insert(all.begin(), desc.batch);
    SmallVector<Value> parts = split(e, number, all);
    Value image = parts.front();
    parts.erase(parts.begin());
    return {image, parts};
  }
  /// Where a group's channel lies among all.
  static Value channelOf(Emitter &e, Value group, Value channel,
                         int64_t ofGroup) {
    return e.add(e.mul(group, e.index(ofGroup)), channel);
  }

  /// The input point under window point `at` of output point `out`, and whether
  /// it lies inside.
  SmallVector<Value> under(Emitter &e, ArrayRef<Value> out, ArrayRef<Value> at,
                           Value &inside) const {
    SmallVector<Value> result;
    for (int64_t d = 0; d < desc.rank; ++d) {
      Value i = e.add(e.mul(out[d], e.index(desc.strides[d])),
                      e.mul(at[d], e.index(desc.dilations[d])));
      i = e.sub(i, e.index(desc.padsLo[d]));
      require(e, inside, i, desc.in[d]);
      result.push_back(i);
    }
    return result;
  }
  /// The output point whose window point `at` lies on input point `in`, and
  /// whether there is one.
  SmallVector<Value> over(Emitter &e, ArrayRef<Value> in, ArrayRef<Value> at,
                          Value &inside) const {
    SmallVector<Value> result;
    for (int64_t d = 0; d < desc.rank; ++d) {
      Value o = e.sub(e.add(in[d], e.index(desc.padsLo[d])),
                      e.mul(at[d], e.index(desc.dilations[d])));
      if (desc.strides[d] != 1) {
        Value stride = e.index(desc.strides[d]);
        Value quotient = arith::DivSIOp::create(e.b, o, stride);
        Value whole =
            e.cmpi(arith::CmpIPredicate::eq, e.mul(quotient, stride), o);
        // A negative o may divide to zero: test it before.
        whole = e.andi(whole, e.cmpi(arith::CmpIPredicate::sge, o, e.index(0)));
        inside = inside ? e.andi(inside, whole) : whole;
        o = quotient;
      }
      require(e, inside, o, desc.out[d]);
      result.push_back(o);
    }
    return result;
  }

private:
  static void require(Emitter &e, Value &inside, Value i, int64_t size) {
    // One unsigned comparison: negative numbers are large.
    Value fits = e.cmpi(arith::CmpIPredicate::ult, i, e.index(size));
    inside = inside ? e.andi(inside, fits) : fits;
  }
};

/// load() where `inside` holds, else zero.
Value loadInside(Emitter &e, Type type, unsigned lanes, Value inside,
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

/// The input's element under an output point and a channel and window point,
/// both as numbers; zero where the window leaves the input.
Value loadInput(const ConvIndex &conv, Operand x, Type type, Emitter &e,
                Value group, Value output, Value depth, unsigned lanes) {
  auto [channel, at] = conv.depth(e, depth, conv.channelsIn);
  Value all = ConvIndex::channelOf(e, group, channel, conv.channelsIn);
  if (conv.isPointwise())
    return x.load(e,
                  conv.flatActivation(e, output, all, conv.pointsIn(),
                                      conv.desc.inChannels),
                  lanes, type);
  auto [image, out] = conv.point(e, output, conv.desc.out);
  Value inside;
  SmallVector<Value> in = conv.under(e, out, at, inside);
  return loadInside(e, type, lanes, inside, [&] {
    return x.load(e, conv.input(e, image, all, in), lanes, type);
  });
}

DeviceGemm describeForward(const ConvIndex &conv, Operand x, Operand w,
                           Operand y) {
  const bool last = conv.desc.channelsLast;
  DeviceGemm gemm;
  gemm.batch = conv.desc.groups;
  gemm.m = conv.desc.batch * conv.pointsOut();
  gemm.n = conv.channelsOut;
  gemm.k = conv.channelsIn * conv.window();
  gemm.type = computeType(y.element);
  Type type = gemm.operand = operandType(x, w, gemm.type);
  gemm.a = [=](Emitter &e, Value group, Value m, Value k, unsigned lanes) {
    return loadInput(conv, x, type, e, group, m, k, lanes);
  };
  gemm.b = [=](Emitter &e, Value group, Value k, Value n, unsigned lanes) {
    Value out = ConvIndex::channelOf(e, group, n, conv.channelsOut);
    return w.load(e, conv.weight(e, out, k), lanes, type);
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

DeviceGemm describeInputGrad(const ConvIndex &conv, Operand dy, Operand w,
                             Operand dx) {
  const bool last = conv.desc.channelsLast;
  DeviceGemm gemm;
  gemm.batch = conv.desc.groups;
  gemm.m = conv.desc.batch * conv.pointsIn();
  gemm.n = conv.channelsIn;
  gemm.k = conv.channelsOut * conv.window();
  gemm.type = computeType(dx.element);
  Type type = gemm.operand = operandType(dy, w, gemm.type);
  gemm.a = [=](Emitter &e, Value group, Value m, Value k, unsigned lanes) {
    auto [channel, at] = conv.depth(e, k, conv.channelsOut);
    Value all = ConvIndex::channelOf(e, group, channel, conv.channelsOut);
    if (conv.isPointwise())
      return dy.load(e,
                     conv.flatActivation(e, m, all, conv.pointsOut(),
                                         conv.desc.outChannels),
                     lanes, type);
    auto [image, in] = conv.point(e, m, conv.desc.in);
    Value inside;
    SmallVector<Value> out = conv.over(e, in, at, inside);
    return loadInside(e, type, lanes, inside, [&] {
      return dy.load(e, conv.output(e, image, all, out), lanes, type);
    });
  };
  gemm.b = [=](Emitter &e, Value group, Value k, Value n, unsigned lanes) {
    auto [channel, at] = conv.depth(e, k, conv.channelsOut);
    Value out = ConvIndex::channelOf(e, group, channel, conv.channelsOut);
    return w.load(e, conv.weight(e, out, n, at), lanes, type);
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

DeviceGemm describeWeightGrad(const ConvIndex &conv, Operand x, Operand dy,
                              Operand dw) {
  const bool last = conv.desc.channelsLast;
  DeviceGemm gemm;
  gemm.batch = conv.desc.groups;
  gemm.m = conv.channelsOut;
  gemm.n = conv.channelsIn * conv.window();
  gemm.k = conv.desc.batch * conv.pointsOut();
  gemm.type = computeType(dw.element);
  Type type = gemm.operand = operandType(x, dy, gemm.type);
  gemm.a = [=](Emitter &e, Value group, Value m, Value k, unsigned lanes) {
    Value channel = ConvIndex::channelOf(e, group, m, conv.channelsOut);
    return dy.load(e,
                   conv.flatActivation(e, k, channel, conv.pointsOut(),
                                       conv.desc.outChannels),
                   lanes, type);
  };
  gemm.b = [=](Emitter &e, Value group, Value k, Value n, unsigned lanes) {
    return loadInput(conv, x, type, e, group, k, n, lanes);
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

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

class DeviceContraction : public GeneratedKernel {
public:
  using GeneratedKernel::GeneratedKernel;

  LogicalResult plan() override {
    if (failed(describePrimitive(kernel, options, code)))
      return failure();
    gemm = describe();
    code.workspaceBytes = gemm.scratchBytes();
    StringRef reason = "elements that pass at once are no neighbours in memory";
    if (gemm.aLanes > 1 && gemm.bLanes > 1 && gemm.cLanes > 1)
      reason = "";
    addLaunch(elements() ? gemm.blocks() : 0, DeviceGemm::kThreads,
              /*together=*/true, reason);
    if (gemm.parts() > 1)
      addLaunch(elements(), kBlockThreads, /*together=*/false,
                "a thread adds the parts of an element");
    return success();
  }

  LogicalResult emit(ModuleOp into) override {
    if (failed(emitLaunch(into, 0, [&](Emitter &e, Value block) {
          gemm.emitTile(e, block);
        })))
      return failure();
    if (gemm.parts() == 1)
      return success();
    return emitThreads(into, 1, elements(),
                       [&](Emitter &e, Value item) { gemm.emitSum(e, item); });
  }

private:
  int64_t elements() const { return gemm.batch * gemm.m * gemm.n; }

  Operand operand(unsigned argument) {
    unsigned number = code.primitiveArgs[argument];
    Type type = number < kernel.getNumArguments()
                    ? kernel.getArgument(number).getType()
                    : terminator.getOperand(0).getType();
    return {number, getElementTypeOrSelf(type)};
  }

  DeviceGemm describe() {
    Operand first = operand(0), second = operand(1), result = operand(2);
    ConvIndex conv(code.primitive.conv);
    switch (code.primitive.kind) {
    case PrimitiveKind::MatMul:
      return describeProduct(code.primitive.matmul, first, second, result);
    case PrimitiveKind::ConvForward:
      return describeForward(conv, first, second, result);
    case PrimitiveKind::ConvInputGrad:
      return describeInputGrad(conv, first, second, result);
    case PrimitiveKind::ConvWeightGrad:
      return describeWeightGrad(conv, first, second, result);
    }
    llvm_unreachable("kinds are listed above");
  }

  DeviceGemm gemm;
};

} // namespace

std::unique_ptr<GeneratedKernel>
codegen::makeDeviceContraction(func::FuncOp kernel,
                               const CodegenOptions &options) {
  return std::make_unique<DeviceContraction>(kernel, options);
}
