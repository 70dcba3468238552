//===- WholeBatch.cpp - numbers that depend on the batch's size -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a graph whose batch is one part of a whole one (a rank's) computes
// numbers from its batch's size. Shapes and places in the batch must be the
// part's; what values are scaled by must be the whole batch's. Method: the
// graph is imported with the whole batch, too. Where a name's constant differs,
// it depends on the size. A real number gets both values (Utils/WholeBatch.h)
// in front of each node that combines it with data, before a fold could drop
// the part's (a division by one). Integers are looked at when the graph is
// built: shapes are no operands any more, those that become real numbers get
// both values, and those that only choose places stay as they are. Guarantee:
// what is both, and real numbers that differ from sample to sample, are errors.
// O(ops), and again for each integer constant that differs.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/Utils/WholeBatch.h"
#include "GraphImporter.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

static DenseElementsAttr constantOf(Value value) {
  DenseElementsAttr elements;
  return value && matchPattern(value, m_Constant(&elements))
             ? elements
             : DenseElementsAttr();
}

/// The number of the whole batch in the part's type; null if it has none.
static DenseElementsAttr inType(DenseElementsAttr whole,
                                RankedTensorType type) {
  if (whole.getType() == type)
    return whole;
  return whole.isSplat() && whole.getElementType() == type.getElementType()
             ? DenseElementsAttr::get(type, whole.getSplatValue<Attribute>())
             : DenseElementsAttr();
}

void GraphImporter::recordConstants() {
  for (const auto &entry : values)
    if (DenseElementsAttr elements = constantOf(entry.second))
      constants[entry.first()] = elements;
}

namespace {
/// What an integer is used for.
struct Uses {
  bool asNumber = false; ///< it becomes a real number
  bool asPlace = false;  ///< it chooses elements
};
} // namespace

static Uses usesOf(Value integer) {
  Uses uses;
  SmallVector<Value> open{integer};
  llvm::SmallPtrSet<Value, 16> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (OpOperand &use : next.getUses()) {
      Operation *user = use.getOwner();
      bool real = user->getNumResults() &&
                  isa<FloatType>(getElementTypeOrSelf(user->getResult(0)));
      if (!real)
        llvm::append_range(open, user->getResults());
      else if (isa<CastOp>(user))
        uses.asNumber = true;
      else
        uses.asPlace = true; // of a gather, a mask, a loss
    }
  }
  return uses;
}

Value GraphImporter::pinOf(Value number, DenseElementsAttr whole) {
  Value &pin = pins[number];
  if (pin)
    return pin;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(number);
  auto op = PinOp::create(builder, number.getLoc(), number);
  op->setAttr(kWholeBatchAttr, whole);
  return pin = op.getOutput();
}

/// Lets a node read pins of numbers that it combines with data. Returns what
/// its operands' names were bound to.
GraphImporter::Bindings GraphImporter::pinOperands(const Node &node) {
  Bindings before;
  if (!wholeConstants)
    return before;
  auto isData = [&](const std::string &name) {
    Value value = name.empty() || !isDefined(name) || findSequence(name)
                      ? Value()
                      : lookup(name);
    return value && !constantOf(value);
  };
  if (llvm::none_of(node.inputs, isData))
    return before;
  for (const std::string &name : node.inputs) {
    auto bound = values.find(name);
    auto found = wholeConstants->find(name);
    DenseElementsAttr own =
        bound == values.end() ? DenseElementsAttr() : constantOf(bound->second);
    if (!own || found == wholeConstants->end() || found->second == own ||
        !isa<FloatType>(own.getElementType()))
      continue;
    DenseElementsAttr whole =
        inType(found->second, cast<RankedTensorType>(own.getType()));
    if (!whole || whole == own)
      continue; // told by addWholeNumbers(), or another shape of the same
    before.push_back({name, bound->second});
    bound->second = pinOf(bound->second, whole);
  }
  return before;
}

LogicalResult GraphImporter::addWholeNumbers() {
  LogicalResult result = success();
  llvm::SmallPtrSet<Value, 16> seen;
  for (const auto &entry : values) {
    Value value = entry.second;
    DenseElementsAttr own = constantOf(value);
    auto found = wholeConstants->find(entry.first());
    if (!own || found == wholeConstants->end() || found->second == own ||
        value.use_empty() || !seen.insert(value).second)
      continue;
    auto refuse = [&](const char *why) {
      emitError(value.getLoc())
          << "'" << entry.first() << "' depends on the batch's size, " << why
          << ": what it is for a part of the batch is not known";
      result = failure();
    };
    auto type = cast<RankedTensorType>(value.getType());
    DenseElementsAttr whole = inType(found->second, type);
    if (whole == own)
      continue; // another shape of the same number
    bool isReal = isa<FloatType>(type.getElementType());
    Uses uses = isReal ? Uses{true, false} : usesOf(value);
    if (!uses.asNumber)
      continue;
    if (uses.asPlace) {
      refuse("and is used both as a number and to choose elements");
    } else if (!whole) {
      refuse("and differs from sample to sample");
    } else {
      Value pin = pinOf(value, whole);
      value.replaceAllUsesExcept(pin, pin.getDefiningOp());
    }
  }
  builder.setInsertionPointToEnd(body);
  return result;
}
