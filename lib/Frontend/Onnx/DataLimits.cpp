//===- DataLimits.cpp - what integer data may hold ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Losses and lookups tell how far their labels and indices may go; these lead
// back to arguments through ops that move values and change none (a shift of
// tokens by one, a reshape). The arguments say so from then on: data are
// checked before a step sees them. Where parts of an argument (columns that
// pick rows of a table each) have limits of their own, the largest is noted;
// where other parts are numbers of another meaning, none is. Where something
// was computed on the way nothing is known, and nothing is claimed. O(ops), and
// O(ops) again for each argument of which parts are read.
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"
#include "llvm/ADT/MapVector.h"

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

/// Whether the op's results are its operand's integers: no bool of them, and no
/// type that wraps the values of a wider one.
static bool keepsIntegers(Operation *op) {
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

/// Whether the op's results are values of its first operand, or constants, at
/// places that nothing here follows.
static bool movesValues(Operation *op) {
  return isa<PadOp>(op) || op->hasTrait<traits::KeepsElements>();
}

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
    else if (Operation *op = from.getDefiningOp(); keepsIntegers(op))
      work.push_back({op->getOperand(0), part});
    else if (movesValues(op))
      work.push_back({op->getOperand(0), moved});
  }
  return found;
}

namespace {
/// Finds values of an argument that are no labels or indices: moved out of it,
/// and then read by ops that limit nothing, and by none that does.
class Readers {
public:
  explicit Readers(const DenseSet<OpOperand *> &limiting)
      : limiting(limiting) {}

  bool findOthers(BlockArgument argument) {
    (void)follow(argument);
    return foundOthers;
  }

private:
  struct Uses {
    bool limited = false, read = false;
  };
  Uses follow(Value value);

  const DenseSet<OpOperand *> &limiting;
  DenseMap<Value, Uses> known;
  bool foundOthers = false;
};
} // namespace

Readers::Uses Readers::follow(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  Uses uses;
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    if (limiting.contains(&use)) {
      uses.limited = true;
    } else if (isa<SliceOp, ConcatOp>(op) || movesValues(op) ||
               keepsIntegers(op)) {
      Uses moved = follow(op->getResult(0));
      foundOthers |= moved.read && !moved.limited;
      uses.limited |= moved.limited;
      uses.read |= moved.read;
    } else {
      uses.read = true;
    }
  }
  known[value] = uses;
  return uses;
}

static bool holdsIntegers(BlockArgument argument) {
  return isa<IntegerType>(getElementTypeOrSelf(argument.getType()));
}

namespace {
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

/// Collects the limits of a function's arguments.
class LimitCollector {
public:
  explicit LimitCollector(func::FuncOp function) : function(function) {}

  void visit(Operation *op);
  void note();

private:
  /// Those of labels that several losses read: what all of them take.
  struct Ignored {
    int64_t classes;
    std::optional<int64_t> label;
    bool takes(int64_t value) const {
      return (value >= 0 && value < classes) || label == value;
    }
  };
  void limitLabels(OpOperand &labels, int64_t classes,
                   std::optional<int64_t> ignored);
  void limitIndices(OpOperand &indices, int64_t rows);
  void setLimits(const LimitMap &limits, StringRef name);

  func::FuncOp function;
  LimitMap classLimits, rowLimits;
  DenseMap<unsigned, Ignored> ignoredLabels;
  DenseSet<OpOperand *> limiting;
};
} // namespace

void LimitCollector::limitLabels(OpOperand &labels, int64_t classes,
                                 std::optional<int64_t> ignored) {
  limiting.insert(&labels);
  for (auto [argument, whole] : sourcesOf(labels.get())) {
    if (!holdsIntegers(argument))
      continue;
    unsigned number = argument.getArgNumber();
    classLimits[number].add(classes, whole);
    Ignored own{classes, ignored};
    auto [known, isNew] = ignoredLabels.try_emplace(number, own);
    if (isNew)
      continue;
    Ignored &both = known->second;
    if (!both.label || !own.takes(*both.label))
      both.label = ignored && both.takes(*ignored) ? ignored : std::nullopt;
    both.classes = std::min(both.classes, classes);
  }
}

void LimitCollector::limitIndices(OpOperand &indices, int64_t rows) {
  limiting.insert(&indices);
  for (auto [argument, whole] : sourcesOf(indices.get())) {
    StringRef role = argumentRole(function, argument.getArgNumber());
    if (holdsIntegers(argument) &&
        (role == roles::kInput || role == roles::kTarget))
      rowLimits[argument.getArgNumber()].add(rows, whole);
  }
}

void LimitCollector::visit(Operation *op) {
  if (auto classes = op->getAttrOfType<IntegerAttr>(kClassesAttr)) {
    auto ignored = op->getAttrOfType<IntegerAttr>(kIgnoreIndexAttr);
    limitLabels(op->getOpOperand(0), classes.getInt(),
                ignored ? std::optional(ignored.getInt()) : std::nullopt);
  }
  if (auto rows = op->getAttrOfType<IntegerAttr>(kRowsAttr))
    limitIndices(op->getOpOperand(0), rows.getInt());
  if (auto loss = dyn_cast<CrossEntropyOp>(op)) {
    bool allCount = bool(loss->removeAttr(kAllCountAttr));
    limitLabels(loss.getTargetsMutable(), loss.getNumClasses(),
                allCount ? std::nullopt
                         : std::optional(int64_t(loss.getIgnoreIndex())));
  }
  if (auto rows = dyn_cast<IndexingOpInterface>(op)) {
    auto table = cast<RankedTensorType>(rows.getTable().getType());
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get() == rows.getIndices())
        limitIndices(operand, table.getDimSize(unsigned(rows.getAxis())));
  }
}

void LimitCollector::setLimits(const LimitMap &limits, StringRef name) {
  Builder b(function);
  for (const auto &[number, limit] : limits) {
    BlockArgument argument = function.getArgument(number);
    if (!limit.whole && Readers(limiting).findOthers(argument))
      continue;
    function.setArgAttr(
        number, name,
        b.getI64IntegerAttr(limit.whole ? *limit.whole : *limit.parts));
    auto ignored = ignoredLabels.find(number);
    if (name == kClassesAttr && ignored->second.label)
      function.setArgAttr(number, kIgnoreIndexAttr,
                          b.getI64IntegerAttr(*ignored->second.label));
  }
}

void LimitCollector::note() {
  setLimits(classLimits, kClassesAttr);
  setLimits(rowLimits, kRowsAttr);
}

void onnx_frontend::noteDataLimits(func::FuncOp function) {
  LimitCollector limits(function);
  function.walk([&](Operation *op) { limits.visit(op); });
  limits.note();
}
