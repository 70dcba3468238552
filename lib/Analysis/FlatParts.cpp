//===- FlatParts.cpp - kernels whose parts are loops over memory ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/FlatParts.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Interfaces/KernelInterface.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace ckopt;

bool ckopt::isOneElement(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && tensor.getNumElements() == 1;
}

namespace {

/// Finds the parts of one kernel.
class Finder {
public:
  explicit Finder(func::FuncOp kernel) : body(kernel.front()) {}
  SmallVector<FlatPart> run();

private:
  bool join(Operation &op);
  void collect(FlatPart &part);
  void describe(FlatPart &part);

  Block &body;
  /// Results of ops with several elements; those of one class are one part's.
  llvm::EquivalenceClasses<void *> classes;
};

} // namespace

/// Joins what the op reads of other ops and makes; returns false if it is not
/// flat. Constants are made again in each part.
bool Finder::join(Operation &op) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  if (!kernel || op.getNumRegions())
    return false;
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto values = dyn_cast<DenseElementsAttr>(constant.getValue());
    return values && values.isSplat();
  }
  bool isReshape = isa<ReshapeOp>(op);
  if (!isReshape && kernel.getKernelKind() != KernelKind::Elementwise &&
      kernel.getKernelKind() != KernelKind::Update)
    return false;
  RankedTensorType first;
  void *member = nullptr;
  auto add = [&](Value v) {
    auto type = dyn_cast<RankedTensorType>(v.getType());
    if (!type)
      return false;
    if (isOneElement(type))
      return true;
    first = first ? first : type;
    if (isReshape ? bool(type.getEncoding())
                  : type.getShape() != first.getShape() ||
                        type.getEncoding() != first.getEncoding())
      return false;
    if (isa<BlockArgument>(v) || v.getDefiningOp<ConstantOp>())
      return true;
    void *own = v.getAsOpaquePointer();
    classes.insert(own);
    if (member)
      classes.unionSets(member, own);
    member = own;
    return true;
  };
  return llvm::all_of(op.getOperands(), add) &&
         llvm::all_of(op.getResults(), add);
}

/// Finds the ops that the part's results need, and their arguments.
void Finder::collect(FlatPart &part) {
  llvm::SmallPtrSet<Operation *, 16> needed;
  SmallVector<Value> open;
  for (unsigned r : part.results)
    open.push_back(body.getTerminator()->getOperand(r));
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (op && needed.insert(op).second)
      llvm::append_range(open, op->getOperands());
  }
  for (Operation &op : body) {
    if (!needed.contains(&op))
      continue;
    part.ops.push_back(&op);
    for (Value operand : op.getOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand);
          argument &&
          !llvm::is_contained(part.arguments, argument.getArgNumber()))
        part.arguments.push_back(argument.getArgNumber());
  }
}

void Finder::describe(FlatPart &part) {
  llvm::raw_string_ostream os(part.form);
  DenseMap<Value, unsigned> numbers;
  auto introduce = [&](Value v) {
    numbers.try_emplace(v, unsigned(numbers.size()));
    os << (isOneElement(v.getType()) ? " one " : " many ")
       << getElementTypeOrSelf(v.getType());
  };
  for (unsigned a : part.arguments)
    introduce(body.getArgument(a));
  for (Operation *op : part.ops) {
    os << "; " << op->getName();
    if (auto constant = dyn_cast<ConstantOp>(op))
      os << ' '
         << cast<DenseElementsAttr>(constant.getValue())
                .getSplatValue<Attribute>();
    else if (!isa<ReshapeOp>(op)) // its attributes say the shape
      os << ' ' << op->getAttrDictionary();
    for (Value operand : op->getOperands())
      os << ' ' << numbers.lookup(operand);
    for (Value result : op->getResults())
      introduce(result);
  }
  os << "; return";
  for (unsigned r : part.results)
    os << ' ' << numbers.lookup(body.getTerminator()->getOperand(r));
}

SmallVector<FlatPart> Finder::run() {
  for (Operation &op : body.without_terminator())
    if (!join(op))
      return {};
  llvm::MapVector<void *, FlatPart> parts;
  for (auto [r, result] :
       llvm::enumerate(body.getTerminator()->getOperands())) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    Operation *op = result.getDefiningOp();
    if (!type || isOneElement(type) || type.getNumElements() == 0 || !op ||
        isa<ConstantOp>(op))
      return {};
    FlatPart &part = parts[classes.getLeaderValue(result.getAsOpaquePointer())];
    part.results.push_back(unsigned(r));
    part.elements = type.getNumElements();
  }
  SmallVector<FlatPart> found;
  for (auto &[leader, part] : parts) {
    collect(part);
    describe(part);
    found.push_back(std::move(part));
  }
  return found;
}

SmallVector<FlatPart> ckopt::findFlatParts(func::FuncOp kernel) {
  if (kernel.isExternal() || !kernel.getBody().hasOneBlock())
    return {};
  return Finder(kernel).run();
}

bool ckopt::isJoinable(func::FuncOp kernel) {
  auto kind = kernel->getAttrOfType<StringAttr>(attrs::kKernel);
  if (!kind || kind.getValue() != "elementwise" || kernel.isExternal())
    return false;
  int64_t bytes = 0;
  for (Type type : kernel.getArgumentTypes())
    bytes += getStorageBytes(type);
  bool updates = llvm::any_of(kernel.front(), [](Operation &op) {
    auto known = dyn_cast<KernelOpInterface>(op);
    return known && known.getKernelKind() == KernelKind::Update;
  });
  if (!updates || bytes > kMostUpdateBytes)
    return false;
  SmallVector<FlatPart> parts = findFlatParts(kernel);
  return !parts.empty() && llvm::all_of(parts, [&](const FlatPart &part) {
    return part.form == parts.front().form;
  });
}
