//===- IndexingHandlers.cpp - slices, splits, gathers ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Export/TorchCalls.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

//===----------------------------------------------------------------------===//
// Slice
//===----------------------------------------------------------------------===//

/// Computes one axis of a slice as first entry and number of entries.
static void sliceRange(int64_t size, int64_t start, int64_t end, int64_t step,
                       int64_t &first, int64_t &count) {
  auto from = [&](int64_t at) { return at < 0 ? at + size : at; };
  if (start < -size)
    start = -size - 1; // keeps at + size from wrapping
  if (end < -size)
    end = -size - 1;
  if (step > 0) {
    first = std::clamp<int64_t>(from(start), 0, size);
    int64_t last = std::clamp<int64_t>(from(end), 0, size);
    count = last > first ? (last - first - 1) / step + 1 : 0;
    return;
  }
  first = std::clamp<int64_t>(from(start), -1, size - 1);
  int64_t last = std::clamp<int64_t>(from(end), -1, size - 1);
  count = first > last ? (first - last - 1) / -step + 1 : 0;
}

static LogicalResult sliceBy(NodeImporter &n, ArrayRef<int64_t> starts,
                             ArrayRef<int64_t> ends, ArrayRef<int64_t> axes,
                             ArrayRef<int64_t> steps) {
  Value x = n.in(0);
  if (!x)
    return failure();
  Shape first(size_t(n.rank(x)), 0), sizes(n.shape(x)),
      stride(size_t(n.rank(x)), 1);
  Shape every = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(starts.size())));
  Shape ones(starts.size(), 1);
  axes = axes.empty() ? ArrayRef<int64_t>(every) : axes;
  steps = steps.empty() ? ArrayRef<int64_t>(ones) : steps;
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    n.error() << "starts, ends, axes and steps must have equal lengths";
    return failure();
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    auto axis = n.normalAxis(axes[i], n.rank(x));
    if (!axis)
      return failure();
    int64_t size = n.shape(x)[*axis], step = steps[i];
    if (step == 0) {
      n.error() << "a step must not be 0";
      return failure();
    }
    step = std::clamp<int64_t>(step, -size - 1, size + 1);
    auto d = size_t(*axis);
    sliceRange(size, starts[i], ends[i], step, first[d], sizes[d]);
    stride[d] = step;
    // A bound that was the whole batch in the file stays the whole batch at any
    // size.
    BatchScaling *scaling = n.graph.getScaling();
    if (scaling && scaling->isBatch(n, 0, *axis) &&
        scaling->isWhole(n, *axis, starts[i], ends[i], step)) {
      first[d] = step > 0 ? 0 : size - 1;
      sizes[d] = size;
    }
    if (sizes[d] != size && n.cutsBatch(*axis))
      return failure();
    if (sizes[d] == 0)
      first[d] = 0;
  }
  n.set(0, n.slice(x, first, sizes, stride));
  return success();
}

static LogicalResult sliceByAttribute(NodeImporter &n) {
  return sliceBy(n, n.attrInts("starts"), n.attrInts("ends"),
                 n.attrInts("axes"), {});
}

static LogicalResult sliceByOperand(NodeImporter &n) {
  auto starts = n.constInts(1), ends = n.constInts(2);
  std::optional<Shape> axes = Shape(), steps = Shape();
  if (n.has(3))
    axes = n.constInts(3);
  if (n.has(4))
    steps = n.constInts(4);
  if (!starts || !ends || !axes || !steps)
    return failure();
  return sliceBy(n, *starts, *ends, *axes, *steps);
}

//===----------------------------------------------------------------------===//
// Split
//===----------------------------------------------------------------------===//

static LogicalResult splitInto(NodeImporter &n, Shape sizes) {
  Value x = n.in(0);
  if (!x)
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", 0), n.rank(x));
  if (!axis)
    return failure();
  int64_t size = n.shape(x)[*axis], parts = int64_t(n.numOutputs());
  if (sizes.empty() && parts > 0) {
    int64_t part = (size + parts - 1) / parts; // the last may be smaller
    for (int64_t at = 0; int64_t(sizes.size()) < parts; at += part)
      sizes.push_back(std::clamp<int64_t>(size - at, 0, part));
  }
  int64_t sum = 0;
  for (int64_t part : sizes)
    sum = part < 0 || part > size - sum ? size + 1 : sum + part;
  if (sum != size || int64_t(sizes.size()) != parts) {
    n.error() << "parts " << shapeString(sizes) << " do not make up dimension "
              << *axis << " of " << x.getType() << " in " << parts
              << " results";
    return failure();
  }
  if (parts > 1 && n.cutsBatch(*axis))
    return failure();
  int64_t at = 0;
  for (auto [i, part] : llvm::enumerate(sizes)) {
    n.set(i, n.sliceAxis(x, *axis, at, part));
    at += part;
  }
  return success();
}

static LogicalResult splitByAttribute(NodeImporter &n) {
  return splitInto(n, n.attrInts("split"));
}

static LogicalResult splitByOperand(NodeImporter &n) {
  if (!n.has(1))
    return splitInto(n, {});
  auto sizes = n.constInts(1);
  if (!sizes)
    return failure();
  return splitInto(n, *sizes);
}

//===----------------------------------------------------------------------===//
// Gather, OneHot, Trilu
//===----------------------------------------------------------------------===//

