//===- WindowHandlers.cpp - convolutions and pooling ----------------------===//
//
// auto_pad, ceil_mode and output_shape are resolved here into explicit pads,
// from which the ops' result sizes follow.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
/// The attributes that all windows share.
struct Window {
  Shape kernel, strides, low, high, dilations;
  Shape padding; ///< `high` before ceil_mode changes it
  std::string autoPad;

  int64_t extent(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};
} // namespace

static bool readWindow(NodeImporter &n, size_t spatial,
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
  if (!llvm::all_of(
          pads, [](int64_t x) { return x >= 0 && x <= int64_t(1) << 31; })) {
    n.unsupported() << "negative pads";
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

/// Splits a total between both ends; the odd one goes where auto_pad says.
static void splitPad(Window &w, size_t d, int64_t total) {
  int64_t half = total / 2, rest = total - half;
  bool lower = w.autoPad == "SAME_LOWER";
  w.low[d] = lower ? rest : half;
  w.high[d] = lower ? half : rest;
}

static void resolveSame(Window &w, ArrayRef<int64_t> sizes) {
  if (w.autoPad != "SAME_UPPER" && w.autoPad != "SAME_LOWER")
    return;
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    int64_t out = (sizes[d] + w.strides[d] - 1) / w.strides[d];
    splitPad(w, d,
             std::max<int64_t>(
                 (out - 1) * w.strides[d] + w.extent(d) - sizes[d], 0));
  }
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

static LogicalResult conv(NodeImporter &n) {
  Value x = n.in(0), weight = n.in(1);
  if (!checkConv(n, x, weight))
    return failure();
  Window w;
  if (!readWindow(n, size_t(n.rank(x) - 2), n.shape(weight).drop_front(2), w))
    return failure();
  resolveSame(w, n.shape(x).drop_front(2));
  for (size_t d = 0; d < w.strides.size(); ++d)
    if (n.shape(x)[d + 2] + w.low[d] + w.high[d] < w.extent(d)) {
      n.error() << "the kernel is larger than the padded input along spatial "
                   "dimension "
                << int64_t(d);
      return failure();
    }
  int64_t groups = n.attrInt("group", 1);
  Value y = n.make<ConvOp>({x, weight}, convAttributes(n, w, groups));
  n.set(0, n.addChannelBias(y, n.optional(2)));
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
  Shape shape{n.shape(x)[0], n.shape(weight)[1] * groups};
  bool same = w.autoPad == "SAME_UPPER" || w.autoPad == "SAME_LOWER";
  for (size_t d = 0; d < spatial; ++d) {
    int64_t in = n.shape(x)[d + 2];
    int64_t full = w.strides[d] * (in - 1) + extra[d] + w.extent(d);
    if (!wanted.empty() || same) {
      int64_t size = wanted.empty() ? in * w.strides[d] : wanted[d];
      if (full < size) {
        n.unsupported() << "an output of " << size
                        << " entries that needs negative pads";
        return failure();
      }
      splitPad(w, d, full - size);
    }
    shape.push_back(full - w.low[d] - w.high[d]);
    if (shape.back() < 1) {
      n.error() << "spatial dimension " << int64_t(d) << " of the result has "
                << shape.back() << " entries";
      return failure();
    }
  }
  Value y = n.make<ConvInputGradOp>({x, weight}, convAttributes(n, w, groups),
                                    {n.tensor(shape, n.element(x))});
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

static LogicalResult maxPool(NodeImporter &n) {
  Value x = n.in(0);
  Window w;
  Shape shape;
  if (!x || !preparePool(n, x, w, shape))
    return failure();
  if (n.attrInt("storage_order", 0)) {
    n.unsupported() << "storage_order 1";
    return failure();
  }
  int64_t points = 1;
  for (int64_t size : w.kernel)
    points *= std::min<int64_t>(size, 1 << 10);
  Type index = points <= 127 ? n.b.getI8Type() : n.b.getI32Type();
  n.set(0, n.make<MaxPoolOp>(
               {x}, poolAttributes(n, w),
               {n.tensor(shape, n.element(x)), n.tensor(shape, index)}));
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
                            n.named("interior", none)});
    attributes = poolAttributes(n, w);
  } else if (countPads) {
    attributes.push_back(n.flag("count_include_pad"));
  }
  if (!x)
    return failure();
  n.set(0, n.make<AvgPoolOp>({x}, attributes, {n.tensor(shape, n.element(x))}));
  return success();
}

template <ReduceKind kind> static LogicalResult globalPool(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  if (n.rank(x) < 3) {
    n.error() << "needs an input of rank 3 or more, got " << x.getType();
    return failure();
  }
  n.set(0, n.reduce(kind, x, llvm::to_vector(llvm::seq<int64_t>(2, n.rank(x))),
                    /*keepdims=*/true));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::windowHandlers() {
  static const HandlerEntry entries[] = {
      {"AveragePool", 7, averagePool},
      {"Conv", 1, conv},
      {"ConvTranspose", 1, convTranspose},
      {"GlobalAveragePool", 1, globalPool<ReduceKind::Mean>},
      {"GlobalMaxPool", 1, globalPool<ReduceKind::Max>},
      {"MaxPool", 1, maxPool},
  };
  return entries;
}
