//===- ResizeHandlers.cpp - Resize and Upsample ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Resizing is separable: along each axis a result's entry is a weighted sum of
// the operand's entries around the coordinate that its own is mapped to. That
// mapping is linear, x -> (a * x + b) / c; if the scale is a fraction of small
// integers (as it always is if sizes are given), a, b and c are integers, so
// that coordinates are exact and the weights repeat with the fraction's period.
// Resampling.cpp turns the weights into ops.
//
//===----------------------------------------------------------------------===//
#include "Resampling.h"
#include <numeric>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
/// One axis: `out` entries from `in`, at a scale of p / q (or `scale` if q is
/// 0), by which `out` need not be divisible.
struct Axis {
  int64_t in = 0, out = 0;
  double scale = 1;
  int64_t p = 0, q = 0;
  double start = 0, end = 1; ///< roi
  /// Corners are aligned for `out` entries, not for the `scale * in` entries,
  /// perhaps a fraction, that ONNX's reference counts.
  bool wholeLength = false;
};

/// Maps x to (a * x + b) / c; exact if c is positive.
struct Coordinates {
  int64_t a = 1, b = 0, c = 0;
  double slope = 1, offset = 0;
  /// Coordinates made from f32 numbers are rounded to f32: an end of a region
  /// such as 0.1 is inexact, and what would be a tie, or the last entry, but
  /// for that is one.
  bool single = false;

  /// Returns the entry at or before coordinate `x`, and the distance from it.
  std::pair<int64_t, double> at(int64_t x) const {
    if (c > 0) {
      int64_t entry = llvm::divideFloorSigned(a * x + b, c);
      return {entry, double(a * x + b - entry * c) / double(c)};
    }
    double place = slope * double(x) + offset;
    if (single)
      place = double(float(place));
    double entry = std::floor(place);
    return {int64_t(entry), place - entry};
  }
};

struct Options {
  std::string mode, transform, nearest;
  double cubic = -0.75, extrapolation = 0;
  bool antialias = false, excludeOutside = false;
  /// Set for opset 10, where coordinates round up when shrinking.
  bool simple = false;
};
} // namespace

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

/// Finds the small fraction that `scale`, an f32, approximates.
static void findFraction(Axis &axis) {
  auto fits = [&](int64_t p, int64_t q) {
    if (p < 1 || float(double(p) / double(q)) != float(axis.scale))
      return false;
    axis.p = p / std::gcd(p, q);
    axis.q = q / std::gcd(p, q);
    return true;
  };
  if (axis.in > 0 && fits(axis.out, axis.in))
    return;
  for (int64_t q = 1; q <= 64; ++q)
    if (fits(int64_t(std::llround(std::min(axis.scale, 1e6) * double(q))), q))
      return;
}

