//===- ElementHandlers.cpp - gathers and scatters of single elements ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GatherND and ScatterND read and write rows: their tuples of indices become
// one index into the operand with all indexed dimensions merged, so that the
// gradient of a gather is scatter_add over whole rows. Constant indices are
// checked here, and indices that are data before a step reads them; indices
// that the model computes are clamped without an error. Adjacent rows become
// slices, which need no indices at all.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"
#include "Reader/TorchMetadata.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;
using P = ComparePredicate;

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

/// Returns operand `i` as indices of 32 or 64 bits.
static Value indexOperand(NodeImporter &n, size_t i) {
  Value indices = n.in(i);
  if (!indices)
    return {};
  if (!isa<IntegerType>(n.element(indices))) {
    n.error() << "operand " << int64_t(i) << " must hold integers, not "
              << indices.getType();
    return {};
  }
  if (n.element(indices).isInteger(64) || n.element(indices).isInteger(32))
    return indices;
  return n.cast(indices, n.b.getI64Type());
}

/// Reports a constant index outside of -size..size-1 and returns false.
static bool checkRange(NodeImporter &n, Value indices, int64_t size) {
  DenseElementsAttr given = n.constantOf(indices);
  if (!given)
    return indices != nullptr;
  for (const APInt &x : given.getValues<APInt>()) {
    int64_t index = x.getSExtValue();
    if (index >= -size && index < size)
      continue;
    n.error() << "index " << index << " is outside of a dimension of " << size;
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// GatherElements, ScatterElements
//===----------------------------------------------------------------------===//

static LogicalResult gatherElements(NodeImporter &n) {
  Value x = n.in(0), indices = indexOperand(n, 1);
  if (!x || !indices)
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", 0), n.rank(x));
  if (!axis || n.cutsBatch(*axis) || !checkRange(n, indices, n.shape(x)[*axis]))
    return failure();
  n.set(0, n.make<GatherElementsOp>({x, indices}, {n.named("axis", *axis)}));
  return success();
}

static std::optional<ScatterKind> scatterKind(NodeImporter &n) {
  std::string name = n.attrString("reduction", "none");
  if (name == "none")
    return ScatterKind::Set;
  auto kind = symbolizeScatterKind(name);
  if (!kind || *kind == ScatterKind::Set) {
    n.error() << "unknown reduction '" << name << "'";
    return std::nullopt;
  }
  return kind;
}

static Value scatter(NodeImporter &n, ScatterKind kind, Value init,
                     Value indices, Value updates, int64_t axis) {
  return n.make<ScatterElementsOp>(
      {init, indices, updates},
      {n.named("kind", ScatterKindAttr::get(n.b.getContext(), kind)),
       n.named("axis", axis)});
}

/// PyTorch's older exporter writes additions in this form, too. Constant
/// indices were checked at export time.
static void remarkOnOverwriting(NodeImporter &n, ScatterKind kind,
                                Value indices) {
  if (kind == ScatterKind::Set && !n.isConstant(indices))
    n.graph.remarkOnce(n.node.describe() +
                       " overwrites: of several updates of one element one "
                       "counts (the TorchScript exporter writes index_add and "
                       "other additions like that, too)");
}

/// Tells whether the model takes means at the indices, which ONNX has not:
/// PyTorch's exporter writes that the last update counts.
static bool takesMeans(NodeImporter &n, const FxCall &call, Value updates) {
  auto reduce = call.keywords.find("reduce");
  bool isMean = call.op == "scatter_reduce" &&
                (reduce != call.keywords.end() ? reduce->second == "mean"
                 : call.texts.size() > 4       ? call.texts[4] == "mean"
                                               : false);
  // Before a mean without the old elements, a node puts zeros in their place.
  auto constant = NodeImporter::constantOf(updates);
  bool isZero = constant && constant.isSplat() && n.isFloat(updates) &&
                constant.getSplatValue<APFloat>().isZero();
  return n.graph.trainMode() && isMean && !isZero;
}

/// Returns the sums of old and new elements, divided by their number.
static Value meansAt(NodeImporter &n, const FxCall &call, Value x,
                     Value indices, Value updates, int64_t axis) {
  auto own = call.keywords.find("include_self");
  bool includes = (own != call.keywords.end() ? own->second
                   : call.texts.size() > 5    ? call.texts[5]
                                              : "True") == "True";
  Value count = scatter(
      n, ScatterKind::Add, n.splat(includes ? 1 : 0, n.type(x)), indices,
      n.splat(1, n.tensor(n.shape(updates), n.element(x))), axis);
  if (!includes && count)
    count = n.broadcast<MaximumOp>({count, n.scalar(1, count)});
  n.graph.remark(n.node.describe() +
                 ": put back the mean that the model takes and its export "
                 "lost");
  return n.div(scatter(n, ScatterKind::Add, x, indices, updates, axis), count);
}

static LogicalResult scatterElements(NodeImporter &n) {
  Value x = n.in(0), indices = indexOperand(n, 1), updates = n.in(2);
  auto kind = scatterKind(n);
  if (!x || !indices || !updates || !kind)
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", 0), n.rank(x));
  if (!axis || n.cutsBatch(*axis) || !checkRange(n, indices, n.shape(x)[*axis]))
    return failure();
  FxCall call = readFxCall(n.node, {});
  if (takesMeans(n, call, updates)) {
    n.set(0, meansAt(n, call, x, indices, updates, *axis));
    return success();
  }
  remarkOnOverwriting(n, *kind, indices);
  n.set(0, scatter(n, *kind, x, indices, updates, *axis));
  return success();
}

//===----------------------------------------------------------------------===//
// GatherND, ScatterND
//===----------------------------------------------------------------------===//

namespace {
/// The rows that tuples of indices select: `rows` rows of shape `row`, and the
/// row number of each tuple.
struct Rows {
  int64_t rows = 1;
  Shape row;
  Value linear;
  bool isAll = false; ///< all rows in order
};
} // namespace

/// Returns stored tuples, too many to fold, as what they are: the places of
/// their own dimensions that are not 1; else the tuples.
static Value asPlaces(NodeImporter &n, Value indices) {
  const HostTensor *given = n.graph.initializer(n.node.inputs[1]);
  if (!isa<BlockArgument>(indices) || !given || n.rank(indices) < 2)
    return indices;
  Shape shape(n.shape(indices));
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d + 1 < int64_t(shape.size()); ++d)
    if (shape[size_t(d)] != 1)
      dims.push_back(d);
  int64_t tuple = shape.back();
  // Leading dimensions of one sample are places of one as well.
  while (int64_t(dims.size()) < tuple && dims.size() + 1 < shape.size())
    dims.insert(dims.begin(), 0);
  if (int64_t(dims.size()) != tuple)
    return indices;
  for (int64_t i = 0; i < given->numElements(); ++i) {
    int64_t d = dims[size_t(i % tuple)];
    int64_t inner = product(ArrayRef(shape).drop_front(size_t(d) + 1));
    if (given->getInt(i) != i / inner % shape[size_t(d)])
      return indices;
  }
  shape.back() = 1;
  SmallVector<Value> parts;
  for (int64_t d : dims)
    parts.push_back(n.iota(shape, n.element(indices), d));
  return n.concat(std::move(parts), int64_t(shape.size()) - 1);
}

/// Returns whether tuples name all elements of x in order.
static bool namesAll(NodeImporter &n, Value x, Value indices) {
  ArrayRef<int64_t> places = n.shape(indices).drop_back();
  int64_t next = 0, last = n.rank(indices) - 1;
  for (int64_t j = 0; j < n.rank(x); ++j) {
    if (n.shape(x)[j] == 1) // there is only one
      continue;
    while (next < last && places[size_t(next)] == 1)
      ++next;
    if (next == last || places[size_t(next)] != n.shape(x)[j] ||
        !countsAlong(n.sliceAxis(indices, last, j, 1), next))
      return false;
    ++next;
  }
  return llvm::all_of(places.drop_front(size_t(next)),
                      [](int64_t size) { return size == 1; });
}

/// Computes row numbers from the tuples along the last dimension of `indices`,
/// which index `x` from dimension `batch` on; the dimensions before are indexed
/// by the position in `indices`.
static std::optional<Rows> linearize(NodeImporter &n, Value x, Value indices,
                                     int64_t batch) {
  int64_t rank = n.rank(x), depth = n.rank(indices);
  int64_t tuple = depth ? n.shape(indices).back() : 0;
  ArrayRef<int64_t> sizes = n.shape(x);
  if (batch < 0 || batch >= depth || tuple < 1 || tuple > rank - batch ||
      sizes.take_front(batch) != n.shape(indices).take_front(batch)) {
    n.error() << "indices of type " << indices.getType() << " do not fit "
              << x.getType() << " with batch_dims = " << batch;
    return std::nullopt;
  }
  indices = asPlaces(n, indices);
  BatchScaling *scaling = n.graph.getScaling();
  for (int64_t j = 0; j < tuple && scaling; ++j)
    if (scaling->isBatch(n, 0, batch + j)) {
      Value own = scaling->ownSamples(n, indices, j);
      if (!own && n.cutsBatch(batch + j))
        return std::nullopt;
      indices = own;
    }
  Rows result;
  result.isAll = batch == 0 && tuple == rank && namesAll(n, x, indices);
  result.rows = product(sizes.take_front(batch + tuple));
  result.row = Shape(sizes.drop_front(batch + tuple));
  Shape shape(n.shape(indices).drop_back());
  auto add = [&](Value index, int64_t below) {
    if (below != 1)
      index = n.mul(index, n.scalar(double(below), index));
    result.linear = result.linear ? n.add(result.linear, index) : index;
  };
  for (int64_t j = 0; j < tuple; ++j) {
    int64_t d = batch + j, size = sizes[d];
    Value index = n.reshape(n.sliceAxis(indices, depth - 1, j, 1), shape);
    if (!checkRange(n, index, size))
      return std::nullopt;
    Value negative = n.compare(P::LT, index, n.scalar(0, index));
    if (auto op = negative.getDefiningOp<CompareOp>())
      op->setAttr(kRowsAttr, n.b.getI64IntegerAttr(size));
    index =
        n.select(negative, n.add(index, n.scalar(double(size), index)), index);
    add(index, product(sizes.slice(d + 1, batch + tuple - d - 1)));
  }
  for (int64_t d = 0; d < batch; ++d) {
    Shape along(shape.size(), 1);
    along[size_t(d)] = sizes[d];
    add(n.iota(along, n.element(indices), d),
        product(sizes.slice(d + 1, batch + tuple - d - 1)));
  }
  if (!result.linear)
    return std::nullopt;
  return result;
}

/// Returns the first of constant indices that count up by one.
static std::optional<int64_t> firstOfNeighbours(NodeImporter &n,
                                                Value indices) {
  DenseElementsAttr given = n.constantOf(indices);
  if (!given || given.getNumElements() == 0)
    return std::nullopt;
  int64_t first = (*given.getValues<APInt>().begin()).getSExtValue();
  for (auto [i, x] : llvm::enumerate(given.getValues<APInt>()))
    if (x.getSExtValue() != first + int64_t(i))
      return std::nullopt;
  return first;
}

static LogicalResult gatherND(NodeImporter &n) {
  Value x = n.in(0), indices = indexOperand(n, 1);
  if (!x || !indices)
    return failure();
  auto rows = linearize(n, x, indices, n.attrInt("batch_dims", 0));
  if (!rows)
    return failure();
  Shape flat{rows->rows}, shape(n.shape(rows->linear));
  llvm::append_range(flat, rows->row);
  llvm::append_range(shape, rows->row);
  Value table = n.reshape(x, flat);
  if (rows->isAll)
    n.set(0, n.reshape(x, shape));
  else if (auto first = firstOfNeighbours(n, rows->linear))
    n.set(0, n.reshape(n.sliceAxis(table, 0, *first,
                                   n.type(rows->linear).getNumElements()),
                       shape));
  else
    n.set(0, n.make<GatherOp>({table, rows->linear},
                              {n.named("axis", int64_t(0))}));
  return success();
}

/// Replaces the rows of `table` from `first` on.
static Value replaceRows(NodeImporter &n, Value table, Value updates,
                         int64_t first) {
  int64_t end = first + n.shape(updates)[0], rows = n.shape(table)[0];
  SmallVector<Value> parts;
  if (first > 0)
    parts.push_back(n.sliceAxis(table, 0, 0, first));
  parts.push_back(updates);
  if (end < rows)
    parts.push_back(n.sliceAxis(table, 0, end, rows - end));
  return n.concat(std::move(parts), 0);
}

static LogicalResult scatterND(NodeImporter &n) {
  Value x = n.in(0), indices = indexOperand(n, 1), updates = n.in(2);
  auto kind = scatterKind(n);
  if (!x || !indices || !updates || !kind)
    return failure();
  auto rows = linearize(n, x, indices, 0);
  if (!rows)
    return failure();
  Shape wanted(n.shape(rows->linear));
  llvm::append_range(wanted, rows->row);
  if (n.shape(updates) != ArrayRef<int64_t>(wanted)) {
    n.error() << "updates of type " << updates.getType() << " instead of shape "
              << shapeString(wanted);
    return failure();
  }
  int64_t count = n.type(rows->linear).getNumElements();
  int64_t width = product(rows->row);
  if (count == 0 || width == 0) {
    n.set(0, x);
    return success();
  }
  Value linear = n.reshape(rows->linear, {count});
  Value table = n.reshape(x, {rows->rows, width});
  updates = n.reshape(updates, {count, width});
  auto first = firstOfNeighbours(n, linear);
  if (!first)
    remarkOnOverwriting(n, *kind, linear);
  Value result;
  if (first && *kind == ScatterKind::Set)
    result = replaceRows(n, table, updates, *first);
  else if (*kind == ScatterKind::Add)
    result = n.make<ScatterAddOp>({table, linear, updates},
                                  {n.named("axis", int64_t(0))});
  else
    result = scatter(n, *kind, table,
                     n.expand(n.reshape(linear, {count, 1}), {count, width}),
                     updates, 0);
  n.set(0, n.reshape(result, n.shape(x)));
  return success();
}

/// Writes `update` into `cache` from position write_indices[b] on.
static LogicalResult tensorScatter(NodeImporter &n) {
  Value cache = n.in(0), update = n.in(1);
  if (!cache || !update)
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", -2), n.rank(cache));
  std::string mode = n.attrString("mode", "linear");
  if (!axis)
    return failure();
  Shape part(n.shape(cache));
  if (n.rank(update) == n.rank(cache))
    part[size_t(*axis)] = std::min(part[size_t(*axis)], n.shape(update)[*axis]);
  if (*axis == 0 || part != n.shape(update) ||
      (mode != "linear" && mode != "circular")) {
    n.error() << "cannot write " << update.getType() << " into "
              << cache.getType() << " along axis " << *axis << " (mode '"
              << mode << "')";
    return failure();
  }
  Shape along(size_t(n.rank(cache)), 1), entries(along);
  along[size_t(*axis)] = n.shape(update)[*axis];
  Value position = n.iota(along, n.b.getI64Type(), *axis);
  if (n.has(2)) {
    Value start = n.cast(indexOperand(n, 2), n.b.getI64Type());
    entries[0] = n.shape(cache)[0];
    position = n.add(position, n.reshape(start, entries));
  }
  if (mode == "circular")
    position = n.broadcast<ModOp>(
        {position, n.scalar(double(n.shape(cache)[*axis]), position)});
  position = n.expand(position, n.shape(update));
  if (!checkRange(n, position, n.shape(cache)[*axis]))
    return failure();
  n.set(0, scatter(n, ScatterKind::Set, cache, position, update, *axis));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::elementHandlers() {
  static const HandlerEntry entries[] = {
      {"GatherElements", 11, gatherElements},
      {"GatherND", 11, gatherND},
      {"Scatter", 9, scatterElements},
      {"ScatterElements", 11, scatterElements},
      {"ScatterND", 11, scatterND},
      {"TensorScatter", 24, tensorScatter},
  };
  return entries;
}