/// Returns the row of an embedding that is for padding; it gets no gradient in
/// PyTorch. If the exporter records no calls, it is the only row of zeros,
/// since initializations leave no other row zero.
static std::optional<int64_t> paddingRow(NodeImporter &n, Value table) {
  if (!n.graph.trainMode() || n.rank(table) != 2)
    return std::nullopt;
  if (auto given = callNumber(n.node, "embedding", 2, "padding_idx"))
    return *given < 0 ? std::nullopt : std::optional(int64_t(*given));
  const HostTensor *value = n.graph.initializer(n.node.inputs[0]);
  if (!n.graph.isFromPyTorch() || !n.node.fxNode.empty() ||
      !n.node.fxTarget.empty() || !value || value->rank() != 2 ||
      !isa<BlockArgument>(table) || value->dim(0) < 3)
    return std::nullopt;
  std::optional<int64_t> found;
  for (int64_t row = 0; row < value->dim(0); ++row) {
    bool zero = true;
    for (int64_t i = 0; zero && i < value->dim(1); ++i)
      zero = value->getDouble(row * value->dim(1) + i) == 0;
    if (zero && found)
      return std::nullopt;
    if (zero)
      found = row;
  }
  if (found)
    n.graph.remark("row " + std::to_string(*found) + " of '" +
                   n.node.inputs[0] +
                   "' is the only one of zeros: taken for padding, no gradient "
                   "goes through lookups of it");
  return found;
}

static LogicalResult gather(NodeImporter &n) {
  Value x = n.in(0), indices = n.in(1);
  if (!x || !indices)
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", 0), n.rank(x));
  if (!axis)
    return failure();
  if (n.cutsBatch(*axis))
    return failure();
  int64_t size = n.shape(x)[*axis];
  auto padding = *axis == 0 ? paddingRow(n, x) : std::nullopt;
  if (n.isConstant(indices)) {
    auto given = n.intsOf(indices, "the index");
    if (!given)
      return failure();
    for (int64_t index : *given)
      if (index < -size || index >= size) {
        n.error() << "index " << index << " is outside of dimension " << *axis
                  << " of " << x.getType();
        return failure();
      }
    // A single index, or consecutive ones (positions 0, 1, 2, ...), become a
    // slice, which needs no indices, and whose gradient needs no scatter.
    int64_t first = given->empty() ? 0 : given->front();
    first += first < 0 ? size : 0;
    bool neighbours = !given->empty() && !padding;
    for (auto [i, index] : llvm::enumerate(*given))
      neighbours &= (index < 0 ? index + size : index) == first + int64_t(i);
    if (neighbours) {
      Value part = n.sliceAxis(x, *axis, first, int64_t(given->size()));
      Shape shape(n.shape(x).take_front(*axis));
      llvm::append_range(shape, n.shape(indices));
      llvm::append_range(shape, n.shape(x).drop_front(*axis + 1));
      n.set(0, n.reshape(part, shape));
      return success();
    }
  }
  if (!n.element(indices).isInteger(64) && !n.element(indices).isInteger(32))
    indices = n.cast(indices, n.b.getI64Type());
  Value rows = n.make<GatherOp>({x, indices}, {n.named("axis", *axis)});
  if (padding && rows) {
    Shape wide(n.shape(indices));
    wide.resize(size_t(n.rank(rows)), 1);
    Value pads = n.compare(ComparePredicate::EQ, n.reshape(indices, wide),
                           n.scalar(double(*padding), indices));
    rows = n.select(pads, stopGradient(n, rows), rows);
  }
  n.set(0, rows);
  return success();
}

/// Computes `off` everywhere in [.., depth, ..] but `on` where the index equals
/// the position.
static LogicalResult oneHot(NodeImporter &n) {
  Value indices = n.in(0), values = n.in(2);
  auto depth = n.constScalar(1);
  if (!indices || !values || !depth)
    return failure();
  if (!(*depth >= 1 && *depth < 1e9) || n.type(values).getNumElements() != 2) {
    n.error() << "needs a positive depth and two values";
    return failure();
  }
  auto axis = n.normalAxis(n.attrInt("axis", -1), n.rank(indices) + 1);
  if (!axis)
    return failure();
  auto size = int64_t(*depth);
  indices = n.cast(indices, n.b.getI64Type());
  indices =
      n.select(n.compare(ComparePredicate::LT, indices, n.scalar(0, indices)),
               n.add(indices, n.scalar(double(size), indices)), indices);
  if (!indices)
    return failure();
  Shape shape(n.shape(indices));
  shape.insert(shape.begin() + *axis, 1);
  Shape places(shape.size(), 1);
  places[size_t(*axis)] = size;
  Value hit = n.compare(ComparePredicate::EQ, n.reshape(indices, shape),
                        n.iota(places, n.b.getI64Type(), *axis));
  Value flat = n.reshape(values, {2});
  Value off = n.reshape(n.sliceAxis(flat, 0, 0, 1), {});
  Value on = n.reshape(n.sliceAxis(flat, 0, 1, 1), {});
  n.set(0, n.select(hit, on, off));
  return success();
}

static LogicalResult trilu(NodeImporter &n) {
  Value x = n.in(0);
  int64_t k = 0;
  if (n.has(1)) {
    auto given = n.constInts(1);
    if (!given || given->size() != 1) {
      if (given)
        n.error() << "operand 1 must be one number";
      return failure();
    }
    k = given->front();
  }
  if (!x)
    return failure();
  if (n.rank(x) < 2) {
    n.error() << "needs matrices, got " << x.getType();
    return failure();
  }
  n.set(0, n.make<TriluOp>(
               {x}, {n.named("upper", n.b.getBoolAttr(n.attrInt("upper", 1))),
                     n.named("k", k)}));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::indexingHandlers() {
  static const HandlerEntry entries[] = {
      {"Gather", 1, gather},          {"OneHot", 9, oneHot},
      {"Slice", 1, sliceByAttribute}, {"Slice", 10, sliceByOperand},
      {"Split", 2, splitByAttribute}, {"Split", 13, splitByOperand},
      {"Trilu", 14, trilu},
  };
  return entries;
}
