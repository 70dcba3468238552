//===- SamplingHandlers.cpp - GridSample, AffineGrid, DeformConv ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Sampling.h"
#include "Window.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

//===----------------------------------------------------------------------===//
// GridSample
//===----------------------------------------------------------------------===//

static LogicalResult gridSample(NodeImporter &n) {
  Value x = n.in(0), grid = n.in(1);
  if (!x || !grid)
    return failure();
  int64_t spatial = n.rank(x) - 2;
  if (spatial < 1 || n.rank(grid) != n.rank(x) ||
      n.shape(grid).back() != spatial || n.shape(grid)[0] != n.shape(x)[0]) {
    n.error() << "needs an input [N, C, spatial...] and a grid [N, points..., "
                 "dimensions], got "
              << x.getType() << " and " << grid.getType();
    return failure();
  }
  std::string mode = n.attrString("mode", n.opset < 20 ? "bilinear" : "linear");
  std::string padding = n.attrString("padding_mode", "zeros");
  bool corners = n.attrInt("align_corners", 0) != 0;
  SampleOptions options;
  options.mirrorOnPoints = corners;
  if (mode == "nearest")
    options.mode = Interpolation::Nearest;
  else if (mode == "cubic" || mode == "bicubic")
    options.mode = Interpolation::Cubic;
  else if (mode != "linear" && mode != "bilinear") {
    n.error() << "unknown mode '" << mode << "'";
    return failure();
  }
  if (padding == "border")
    options.outside = Outside::Border;
  else if (padding == "reflection")
    options.outside = Outside::Reflect;
  else if (padding != "zeros") {
    n.error() << "unknown padding_mode '" << padding << "'";
    return failure();
  }
  Shape points(n.shape(grid).drop_back());
  SmallVector<Value> places;
  for (int64_t d = 0; d < spatial; ++d) {
    // The last dimension of the grid lists coordinates from the operand's last
    // dimension on.
    Value at =
        n.reshape(n.sliceAxis(grid, spatial + 1, spatial - 1 - d, 1), points);
    at = n.cast(at, n.element(x));
    double size = double(n.shape(x)[d + 2]);
    // Maps -1..1 to 0..size-1, or to -0.5..size-0.5.
    double factor = corners ? (size - 1) / 2 : size / 2;
    double shift = (size - 1) / 2;
    at = n.mul(at, n.scalar(factor, at));
    places.push_back(n.add(at, n.scalar(shift, at)));
  }
  n.set(0, channelsFirst(n, sample(n, x, places, options)));
  return success();
}

/// Computes the points of a regular grid, mapped by each sample's affine map.
static LogicalResult affineGrid(NodeImporter &n) {
  Value theta = n.in(0);
  auto size = n.constInts(1);
  if (!theta || !size)
    return failure();
  auto spatial = int64_t(size->size()) - 2;
  if ((spatial != 2 && spatial != 3) || n.rank(theta) != 3 ||
      n.shape(theta)[1] != spatial || n.shape(theta)[2] != spatial + 1) {
    n.error() << "needs maps [N, 2, 3] for a size of 4 entries, or [N, 3, 4] "
                 "for 5, got "
              << theta.getType();
    return failure();
  }
  bool corners = n.attrInt("align_corners", 0) != 0;
  ArrayRef<int64_t> extents = ArrayRef<int64_t>(*size).drop_front(2);
  auto points = checkedNumElements(extents, 32);
  if (!points) {
    n.error() << llvm::toString(points.takeError());
    return failure();
  }
  Type element = n.element(theta);
  Shape whole(extents);
  whole.push_back(1);
  SmallVector<Value> columns;
  for (int64_t d = spatial - 1; d >= 0; --d) {
    auto length = double(extents[size_t(d)]);
    double step = corners ? (length > 1 ? 2 / (length - 1) : 0) : 2 / length;
    double first = corners ? (length > 1 ? -1 : 0) : step / 2 - 1;
    Shape along(size_t(spatial + 1 - d), 1);
    along[0] = extents[size_t(d)];
    columns.push_back(n.expand(n.iota(along, element, 0, first, step), whole));
  }
  columns.push_back(n.splat(1, n.tensor(whole, element)));
  Value base = n.reshape(n.concat(columns, spatial), {*points, spatial + 1});
  Value grid = n.matmul(base, theta, false, /*transposeY=*/true);
  Shape shape{n.shape(theta)[0]};
  shape.append(extents.begin(), extents.end());
  shape.push_back(spatial);
  n.set(0, n.reshape(grid, shape));
  return success();
}

