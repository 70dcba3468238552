//===- OpFacts.cpp - attributes that say what an op is --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/OpFacts.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;

/// Returns a flag: true without a value; nothing if it is not there.
static std::optional<bool> flag(Operation *op, StringRef name) {
  Attribute attr = op->getDiscardableAttr(name);
  if (!attr)
    return std::nullopt;
  auto value = dyn_cast<BoolAttr>(attr);
  return !value || value.getValue();
}

static StringRef regions(Operation *op) {
  auto attr =
      dyn_cast_or_null<StringAttr>(op->getDiscardableAttr(facts::kRegions));
  return attr ? attr.getValue() : "";
}

bool facts::isDescribed(Operation *op) {
  return op->getDiscardableAttr(kDescribed) != nullptr;
}

bool facts::isLoop(Operation *op) { return regions(op) == "loop"; }

bool facts::runsOneRegion(Operation *op) {
  return isLoop(op) || regions(op) == "branch";
}

std::optional<bool> facts::isPure(Operation *op) {
  std::optional<bool> stated = flag(op, kPure);
  if (stated != true || op->getNumRegions() == 0)
    return stated;
  bool inside = llvm::all_of(op->getRegions(), [](Region &region) {
    return llvm::all_of(region.getOps(), [](Operation &inner) {
      std::optional<bool> pure = facts::isPure(&inner);
      return pure ? *pure : isMemoryEffectFree(&inner);
    });
  });
  return inside ? stated : std::nullopt;
}

bool facts::isConstant(Operation *op) {
  return flag(op, kConstant) == true &&
         llvm::all_of(op->getOperands(), [](Value operand) {
           Operation *maker = operand.getDefiningOp();
           return maker && isFree(maker);
         });
}

std::optional<unsigned> facts::viewedOperand(Operation *op) {
  auto attr = dyn_cast_or_null<IntegerAttr>(op->getDiscardableAttr(kView));
  if (!attr)
    return std::nullopt;
  auto number = unsigned(attr.getInt());
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Operation *maker = operand.getDefiningOp();
    if (i != number && !(maker && isFree(maker)))
      return std::nullopt;
  }
  return number;
}

std::optional<PlanningReusePairs> facts::reusePairs(Operation *op) {
  auto flat = dyn_cast_or_null<DenseI64ArrayAttr>(
      op->getDiscardableAttr(facts::kReuse));
  if (!flat)
    return std::nullopt;
  PlanningReusePairs pairs;
  for (int64_t i = 0; i + 1 < flat.size(); i += 2)
    pairs.emplace_back(flat[i], flat[i + 1]);
  return pairs;
}

std::optional<double> facts::work(Operation *op, StringRef kind) {
  auto all = dyn_cast_or_null<DictionaryAttr>(op->getDiscardableAttr(kWork));
  auto number = all ? all.getAs<FloatAttr>(kind) : FloatAttr();
  if (!number)
    return std::nullopt;
  return number.getValueAsDouble();
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Finds out whether an operand and a result of the op have the same bytes.
static LogicalResult checkSameBytes(Operation *op, int64_t operand,
                                    int64_t result, const Twine &what,
                                    const TypeSizes &sizes) {
  if (operand < 0 || operand >= int64_t(op->getNumOperands()) || result < 0 ||
      result >= int64_t(op->getNumResults()))
    return op->emitError() << what << ", but the op has "
                           << op->getNumOperands() << " operands and "
                           << op->getNumResults() << " results";
  int64_t from = sizes.bytes(op->getOperand(unsigned(operand)).getType()),
          to = sizes.bytes(op->getResult(unsigned(result)).getType());
  if (from != to)
    return op->emitError() << what << ", but the operand has " << from
                           << " bytes and the result " << to;
  return success();
}

static LogicalResult checkView(Operation *op, Attribute attr,
                               const TypeSizes &sizes) {
  auto number = dyn_cast<IntegerAttr>(attr);
  if (!number || op->getNumResults() != 1)
    return op->emitError() << facts::kView
                           << " must be the number of an operand, on an op of "
                              "one result";
  return checkSameBytes(
      op, number.getInt(), 0,
      "is said to be a view of operand " + Twine(number.getInt()), sizes);
}

static LogicalResult checkReuse(Operation *op, Attribute attr,
                                const TypeSizes &sizes) {
  auto flat = dyn_cast<DenseI64ArrayAttr>(attr);
  if (!flat || flat.size() % 2)
    return op->emitError() << facts::kReuse
                           << " must be pairs: array<i64: operand, result>";
  for (int64_t i = 0; i + 1 < flat.size(); i += 2)
    if (failed(checkSameBytes(op, flat[i], flat[i + 1],
                              "result " + Twine(flat[i + 1]) +
                                  " is said to take the bytes of operand " +
                                  Twine(flat[i]) + " over",
                              sizes)))
      return failure();
  return success();
}

static LogicalResult checkWork(Operation *op, Attribute attr) {
  auto all = dyn_cast<DictionaryAttr>(attr);
  for (NamedAttribute each :
       all ? all.getValue() : ArrayRef<NamedAttribute>()) {
    auto number = dyn_cast<FloatAttr>(each.getValue());
    if (!llvm::is_contained(facts::kWorkKinds, each.getName().getValue()) ||
        !number || !std::isfinite(number.getValueAsDouble()) ||
        number.getValueAsDouble() < 0)
      all = {};
  }
  if (!all)
    return op->emitError() << facts::kWork
                           << " must be a dictionary of numbers that are not "
                              "negative: vector, matmul, conv, bytes, seconds";
  return success();
}

/// An op that is known to have an effect cannot be pure.
static LogicalResult checkPure(Operation *op) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (flag(op, facts::kPure) == true && effects && !effects.hasNoEffect())
    return op->emitError() << "is said to be pure, but has effects";
  return success();
}

LogicalResult facts::check(Operation *op, const TypeSizes &sizes) {
  if (Attribute attr = op->getDiscardableAttr(kView))
    if (failed(checkView(op, attr, sizes)))
      return failure();
  if (Attribute attr = op->getDiscardableAttr(kReuse))
    if (failed(checkReuse(op, attr, sizes)))
      return failure();
  if (Attribute attr = op->getDiscardableAttr(kWork))
    if (failed(checkWork(op, attr)))
      return failure();
  for (StringRef name : {kPure, kConstant})
    if (Attribute attr = op->getDiscardableAttr(name);
        attr && !isa<BoolAttr, UnitAttr>(attr))
      return op->emitError() << name << " must be true or false";
  if (op->getDiscardableAttr(kRegions) &&
      !llvm::is_contained({"loop", "branch"}, regions(op)))
    return op->emitError() << kRegions << " must be \"loop\" or \"branch\"";
  return checkPure(op);
}
