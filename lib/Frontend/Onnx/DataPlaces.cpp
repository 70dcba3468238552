//===- DataPlaces.cpp - which elements of data a value holds --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: an op may read columns of an argument behind slices, gathers,
// transpositions and reshapes, and what limits it limits these columns alone.
// Method: sets of elements go back from the value, through ops that say which
// elements of operands theirs are (traceElements of their reference models), to
// arguments. Ops are visited from the last one on, each once. Guarantee: the
// sets are the elements that arrive, no more and no less; behind an op that
// computes there are none. O(elements) an op, a bit for each.
//
//===----------------------------------------------------------------------===//
#include "DataPlaces.h"
#include "ckopt/Base/IntegerLimits.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/WholeBatch.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/IR/Diagnostics.h"

#include <map>
#include <set>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// Of one limit, apart from each other; a manifest has 45 bytes for each.
static constexpr size_t mostPlaces = 1 << 16;

/// Ops on constants behind each other: what indices take, not a loop's.
static constexpr int mostDepth = 64;

/// Whether tensors of the type have elements that can be counted.
static bool isCounted(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() &&
         tensor.getElementType().isIntOrFloat() &&
         tensor.getNumElements() <= INT32_MAX;
}

namespace {
/// The sets of elements on their way back.
class Tracer {
public:
  explicit Tracer(const Constants &constants) : constants(constants) {}
  ElementSets trace(Value value);

private:
  const reference::Tensor &constantOf(Value value);
  reference::Tensor computeConstant(Value value);
  void reach(Value value, const llvm::BitVector &elements);
  void goBack(Operation *op);

  static bool isBehind(Operation *a, Operation *b) {
    return b->isBeforeInBlock(a);
  }
  const Constants &constants;
  std::map<void *, reference::Tensor> known; ///< looked up only
  int depth = 0;                             ///< of ops on constants
  DenseMap<Value, llvm::BitVector> sets;
  std::set<Operation *, decltype(&isBehind)> waiting{isBehind};
  ElementSets found;
};
} // namespace

/// Returns the tensor where it depends on constants alone; else a null one.
/// Integers alone: others are no indices.
const reference::Tensor &Tracer::constantOf(Value value) {
  auto found = known.find(value.getAsOpaquePointer());
  if (found != known.end())
    return found->second;
  reference::Tensor tensor;
  if (depth < mostDepth && isCounted(value.getType()) &&
      isa<IntegerType>(getElementTypeOrSelf(value.getType()))) {
    ++depth;
    tensor = computeConstant(value);
    --depth;
  }
  return known[value.getAsOpaquePointer()] = std::move(tensor);
}

reference::Tensor Tracer::computeConstant(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    unsigned number = argument.getArgNumber();
    auto name = function.getArgAttrOfType<StringAttr>(number, attrs::kName);
    if (!name || argumentRole(function, number) != roles::kConstant)
      return {};
    auto found = constants.find(name.str());
    return found == constants.end()
               ? reference::Tensor()
               : reference::Tensor::fromHost(
                     found->second, cast<RankedTensorType>(value.getType()));
  }
  Operation *op = value.getDefiningOp();
  auto model = dyn_cast<reference::ReferenceOpInterface>(op);
  if (!model || op->getNumResults() != 1 || op->hasAttr(kWholeBatchAttr) ||
      !(model.isFoldable() || op->hasTrait<OpTrait::ConstantLike>()))
    return {};
  SmallVector<const reference::Tensor *> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(&constantOf(operand));
    if (!*operands.back())
      return {};
  }
  SmallVector<reference::Tensor> results;
  if (failed(reference::evaluateOp(op, operands, results)))
    return {};
  return std::move(results.front());
}

void Tracer::reach(Value value, const llvm::BitVector &elements) {
  if (elements.none())
    return;
  auto argument = dyn_cast<BlockArgument>(value);
  (argument ? found[argument] : sets[value]) |= elements;
  if (!argument)
    waiting.insert(value.getDefiningOp());
}

void Tracer::goBack(Operation *op) {
  auto model = dyn_cast<reference::ReferenceOpInterface>(op);
  if (!model || op->getNumResults() != 1 ||
      !llvm::all_of(op->getOperandTypes(), isCounted))
    return;
  // An op that cannot be computed says so where it runs.
  ScopedDiagnosticHandler quiet(op->getContext(),
                                [](Diagnostic &) { return success(); });
  SmallVector<const reference::Tensor *> operands;
  SmallVector<llvm::BitVector> reached;
  for (Value operand : op->getOperands()) {
    const reference::Tensor &constant = constantOf(operand);
    operands.push_back(constant ? &constant : nullptr);
    auto type = cast<RankedTensorType>(operand.getType());
    reached.emplace_back(unsigned(type.getNumElements()));
  }
  const llvm::BitVector &wanted = sets[op->getResult(0)];
  if (failed(model.traceElements(
          operands, [&](int64_t to, unsigned operand, int64_t from) {
            if (wanted.test(unsigned(to)))
              reached[operand].set(unsigned(from));
          })))
    return;
  for (auto [operand, elements] : llvm::zip(op->getOperands(), reached))
    reach(operand, elements);
}

ElementSets Tracer::trace(Value value) {
  if (!isCounted(value.getType()))
    return {};
  auto type = cast<RankedTensorType>(value.getType());
  reach(value, llvm::BitVector(unsigned(type.getNumElements()), true));
  while (!waiting.empty()) {
    Operation *last = *waiting.begin();
    waiting.erase(waiting.begin());
    goBack(last);
    sets.erase(last->getResult(0)); // its readers on the way are behind it
  }
  return std::move(found);
}

ElementSets onnx_frontend::elementsOf(Value value, const Constants &constants) {
  return Tracer(constants).trace(value);
}

/// Whether each run of `period` elements holds the same places.
static bool repeat(const llvm::BitVector &elements, unsigned period) {
  for (unsigned i = period; i < elements.size(); ++i)
    if (elements.test(i) != elements.test(i - period))
      return false;
  return true;
}

std::vector<Places> onnx_frontend::placesOf(const llvm::BitVector &elements,
                                            ArrayRef<int64_t> shape) {
  std::vector<Places> places;
  // Dimensions of samples first: data of any number of them are checked so.
  for (size_t axis = shape.size(); axis-- > 0;) {
    auto period = unsigned(elementsFrom(shape, axis));
    if (!repeat(elements, period))
      continue;
    for (int low = elements.find_first(); low >= 0 && unsigned(low) < period;) {
      int high = elements.find_next_unset(unsigned(low));
      if (high < 0 || unsigned(high) > period)
        high = int(period);
      places.push_back({int64_t(axis), low, high});
      if (places.size() > mostPlaces)
        return {};
      low = elements.find_next(unsigned(high) - 1);
    }
    break;
  }
  return places;
}