//===----------------------------------------------------------------------===//
// DeformConv
//===----------------------------------------------------------------------===//

/// A convolution that reads each point of its window at an offset of its own:
/// the points are sampled, then multiplied by the weight matrix.
static LogicalResult deformConv(NodeImporter &n) {
  Value x = n.in(0), weight = n.in(1), offset = n.in(2);
  if (!x || !weight || !offset)
    return failure();
  if (n.rank(x) != 4 || n.rank(weight) != 4 || n.rank(offset) != 4) {
    n.unsupported() << "needs an input, a weight and an offset of rank 4";
    return failure();
  }
  Window w;
  if (!readWindow(n, 2, n.shape(weight).drop_front(2), w))
    return failure();
  int64_t batch = n.shape(x)[0], channels = n.shape(x)[1];
  int64_t groups = n.attrInt("group", 1), parts = n.attrInt("offset_group", 1);
  int64_t taps = w.kernel[0] * w.kernel[1], results = n.shape(weight)[0];
  Shape out;
  for (size_t d = 0; d < 2; ++d)
    out.push_back((n.shape(x)[d + 2] + w.low[d] + w.high[d] - w.extent(d)) /
                      w.strides[d] +
                  1);
  if (groups < 1 || parts < 1 || channels % groups || channels % parts ||
      results % groups || n.shape(weight)[1] != channels / groups ||
      n.shape(offset) !=
          ArrayRef<int64_t>({batch, parts * taps * 2, out[0], out[1]})) {
    n.error() << "shapes do not fit: input " << x.getType() << ", weight "
              << weight.getType() << ", offset " << offset.getType();
    return failure();
  }
  // Samples one part of the channels: [batch * parts, taps, out..., C].
  int64_t each = channels / parts;
  Value image =
      n.reshape(x, {batch * parts, each, n.shape(x)[2], n.shape(x)[3]});
  Value moved = n.reshape(
      offset, {batch * parts, w.kernel[0], w.kernel[1], 2, out[0], out[1]});
  Shape one{batch * parts, w.kernel[0], w.kernel[1], out[0], out[1]};
  SmallVector<Value> places;
  for (size_t d = 0; d < 2; ++d) {
    Shape window(4, 1), point(d ? 1 : 2, 1);
    window[d] = w.kernel[d];
    point[0] = out[d];
    Value at = n.add(
        n.iota(window, n.element(x), int64_t(d), 0, double(w.dilations[d])),
        n.iota(point, n.element(x), 0, -double(w.low[d]),
               double(w.strides[d])));
    places.push_back(
        n.add(n.reshape(n.sliceAxis(moved, 3, int64_t(d), 1), one), at));
  }
  Value read = sample(n, image, places, SampleOptions());
  if (n.has(4)) {
    Shape mask(one);
    mask.push_back(1);
    Value given = n.in(4);
    if (!given || n.type(given).getNumElements() !=
                      batch * parts * taps * out[0] * out[1]) {
      n.error() << "the mask does not have one entry for each offset";
      return failure();
    }
    read = n.mul(read, n.reshape(given, mask));
  }
  // Multiplies [batch, channels, taps, points] by the weight, group by group.
  int64_t points = out[0] * out[1], depth = channels / groups * taps;
  Value columns = n.transpose(
      n.reshape(read, {batch, parts, taps, points, each}), {0, 1, 4, 2, 3});
  columns = n.reshape(columns, {batch, groups, depth, points});
  Value y =
      n.matmul(n.reshape(weight, {groups, results / groups, depth}), columns);
  y = n.reshape(y, {batch, results, out[0], out[1]});
  n.set(0, n.addChannelBias(y, n.optional(3)));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::samplingHandlers() {
  static const HandlerEntry entries[] = {
      {"AffineGrid", 20, affineGrid},
      {"DeformConv", 19, deformConv},
      {"GridSample", 16, gridSample},
  };
  return entries;
}
