//===- DataPlaces.cpp - which elements of data a value holds --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: an op may read columns of an argument behind transpositions,
// reshapes, steps and reversals, and what limits it limits these columns alone.
// Method: the ops on the way are run by their reference semantics on numbers of
// the argument's elements; those that arrive are then sought as indices of one
// dimension. Guarantee: places that are returned are those elements, no more
// and no less. O(elements) an op, of at most mostElements.
//
//===----------------------------------------------------------------------===//
#include "DataPlaces.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Reference/Interpreter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// Of a tensor on the way.
static constexpr int64_t mostElements = int64_t(1) << 20;
/// Apart from each other, in one dimension.
static constexpr size_t mostPlaces = 256;

bool onnx_frontend::keepsIntegers(Operation *op) {
  if (isa<PinOp>(op))
    return true;
  auto cast = dyn_cast<CastOp>(op);
  if (!cast)
    return false;
  Type from = getElementTypeOrSelf(cast.getInput().getType()),
       to = getElementTypeOrSelf(cast.getOutput().getType());
  return to == from || to.getIntOrFloatBitWidth() >= 32 ||
         (isa<IntegerType>(from) && !to.isInteger(1) &&
          to.getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth());
}

namespace {
/// Evaluates values with an argument's elements numbered from 1, and 0 for what
/// comes from elsewhere.
class Numbering {
public:
  explicit Numbering(BlockArgument argument) : argument(argument) {}
  /// A null tensor: not followed.
  const reference::Tensor &of(Value value);

private:
  reference::Tensor compute(Value value, RankedTensorType type);

  BlockArgument argument;
  DenseMap<Value, reference::Tensor> known;
};
} // namespace

/// Types that hold all numbers of elements.
static bool holdsNumbers(RankedTensorType type) {
  return type.hasStaticShape() && type.getNumElements() <= mostElements &&
         type.getElementType().isIntOrFloat() &&
         type.getElementTypeBitWidth() >= 32;
}

reference::Tensor Numbering::compute(Value value, RankedTensorType type) {
  if (value == argument) {
    reference::Tensor numbers(type);
    for (int64_t i = 0; i < numbers.size(); ++i)
      numbers.set(i, double(i + 1));
    return numbers;
  }
  Operation *op = value.getDefiningOp();
  if (!op || op->hasTrait<OpTrait::ConstantLike>())
    return reference::Tensor(type);
  if (op->getNumResults() != 1 ||
      !(isa<SliceOp, ConcatOp>(op) || keepsIntegers(op) ||
        op->hasTrait<traits::KeepsElements>()))
    return {};
  SmallVector<reference::Tensor> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(of(operand));
    if (!operands.back())
      return {};
  }
  SmallVector<const reference::Tensor *> pointers;
  for (const reference::Tensor &operand : operands)
    pointers.push_back(&operand);
  SmallVector<reference::Tensor> results;
  if (failed(reference::evaluateOp(op, pointers, results)))
    return {};
  return std::move(results.front());
}

const reference::Tensor &Numbering::of(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  reference::Tensor numbers =
      type && holdsNumbers(type) ? compute(value, type) : reference::Tensor();
  return known[value] = std::move(numbers);
}

/// Returns the indices of a dimension as runs, if the marked elements are all
/// those at these indices.
static std::optional<std::vector<Places>>
indicesAlong(int64_t axis, ArrayRef<int64_t> shape,
             const std::vector<char> &marked, int64_t count) {
  int64_t size = shape[size_t(axis)], inner = 1;
  for (int64_t extent : shape.drop_front(size_t(axis) + 1))
    inner *= extent;
  std::vector<char> taken(size_t(size), 0);
  for (size_t i = 0; i < marked.size(); ++i)
    taken[size_t(int64_t(i) / inner % size)] |= marked[i];
  if (count != llvm::count(taken, 1) * int64_t(marked.size()) / size)
    return std::nullopt;
  std::vector<Places> runs;
  for (int64_t i = 0; i < size; ++i)
    if (taken[size_t(i)]) {
      if (!runs.empty() && runs.back().high == i)
        ++runs.back().high;
      else
        runs.push_back({axis, i, i + 1});
    }
  if (runs.size() > mostPlaces)
    return std::nullopt;
  return runs;
}

std::optional<std::vector<Places>>
onnx_frontend::placesOf(Value value, BlockArgument argument) {
  Numbering numbering(argument);
  const reference::Tensor &arrived = numbering.of(value);
  if (!arrived)
    return std::nullopt;
  auto type = cast<RankedTensorType>(argument.getType());
  std::vector<char> marked(size_t(type.getNumElements()), 0);
  for (int64_t i = 0; i < arrived.size(); ++i)
    if (auto number = int64_t(arrived.get(i)))
      marked[size_t(number - 1)] = 1;
  int64_t count = llvm::count(marked, 1);
  if (!count)
    return std::nullopt;
  // Dimensions of samples first: data of any number of them are checked so.
  for (int64_t axis = type.getRank() - 1; axis >= 0; --axis)
    if (auto runs = indicesAlong(axis, type.getShape(), marked, count))
      return runs;
  return std::nullopt;
}
