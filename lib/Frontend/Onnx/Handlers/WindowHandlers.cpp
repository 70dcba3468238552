//===- WindowHandlers.cpp - convolutions ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handlers of convolutions. auto_pad and output_shape become explicit pads,
// from which the ops' result sizes follow.
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
    n.error() << "kernel_shape, strides and dilations must lie between 1 and "
                 "2^31";
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
  bool upper = w.autoPad == "SAME_UPPER";
  w.low[d] = upper ? half : rest;
  w.high[d] = upper ? rest : half;
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

/// Checks input and weight; returns false after an error.
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
  if (wanted.size() == spatial + 2) // some files include batch and channels
    wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (extra.size() != spatial ||
      (!wanted.empty() && wanted.size() != spatial) || groups < 1) {
    n.error() << "output_padding and output_shape need " << int64_t(spatial)
              << " entries, group at least 1";
    return failure();
  }
  // Entries that no input reaches are padded after the op's result.
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
  if (llvm::any_of(behind, [](int64_t pad) { return pad > 0; }))
    y = n.make<PadOp>({y}, {n.named("low", none), n.named("high", behind),
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
