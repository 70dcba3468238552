//===- ShapeHandlers.cpp - reshapes, transposes, concatenation ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// Sets the result to a reshape of operand 0, in the scaled batch if there is
/// one.
static LogicalResult setReshape(NodeImporter &n, ArrayRef<int64_t> shape) {
  Value x = n.in(0);
  if (!x)
    return failure();
  Shape wanted(shape);
  if (BatchScaling *scaling = n.graph.getScaling()) {
    auto scaled = scaling->reshape(n, shape);
    if (!scaled)
      return failure();
    wanted = *scaled;
  }
  n.set(0, n.reshape(x, wanted));
  return success();
}

static LogicalResult reshape(NodeImporter &n) {
  Value x = n.in(0);
  auto wanted = n.constInts(1);
  if (!x || !wanted)
    return failure();
  // With a scaled batch, the entries may still be those of the file: compute
  // the shape from the one at the file's batch.
  if (n.graph.getScaling())
    return setReshape(n, {});
  bool allowZero = n.attrInt("allowzero", 0) != 0;
  int64_t known = 1, open = -1, count = n.type(x).getNumElements();
  for (auto [i, size] : llvm::enumerate(*wanted)) {
    if (size == 0 && !allowZero) {
      if (int64_t(i) >= n.rank(x)) {
        n.error() << "entry " << int64_t(i) << " of the shape copies a "
                  << "dimension that the operand of type " << x.getType()
                  << " does not have";
        return failure();
      }
      size = n.shape(x)[i];
    }
    if (size == -1 && open < 0)
      open = int64_t(i);
    else if (size < 0 || llvm::MulOverflow(known, size, known)) {
      n.error() << "cannot reshape to " << shapeString(*wanted);
      return failure();
    }
  }
  if (open >= 0 && known > 0 && count % known == 0)
    (*wanted)[size_t(open)] = count / known;
  else if (open >= 0 || known != count) {
    n.error() << "cannot reshape " << x.getType() << " to "
              << shapeString(*wanted) << ": the numbers of elements differ";
    return failure();
  }
  return setReshape(n, *wanted);
}

static LogicalResult flatten(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  int64_t axis = n.attrInt("axis", 1), rank = n.rank(x);
  if (axis < -rank || axis > rank) {
    n.error() << "axis " << axis << " is outside of rank " << rank;
    return failure();
  }
  if (axis < 0)
    axis += rank;
  int64_t rows = 1, columns = 1;
  for (auto [d, size] : llvm::enumerate(n.shape(x)))
    (int64_t(d) < axis ? rows : columns) *= size;
  return setReshape(n, {rows, columns});
}

static LogicalResult squeeze(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  auto axes = n.axes(1, n.rank(x));
  if (n.hasFailed())
    return failure();
  Shape shape;
  for (auto [d, size] : llvm::enumerate(n.shape(x))) {
    bool named = axes && llvm::is_contained(*axes, int64_t(d));
    if (named && size != 1) {
      n.error() << "squeezes dimension " << int64_t(d) << " of " << x.getType();
      return failure();
    }
    if (!(axes ? named : size == 1))
      shape.push_back(size);
  }
  return setReshape(n, shape);
}

static LogicalResult unsqueeze(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  size_t added = n.attrInts("axes").size();
  if (!n.hasAttr("axes")) {
    auto given = n.constInts(1);
    if (!given)
      return failure();
    added = given->size();
  }
  int64_t rank = n.rank(x) + int64_t(added);
  auto axes = n.axes(1, rank);
  if (!axes)
    return failure();
  Shape shape;
  auto sizes = n.shape(x).begin();
  for (int64_t d = 0; d < rank; ++d)
    shape.push_back(llvm::is_contained(*axes, d) ? 1 : *sizes++);
  return setReshape(n, shape);
}

static LogicalResult transpose(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  Shape reversed = llvm::to_vector(
      llvm::reverse(llvm::to_vector(llvm::seq<int64_t>(0, n.rank(x)))));
  n.set(0, n.transpose(x, n.attrInts("perm", reversed)));
  return success();
}

