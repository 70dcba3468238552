//===- Outlining.cpp - units become kernels and calls ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: give each unit a private function and call it, with one function
// for all units of equal structure.
//
// Method: a unit's structure is written down as an attribute (kind, types, and
// for each op its name, attributes and numbered operands; the site of a random
// op is replaced by its index among the call's scalars). Attributes are unique
// in a context, so equal structures are one key.
//
// Guarantee: kernels, their names and their order depend on the program alone.
// Complexity: O(ops).
//
//===----------------------------------------------------------------------===//
#include "Grouping.h"
#include "OpKinds.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"
#include "ckopt/Support/Debug.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::fuse;

Outliner::Outliner(ModuleOp module) : symbols(module), module(module) {}

/// Returns the inputs in the order in which the body reads them, so that equal
/// bodies have equal operand lists.
static SmallVector<Value> orderedInputs(const Unit &unit,
                                        ArrayRef<Operation *> body) {
  llvm::SmallSetVector<Value, 8> inputs;
  for (Operation *op : body)
    for (Value operand : op->getOperands())
      if (unit.inputs.contains(operand))
        inputs.insert(operand);
  return inputs.takeVector();
}

/// Returns the op's attributes without wishes, with the site replaced by its
/// index.
static DictionaryAttr structuralAttrs(Operation *op, int64_t site) {
  NamedAttrList list(op->getAttrDictionary());
  for (StringRef wish : kWishes)
    list.erase(wish);
  if (randomSite(op))
    list.set(kSiteAttr, Builder(op).getI64IntegerAttr(site));
  return list.getDictionary(op->getContext());
}

static SmallVector<int64_t> sitesOf(ArrayRef<Operation *> body) {
  SmallVector<int64_t> sites;
  for (Operation *op : body)
    if (auto site = randomSite(op))
      sites.push_back(*site);
  return sites;
}

static Attribute structureKey(const Unit &unit, ArrayRef<Operation *> body,
                              ArrayRef<Value> inputs, ArrayRef<Value> outputs) {
  Builder builder(body.front()->getContext());
  SmallVector<Attribute> key{builder.getStringAttr(kindName(unit.kind))};
  DenseMap<Value, int64_t> numbers;
  for (Value input : inputs) {
    numbers[input] = numbers.size();
    key.push_back(TypeAttr::get(input.getType()));
  }
  int64_t site = 0;
  for (Operation *op : body) {
    key.push_back(op->getName().getIdentifier());
    key.push_back(structuralAttrs(op, site));
    site += randomSite(op).has_value();
    SmallVector<int64_t> operands;
    for (Value operand : op->getOperands())
      operands.push_back(numbers.lookup(operand));
    key.push_back(builder.getDenseI64ArrayAttr(operands));
    for (Value result : op->getResults()) {
      numbers[result] = numbers.size();
      key.push_back(TypeAttr::get(result.getType()));
    }
  }
  SmallVector<int64_t> results;
  for (Value output : outputs)
    results.push_back(numbers.lookup(output));
  key.push_back(builder.getDenseI64ArrayAttr(results));
  return builder.getArrayAttr(key);
}

func::FuncOp Outliner::getKernel(const Unit &unit, ArrayRef<Operation *> body,
                                 ArrayRef<Value> inputs,
                                 ArrayRef<Value> outputs) {
  func::FuncOp &kernel = kernels[structureKey(unit, body, inputs, outputs)];
  if (kernel)
    return kernel;
  OpBuilder builder(module.getContext());
  StringRef kind = kindName(unit.kind);
  Location loc = unit.roots.back()->getLoc();
  auto type = builder.getFunctionType(ValueRange(inputs).getTypes(),
                                      ValueRange(outputs).getTypes());
  std::string name = ("k_" + kind + "_" + Twine(counters[kind]++)).str();
  kernel = func::FuncOp::create(builder, loc, name, type);
  kernel.setPrivate();
  kernel->setAttr(attrs::kKernel, builder.getStringAttr(kind));
  Block *block = kernel.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  IRMapping mapping;
  mapping.map(ValueRange(inputs), block->getArguments());
  int64_t site = 0;
  for (Operation *op : body) {
    Operation *clone = builder.clone(*op, mapping);
    for (StringRef wish : kWishes)
      clone->removeAttr(wish);
    if (randomSite(clone))
      setRandomSite(clone, site++);
  }
  SmallVector<Value> results;
  for (Value output : outputs)
    results.push_back(mapping.lookup(output));
  func::ReturnOp::create(builder, loc, results);
  symbols.insert(kernel);
  return kernel;
}

