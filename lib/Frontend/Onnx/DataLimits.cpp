//===- DataLimits.cpp - what integer data may hold ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Losses and lookups tell how far their labels and indices may go; these lead
// back to elements of arguments through ops that move values and change none (a
// shift of tokens by one, a reshape, columns that are picked): DataPlaces.cpp
// finds them. The arguments say so from then on: data are checked before a step
// sees them. Elements that one limit holds for are noted together: as all, or
// as places that repeat (the columns that pick rows of one table). Where
// something was computed on the way nothing is known, and nothing is claimed.
// O(elements) for each op between a limit and an argument.
//
//===----------------------------------------------------------------------===//
#include "DataPlaces.h"
#include "GraphImporter.h"
#include "ckopt/Base/IntegerLimits.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

static bool holdsIntegers(BlockArgument argument) {
  return isa<IntegerType>(getElementTypeOrSelf(argument.getType()));
}

namespace {
/// Some limits of an argument, and the elements that they hold for.
struct Limited {
  IntegerLimits limits;
  llvm::BitVector elements;
};

/// Collects the limits of a function's arguments.
class LimitCollector {
public:
  LimitCollector(func::FuncOp function, const Constants &constants)
      : function(function), constants(constants) {}

  void visit(Operation *op);
  void note();
  /// Whether no constant is beyond its limits.
  LogicalResult result = success();

private:
  void limit(Operation *op, Value value, const IntegerLimits &limits);
  void check(Operation *op, StringRef name, const llvm::BitVector &elements,
             const IntegerLimits &limits);
  void noteParts(unsigned number, ArrayRef<Limited> parts,
                 const IntegerLimits &whole);

  func::FuncOp function;
  const Constants &constants;
  llvm::MapVector<unsigned, SmallVector<Limited>> arguments;
};
} // namespace

/// Refuses constants that were too large for the importer's handlers to see.
void LimitCollector::check(Operation *op, StringRef name,
                           const llvm::BitVector &elements,
                           const IntegerLimits &limits) {
  auto found = constants.find(name.str());
  if (found == constants.end())
    return; // none has a value, where a plan is all that is asked for
  for (unsigned i : elements.set_bits()) {
    int64_t value = found->second.getInt(i);
    if (limits.allowLabel(value) && limits.allowIndex(value))
      continue;
    op->emitError() << "element " << i << " of the constant '" << name << "', "
                    << value << ", is outside of "
                    << (limits.classes ? "the labels of " : "a dimension of ")
                    << (limits.classes ? limits.classes : limits.rows);
    result = failure();
    return;
  }
}

void LimitCollector::limit(Operation *op, Value value,
                           const IntegerLimits &limits) {
  for (auto &[argument, elements] : elementsOf(value, constants)) {
    unsigned number = argument.getArgNumber();
    StringRef role = argumentRole(function, number);
    bool isData =
        limits.classes || role == roles::kInput || role == roles::kTarget;
    if (!holdsIntegers(argument))
      continue;
    if (role == roles::kConstant)
      check(op, function.getArgAttrOfType<StringAttr>(number, attrs::kName),
            elements, limits);
    if (!isData)
      continue;
    SmallVector<Limited> &known = arguments[number];
    auto *same = llvm::find_if(
        known, [&](const Limited &is) { return is.limits == limits; });
    if (same == known.end())
      known.push_back({limits, std::move(elements)});
    else
      same->elements |= elements;
  }
}

void LimitCollector::visit(Operation *op) {
  auto labels = [](int64_t classes, std::optional<int64_t> ignored) {
    return IntegerLimits{classes, ignored.has_value(), ignored.value_or(0), 0};
  };
  if (auto classes = op->getAttrOfType<IntegerAttr>(kClassesAttr)) {
    auto ignored = op->getAttrOfType<IntegerAttr>(kIgnoreIndexAttr);
    limit(op, op->getOperand(0),
          labels(classes.getInt(),
                 ignored ? std::optional(ignored.getInt()) : std::nullopt));
  }
  if (auto rows = op->getAttrOfType<IntegerAttr>(kRowsAttr))
    limit(op, op->getOperand(0), {0, false, 0, rows.getInt()});
  if (auto loss = dyn_cast<CrossEntropyOp>(op)) {
    bool allCount = bool(loss->removeAttr(kAllCountAttr));
    limit(op, loss.getTargets(),
          labels(loss.getNumClasses(),
                 allCount ? std::nullopt
                          : std::optional(int64_t(loss.getIgnoreIndex()))));
  }
  if (auto rows = dyn_cast<IndexingOpInterface>(op)) {
    auto table = cast<RankedTensorType>(rows.getTable().getType());
    limit(op, rows.getIndices(),
          {0, false, 0, table.getDimSize(unsigned(rows.getAxis()))});
  }
}

/// Calls `set` with each number of the limits that there is.
static void forEachNumber(const IntegerLimits &limits,
                          llvm::function_ref<void(StringRef, int64_t)> set) {
  if (limits.classes)
    set(kClassesAttr, limits.classes);
  if (limits.classes && limits.hasIgnored)
    set(kIgnoreIndexAttr, limits.ignored);
  if (limits.rows)
    set(kRowsAttr, limits.rows);
}

void LimitCollector::noteParts(unsigned number, ArrayRef<Limited> parts,
                               const IntegerLimits &whole) {
  Builder b(function);
  auto type = cast<RankedTensorType>(function.getArgument(number).getType());
  SmallVector<Attribute> noted;
  for (const auto &[limits, elements] : parts) {
    IntegerLimits both = limits;
    both.narrow(whole);
    if (elements.all() || both == whole)
      continue; // what holds for all of it says as much
    for (auto [axis, low, high] : placesOf(elements, type.getShape())) {
      NamedAttrList part;
      part.set("axis", b.getI64IntegerAttr(axis));
      part.set("low", b.getI64IntegerAttr(low));
      part.set("high", b.getI64IntegerAttr(high));
      forEachNumber(limits, [&](StringRef name, int64_t value) {
        part.set(name.split('.').second, b.getI64IntegerAttr(value));
      });
      noted.push_back(part.getDictionary(b.getContext()));
    }
  }
  if (!noted.empty())
    function.setArgAttr(number, kPartLimitsAttr, b.getArrayAttr(noted));
}

void LimitCollector::note() {
  Builder b(function);
  for (auto &[number, parts] : arguments) {
    IntegerLimits whole;
    for (const Limited &part : parts)
      if (part.elements.all())
        whole.narrow(part.limits);
    noteParts(number, parts, whole);
    forEachNumber(whole, [&, number = number](StringRef name, int64_t value) {
      function.setArgAttr(number, name, b.getI64IntegerAttr(value));
    });
  }
}

LogicalResult onnx_frontend::noteDataLimits(func::FuncOp function,
                                            const Constants &constants) {
  LimitCollector limits(function, constants);
  function.walk([&](Operation *op) { limits.visit(op); });
  limits.note();
  return limits.result;
}