/// Returns the linear map of `transform`, or nothing for an unknown mode.
static std::optional<Coordinates> coordinates(const Axis &axis,
                                              StringRef transform) {
  Coordinates map;
  int64_t p = axis.p, q = axis.q, in = axis.in, out = axis.out;
  double scale = axis.scale, length = scale * double(in);
  auto linear = [&](int64_t a, int64_t b, int64_t c, double slope,
                    double offset) { map = {a, b, q ? c : 0, slope, offset}; };
  if (transform == "asymmetric")
    linear(q, 0, p, 1 / scale, 0);
  else if (transform == "half_pixel" ||
           (transform == "pytorch_half_pixel" && out > 1))
    linear(2 * q, q - p, 2 * p, 1 / scale, 0.5 / scale - 0.5);
  else if (transform == "pytorch_half_pixel")
    map = {0, 0, 1, 0, 0};
  else if (transform == "tf_half_pixel_for_nn")
    linear(2 * q, q, 2 * p, 1 / scale, 0.5 / scale);
  else if (transform == "half_pixel_symmetric")
    linear(2 * q, in * p - out * q + q - p, 2 * p, 1 / scale,
           double(in) / 2 * (1 - double(out) / length) + 0.5 / scale - 0.5);
  else if (transform == "align_corners" &&
           (out <= 1 || (length == 1 && !axis.wholeLength)))
    map = {0, 0, 1, 0, 0};
  else if (transform == "align_corners" && axis.wholeLength)
    linear((in - 1) * q, 0, (out - 1) * q, double(in - 1) / double(out - 1), 0);
  else if (transform == "align_corners") // a length may be fractional
    linear((in - 1) * q, 0, p * in - q, double(in - 1) / (length - 1), 0);
  else if (transform == "tf_crop_and_resize" && out > 1)
    map = {0,
           0,
           0,
           (axis.end - axis.start) * double(in - 1) / (length - 1),
           axis.start * double(in - 1),
           true};
  else if (transform == "tf_crop_and_resize")
    map = {0, 0, 0, 0, 0.5 * (axis.start + axis.end) * double(in - 1), true};
  else
    return std::nullopt;
  if (map.c < 0 || (map.c == 0 && !std::isfinite(map.slope + map.offset)))
    map = {}; // a length below 1 has no sensible map; keep entries in range
  return map;
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Evaluates the interpolating kernel at distance `x`: a triangle, or Keys'
/// cubic.
static double kernelAt(const Options &options, double x) {
  x = std::fabs(x);
  if (options.mode == "linear")
    return x < 1 ? 1 - x : 0;
  double a = options.cubic;
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int64_t nearestEntry(const Options &options, const Axis &axis,
                            int64_t entry, double past) {
  if (options.simple)
    return axis.scale < 1 && past > 0 ? entry + 1 : entry;
  StringRef mode = options.nearest;
  bool up = mode == "ceil"                ? past > 0
            : mode == "floor"             ? false
            : mode == "round_prefer_ceil" ? past >= 0.5
                                          : past > 0.5;
  return up ? entry + 1 : entry;
}

/// Returns the taps of entry `x`, which may lie outside of the operand.
static SmallVector<Tap, 4> tapsOf(const Options &options, const Axis &axis,
                                  const Coordinates &map, int64_t x) {
  auto [entry, past] = map.at(x);
  if (options.mode == "nearest")
    return {{nearestEntry(options, axis, entry, past), 1.0}};
  // Shrinking with antialias widens the kernel.
  double shrink = options.antialias ? std::min(axis.scale, 1.0) : 1;
  double reach = (options.mode == "linear" ? 1 : 2) / shrink;
  SmallVector<Tap, 4> taps;
  double sum = 0;
  for (auto j = int64_t(std::floor(past - reach)) + 1; double(j) < past + reach;
       ++j) {
    double weight = kernelAt(options, (double(j) - past) * shrink);
    if (weight == 0 ||
        (options.excludeOutside && (entry + j < 0 || entry + j >= axis.in)))
      continue;
    taps.push_back({entry + j, weight});
    sum += weight;
  }
  if (taps.empty() || sum == 0)
    return {{entry, 1.0}};
  if (options.antialias || options.excludeOutside)
    for (Tap &tap : taps)
      tap.weight /= sum;
  return taps;
}

static Resampling weights(const Options &options, const Axis &axis,
                          const Coordinates &map) {
  Resampling result;
  for (int64_t x = 0; x < axis.out; ++x)
    result.rows.push_back(tapsOf(options, axis, map, x));
  if (map.c > 0 && !options.excludeOutside) {
    int64_t common = std::gcd(map.a, map.c);
    result.period = map.c / common;
    result.advance = map.a / common;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The node
//===----------------------------------------------------------------------===//

/// The most entries along a resized axis; realistic models have far fewer.
static constexpr int64_t maxExtent = int64_t(1) << 20;

/// Resizes `x`; `axes` has an entry for each dimension.
static Value resize(NodeImporter &n, Value x, ArrayRef<Axis> axes,
                    const Options &options) {
  Type element = n.element(x);
  bool rounds = !isa<FloatType>(element) && options.mode != "nearest";
  if (rounds)
    x = n.cast(x, n.b.getF32Type());
  auto rank = int64_t(axes.size());
  Value inside; // 1 where no coordinate leaves the operand
  for (int64_t d = 0; d < rank; ++d) {
    const Axis &axis = axes[size_t(d)];
    if (axis.in == axis.out && axis.scale == 1 && axis.start == 0 &&
        axis.end == 1)
      continue;
    if (axis.in > maxExtent || axis.out > maxExtent) {
      n.unsupported() << "resizes a dimension of " << axis.in << " entries to "
                      << axis.out;
      return {};
    }
    auto map = coordinates(axis, options.transform);
    if (!map) {
      n.error() << "unknown coordinate_transformation_mode '"
                << options.transform << "'";
      return {};
    }
    x = resample(n, x, d, weights(options, axis, *map));
    if (options.transform != "tf_crop_and_resize")
      continue;
    std::vector<double> valid;
    for (int64_t i = 0; i < axis.out; ++i) {
      auto [entry, past] = map->at(i);
      valid.push_back(entry >= 0 &&
                      double(entry) + past <= double(axis.in - 1));
    }
    Shape along(size_t(rank - d), 1);
    along[0] = axis.out;
    Value here = n.constant(valid, along, n.b.getI1Type());
    inside = inside ? n.broadcast<AndOp>({inside, here}) : here;
  }
  if (inside)
    x = n.select(inside, x, n.scalar(options.extrapolation, x));
  if (!rounds || !x)
    return x;
  double lo = -0x1p63, hi = 0x1p63;
  unsigned width = element.getIntOrFloatBitWidth();
  lo = element.isUnsignedInteger() ? 0 : -std::ldexp(1.0, int(width) - 1);
  hi = std::ldexp(1.0, int(width) - (element.isUnsignedInteger() ? 0 : 1)) - 1;
  return n.cast(n.clip(n.make<RoundOp>({x}), lo, hi), element);
}

/// Reads operand `i` as `count` numbers; nothing if it is absent or empty.
static std::optional<std::vector<double>> numbers(NodeImporter &n, size_t i,
                                                  size_t count) {
  Value value = n.optional(i);
  if (!value || n.type(value).getNumElements() == 0)
    return std::nullopt;
  auto given = n.doublesOf(value, "operand " + std::to_string(i) + " ('" +
                                      n.node.inputs[i] + "')");
  if (given && given->size() != count) {
    n.error() << "operand " << int64_t(i) << " ('" << n.node.inputs[i]
              << "') must have " << int64_t(count) << " entries, has "
              << int64_t(given->size());
    return std::nullopt;
  }
  return given;
}

/// Computes sizes under the aspect-ratio policy, and the scales that they
/// imply.
static bool applySizes(NodeImporter &n, ArrayRef<double> sizes,
                       ArrayRef<int64_t> which, SmallVectorImpl<Axis> &axes) {
  std::string policy = n.attrString("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" &&
      policy != "not_smaller") {
    n.error() << "unknown keep_aspect_ratio_policy '" << policy << "'";
    return false;
  }
  size_t chosen = 0; // the axis whose scale all axes take
  BatchScaling *scaling = n.graph.getScaling();
  for (auto [i, d] : llvm::enumerate(which)) {
    Axis &axis = axes[size_t(d)];
    axis.out = int64_t(sizes[i]);
    if (scaling && scaling->isBatch(n, 0, d) && axis.out == scaling->getBase())
      axis.out = axis.in; // the file's own batch
    if (axis.out < 1 || axis.out > int64_t(1) << 31 || axis.in < 1) {
      n.error() << "cannot resize dimension " << d << " of "
                << n.in(0).getType() << " to " << axis.out << " entries";
      return false;
    }
    const Axis &best = axes[size_t(which[chosen])];
    bool smaller = axis.out * best.in < best.out * axis.in;
    if (axis.out * best.in != best.out * axis.in &&
        smaller == (policy == "not_larger"))
      chosen = i;
  }
  if (policy != "stretch" && !which.empty()) {
    Axis ruling = axes[size_t(which[chosen])];
    for (int64_t d : which) {
      Axis &axis = axes[size_t(d)];
      axis.out = (2 * axis.in * ruling.out + ruling.in) / (2 * ruling.in);
      axis.p = ruling.out;
      axis.q = ruling.in;
    }
  }
  for (int64_t d : which) {
    Axis &axis = axes[size_t(d)];
    if (!axis.q) {
      axis.p = axis.out;
      axis.q = axis.in;
    }
    int64_t common = std::gcd(axis.p, axis.q);
    axis.p /= common;
    axis.q /= common;
    axis.scale = double(axis.p) / double(axis.q);
  }
  return true;
}

/// Computes sizes from scales, rounded down.
static bool applyScales(NodeImporter &n, ArrayRef<double> scales,
                        ArrayRef<int64_t> which, StringRef transform,
                        SmallVectorImpl<Axis> &axes) {
  for (auto [i, d] : llvm::enumerate(which)) {
    Axis &axis = axes[size_t(d)];
    axis.scale = scales[i];
    double extent =
        transform == "tf_crop_and_resize" ? axis.end - axis.start : 1;
    // An f32 scale such as 0.6 is inexact; a product that would be whole but
    // for that is rounded to the whole number.
    double length = double(axis.in) * extent * axis.scale;
    if (std::fabs(length - std::round(length)) < 1e-6 * std::fabs(length))
      length = std::round(length);
    if (!(axis.scale > 0) || !(length >= 1 && length < 0x1p31)) {
      n.error() << "cannot resize dimension " << d << " of "
                << n.in(0).getType() << " by a scale of " << axis.scale;
      return false;
    }
    axis.out = int64_t(length);
    // PyTorch exports the scale that the user gave, and aligns whole lengths.
    axis.wholeLength = n.graph.isFromPyTorch();
    findFraction(axis);
    if (axis.q)
      axis.scale = double(axis.p) / double(axis.q);
  }
  return true;
}

static bool readOptions(NodeImporter &n, Options &options) {
  options.mode = n.attrString("mode", "nearest");
  if (options.mode == "bilinear" || options.mode == "trilinear")
    options.mode = "linear";
  options.transform =
      n.attrString("coordinate_transformation_mode", "half_pixel");
  options.nearest = n.attrString("nearest_mode", "round_prefer_floor");
  options.cubic = n.attrFloat("cubic_coeff_a", -0.75);
  options.extrapolation = n.attrFloat("extrapolation_value", 0);
  options.antialias = n.attrInt("antialias", 0) != 0;
  options.excludeOutside = n.attrInt("exclude_outside", 0) != 0;
  if (options.mode != "nearest" && options.mode != "linear" &&
      options.mode != "cubic") {
    n.error() << "unknown mode '" << options.mode << "'";
    return false;
  }
  const char *modes[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                         "ceil"};
  if (!llvm::is_contained(modes, StringRef(options.nearest))) {
    n.error() << "unknown nearest_mode '" << options.nearest << "'";
    return false;
  }
  return !n.hasFailed();
}

static SmallVector<Axis> axesOf(NodeImporter &n, Value x) {
  SmallVector<Axis> axes;
  for (int64_t size : n.shape(x)) {
    Axis axis;
    axis.in = axis.out = size;
    axes.push_back(axis);
  }
  return axes;
}

/// Handles Resize from opset 11 on.
static LogicalResult resizeByOptions(NodeImporter &n) {
  Value x = n.in(0);
  Options options;
  if (!x || !readOptions(n, options))
    return failure();
  SmallVector<Axis> axes = axesOf(n, x);
  Shape which = llvm::to_vector(llvm::seq<int64_t>(0, n.rank(x)));
  if (n.hasAttr("axes"))
    which = n.attrInts("axes");
  for (int64_t &d : which) {
    auto normal = n.normalAxis(d, n.rank(x));
    if (!normal)
      return failure();
    d = *normal;
  }
  if (options.transform == "tf_crop_and_resize") {
    auto roi = numbers(n, 1, 2 * which.size());
    if (!roi) {
      if (!n.hasFailed())
        n.error() << "tf_crop_and_resize needs a roi";
      return failure();
    }
    for (auto [i, d] : llvm::enumerate(which)) {
      axes[size_t(d)].start = (*roi)[i];
      axes[size_t(d)].end = (*roi)[i + which.size()];
    }
  }
  auto scales = numbers(n, 2, which.size());
  auto sizes = scales ? std::nullopt : numbers(n, 3, which.size());
  if (n.hasFailed())
    return failure();
  if (!scales && !sizes) {
    n.error() << "needs scales or sizes";
    return failure();
  }
  if (scales ? !applyScales(n, *scales, which, options.transform, axes)
             : !applySizes(n, *sizes, which, axes))
    return failure();
  n.set(0, resize(n, x, axes, options));
  return success();
}

/// Handles Upsample, and Resize of opset 10, which also shrinks.
static LogicalResult resizeByScales(NodeImporter &n,
                                    std::optional<std::vector<double>> scales) {
  Value x = n.in(0);
  Options options;
  if (!x || !readOptions(n, options))
    return failure();
  options.transform = "asymmetric";
  options.simple = true;
  SmallVector<Axis> axes = axesOf(n, x);
  if (!scales || scales->size() != axes.size()) {
    if (!n.hasFailed())
      n.error() << "needs " << n.rank(x) << " scales";
    return failure();
  }
  Shape which = llvm::to_vector(llvm::seq<int64_t>(0, n.rank(x)));
  if (!applyScales(n, *scales, which, options.transform, axes))
    return failure();
  n.set(0, resize(n, x, axes, options));
  return success();
}

static LogicalResult resizeByOperand(NodeImporter &n) {
  Value x = n.in(0);
  return x ? resizeByScales(n, numbers(n, 1, size_t(n.rank(x)))) : failure();
}

static LogicalResult upsampleByAttribute(NodeImporter &n) {
  return resizeByScales(n, n.attrFloats("scales"));
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::resizeHandlers() {
  static const HandlerEntry entries[] = {
      {"Resize", 10, resizeByOperand},
      {"Resize", 11, resizeByOptions},
      {"Upsample", 7, upsampleByAttribute},
      {"Upsample", 9, resizeByOperand},
  };
  return entries;
}
