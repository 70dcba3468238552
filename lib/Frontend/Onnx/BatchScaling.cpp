//===- BatchScaling.cpp - another batch for a baked-in one ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exporters bake the batch size into reshapes, broadcasts and constants. The
// graph is imported twice: at the file's own batch, which gives the shape of
// every value, and at the wanted one. The second pass follows, through every
// value, which dimension holds the batch and at which stride within it. A
// reshape keeps row-major order, so that stride names the one entry of the new
// shape that holds the batch; where none does, the samples would mix, and the
// import fails. If an operand still has the file's batch and the other one the
// wanted batch, the operand is resized, provided that it is a constant or
// broadcast whose entries along that dimension are provably equal, or tuples of
// indices that provably name each sample itself; otherwise, too, the import
// fails. O(rank) a value, and O(elements) for each constant that is resized.
//
//===----------------------------------------------------------------------===//
#include "BatchScaling.h"
#include "NodeImporter.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

//===----------------------------------------------------------------------===//
// Position of the batch
//===----------------------------------------------------------------------===//

bool BatchScaling::isBatch(NodeImporter &node, size_t i, int64_t d) const {
  if (!node.has(i))
    return false;
  auto was = baseShapes.find(node.node.inputs[i]);
  Value value = node.graph.lookup(node.node.inputs[i]);
  return value && was != baseShapes.end() && d < int64_t(was->second.size()) &&
         d < node.rank(value) && was->second[size_t(d)] != node.shape(value)[d];
}

bool BatchScaling::isWhole(NodeImporter &node, int64_t d, int64_t start,
                           int64_t end, int64_t step) const {
  auto was = baseShapes.find(node.node.inputs[0]);
  if (was == baseShapes.end() || d >= int64_t(was->second.size()))
    return false;
  int64_t size = was->second[size_t(d)];
  if (step == 1)
    return (start == 0 || start <= -size) && end >= size;
  return step == -1 && (start == -1 || start >= size - 1) && end < -size;
}

std::optional<BatchScaling::Axis>
BatchScaling::findAxis(const NodeImporter &node, ArrayRef<int64_t> was,
                       ArrayRef<int64_t> is) const {
  std::optional<int64_t> found;
  for (auto [d, sizes] : llvm::enumerate(llvm::zip(was, is))) {
    auto [before, now] = sizes;
    if (before == now)
      continue;
    if (found || before * target != now * base)
      // The batch is in two dimensions, or in none as a factor.
      return std::nullopt;
    found = int64_t(d);
  }
  if (!found)
    return std::nullopt;
  int64_t size = was[size_t(*found)];
  if (size == base)
    return Axis{*found, 1};
  // A factor within a dimension keeps its position in the operand that it comes
  // from.
  for (const std::string &input : node.node.inputs) {
    auto shape = baseShapes.find(input);
    auto axis = axes.find(input);
    if (shape != baseShapes.end() && axis != axes.end() &&
        shape->second[size_t(axis->second.dim)] == size)
      return Axis{*found, axis->second.inner};
  }
  return std::nullopt;
}

void BatchScaling::record(NodeImporter &node) {
  for (auto [i, output] : llvm::enumerate(node.node.outputs)) {
    Value value = node.result(i);
    auto was = baseShapes.find(output);
    if (!value || output.empty() || was == baseShapes.end() ||
        int64_t(was->second.size()) != node.rank(value))
      continue;
    auto axis = i == 0 && pending
                    ? pending
                    : findAxis(node, was->second, node.shape(value));
    if (axis)
      axes[output] = *axis;
  }
  pending.reset();
}

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

std::optional<Shape> BatchScaling::scaled(NodeImporter &node, const Axis &axis,
                                          ArrayRef<int64_t> source,
                                          ArrayRef<int64_t> wanted) {
  // The stride: elements between one sample and the next at the file's batch.
  int64_t stride =
      axis.inner * product(source.drop_front(size_t(axis.dim) + 1));
  std::optional<size_t> chosen;
  for (size_t d = 0; d < wanted.size() && stride > 0; ++d) {
    int64_t below = product(wanted.drop_front(d + 1));
    if (below == 0 || stride % below || wanted[d] % (stride / below * base))
      continue;
    // With a batch of 1 several entries fit: take the outermost that starts at
    // the stride.
    if (!chosen ||
        (below == stride && product(wanted.drop_front(*chosen + 1)) != stride))
      chosen = d;
  }
  if (!chosen)
    return std::nullopt;
  Shape shape(wanted);
  shape[*chosen] = shape[*chosen] / base * target;
  pending =
      Axis{int64_t(*chosen), stride / product(wanted.drop_front(*chosen + 1))};
  return shape;
}

