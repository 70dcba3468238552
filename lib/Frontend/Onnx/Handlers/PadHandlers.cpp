//===- PadHandlers.cpp - Pad, CenterCropPad -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Negative pads crop first. The modes reflect, edge and wrap add slices of the
// operand, one axis after the other, so that corners combine both axes.
//
//===----------------------------------------------------------------------===//
#include "Resampling.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// Returns the operand's entry that belongs at position `at` (negative or
/// beyond the end).
static int64_t sourceOf(StringRef mode, int64_t at, int64_t size) {
  if (mode == "edge" || size == 1)
    return std::clamp<int64_t>(at, 0, size - 1);
  if (mode == "wrap")
    return ((at % size) + size) % size;
  int64_t period = 2 * (size - 1), place = ((at % period) + period) % period;
  return place < size ? place : period - place;
}

/// Pads `x`, after all crops, with copies of its own entries.
static Value padByEntries(NodeImporter &n, Value x, StringRef mode,
                          ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
  for (size_t d = 0; x && d < low.size(); ++d) {
    int64_t size = n.shape(x)[d], out = low[d] + size + high[d];
    if (out == size)
      continue;
    if (size == 0) {
      n.error() << "pads dimension " << int64_t(d) << " of " << x.getType()
                << ", which has no entries, with its own";
      return {};
    }
    if (out > int64_t(1) << 20) {
      n.unsupported() << "mode '" << mode << "' with a result of " << out
                      << " entries along dimension " << int64_t(d);
      return {};
    }
    Shape indices;
    for (int64_t i = -low[d]; i < size + high[d]; ++i)
      indices.push_back(sourceOf(mode, i, size));
    x = pickEntries(n, x, int64_t(d), indices);
  }
  return x;
}

static LogicalResult padBy(NodeImporter &n, ArrayRef<int64_t> pads,
                           std::optional<Shape> axes, double value) {
  Value x = n.in(0);
  if (!x)
    return failure();
  std::string mode = n.attrString("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" &&
      mode != "wrap") {
    n.error() << "unknown mode '" << mode << "'";
    return failure();
  }
  auto rank = size_t(n.rank(x));
  if (!axes)
    axes = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(rank)));
  if (pads.size() != 2 * axes->size()) {
    n.error() << "needs " << int64_t(2 * axes->size()) << " pads, got "
              << int64_t(pads.size());
    return failure();
  }
  Shape low(rank, 0), high(rank, 0), none(rank, 0);
  Shape first(rank, 0), sizes(n.shape(x));
  for (auto [i, axis] : llvm::enumerate(*axes)) {
    auto normal = n.normalAxis(axis, int64_t(rank));
    if (!normal)
      return failure();
    auto d = size_t(*normal);
    int64_t before = pads[i], after = pads[i + axes->size()];
    int64_t limit = int64_t(1) << 40;
    if (before > limit || after > limit || before < -sizes[d] ||
        after < -sizes[d] - std::min<int64_t>(before, 0)) {
      n.error() << "pads of " << before << " and " << after
                << " do not fit dimension " << *normal << " of " << x.getType();
      return failure();
    }
    if ((before || after) && n.cutsBatch(*normal))
      return failure();
    low[d] = std::max<int64_t>(before, 0);
    high[d] = std::max<int64_t>(after, 0);
    first[d] = std::max<int64_t>(-before, 0);
    sizes[d] -= first[d] + std::max<int64_t>(-after, 0);
  }
  if (ArrayRef<int64_t>(sizes) != n.shape(x)) // negative pads crop
    x = n.slice(x, first, sizes);
  if (mode != "constant")
    n.set(0, padByEntries(n, x, mode, low, high));
  else
    n.set(0, n.make<PadOp>({x}, {n.named("low", low), n.named("high", high),
                                 n.named("interior", none),
                                 n.namedF("value", value)}));
  return success();
}

static LogicalResult padByAttribute(NodeImporter &n) {
  return padBy(n, n.attrInts("pads"), std::nullopt, n.attrFloat("value", 0));
}

static LogicalResult padByOperand(NodeImporter &n) {
  auto pads = n.constInts(1);
  std::optional<double> value = 0;
  if (n.has(2))
    value = n.constScalar(2);
  std::optional<Shape> axes;
  if (n.has(3)) {
    axes = n.constInts(3);
    if (!axes)
      return failure();
  }
  if (!pads || !value)
    return failure();
  return padBy(n, *pads, axes, *value);
}

/// Crops or pads to a shape around the middle; an odd entry is dropped or added
/// at the end.
static LogicalResult centerCropPad(NodeImporter &n) {
  Value x = n.in(0);
  auto wanted = n.constInts(1);
  if (!x || !wanted)
    return failure();
  auto rank = size_t(n.rank(x));
  Shape axes =
      n.attrInts("axes", llvm::to_vector(llvm::seq<int64_t>(0, int64_t(rank))));
  if (axes.size() != wanted->size()) {
    n.error() << "needs one size for each of " << int64_t(axes.size())
              << " axes";
    return failure();
  }
  Shape low(rank, 0), high(rank, 0), none(rank, 0);
  Shape first(rank, 0), sizes(n.shape(x));
  for (auto [given, size] : llvm::zip(axes, *wanted)) {
    auto axis = n.normalAxis(given, int64_t(rank));
    if (!axis)
      return failure();
    auto d = size_t(*axis);
    if (size < 0 || size > int64_t(1) << 40) {
      n.error() << "cannot crop or pad to " << size << " entries";
      return failure();
    }
    int64_t more = size - n.shape(x)[*axis];
    if (more && n.cutsBatch(*axis))
      return failure();
    first[d] = more < 0 ? -more / 2 : 0;
    sizes[d] = std::min(size, sizes[d]);
    low[d] = more > 0 ? more / 2 : 0;
    high[d] = more > 0 ? more - more / 2 : 0;
  }
  if (ArrayRef<int64_t>(sizes) != n.shape(x))
    x = n.slice(x, first, sizes);
  n.set(0, n.make<PadOp>({x}, {n.named("low", low), n.named("high", high),
                               n.named("interior", none)}));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::padHandlers() {
  static const HandlerEntry entries[] = {
      {"CenterCropPad", 18, centerCropPad},
      {"Pad", 2, padByAttribute},
      {"Pad", 11, padByOperand},
  };
  return entries;
}
