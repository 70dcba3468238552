//===- WindowHandlers.cpp - convolutions ----------------------------------===//
//
// auto_pad and output_shape are resolved here into explicit pads, from which
// the ops' result sizes follow.
//
//===----------------------------------------------------------------------===//
#include "Window.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

bool onnx_frontend::readWindow(NodeImporter &n, size_t spatial,
                               ArrayRef<int64_t> kernel, Window &w) {
  Shape ones(spatial, 1), zeros(2 * spatial, 0);
  w.kernel = Shape(kernel);
  w.strides = n.attrInts("strides", ones);
  w.dilations = n.attrInts("dilations", ones);
  Shape pads = n.attrInts("pads", zeros);
  w.autoPad = n.attrString("auto_pad", "NOTSET");
  if (n.hasFailed())
    return false;
  if (w.kernel.size() != spatial || w.strides.size() != spatial ||
      w.dilations.size() != spatial || pads.size() != 2 * spatial) {
    n.error() << "kernel_shape, strides and dilations need " << int64_t(spatial)
              << " entries, pads twice as many";
    return false;
  }
  if (w.autoPad != "NOTSET" && w.autoPad != "VALID" &&
      w.autoPad != "SAME_UPPER" && w.autoPad != "SAME_LOWER") {
    n.error() << "unknown auto_pad '" << w.autoPad << "'";
    return false;
  }
  auto bounded = [](int64_t x) { return x >= 1 && x <= int64_t(1) << 31; };
  if (!llvm::all_of(w.kernel, bounded) || !llvm::all_of(w.strides, bounded) ||
      !llvm::all_of(w.dilations, bounded)) {
    n.error() << "kernel_shape, strides and dilations must be positive";
    return false;
  }
  if (!llvm::all_of(pads, [](int64_t x) {
        return std::abs(std::max(x, -INT64_MAX)) <= int64_t(1) << 31;
      })) {
    n.error() << "pads must lie within 2^31";
    return false;
  }
  w.low.assign(pads.begin(), pads.begin() + long(spatial));
  w.high.assign(pads.begin() + long(spatial), pads.end());
  if (w.autoPad != "NOTSET") {
    w.low.assign(spatial, 0);
    w.high.assign(spatial, 0);
  }
  return true;
}

void onnx_frontend::splitPad(Window &w, size_t d, int64_t total) {
  int64_t half = total / 2, rest = total - half;
  bool lower = w.autoPad == "SAME_LOWER";
  w.low[d] = lower ? rest : half;
  w.high[d] = lower ? half : rest;
}

void onnx_frontend::resolveSame(Window &w, ArrayRef<int64_t> sizes) {
  if (w.autoPad != "SAME_UPPER" && w.autoPad != "SAME_LOWER")
    return;
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    int64_t out = (sizes[d] + w.strides[d] - 1) / w.strides[d];
    splitPad(w, d,
             std::max<int64_t>(
                 (out - 1) * w.strides[d] + w.extent(d) - sizes[d], 0));
  }
}

Value onnx_frontend::cropNegativePads(NodeImporter &n, Value x, Window &w) {
  Shape starts(2, 0), sizes(n.shape(x));
  for (size_t d = 0; d < w.low.size(); ++d) {
    starts.push_back(std::max<int64_t>(-w.low[d], 0));
    sizes[d + 2] -= starts[d + 2] + std::max<int64_t>(-w.high[d], 0);
    w.low[d] = std::max<int64_t>(w.low[d], 0);
    w.high[d] = std::max<int64_t>(w.high[d], 0);
    if (sizes[d + 2] < 0) {
      n.error() << "negative pads leave nothing of spatial dimension "
                << int64_t(d);
      return {};
    }
  }
  return ArrayRef<int64_t>(sizes) == n.shape(x) ? x : n.slice(x, starts, sizes);
}

static SmallVector<NamedAttribute>
convAttributes(NodeImporter &n, const Window &w, int64_t groups) {
  return {n.named("strides", w.strides), n.named("pads_low", w.low),
          n.named("pads_high", w.high), n.named("dilations", w.dilations),
          n.named("groups", groups)};
}

/// Common checks of input and weight; false after an error.
static bool checkConv(NodeImporter &n, Value x, Value w) {
  if (!x || !w)
    return false;
  if (n.rank(x) < 3 || n.rank(x) > 5 || n.rank(w) != n.rank(x)) {
    n.unsupported() << "needs an input of rank 3 to 5 and a weight of the same "
                       "rank, got "
                    << x.getType() << " and " << w.getType();
    return false;
  }
  Shape kernel = n.attrInts("kernel_shape", n.shape(w).drop_front(2));
  if (ArrayRef<int64_t>(kernel) != n.shape(w).drop_front(2)) {
    n.error() << "kernel_shape " << shapeString(kernel)
              << " is not that of the weight, " << w.getType();
    return false;
  }
  return true;
}