std::optional<Shape> BatchScaling::reshape(NodeImporter &node,
                                           ArrayRef<int64_t> own) {
  StringRef input = node.node.inputs[0], output = node.node.outputs[0];
  Value x = node.in(0);
  auto source = baseShapes.find(input), wanted = baseShapes.find(output);
  if (!x || source == baseShapes.end() || wanted == baseShapes.end())
    return std::nullopt;
  if (ArrayRef<int64_t>(source->second) == node.shape(x))
    return wanted->second; // this dimension holds no batch
  auto axis = axes.find(input);
  std::optional<Shape> shape;
  if (axis != axes.end())
    shape = scaled(node, axis->second, source->second, wanted->second);
  else if (!own.empty())
    shape = Shape(own);
  if (!shape) {
    node.unsupported() << "reshapes " << shapeString(source->second) << " to "
                       << shapeString(wanted->second)
                       << "; it is not proven which of these hold the batch of "
                       << base << ", so it cannot be changed to " << target;
    return std::nullopt;
  }
  if (node.node.op != "Reshape")
    return shape;
  auto given = node.constInts(1);
  for (size_t d = 0; given && d < std::min(given->size(), shape->size()); ++d) {
    int64_t entry = (*given)[d];
    if (entry > 0 && entry != (*shape)[d] && entry != wanted->second[d]) {
      node.unsupported() << "entry " << int64_t(d) << " of the shape '"
                         << node.node.inputs[1] << "' is " << entry
                         << "; at a batch of " << target << " it should be "
                         << (*shape)[d];
      return std::nullopt;
    }
  }
  return given ? shape : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Values that are the same for every sample
//===----------------------------------------------------------------------===//

/// What is asked about the entries of a value along a dimension.
enum class Along {
  Uniform,  ///< are they equal
  Position, ///< are they 0, 1, 2, ...: the position
};

/// Answers for a constant.
static bool holds(Along what, DenseElementsAttr constant, int64_t dim) {
  if (what == Along::Position && !constant.getElementType().isIntOrIndex())
    return false;
  if (constant.isSplat())
    return what == Along::Uniform;
  ArrayRef<int64_t> shape = constant.getType().getShape();
  int64_t inner = product(shape.drop_front(size_t(dim) + 1));
  int64_t block = inner * shape[size_t(dim)];
  if (what == Along::Position) {
    for (auto [i, x] : llvm::enumerate(constant.getValues<APInt>()))
      if (x.getSExtValue() != int64_t(i) % block / inner)
        return false;
    return true;
  }
  auto values = constant.getValues<Attribute>();
  for (int64_t i = 0; i < constant.getNumElements(); ++i)
    if (values[uint64_t(i)] != values[uint64_t(i / block * block + i % inner)])
      return false;
  return true;
}

static bool holds(Along what, Value value, int64_t dim);

static bool worksByElement(Operation *op) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return kernel && kernel.getKernelKind() == KernelKind::Elementwise &&
         op->getNumResults() == 1 && !op->hasTrait<traits::ReadsPlace>();
}

/// Returns whether this holds for dimension `dim` of `result` in an operand
/// that broadcasts to it.
static bool holdsBroadcast(Along what, Value operand, Value result,
                           int64_t dim) {
  int64_t d = dim - NodeImporter::rank(result) + NodeImporter::rank(operand);
  if (d < 0 || NodeImporter::shape(operand)[d] == 1)
    return what == Along::Uniform;
  return holds(what, operand, d);
}

/// Answers for rows of a table by what they are gathered by.
static bool holds(Along what, GatherOp gather, int64_t dim) {
  int64_t axis = int64_t(gather.getAxis());
  int64_t within = NodeImporter::rank(gather.getIndices());
  if (dim < axis)
    return holds(what, gather.getTable(), dim);
  if (dim >= axis + within)
    return holds(what, gather.getTable(), dim - within + 1);
  return what == Along::Uniform && holds(what, gather.getIndices(), dim - axis);
}

/// Returns the part of a concatenation that a slice takes, or null.
static Value partOf(SliceOp slice) {
  auto all = slice.getInput().getDefiningOp<ConcatOp>();
  if (!all || llvm::any_of(slice.getSteps(), [](int64_t x) { return x != 1; }))
    return {};
  int64_t start = slice.getStarts()[size_t(all.getAxis())];
  for (Value part : all.getInputs()) {
    if (start == 0 && part.getType() == slice.getType())
      return part;
    start -= NodeImporter::shape(part)[int64_t(all.getAxis())];
  }
  return {};
}

