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
#include "ckopt/Reference/Interpreter.h"
#include "mlir/IR/Diagnostics.h"

#include <set>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// Of one limit, apart from each other; a manifest has 45 bytes for each.
static constexpr size_t mostPlaces = 4096;

/// Returns the tensor where nothing computes it; else a null one.
static reference::Tensor constantOf(Value value, const Constants &constants) {
  auto type = cast<RankedTensorType>(value.getType());
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    unsigned number = argument.getArgNumber();
    auto name = function.getArgAttrOfType<StringAttr>(number, attrs::kName);
    if (!name || argumentRole(function, number) != roles::kConstant)
      return {};
    auto found = constants.find(name.str());
    return found == constants.end()
               ? reference::Tensor()
               : reference::Tensor::fromHost(found->second, type);
  }
  Operation *op = value.getDefiningOp();
  auto model = dyn_cast<reference::ReferenceOpInterface>(op);
  SmallVector<reference::Tensor> results;
  if (!model || op->getNumOperands() || op->getNumResults() != 1 ||
      !(model.isFoldable() || op->hasTrait<OpTrait::ConstantLike>()) ||
      failed(reference::evaluateOp(op, {}, results)))
    return {};
  return std::move(results.front());
}

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
  void reach(Value value, const llvm::BitVector &elements);
  void goBack(Operation *op);

  static bool isBehind(Operation *a, Operation *b) {
    return b->isBeforeInBlock(a);
  }
  const Constants &constants;
  DenseMap<Value, llvm::BitVector> sets;
  std::set<Operation *, decltype(&isBehind)> waiting{isBehind};
  ElementSets found;
};
} // namespace

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
  SmallVector<reference::Tensor> values;
  SmallVector<llvm::BitVector> reached;
  for (Value operand : op->getOperands()) {
    values.push_back(constantOf(operand, constants));
    auto type = cast<RankedTensorType>(operand.getType());
    reached.emplace_back(unsigned(type.getNumElements()));
  }
  SmallVector<const reference::Tensor *> known;
  for (const reference::Tensor &value : values)
    known.push_back(value ? &value : nullptr);
  const llvm::BitVector &wanted = sets[op->getResult(0)];
  // An op that cannot be computed says so where it runs.
  ScopedDiagnosticHandler quiet(op->getContext(),
                                [](Diagnostic &) { return success(); });
  if (failed(model.traceElements(
          known, [&](int64_t to, unsigned operand, int64_t from) {
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