/// Joins the locations of the stored ops, then of the ops fused into them: an
/// error in the kernel may come from any of them.
static Location callLocation(const Unit &unit, ArrayRef<Operation *> body) {
  SmallVector<Location> locations;
  auto add = [&](Operation *op) {
    if (!llvm::is_contained(locations, op->getLoc()))
      locations.push_back(op->getLoc());
  };
  llvm::for_each(unit.roots, add);
  for (Operation *op : body)
    if (!op->hasTrait<OpTrait::ConstantLike>())
      add(op);
  return FusedLoc::get(unit.roots.front()->getContext(), locations);
}

/// Copies the users' attributes to the call: those of the first stored value
/// that has any, else those of an op that is fused.
static void setWishes(KernelCallOp call, const Unit &unit,
                      ArrayRef<Operation *> body) {
  SmallVector<Operation *> sources(unit.roots.begin(), unit.roots.end());
  llvm::append_range(sources, llvm::reverse(body));
  copyWishes(sources, call);
}

/// Returns (operand, result) pairs of the call for the updates inside.
static SmallVector<int64_t>
updatePairs(const Unit &unit, ArrayRef<Value> inputs, ArrayRef<Value> outputs) {
  SmallVector<int64_t> pairs;
  if (unit.kind != UnitKind::Update)
    return pairs;
  for (Operation *root : unit.roots)
    for (auto [operand, result] :
         cast<KernelOpInterface>(root).getUpdatePairs()) {
      auto *input = llvm::find(inputs, root->getOperand(operand));
      auto *output = llvm::find(outputs, root->getResult(result));
      if (input != inputs.end() && output != outputs.end())
        pairs.append({input - inputs.begin(), output - outputs.begin()});
    }
  return pairs;
}

void Outliner::run(func::FuncOp function, Grouping &grouping) {
  Block &block = function.front();
  Operation *terminator = block.getTerminator();
  SmallVector<Operation *> old;
  for (Operation &op : block.without_terminator())
    old.push_back(&op);
  OpBuilder builder(terminator);
  IRMapping mapping;
  // A view is made just before its first reader.
  auto lookup = [&](auto &&self, Value value) -> Value {
    if (isa<BlockArgument>(value))
      return value;
    if (Value mapped = mapping.lookupOrNull(value))
      return mapped;
    Operation *view = value.getDefiningOp();
    self(self, view->getOperand(0));
    return builder.clone(*view, mapping)->getResult(0);
  };
  for (Unit *unit : grouping.schedule()) {
    SmallVector<Operation *> body = grouping.body(*unit);
    SmallVector<Value> inputs = orderedInputs(*unit, body);
    SmallVector<Value> outputs = grouping.outputs(*unit);
    if (outputs.empty())
      continue;
    func::FuncOp kernel = getKernel(*unit, body, inputs, outputs);
    SmallVector<Value> operands;
    for (Value input : inputs)
      operands.push_back(lookup(lookup, input));
    auto call = KernelCallOp::create(
        builder, callLocation(*unit, body), kernel.getResultTypes(), operands,
        builder.getNamedAttr("callee",
                             FlatSymbolRefAttr::get(kernel.getSymNameAttr())));
    debug::count(debug::Counter::Kernels);
    debug::count(debug::Counter::FusedOps, int64_t(body.size()));
    debug::log(debug::Part::Fuse, [&](llvm::raw_ostream &os) {
      os << "@" << function.getSymName() << " calls @" << kernel.getSymName()
         << ", " << kindName(unit->kind) << ":";
      for (Operation *op : body)
        os << " " << op->getName().stripDialect();
    });
    call.setScalars(sitesOf(body));
    call.setUpdates(updatePairs(*unit, inputs, outputs));
    setWishes(call, *unit, body);
    for (auto [output, result] : llvm::zip(outputs, call.getOuts()))
      mapping.map(output, result);
  }
  for (OpOperand &operand : terminator->getOpOperands())
    operand.set(lookup(lookup, operand.get()));
  for (Operation *op : llvm::reverse(old)) {
    op->dropAllUses();
    op->erase();
  }
}
