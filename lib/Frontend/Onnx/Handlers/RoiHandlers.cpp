//===- RoiHandlers.cpp - RoiAlign -----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RoiAlign reads a grid of points in each bin of each region; the number of
// points must be known at import time.
//
//===----------------------------------------------------------------------===//
#include "Sampling.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;
using P = ComparePredicate;

/// Reshapes column `i` of `table` [regions, columns] to [regions, 1...] of
/// `rank`.
static Value column(NodeImporter &n, Value table, int64_t i, size_t rank) {
  Value part = n.sliceAxis(table, 1, i, 1);
  if (!part)
    return {};
  Shape shape(rank, 1);
  shape[0] = n.shape(part)[0];
  return n.reshape(part, shape);
}

namespace {
struct RoiAlign {
  explicit RoiAlign(NodeImporter &n) : n(n) {}
  bool run();

private:
  bool countPoints(Value rois, int axis);
  Value places(Value rois, int axis);

  NodeImporter &n;
  bool halfPixel = true;
  double scale = 1;
  int64_t bins[2] = {1, 1}, regions = 0;
  /// Points along an axis of a bin: at most `most`; each region has its own
  /// number.
  int64_t most[2] = {1, 1};
  std::vector<double> counts[2];
};
} // namespace

/// Counts the points of a bin along an axis; returns false after an error.
bool RoiAlign::countPoints(Value rois, int axis) {
  int64_t ratio = n.attrInt("sampling_ratio", 0);
  counts[axis].assign(size_t(regions), double(ratio));
  most[axis] = ratio;
  if (ratio > 0)
    return true;
  if (n.attrString("mode", "avg") == "max") {
    n.unsupported() << "sampling_ratio 0 with mode max";
    return false;
  }
  if (!n.isConstant(rois)) {
    n.unsupported() << "sampling_ratio 0 with regions that are not constant: "
                       "the number of points would depend on data";
    return false;
  }
  auto numbers = n.doublesOf(rois, "the regions");
  if (!numbers)
    return false;
  most[axis] = 1;
  for (int64_t r = 0; r < regions; ++r) {
    double size = ((*numbers)[size_t(r * 4 + 3 - axis)] -
                   (*numbers)[size_t(r * 4 + 1 - axis)]) *
                  scale;
    size = halfPixel ? size : std::max(size, 1.0);
    double count = std::ceil(size / double(bins[axis]));
    if (!(count <= 1024)) {
      n.unsupported() << "a region of " << size << " entries";
      return false;
    }
    counts[axis][size_t(r)] = std::max(count, 0.0);
    most[axis] = std::max(most[axis], int64_t(count));
  }
  return true;
}

/// Returns coordinates [regions, bins, points] of axis 0 (y) or 1 (x).
Value RoiAlign::places(Value rois, int axis) {
  Type element = n.element(rois);
  double shift = halfPixel ? 0.5 : 0;
  auto edge = [&](int64_t i) {
    Value at = n.mul(column(n, rois, i, 3), n.scalar(scale, rois));
    return n.sub(at, n.scalar(shift, rois));
  };
  Value start = edge(1 - axis), size = n.sub(edge(3 - axis), start);
  if (!halfPixel)
    size = n.broadcast<MaximumOp>({size, n.scalar(1, rois)});
  Value bin = n.div(size, n.scalar(double(bins[axis]), rois));
  std::vector<double> each;
  for (double count : counts[axis])
    each.push_back(std::max(count, 1.0));
  Value point = n.div(n.iota({most[axis]}, element, 0, 0.5),
                      n.constant(each, {regions, 1, 1}, element));
  Value place = n.add(n.iota({bins[axis], 1}, element, 0), point);
  return n.add(start, n.mul(place, bin));
}

bool RoiAlign::run() {
  Value x = n.in(0), rois = n.in(1), batch = n.in(2);
  if (!x || !rois || !batch)
    return false;
  if (n.rank(x) != 4 || n.rank(rois) != 2 || n.shape(rois)[1] != 4 ||
      n.type(batch).getNumElements() != n.shape(rois)[0]) {
    n.error() << "needs an input of rank 4, regions [N, 4] and N indices of "
                 "samples";
    return false;
  }
  std::string transform =
      n.attrString("coordinate_transformation_mode",
                   n.opset < 16 ? "output_half_pixel" : "half_pixel");
  std::string mode = n.attrString("mode", "avg");
  halfPixel = transform == "half_pixel";
  scale = n.attrFloat("spatial_scale", 1);
  bins[0] = n.attrInt("output_height", 1);
  bins[1] = n.attrInt("output_width", 1);
  regions = n.shape(rois)[0];
  if ((!halfPixel && transform != "output_half_pixel") ||
      (mode != "avg" && mode != "max") || bins[0] < 1 || bins[1] < 1) {
    n.error() << "unknown mode '" << mode << "' or '" << transform
              << "', or an empty output";
    return false;
  }
  rois = n.cast(rois, n.element(x));
  if (!countPoints(rois, 0) || !countPoints(rois, 1))
    return false;
  Shape all{regions, bins[0], most[0], bins[1], most[1]};
  SmallVector<Value> coordinates;
  Value weight; // 0 outside the operand and beyond a region's own points
  for (int axis = 0; axis < 2; ++axis) {
    Value place = places(rois, axis);
    if (!place)
      return false;
    double size = double(n.shape(x)[axis + 2]);
    Value inside =
        n.broadcast<AndOp>({n.compare(P::GE, place, n.scalar(-1, place)),
                            n.compare(P::LE, place, n.scalar(size, place))});
    Value own =
        n.compare(P::LT, n.iota({most[axis]}, n.element(x), 0),
                  n.constant(counts[axis], {regions, 1, 1}, n.element(x)));
    Value here = n.cast(n.broadcast<AndOp>({inside, own}), n.element(x));
    if (mode == "avg")
      here =
          n.div(here, n.constant(counts[axis], {regions, 1, 1}, n.element(x)));
    Shape shape{regions, 1, 1, 1, 1};
    shape[size_t(1 + 2 * axis)] = bins[axis];
    shape[size_t(2 + 2 * axis)] = most[axis];
    coordinates.push_back(n.expand(n.reshape(place, shape), all));
    here = n.reshape(here, shape);
    weight = weight ? n.mul(weight, here) : here;
  }
  SampleOptions options;
  options.outside = Outside::Border;
  options.largest = mode == "max";
  Value read = sample(n, x, coordinates, options,
                      n.reshape(n.cast(batch, n.b.getI64Type()), {regions}));
  Shape wide(all);
  wide.push_back(1);
  read = n.mul(read, n.reshape(n.expand(weight, all), wide));
  Value y = n.reduce(mode == "max" ? ReduceKind::Max : ReduceKind::Sum, read,
                     {2, 4}, /*keepdims=*/false);
  n.set(0, channelsFirst(n, y));
  return true;
}

static LogicalResult roiAlign(NodeImporter &n) {
  return success(RoiAlign(n).run());
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::roiHandlers() {
  static const HandlerEntry entries[] = {
      {"RoiAlign", 10, roiAlign},
      {"RoiAlign", 16, roiAlign},
  };
  return entries;
}
