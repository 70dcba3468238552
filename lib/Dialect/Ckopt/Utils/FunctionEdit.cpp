//===- FunctionEdit.cpp - names, arguments, results of functions ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/StopGradient.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace ckopt;

func::FuncOp ckopt::findFunction(ModuleOp module, StringRef name) {
  if (auto function = module.lookupSymbol<func::FuncOp>(name))
    return function;
  std::string names;
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    names += (names.empty() ? "@" : ", @") + function.getSymName().str();
  module.emitError("no function '")
      << name << "'; the module has " << (names.empty() ? "none" : names);
  return {};
}

std::string ckopt::argumentName(func::FuncOp function, unsigned index) {
  if (auto name = function.getArgAttrOfType<StringAttr>(index, attrs::kName))
    return name.str();
  return ("arg" + Twine(index)).str();
}

std::string ckopt::resultName(func::FuncOp function, unsigned index) {
  if (auto name = function.getResultAttrOfType<StringAttr>(index, attrs::kName))
    return name.str();
  return ("result" + Twine(index)).str();
}

StringRef ckopt::argumentRole(func::FuncOp function, unsigned index) {
  auto role = function.getArgAttrOfType<StringAttr>(index, attrs::kRole);
  return role ? role.getValue() : StringRef();
}

StringRef ckopt::nodeName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (StringRef name = nodeName(part); !name.empty())
        return name;
  return {};
}

std::optional<unsigned> ckopt::findArgument(func::FuncOp function,
                                            StringRef name) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (argumentName(function, i) == name)
      return i;
  return std::nullopt;
}

std::optional<unsigned> ckopt::findRole(func::FuncOp function, StringRef role) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (argumentRole(function, i) == role)
      return i;
  return std::nullopt;
}

void Result::set(OpBuilder &builder, StringRef name, Attribute value) {
  llvm::erase_if(attrs,
                 [&](NamedAttribute attr) { return attr.getName() == name; });
  attrs.push_back(builder.getNamedAttr(name, value));
}

Attribute Result::get(StringRef name) const {
  for (NamedAttribute attr : attrs)
    if (attr.getName() == name)
      return attr.getValue();
  return {};
}

SmallVector<Result> ckopt::takeResults(func::FuncOp function) {
  SmallVector<Result> results;
  Operation *terminator = function.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    auto attrs = function_interface_impl::getResultAttrs(function, i);
    results.push_back({value, llvm::to_vector(attrs)});
  }
  return results;
}

void ckopt::setResults(func::FuncOp function, ArrayRef<Result> results) {
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> attrs;
  for (const Result &result : results) {
    values.push_back(result.value);
    attrs.push_back(DictionaryAttr::get(function.getContext(), result.attrs));
  }
  function.getBody().front().getTerminator()->setOperands(values);
  // Remove attributes first: their number must match that of the results.
  function.removeResAttrsAttr();
  function.setFunctionType(FunctionType::get(function.getContext(),
                                             function.getArgumentTypes(),
                                             ValueRange(values).getTypes()));
  function.setAllResultAttrs(attrs);
}

BlockArgument ckopt::addArgument(func::FuncOp function, Type type,
                                 StringRef name, StringRef role) {
  Builder builder(function.getContext());
  unsigned index = function.getNumArguments();
  std::string unique = name.str();
  for (unsigned i = 2; findArgument(function, unique); ++i)
    unique = (name + "." + Twine(i)).str();
  SmallVector<NamedAttribute> attributes;
  attributes.push_back(
      builder.getNamedAttr(attrs::kName, builder.getStringAttr(unique)));
  attributes.push_back(
      builder.getNamedAttr(attrs::kRole, builder.getStringAttr(role)));
  (void)function.insertArgument(
      index, type, builder.getDictionaryAttr(attributes), function.getLoc());
  return function.getArgument(index);
}

BlockArgument ckopt::findOrAddNumber(func::FuncOp function, StringRef name,
                                     StringRef role) {
  if (auto index = findRole(function, role))
    return function.getArgument(*index);
  auto number = IntegerType::get(function.getContext(), 64);
  return addArgument(function, RankedTensorType::get({}, number), name, role);
}

bool ckopt::isStoredForGood(BlockArgument argument) {
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!function)
    return false;
  StringRef role = argumentRole(function, argument.getArgNumber());
  return role == roles::kFrozen || role == roles::kConstant;
}

LogicalResult ckopt::checkStraightLine(func::FuncOp function) {
  if (function.isDeclaration() || !function.getBody().hasOneBlock())
    return function.emitError("function '")
           << function.getSymName() << "' must have a body of one block";
  if (!isa<func::ReturnOp>(function.getBody().front().getTerminator()))
    return function.emitError("function '")
           << function.getSymName() << "' must end in func.return";
  return success();
}

void ckopt::removeStops(Block &block) {
  for (PinOp pin : llvm::make_early_inc_range(block.getOps<PinOp>()))
    if (pin->hasAttr(kStopGradientAttr)) {
      pin.replaceAllUsesWith(pin.getInput());
      pin.erase();
    }
}

void ckopt::eraseDeadOps(func::FuncOp function) {
  Block &block = function.getBody().front();
  // Collect the ops first: a reversed iterator stores the next op, which would
  // be erased under it.
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}
