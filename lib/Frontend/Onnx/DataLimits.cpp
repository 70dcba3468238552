//===- DataLimits.cpp - what integer data may hold ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Losses and lookups tell how far their labels and indices may go; these lead
// back to arguments through ops that move values and change none (a shift of
// tokens by one, a reshape). The arguments say so from then on: data are
// checked before a step sees them. Where parts of an argument (columns that
// pick rows of a table each) have limits of their own, each part's are noted
// (DataPlaces.cpp finds those that take more than slices to reach). Of parts
// that cannot be told apart the largest limit is; where other parts
// have another meaning, none is. Where something was computed on the
// way nothing is known, and nothing is claimed. O(ops), and O(ops) again for
// each argument of which such parts are read.
//
//===----------------------------------------------------------------------===//
#include "DataPlaces.h"
#include "GraphImporter.h"
#include "ckopt/Base/IntegerLimits.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <tuple>
#include <vector>

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
  Part part;
};
} // namespace

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
      found.push_back({argument, part});
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
/// The limits of one argument: those of all its values, and of windows of one
/// dimension, are what all readers take; those of places that nothing here
/// follows are a list.
struct Limits {
  IntegerLimits whole;
  std::map<std::tuple<int64_t, int64_t, int64_t>, IntegerLimits> windows;
  std::vector<IntegerLimits> unclear;

  void add(const IntegerLimits &limits, const Part &part);
  IntegerLimits widest() const;
};

/// Collects the limits of a function's arguments.
class LimitCollector {
public:
  explicit LimitCollector(func::FuncOp function) : function(function) {}

  void visit(Operation *op);
  void note();

private:
  void limit(OpOperand &operand, const IntegerLimits &limits);
  void noteParts(unsigned number, const Limits &limits);

  func::FuncOp function;
  llvm::MapVector<unsigned, Limits> arguments;
  DenseSet<OpOperand *> limiting;
};
} // namespace

void Limits::add(const IntegerLimits &limits, const Part &part) {
  switch (part.kind) {
  case Part::All:
    return whole.narrow(limits);
  case Part::Window:
    return windows[{part.axis, part.low, part.high}].narrow(limits);
  case Part::Unclear:
    return unclear.push_back(limits);
  }
}

/// Returns what holds for every part, where some cannot be told apart: of
/// labels and of indices, if all parts are these.
IntegerLimits Limits::widest() const {
  if (unclear.empty())
    return {};
  SmallVector<IntegerLimits> parts(unclear.begin(), unclear.end());
  for (const auto &[place, limits] : windows)
    parts.push_back(limits);
  auto most = [&](int64_t IntegerLimits::*size) {
    auto order = [&](const IntegerLimits &a, const IntegerLimits &b) {
      return a.*size < b.*size;
    };
    bool all = (*llvm::min_element(parts, order)).*size > 0;
    return all ? (*llvm::max_element(parts, order)).*size : 0;
  };
  IntegerLimits result = parts.front();
  for (const IntegerLimits &part : llvm::drop_begin(parts))
    result.narrow(part); // the label that all ignore
  result.classes = whole.classes ? 0 : most(&IntegerLimits::classes);
  result.hasIgnored &= result.classes > 0;
  result.rows = whole.rows ? 0 : most(&IntegerLimits::rows);
  return result;
}

void LimitCollector::limit(OpOperand &operand, const IntegerLimits &limits) {
  limiting.insert(&operand);
  for (auto [argument, part] : sourcesOf(operand.get())) {
    unsigned number = argument.getArgNumber();
    StringRef role = argumentRole(function, number);
    bool isData =
        limits.classes || role == roles::kInput || role == roles::kTarget;
    if (!isData || !holdsIntegers(argument))
      continue;
    auto places = part.kind == Part::Unclear ? placesOf(operand.get(), argument)
                                             : std::nullopt;
    if (!places)
      arguments[number].add(limits, part);
    else
      for (auto [axis, low, high] : *places)
        arguments[number].add(limits, {Part::Window, axis, low, high});
  }
}

void LimitCollector::visit(Operation *op) {
  auto labels = [](int64_t classes, std::optional<int64_t> ignored) {
    return IntegerLimits{classes, ignored.has_value(), ignored.value_or(0), 0};
  };
  if (auto classes = op->getAttrOfType<IntegerAttr>(kClassesAttr)) {
    auto ignored = op->getAttrOfType<IntegerAttr>(kIgnoreIndexAttr);
    limit(op->getOpOperand(0),
          labels(classes.getInt(),
                 ignored ? std::optional(ignored.getInt()) : std::nullopt));
  }
  if (auto rows = op->getAttrOfType<IntegerAttr>(kRowsAttr))
    limit(op->getOpOperand(0), {0, false, 0, rows.getInt()});
  if (auto loss = dyn_cast<CrossEntropyOp>(op)) {
    bool allCount = bool(loss->removeAttr(kAllCountAttr));
    limit(loss.getTargetsMutable(),
          labels(loss.getNumClasses(),
                 allCount ? std::nullopt
                          : std::optional(int64_t(loss.getIgnoreIndex()))));
  }
  if (auto rows = dyn_cast<IndexingOpInterface>(op)) {
    auto table = cast<RankedTensorType>(rows.getTable().getType());
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get() == rows.getIndices())
        limit(operand,
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

void LimitCollector::noteParts(unsigned number, const Limits &limits) {
  Builder b(function);
  SmallVector<Attribute> parts;
  for (const auto &[place, own] : limits.windows) {
    IntegerLimits both = own;
    both.narrow(limits.whole);
    if (both == limits.whole)
      continue; // what holds for all of it says as much
    NamedAttrList part;
    part.set("axis", b.getI64IntegerAttr(std::get<0>(place)));
    part.set("low", b.getI64IntegerAttr(std::get<1>(place)));
    part.set("high", b.getI64IntegerAttr(std::get<2>(place)));
    forEachNumber(own, [&](StringRef name, int64_t value) {
      part.set(name.split('.').second, b.getI64IntegerAttr(value));
    });
    parts.push_back(part.getDictionary(b.getContext()));
  }
  if (!parts.empty())
    function.setArgAttr(number, kPartLimitsAttr, b.getArrayAttr(parts));
}

void LimitCollector::note() {
  Builder b(function);
  for (auto &[number, limits] : arguments) {
    BlockArgument argument = function.getArgument(number);
    noteParts(number, limits);
    IntegerLimits all = limits.whole, widest = limits.widest();
    if (widest.exist() && !Readers(limiting).findOthers(argument))
      all.narrow(widest);
    forEachNumber(all, [&, number = number](StringRef name, int64_t value) {
      function.setArgAttr(number, name, b.getI64IntegerAttr(value));
    });
  }
}

void onnx_frontend::noteDataLimits(func::FuncOp function) {
  LimitCollector limits(function);
  function.walk([&](Operation *op) { limits.visit(op); });
  limits.note();
}