static LogicalResult concat(NodeImporter &n) {
  SmallVector<Value> inputs = n.inputsFrom(0);
  if (!n.in(0) || llvm::is_contained(inputs, Value()))
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", 1), n.rank(inputs[0]));
  if (!axis)
    return failure();
  if (BatchScaling *scaling = n.graph.getScaling()) {
    // All other dimensions must agree, so a value that is the same for every
    // sample is resized.
    int64_t base = scaling->getBase(), target = scaling->getTarget();
    for (int64_t d = 0; d < n.rank(inputs[0]); ++d) {
      bool anyScaled = llvm::any_of(inputs, [&](Value other) {
        return n.rank(other) > d && n.shape(other)[d] == target;
      });
      for (Value &input : inputs) {
        if (d == *axis || !anyScaled || n.rank(input) <= d ||
            n.shape(input)[d] != base)
          continue;
        input = scaling->resize(n, input, d, target);
        if (!input)
          return failure();
      }
    }
  }
  // Exporters concatenate empty tensors as well; drop them.
  llvm::erase_if(inputs, [&](Value input) {
    return inputs.size() > 1 && n.rank(input) == 1 && n.shape(input)[0] == 0;
  });
  if (inputs.empty())
    inputs.push_back(n.in(0));
  n.set(0, n.concat(inputs, *axis));
  return success();
}

static LogicalResult expand(NodeImporter &n) {
  Value x = n.in(0);
  auto wanted = n.constInts(1);
  if (!x || !wanted)
    return failure();
  // If the operand's batch is scaled, a constant shape still has the file's.
  BatchScaling *scaling = n.graph.getScaling();
  for (size_t d = 0; scaling && d < wanted->size(); ++d) {
    int64_t from = int64_t(d) + n.rank(x) - int64_t(wanted->size());
    if (from < 0)
      continue;
    if (scaling->isBatch(n, 0, from))
      (*wanted)[d] = n.shape(x)[from];
    else if (n.shape(x)[from] == scaling->getBase() &&
             (*wanted)[d] == scaling->getTarget())
      x = scaling->resize(n, x, from, scaling->getTarget());
    if (!x)
      return failure();
  }
  auto count = checkedNumElements(*wanted, 8);
  auto shape = broadcastShapes(n.shape(x), *wanted);
  if (!count || !shape) {
    if (!count)
      llvm::consumeError(count.takeError());
    n.error() << "cannot expand " << x.getType() << " to "
              << shapeString(*wanted);
    return failure();
  }
  n.set(0, n.expand(x, *shape));
  return success();
}

/// Repeats by a broadcast to [.., repeat, size, ..] and a reshape.
static LogicalResult tile(NodeImporter &n) {
  Value x = n.in(0);
  auto repeats = n.constInts(1);
  if (!x || !repeats)
    return failure();
  if (int64_t(repeats->size()) != n.rank(x) ||
      llvm::any_of(*repeats, [](int64_t r) { return r < 0; })) {
    n.error() << "needs " << n.rank(x) << " repeats, none negative";
    return failure();
  }
  Shape inserted, wide, merged;
  for (auto [size, repeat] : llvm::zip(n.shape(x), *repeats)) {
    if (repeat != 1 && size != 1) {
      inserted.push_back(1);
      wide.push_back(repeat);
    }
    inserted.push_back(size);
    wide.push_back(size == 1 ? repeat : size);
    int64_t total = 0;
    if (llvm::MulOverflow(size, repeat, total)) {
      n.error() << "repeats " << repeat << " times";
      return failure();
    }
    merged.push_back(total);
  }
  auto count = checkedNumElements(merged, 8);
  if (!count) {
    n.error() << llvm::toString(count.takeError());
    return failure();
  }
  n.set(0, n.reshape(n.expand(n.reshape(x, inserted), wide), merged));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::shapeHandlers() {
  static const HandlerEntry entries[] = {
      {"Concat", 4, concat},       {"Expand", 8, expand},
      {"Flatten", 1, flatten},     {"Reshape", 5, reshape},
      {"Squeeze", 1, squeeze},     {"Squeeze", 13, squeeze},
      {"Tile", 6, tile},           {"Transpose", 1, transpose},
      {"Unsqueeze", 1, unsqueeze}, {"Unsqueeze", 13, unsqueeze},
  };
  return entries;
}
