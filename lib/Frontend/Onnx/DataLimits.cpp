//===- DataLimits.cpp - what integer data may hold ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Losses and lookups tell how far their labels and indices may go; these lead
// back to arguments through ops that move values and change none (a shift of
// tokens by one, a reshape). The arguments say so from then on: data are
// checked before a step sees them. Where parts of an argument (columns that
// pick rows of a table each) have limits of their own, the largest is noted.
// Where something was computed on the way nothing is known, and nothing is
// claimed. O(ops).
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
/// The part of a value that is read: all of it, the places [low, high) of one
/// dimension, or some that nothing here follows.
struct Part {
  enum Kind { All, Window, Unclear } kind = All;
  int64_t axis = 0, low = 0, high = 0;
};

struct Source {
  BlockArgument argument;
  bool whole; ///< all of the argument is read
};
} // namespace

/// The part of a slice's input that `part` of its result lies in.
static Part partOfInput(SliceOp slice, Part part) {
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(slice.getInput().getType()).getShape();
  for (auto [d, size] : llvm::enumerate(shape)) {
    int64_t start = slice.getStarts()[d], count = slice.getSizes()[d];
    if (count == size && (part.kind == Part::All || start == 0))
      continue; // in whatever order
    if (part.kind != Part::All || slice.getSteps()[d] != 1)
      return {Part::Unclear};
    part = {Part::Window, int64_t(d), start, start + count};
  }
  return part;
}

/// Operands that `part` of a concatenation holds anything of.
static void followConcat(ConcatOp concat, const Part &part,
                         SmallVectorImpl<std::pair<Value, Part>> &work) {
  if (part.kind == Part::Unclear)
    return;
  int64_t axis = int64_t(concat.getAxis()), begin = 0;
  for (Value operand : concat.getInputs()) {
    int64_t size =
        cast<RankedTensorType>(operand.getType()).getDimSize(unsigned(axis));
    int64_t low = std::max<int64_t>(part.low - begin, 0);
    int64_t high = std::min(part.high - begin, size);
    bool along = part.kind == Part::Window && part.axis == axis;
    if (!along)
      work.push_back({operand, part});
    else if (low < high)
      work.push_back({operand, low == 0 && high == size
                                   ? Part()
                                   : Part{Part::Window, axis, low, high}});
    begin += size;
  }
}

/// The arguments that all values of `value` come from, but for constants. Of a
/// concatenation that is taken apart again (the tuples of GatherND) only the
/// operands that were asked for count.
static SmallVector<Source> sourcesOf(Value value) {
  SmallVector<std::pair<Value, Part>> work{{value, Part()}};
  SmallVector<Source> found;
  DenseSet<Value> seen; // with all of it read; parts are few
  for (size_t i = 0; i < work.size() && i < 10000; ++i) {
    auto [from, part] = work[i];
    if (part.kind == Part::All && !seen.insert(from).second)
      continue;
    Part moved = part.kind == Part::All ? part : Part{Part::Unclear};
    if (auto argument = dyn_cast<BlockArgument>(from))
      found.push_back({argument, part.kind == Part::All});
    else if (auto slice = from.getDefiningOp<SliceOp>())
      work.push_back({slice.getInput(), partOfInput(slice, part)});
    else if (auto concat = from.getDefiningOp<ConcatOp>())
      followConcat(concat, part, work);
    else if (Operation *op = from.getDefiningOp(); isa<CastOp, PinOp>(op))
      work.push_back({op->getOperand(0), part});
    else if (isa<ReshapeOp, TransposeOp, ExpandOp, PadOp>(op))
      work.push_back({op->getOperand(0), moved});
  }
  return found;
}

static bool holdsIntegers(BlockArgument argument) {
  return isa<IntegerType>(getElementTypeOrSelf(argument.getType()));
}

/// The limits of one argument. Of those of all its values the smallest counts.
/// Columns may have a limit each, of which the largest holds for all of them.
struct Limits {
  std::optional<int64_t> whole, parts;
  void add(int64_t size, bool isWhole) {
    if (isWhole)
      whole = std::min(whole.value_or(size), size);
    else
      parts = std::max(parts.value_or(size), size);
  }
};
using LimitMap = llvm::MapVector<unsigned, Limits>;

static void limitLabels(func::FuncOp function, LimitMap &limits, Value labels,
                        int64_t classes, std::optional<int64_t> ignored) {
  for (auto [argument, whole] : sourcesOf(labels)) {
    if (!holdsIntegers(argument))
      continue;
    limits[argument.getArgNumber()].add(classes, whole);
    if (ignored)
      function.setArgAttr(argument.getArgNumber(), kIgnoreIndexAttr,
                          Builder(function).getI64IntegerAttr(*ignored));
  }
}

static void limitIndices(func::FuncOp function, LimitMap &limits, Value indices,
                         int64_t rows) {
  for (auto [argument, whole] : sourcesOf(indices)) {
    StringRef role = argumentRole(function, argument.getArgNumber());
    if (holdsIntegers(argument) &&
        (role == roles::kInput || role == roles::kTarget))
      limits[argument.getArgNumber()].add(rows, whole);
  }
}

static void setLimits(func::FuncOp function, const LimitMap &limits,
                      StringRef name) {
  for (const auto &[index, limit] : limits)
    function.setArgAttr(index, name,
                        Builder(function).getI64IntegerAttr(
                            limit.whole ? *limit.whole : *limit.parts));
}

void onnx_frontend::noteDataLimits(func::FuncOp function) {
  LimitMap classLimits, rowLimits;
  auto limitByTable = [&](auto op, Value table) {
    auto type = cast<RankedTensorType>(table.getType());
    limitIndices(function, rowLimits, op.getIndices(),
                 type.getDimSize(op.getAxis()));
  };
  function.walk([&](Operation *op) {
    if (auto classes = op->getAttrOfType<IntegerAttr>(kClassesAttr)) {
      auto ignored = op->getAttrOfType<IntegerAttr>(kIgnoreIndexAttr);
      limitLabels(function, classLimits, op->getOperand(0), classes.getInt(),
                  ignored ? std::optional(ignored.getInt()) : std::nullopt);
    }
    if (auto rows = op->getAttrOfType<IntegerAttr>(kRowsAttr))
      limitIndices(function, rowLimits, op->getOperand(0), rows.getInt());
    TypeSwitch<Operation *>(op)
        .Case([&](CrossEntropyOp loss) {
          limitLabels(function, classLimits, loss.getTargets(),
                      loss.getNumClasses(), int64_t(loss.getIgnoreIndex()));
        })
        .Case<GatherOp, GatherElementsOp>(
            [&](auto gather) { limitByTable(gather, gather.getData()); })
        .Case<ScatterAddOp, ScatterElementsOp>(
            [&](auto scatter) { limitByTable(scatter, scatter.getInit()); });
  });
  setLimits(function, classLimits, kClassesAttr);
  setLimits(function, rowLimits, kRowsAttr);
}
