//===- LabelRanges.cpp - what integer data may hold -----------------------===//
//
// Losses and lookups tell how far their labels and indices may go; these lead
// back to arguments through ops that move values and change none (a shift of
// tokens by one, a reshape). Where something was computed on the way nothing is
// known, and nothing is claimed.
//
//===----------------------------------------------------------------------===//
#include "LabelRanges.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ckopt;

/// The arguments that all values of `value` come from, but for constants.
static SmallVector<BlockArgument> sourcesOf(Value value) {
  llvm::SetVector<Value> work;
  work.insert(value);
  SmallVector<BlockArgument> found;
  for (size_t i = 0; i < work.size(); ++i) {
    Value from = work[i];
    if (auto argument = dyn_cast<BlockArgument>(from))
      found.push_back(argument);
    else if (Operation *op = from.getDefiningOp();
             isa<CastOp, ReshapeOp, TransposeOp, SliceOp, ExpandOp, ConcatOp,
                 PinOp>(op))
      work.insert_range(op->getOperands());
    else if (auto pad = dyn_cast<PadOp>(op))
      work.insert(pad.getInput());
  }
  return found;
}

static bool holdsIntegers(BlockArgument argument) {
  return isa<IntegerType>(getElementTypeOrSelf(argument.getType()));
}

std::map<std::string, LabelRange>
ckopt::findLabelRanges(func::FuncOp function) {
  std::map<std::string, LabelRange> result;
  auto note = [&](BlockArgument argument, int64_t classes,
                  std::optional<int64_t> ignored) {
    if (!holdsIntegers(argument))
      return;
    LabelRange &range = result[argumentName(function, argument.getArgNumber())];
    range.classes = range.classes ? std::min(range.classes, classes) : classes;
    if (ignored)
      range.ignored = ignored;
  };
  auto ignoredBy = [](DictionaryAttr notes) -> std::optional<int64_t> {
    auto ignored = notes ? notes.getAs<IntegerAttr>(kIgnoreIndexAttr) : nullptr;
    return ignored ? std::optional(ignored.getInt()) : std::nullopt;
  };
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (auto classes =
            function.getArgAttrOfType<IntegerAttr>(index, kClassesAttr))
      note(argument, classes.getInt(),
           ignoredBy(function.getArgAttrDict(index)));
  }
  function.walk([&](Operation *op) {
    if (auto loss = dyn_cast<CrossEntropyOp>(op)) {
      auto scores = cast<RankedTensorType>(loss.getLogits().getType());
      for (BlockArgument argument : sourcesOf(loss.getTargets()))
        note(argument, scores.getDimSize(loss.getAxis()),
             int64_t(loss.getIgnoreIndex()));
    } else if (auto classes = op->getAttrOfType<IntegerAttr>(kClassesAttr)) {
      for (BlockArgument argument : sourcesOf(op->getOperand(0)))
        note(argument, classes.getInt(), ignoredBy(op->getAttrDictionary()));
    }
  });
  return result;
}

std::map<std::string, int64_t> ckopt::findTableRows(func::FuncOp function) {
  std::map<std::string, int64_t> result;
  auto note = [&](Value indices, int64_t size) {
    for (BlockArgument argument : sourcesOf(indices)) {
      unsigned index = argument.getArgNumber();
      StringRef role = argumentRole(function, index);
      if (!holdsIntegers(argument) ||
          (role != roles::kInput && role != roles::kTarget))
        continue;
      auto [known, isNew] =
          result.try_emplace(argumentName(function, index), size);
      known->second = std::min(known->second, size);
    }
  };
  auto noteTable = [&](auto op, Value table) {
    auto type = cast<RankedTensorType>(table.getType());
    note(op.getIndices(), type.getDimSize(op.getAxis()));
  };
  function.walk([&](Operation *op) {
    if (auto rows = op->getAttrOfType<IntegerAttr>(kRowsAttr))
      note(op->getOperand(0), rows.getInt());
    TypeSwitch<Operation *>(op)
        .Case<GatherOp, GatherElementsOp>(
            [&](auto gather) { noteTable(gather, gather.getData()); })
        .Case<ScatterAddOp, ScatterElementsOp>(
            [&](auto scatter) { noteTable(scatter, scatter.getInit()); });
  });
  return result;
}