Value onnx_frontend::convolve(NodeImporter &n, Value x, Value weight) {
  Window w;
  if (!checkConv(n, x, weight) ||
      !readWindow(n, size_t(n.rank(x) - 2), n.shape(weight).drop_front(2), w))
    return {};
  x = cropNegativePads(n, x, w);
  if (!x)
    return {};
  resolveSame(w, n.shape(x).drop_front(2));
  for (size_t d = 0; d < w.strides.size(); ++d)
    if (n.shape(x)[d + 2] + w.low[d] + w.high[d] < w.extent(d)) {
      n.error() << "the kernel is larger than the padded input along spatial "
                   "dimension "
                << int64_t(d);
      return {};
    }
  return n.make<ConvOp>({x, weight},
                        convAttributes(n, w, n.attrInt("group", 1)));
}

static LogicalResult conv(NodeImporter &n) {
  n.set(0, n.addChannelBias(convolve(n, n.in(0), n.in(1)), n.optional(2)));
  return success();
}

/// ConvTranspose is the gradient of a convolution with respect to its input.
static LogicalResult convTranspose(NodeImporter &n) {
  Value x = n.in(0), weight = n.in(1);
  if (!checkConv(n, x, weight))
    return failure();
  size_t spatial = size_t(n.rank(x) - 2);
  Window w;
  if (!readWindow(n, spatial, n.shape(weight).drop_front(2), w))
    return failure();
  int64_t groups = n.attrInt("group", 1);
  Shape extra = n.attrInts("output_padding", Shape(spatial, 0));
  Shape wanted = n.attrInts("output_shape");
  if (wanted.size() == spatial + 2) // some files count batch and channels
    wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (extra.size() != spatial ||
      (!wanted.empty() && wanted.size() != spatial) || groups < 1) {
    n.error() << "output_padding and output_shape need " << int64_t(spatial)
              << " entries, group at least 1";
    return failure();
  }
  // Entries that no input reaches are padded behind the result of the op.
  Shape shape{n.shape(x)[0], n.shape(weight)[1] * groups}, behind(2, 0);
  Shape none(size_t(n.rank(x)), 0);
  bool same = w.autoPad == "SAME_UPPER" || w.autoPad == "SAME_LOWER";
  for (size_t d = 0; d < spatial; ++d) {
    int64_t in = n.shape(x)[d + 2];
    int64_t reached = w.strides[d] * (in - 1) + w.extent(d);
    int64_t size = reached + extra[d] - w.low[d] - w.high[d];
    if (!wanted.empty() || same) {
      size = wanted.empty() ? in * w.strides[d] : wanted[d];
      splitPad(w, d, std::max<int64_t>(reached + extra[d] - size, 0));
    }
    if (size < 1 || extra[d] < 0 || size > int64_t(1) << 40) {
      n.error() << "spatial dimension " << int64_t(d) << " of the result has "
                << size << " entries";
      return failure();
    }
    int64_t left = reached - std::max<int64_t>(w.low[d], 0);
    if (w.low[d] < 0 || left < 1) {
      n.unsupported() << "pads of " << w.low[d] << " before " << reached
                      << " entries along spatial dimension " << int64_t(d);
      return failure();
    }
    shape.push_back(std::min(size, left));
    behind.push_back(size - shape.back());
    w.high[d] = left - shape.back();
  }
  Value y = n.make<ConvInputGradOp>({x, weight}, convAttributes(n, w, groups),
                                    {n.tensor(shape, n.element(x))});
<<<<<<< HEAD
  if (llvm::any_of(behind, [](int64_t pad) { return pad > 0; }))
    y = n.make<PadOp>({y}, {n.named("low", none), n.named("high", behind),
=======
  n.set(0, n.addChannelBias(y, n.optional(2)));
  return success();
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

/// Reads a pool's window for `x` and computes the result's shape; `high` is
/// changed to what gives that size.
static bool preparePool(NodeImporter &n, Value x, Window &w, Shape &shape) {
  if (n.rank(x) < 3) {
    n.error() << "needs an input of rank 3 or more, got " << x.getType();
    return false;
  }
  size_t spatial = size_t(n.rank(x) - 2);
  if (!readWindow(n, spatial, n.attrInts("kernel_shape"), w))
    return false;
  bool ceil = n.attrInt("ceil_mode", 0) != 0;
  resolveSame(w, n.shape(x).drop_front(2));
  w.padding = w.high;
  shape.assign(n.shape(x).begin(), n.shape(x).begin() + 2);
  for (size_t d = 0; d < spatial; ++d) {
    int64_t size = n.shape(x)[d + 2], stride = w.strides[d];
    int64_t span = size + w.low[d] + w.high[d] - w.extent(d);
    int64_t out = span < 0 ? 0 : span / stride + 1;
    if (ceil && span >= 0) {
      out = (span + stride - 1) / stride + 1;
      // No window may start in the padding behind the input.
      if ((out - 1) * stride >= size + w.low[d])
        --out;
    }
    if (out < 1) {
      n.error() << "the window is larger than the padded input along spatial "
                   "dimension "
                << int64_t(d);
      return false;
    }
    w.high[d] = (out - 1) * stride + w.extent(d) - size - w.low[d];
    shape.push_back(out);
  }
  return true;
}

static SmallVector<NamedAttribute> poolAttributes(NodeImporter &n,
                                                  const Window &w) {
  return {n.named("kernel", w.kernel), n.named("strides", w.strides),
          n.named("pads_low", w.low), n.named("pads_high", w.high),
          n.named("dilations", w.dilations)};
}

/// Where each maximum lies in the operand: `index`, its place in the window (in
/// row-major order), as the number of the element in the whole tensor; by
/// columns within the spatial dimensions where `byColumns`.
static Value flatIndices(NodeImporter &n, Value x, Value index, const Window &w,
                         bool byColumns) {
  if (!index)
    return {};
  Type i64 = n.b.getI64Type();
  ArrayRef<int64_t> in = n.shape(x), out = n.shape(index);
  Value place = n.cast(index, i64);
  auto number = [&](int64_t v) { return n.scalarOfType(double(v), i64); };
  int64_t volume = 1;
  for (int64_t size : in.drop_front(2))
    volume *= size;
  Value flat = n.add(n.mul(n.iota(out, i64, 0), number(in[1] * volume)),
                     n.mul(n.iota(out, i64, 1), number(volume)));
  int64_t points = 1, rows = 1, columns = 1;
  for (int64_t size : in.drop_front(2))
    columns *= size;
  // The last dimension turns fastest, in the window and (by rows) in the sum.
  for (size_t d = w.kernel.size(); d-- > 0;) {
    int64_t size = in[d + 2];
    columns /= std::max<int64_t>(size, 1);
    Value within =
        n.broadcast<ModOp>({n.div(place, number(points)), number(w.kernel[d])});
    Value at =
        n.add(n.mul(n.iota(out, i64, int64_t(d) + 2), number(w.strides[d])),
              n.sub(n.mul(within, number(w.dilations[d])), number(w.low[d])));
    flat = n.add(flat, n.mul(at, number(byColumns ? columns : rows)));
    points *= w.kernel[d];
    rows *= size;
  }
  return flat;
}

static LogicalResult maxPool(NodeImporter &n) {
  Value x = n.in(0);
  Window w;
  Shape shape;
  if (!x || !preparePool(n, x, w, shape))
    return failure();
  int64_t points = 1;
  for (int64_t size : w.kernel)
    points *= std::min<int64_t>(size, 1 << 10);
  Type index = points <= 127 ? n.b.getI8Type() : n.b.getI32Type();
  // Integers of 8 bits are exact as floats, and the kernel is one of floats.
  Type element = n.element(x);
  Value floats = n.isFloat(x) ? x : n.cast(x, n.b.getF32Type());
  if (!floats)
    return failure();
  auto all = n.makeAll<MaxPoolOp>(
      {floats}, poolAttributes(n, w),
      {n.tensor(shape, n.element(floats)), n.tensor(shape, index)});
  if (all.size() != 2)
    return failure();
  n.set(0, n.cast(all[0], element));
  if (n.wants(1))
    n.set(1, flatIndices(n, x, all[1], w, n.attrInt("storage_order", 0) != 0));
  return success();
}

static LogicalResult averagePool(NodeImporter &n) {
  Value x = n.in(0);
  Window w;
  Shape shape;
  if (!x || !preparePool(n, x, w, shape))
    return failure();
  auto attributes = poolAttributes(n, w);
  size_t spatial = w.kernel.size();
  bool countPads = n.attrInt("count_include_pad", 0) != 0;
  bool beyond = false; // windows that reach out of the padded input
  for (size_t d = 0; d < spatial; ++d)
    beyond |= w.high[d] > w.padding[d];
  if (countPads && beyond) {
    // What lies beyond does not count, the padding does: pad for real.
    Shape low(2, 0), high(2, 0), none(spatial + 2, 0);
    low.append(w.low);
    for (size_t d = 0; d < spatial; ++d) {
      high.push_back(w.padding[d]);
      w.high[d] -= w.padding[d];
      w.low[d] = 0;
    }
    x = n.make<PadOp>({x}, {n.named("low", low), n.named("high", high),
>>>>>>> d1b092a (Widen products of f16, unroll recurrences with peepholes and lengths, count n-grams)
                            n.named("interior", none)});
  n.set(0, n.addChannelBias(y, n.optional(2)));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::windowHandlers() {
  static const HandlerEntry entries[] = {
      {"Conv", 1, conv},
      {"ConvTranspose", 1, convTranspose},
  };
  return entries;
}
