//===- SequenceHandlers.cpp - lists of tensors ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sequence is never a value at run time. Its length and the positions that
// are read are known once the shapes are fixed, so it exists as a list of
// values at import time only.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// Returns operand `i` as a position in 0..size-1 (with `mayAppend`, also
/// size); negative ones count from the end.
static std::optional<size_t> positionIn(NodeImporter &n, size_t i, size_t size,
                                        bool mayAppend = false) {
  auto given = n.constInts(i);
  if (!given)
    return std::nullopt;
  int64_t count = int64_t(size);
  if (given->size() != 1 || given->front() < -count ||
      given->front() >= count + mayAppend) {
    n.error() << "operand " << int64_t(i) << " is " << shapeString(*given)
              << ", no position in a sequence of " << count << " tensors";
    return std::nullopt;
  }
  int64_t at = given->front();
  return size_t(at < 0 ? at + count : at);
}

static LogicalResult construct(NodeImporter &n) {
  n.setSequence(0, n.inputsFrom(0));
  return success();
}

static LogicalResult empty(NodeImporter &n) {
  n.setSequence(0, {});
  return success();
}

static LogicalResult at(NodeImporter &n) {
  const Sequence *list = n.sequence(0);
  if (!list)
    return failure();
  auto position = positionIn(n, 1, list->size());
  if (!position)
    return failure();
  n.set(0, (*list)[*position]);
  return success();
}

static LogicalResult insert(NodeImporter &n) {
  const Sequence *list = n.sequence(0);
  Value tensor = n.in(1);
  if (!list || !tensor)
    return failure();
  size_t position = list->size();
  if (n.has(2)) {
    auto given = positionIn(n, 2, list->size(), /*mayAppend=*/true);
    if (!given)
      return failure();
    position = *given;
  }
  Sequence longer = *list;
  longer.insert(longer.begin() + position, tensor);
  n.setSequence(0, std::move(longer));
  return success();
}

static LogicalResult erase(NodeImporter &n) {
  const Sequence *list = n.sequence(0);
  if (!list)
    return failure();
  size_t position = list->empty() ? 0 : list->size() - 1;
  if (n.has(1)) {
    auto given = positionIn(n, 1, list->size());
    if (!given)
      return failure();
    position = *given;
  } else if (list->empty()) {
    n.error() << "takes a tensor from an empty sequence";
    return failure();
  }
  Sequence shorter = *list;
  shorter.erase(shorter.begin() + position);
  n.setSequence(0, std::move(shorter));
  return success();
}

static LogicalResult length(NodeImporter &n) {
  const Sequence *list = n.sequence(0);
  if (!list)
    return failure();
  n.set(0, n.scalarOfType(double(list->size()), n.b.getI64Type()));
  return success();
}

static LogicalResult concatenate(NodeImporter &n) {
  const Sequence *list = n.sequence(0);
  if (!list)
    return failure();
  if (list->empty()) {
    n.error() << "joins an empty sequence";
    return failure();
  }
  bool stack = n.attrInt("new_axis", 0) != 0;
  int64_t rank = n.rank(list->front());
  auto axis = n.normalAxis(n.attrInt("axis", 0), rank + stack);
  if (!axis)
    return failure();
  Sequence parts = *list;
  for (Value &part : parts) {
    if (!stack)
      continue;
    if (n.rank(part) != rank) {
      n.error() << "stacks tensors of types " << list->front().getType()
                << " and " << part.getType();
      return failure();
    }
    Shape shape(n.shape(part));
    shape.insert(shape.begin() + *axis, 1);
    part = n.reshape(part, shape);
  }
  n.set(0, n.concat(std::move(parts), *axis));
  return success();
}

/// Returns the sizes of the parts of a dimension of `size`; nothing after an
/// error.
static std::optional<Shape> partSizes(NodeImporter &n, int64_t size) {
  constexpr int64_t mostParts = 1 << 16;
  auto tooMany = [&](int64_t parts) {
    if (parts > mostParts)
      n.unsupported() << "splits into " << parts << " parts";
    return parts > mostParts;
  };
  if (!n.has(1)) {
    if (tooMany(size))
      return std::nullopt;
    return Shape(size_t(size), 1);
  }
  auto given = n.constInts(1);
  if (!given)
    return std::nullopt;
  Shape sizes = *given;
  if (n.rank(n.in(1)) == 0) { // equal parts, of which the last may be smaller
    int64_t part = given->front();
    if (part > 0 && tooMany(size / part))
      return std::nullopt;
    sizes.clear();
    for (int64_t left = size; part > 0 && left > 0; left -= part)
      sizes.push_back(std::min(part, left));
  }
  int64_t sum = 0;
  for (int64_t part : sizes)
    sum = part < 0 || part > size - sum ? size + 1 : sum + part;
  if (sum != size) {
    n.error() << "parts of " << shapeString(*given)
              << " do not make up a dimension of " << size;
    return std::nullopt;
  }
  return sizes;
}

static LogicalResult split(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  auto axis = n.normalAxis(n.attrInt("axis", 0), n.rank(x));
  if (!axis)
    return failure();
  auto sizes = partSizes(n, n.shape(x)[*axis]);
  if (!sizes)
    return failure();
  if (sizes->size() > 1 && n.cutsBatch(*axis))
    return failure();
  // Only parts whose size (1) is not given by an operand may lose their
  // dimension.
  bool drop = !n.has(1) && n.attrInt("keepdims", 1) == 0;
  Sequence parts;
  int64_t start = 0;
  for (int64_t size : *sizes) {
    Value part = n.sliceAxis(x, *axis, start, size);
    start += size;
    if (drop && part) {
      Shape shape(n.shape(part));
      shape.erase(shape.begin() + *axis);
      part = n.reshape(part, shape);
    }
    if (!part)
      return failure();
    parts.push_back(part);
  }
  n.setSequence(0, std::move(parts));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::sequenceHandlers() {
  static const HandlerEntry entries[] = {
      {"ConcatFromSequence", 11, concatenate},
      {"SequenceAt", 11, at},
      {"SequenceConstruct", 11, construct},
      {"SequenceEmpty", 11, empty},
      {"SequenceErase", 11, erase},
      {"SequenceInsert", 11, insert},
      {"SequenceLength", 11, length},
      {"SplitToSequence", 11, split},
  };
  return entries;
}
