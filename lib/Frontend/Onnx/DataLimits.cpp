//===- DataLimits.cpp - what integer data may hold ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Losses and lookups tell how far their labels and indices may go; these lead
// back to arguments through ops that move values and change none (a shift of
// tokens by one, a reshape). The arguments say so from then on: data are
// checked before a step sees them. Where something was computed on the way
// nothing is known, and nothing is claimed. O(ops).
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

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

/// Of several limits the smallest counts.
static void limit(func::FuncOp function, BlockArgument argument, StringRef name,
                  int64_t size) {
  unsigned index = argument.getArgNumber();
  if (auto known = function.getArgAttrOfType<IntegerAttr>(index, name))
    size = std::min(size, known.getInt());
  function.setArgAttr(index, name, Builder(function).getI64IntegerAttr(size));
}

static void limitLabels(func::FuncOp function, Value labels, int64_t classes,
                        std::optional<int64_t> ignored) {
  for (BlockArgument argument : sourcesOf(labels)) {
    if (!holdsIntegers(argument))
      continue;
    limit(function, argument, kClassesAttr, classes);
    if (ignored)
      function.setArgAttr(argument.getArgNumber(), kIgnoreIndexAttr,
                          Builder(function).getI64IntegerAttr(*ignored));
  }
}

static void limitIndices(func::FuncOp function, Value indices, int64_t rows) {
  for (BlockArgument argument : sourcesOf(indices)) {
    StringRef role = argumentRole(function, argument.getArgNumber());
    if (holdsIntegers(argument) &&
        (role == roles::kInput || role == roles::kTarget))
      limit(function, argument, kRowsAttr, rows);
  }
}

void onnx_frontend::noteDataLimits(func::FuncOp function) {
  auto limitByTable = [&](auto op, Value table) {
    auto type = cast<RankedTensorType>(table.getType());
    limitIndices(function, op.getIndices(), type.getDimSize(op.getAxis()));
  };
  function.walk([&](Operation *op) {
    if (auto classes = op->getAttrOfType<IntegerAttr>(kClassesAttr)) {
      auto ignored = op->getAttrOfType<IntegerAttr>(kIgnoreIndexAttr);
      limitLabels(function, op->getOperand(0), classes.getInt(),
                  ignored ? std::optional(ignored.getInt()) : std::nullopt);
    }
    if (auto rows = op->getAttrOfType<IntegerAttr>(kRowsAttr))
      limitIndices(function, op->getOperand(0), rows.getInt());
    TypeSwitch<Operation *>(op)
        .Case([&](CrossEntropyOp loss) {
          auto scores = cast<RankedTensorType>(loss.getLogits().getType());
          limitLabels(function, loss.getTargets(),
                      scores.getDimSize(loss.getAxis()),
                      int64_t(loss.getIgnoreIndex()));
        })
        .Case<GatherOp, GatherElementsOp>(
            [&](auto gather) { limitByTable(gather, gather.getData()); })
        .Case<ScatterAddOp, ScatterElementsOp>(
            [&](auto scatter) { limitByTable(scatter, scatter.getInit()); });
  });
}