/// Returns whether something provably holds for the entries of `value` along
/// `dim`.
static bool holds(Along what, Value value, int64_t dim) {
  DenseElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return holds(what, constant, dim);
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto expand = dyn_cast<ExpandOp>(op))
    return holdsBroadcast(what, expand.getInput(), value, dim);
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return holds(what, transpose.getInput(),
                 transpose.getPermutation()[size_t(dim)]);
  if (auto iota = dyn_cast<IotaOp>(op)) {
    bool isAlong = int64_t(iota.getAxis()) == dim;
    return what == Along::Uniform ? !isAlong
                                  : isAlong && iota.getStart().isZero() &&
                                        iota.getDelta().isExactlyValue(1);
  }
  if (auto gather = dyn_cast<GatherOp>(op))
    return holds(what, gather, dim);
  if (auto concat = dyn_cast<ConcatOp>(op))
    return int64_t(concat.getAxis()) != dim &&
           llvm::all_of(concat.getInputs(),
                        [&](Value part) { return holds(what, part, dim); });
  auto slice = dyn_cast<SliceOp>(op);
  if (Value part = slice ? partOf(slice) : Value())
    return holds(what, part, dim);
  if (slice)
    return (what == Along::Uniform ||
            NodeImporter::shape(slice.getInput())[dim] ==
                NodeImporter::shape(value)[dim]) &&
           holds(what, slice.getInput(), dim);
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    ArrayRef<int64_t> to = NodeImporter::shape(value);
    ArrayRef<int64_t> from = NodeImporter::shape(reshape.getInput());
    for (size_t d = 0; d < from.size(); ++d)
      if (from[d] == to[size_t(dim)] &&
          product(from.drop_front(d + 1)) ==
              product(to.drop_front(size_t(dim) + 1)))
        return holds(what, reshape.getInput(), int64_t(d));
    return false;
  }
  if (what == Along::Position) {
    auto cast = dyn_cast<CastOp>(op);
    return cast && NodeImporter::element(value).isIntOrIndex() &&
           holds(what, cast.getInput(), dim);
  }
  return worksByElement(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return holdsBroadcast(what, operand, value, dim);
         });
}

/// Returns the first of equal entries along `dim`. Masks of all pairs are made
/// again of less, so that what they are made of is seen.
static Value firstAlong(NodeImporter &node, Value value, int64_t dim) {
  Shape shape(NodeImporter::shape(value));
  if (shape[size_t(dim)] == 1)
    return value;
  Operation *op = value.getDefiningOp();
  shape[size_t(dim)] = 1;
  auto alongOperand = [&](Value operand) {
    return dim - NodeImporter::rank(value) + NodeImporter::rank(operand);
  };
  if (auto expand = dyn_cast_or_null<ExpandOp>(op)) {
    int64_t d = alongOperand(expand.getInput());
    if (d < 0 || NodeImporter::shape(expand.getInput())[d] == 1)
      return node.expand(expand.getInput(), shape);
  }
  if (!op || !worksByElement(op))
    return node.sliceAxis(value, dim, 0, 1);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    int64_t d = alongOperand(operand);
    operands.push_back(d < 0 ? operand : firstAlong(node, operand, d));
  }
  Operation *fewer = node.b.clone(*op);
  fewer->setOperands(operands);
  fewer->getResult(0).setType(
      RankedTensorType::get(shape, NodeImporter::element(value)));
  return fewer->getResult(0);
}

Value BatchScaling::resize(NodeImporter &node, Value value, int64_t dim,
                           int64_t size) {
  if (node.shape(value)[dim] != 1 && !holds(Along::Uniform, value, dim)) {
    node.unsupported() << "an operand of type " << value.getType() << " has "
                       << node.shape(value)[dim] << " entries along dimension "
                       << dim << " where the batch needs " << size
                       << ", and they differ: the batch size of this model "
                          "cannot be changed from "
                       << base;
    return {};
  }
  Shape wanted(node.shape(value));
  wanted[size_t(dim)] = size;
  return node.expand(firstAlong(node, value, dim), wanted);
}

Value BatchScaling::ownSamples(NodeImporter &node, Value indices,
                               int64_t entry) {
  const int64_t last = node.rank(indices) - 1;
  Value own = node.sliceAxis(indices, last, entry, 1);
  for (int64_t d = 0; d < last; ++d) {
    Shape shape(node.shape(own));
    if (shape[size_t(d)] != base || !holds(Along::Position, own, d))
      continue;
    shape[size_t(d)] = target;
    SmallVector<Value> parts;
    for (int64_t i = 0; i < node.shape(indices)[last]; ++i) {
      Value part = node.sliceAxis(indices, last, i, 1);
      if (i != entry && !holds(Along::Uniform, part, d))
        return {};
      parts.push_back(i == entry ? node.iota(shape, node.element(indices), d)
                                 : resize(node, part, d, target));
    }
    return node.concat(std::move(parts), last);
  }
  return {};
}

bool onnx_frontend::countsAlong(Value indices, int64_t dim) {
  return holds(Along::Position, indices, dim);
}

bool BatchScaling::align(NodeImporter &node, MutableArrayRef<Value> operands,
                         int64_t skip) {
  for (Value &value : operands)
    for (Value other : operands)
      for (int64_t back = skip + 1;
           back <= std::min(node.rank(value), node.rank(other)); ++back) {
        int64_t dim = node.rank(value) - back;
        int64_t has = node.shape(value)[dim];
        int64_t wants = node.shape(other)[node.rank(other) - back];
        // Here `value` still has k times the file's batch, and `other` k times
        // the wanted one.
        if (has == 1 || wants == 1 || has == wants || has % base ||
            has / base * target != wants)
          continue;
        value = resize(node, value, dim, wants);
        if (!value)
          return false;
      }
  return true;
}
