//===- SizeResizer.cpp - a module at another size -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes the step of a size from those of several others, op by op: sizes of
// types and numbers of attributes are polynomials of the size (SizePolynomial),
// or one over such. Linear in the ops.
//
//===----------------------------------------------------------------------===//
#include "SizeResizer.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Support/SizeNumbers.h"

using namespace mlir;
using namespace ckopt;

/// A call's estimated operations.
static constexpr llvm::StringLiteral kCostName = "cost";

/// Continues a parabola through the first three: a cost need not be exact.
double SizeResizer::estimate(ArrayRef<llvm::APFloat> values) {
  double sum = 0;
  for (size_t i = 0; i < 3; ++i) {
    double term = values[i].convertToDouble();
    for (size_t k = 0; k < 3; ++k)
      if (k != i)
        term *= double(wanted.size - points[k].size) /
                double(points[i].size - points[k].size);
    sum += term;
  }
  return std::max(sum, 0.0);
}

std::optional<int64_t> SizeResizer::number(ArrayRef<int64_t> values) {
  auto p = polynomialThrough(points, values);
  return p ? std::optional(p->at(wanted)) : std::nullopt;
}

Type SizeResizer::type(ArrayRef<Type> types) {
  if (llvm::all_equal(types))
    return types.front();
  if (auto function = dyn_cast<FunctionType>(types.front())) {
    SmallVector<Type> inputs, results;
    for (unsigned i = 0; i < function.getNumInputs(); ++i)
      inputs.push_back(type(llvm::map_to_vector(types, [&](Type own) {
        return cast<FunctionType>(own).getInput(i);
      })));
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      results.push_back(type(llvm::map_to_vector(types, [&](Type own) {
        return cast<FunctionType>(own).getResult(i);
      })));
    bool all = !llvm::is_contained(inputs, Type()) &&
               !llvm::is_contained(results, Type());
    return all ? FunctionType::get(function.getContext(), inputs, results)
               : Type();
  }
  auto first = dyn_cast<RankedTensorType>(types.front());
  if (!first)
    return Type();
  SmallVector<int64_t> shape;
  for (int64_t d = 0; d < first.getRank(); ++d) {
    SmallVector<int64_t> values;
    for (Type own : types) {
      auto tensor = dyn_cast<RankedTensorType>(own);
      if (!tensor || tensor.getRank() != first.getRank() ||
          tensor.getElementType() != first.getElementType() ||
          tensor.getEncoding() != first.getEncoding())
        return Type();
      values.push_back(tensor.getDimSize(d));
    }
    auto size = number(values);
    if (!size || *size < 0)
      return Type();
    shape.push_back(*size);
  }
  return RankedTensorType::get(shape, first.getElementType(),
                               first.getEncoding());
}

/// Constants of one number.
Attribute SizeResizer::dense(ArrayRef<Attribute> attributes) {
  SmallVector<Type> types;
  SmallVector<llvm::APFloat> reals;
  SmallVector<int64_t> numbers;
  for (Attribute attribute : attributes) {
    auto own = dyn_cast<DenseElementsAttr>(attribute);
    if (!own || !own.isSplat())
      return Attribute();
    types.push_back(own.getType());
    if (isa<FloatType>(own.getElementType()))
      reals.push_back(own.getSplatValue<llvm::APFloat>());
    else
      numbers.push_back(own.getSplatValue<llvm::APInt>().getSExtValue());
  }
  auto to = dyn_cast_or_null<ShapedType>(type(types));
  if (!to)
    return Attribute();
  if (reals.empty()) {
    auto value = number(numbers);
    if (!value)
      return Attribute();
    unsigned width = to.getElementTypeBitWidth();
    return DenseElementsAttr::get(
        to, llvm::APInt(64, uint64_t(*value), true).sextOrTrunc(width));
  }
  bool same = llvm::all_of(reals, [&](const llvm::APFloat &real) {
    return real.bitwiseIsEqual(reals.front());
  });
  if (same)
    return DenseElementsAttr::get(to, reals.front());
  auto real = SizeReal::through(points, reals);
  return real ? DenseElementsAttr::get(to, real->at(wanted, reals.front()))
              : Attribute();
}

Attribute SizeResizer::attribute(StringRef name,
                                 ArrayRef<Attribute> attributes) {
  Attribute first = attributes.front();
  if (llvm::all_equal(attributes))
    return first;
  MLIRContext *context = first.getContext();
  if (isa<DenseElementsAttr>(first))
    return dense(attributes);
  if (auto own = dyn_cast<TypeAttr>(first)) {
    Type to = type(llvm::map_to_vector(
        attributes, [](Attribute a) { return cast<TypeAttr>(a).getValue(); }));
    return to ? TypeAttr::get(to) : Attribute();
  }
  auto isAll = [&](auto check) { return llvm::all_of(attributes, check); };
  if (isAll([](Attribute a) { return isa<IntegerAttr>(a); })) {
    auto value = number(llvm::map_to_vector(attributes, [](Attribute a) {
      return cast<IntegerAttr>(a).getValue().getSExtValue();
    }));
    return value ? IntegerAttr::get(cast<IntegerAttr>(first).getType(), *value)
                 : Attribute();
  }
  if (isAll([](Attribute a) { return isa<FloatAttr>(a); })) {
    auto values = llvm::map_to_vector(
        attributes, [](Attribute a) { return cast<FloatAttr>(a).getValue(); });
    Type type = cast<FloatAttr>(first).getType();
    if (auto real = SizeReal::through(points, values))
      return FloatAttr::get(type, real->at(wanted, values.front()));
    return name == kCostName ? FloatAttr::get(type, estimate(values))
                             : Attribute();
  }
  if (isAll([&](Attribute a) {
        auto own = dyn_cast<DenseI64ArrayAttr>(a);
        return own && own.size() == cast<DenseI64ArrayAttr>(first).size();
      })) {
    SmallVector<int64_t> made;
    for (int64_t i = 0; i < cast<DenseI64ArrayAttr>(first).size(); ++i) {
      auto value = number(llvm::map_to_vector(attributes, [&](Attribute a) {
        return cast<DenseI64ArrayAttr>(a)[i];
      }));
      if (!value)
        return Attribute();
      made.push_back(*value);
    }
    return DenseI64ArrayAttr::get(context, made);
  }
  if (isAll([&](Attribute a) {
        auto own = dyn_cast<ArrayAttr>(a);
        return own && own.size() == cast<ArrayAttr>(first).size();
      })) {
    SmallVector<Attribute> made;
    for (size_t i = 0; i < cast<ArrayAttr>(first).size(); ++i) {
      made.push_back(
          attribute(name, llvm::map_to_vector(attributes, [&](Attribute a) {
                      return cast<ArrayAttr>(a)[i];
                    })));
      if (!made.back())
        return Attribute();
    }
    return ArrayAttr::get(context, made);
  }
  auto dictionary = dyn_cast<DictionaryAttr>(first);
  if (!dictionary || !isAll([&](Attribute a) {
        auto own = dyn_cast<DictionaryAttr>(a);
        return own && own.size() == dictionary.size();
      }))
    return Attribute();
  SmallVector<NamedAttribute> made;
  for (NamedAttribute entry : dictionary) {
    SmallVector<Attribute> values;
    for (Attribute a : attributes)
      values.push_back(cast<DictionaryAttr>(a).get(entry.getName()));
    Attribute value = llvm::is_contained(values, Attribute())
                          ? Attribute()
                          : attribute(entry.getName(), values);
    if (!value)
      return Attribute();
    made.push_back({entry.getName(), value});
  }
  return DictionaryAttr::get(context, made);
}

/// What annotate-kernels writes is not copied: it is run again.
static bool isAnnotated(Operation *op, StringRef attribute) {
  return isa<KernelCallOp>(op) &&
         (attribute == "workspace" || attribute == "reuse");
}

bool SizeResizer::resize(Operation *into, ArrayRef<Operation *> ops) {
  for (unsigned i = 0; i < into->getNumResults(); ++i) {
    Type to = type(llvm::map_to_vector(
        ops, [&](Operation *op) { return op->getResult(i).getType(); }));
    if (!to)
      return false;
    into->getResult(i).setType(to);
  }
  for (unsigned r = 0; r < into->getNumRegions(); ++r)
    for (unsigned i = 0; !into->getRegion(r).empty() &&
                         i < into->getRegion(r).getNumArguments();
         ++i) {
      Type to = type(llvm::map_to_vector(ops, [&](Operation *op) {
        return op->getRegion(r).getArgument(i).getType();
      }));
      if (!to)
        return false;
      into->getRegion(r).getArgument(i).setType(to);
    }
  for (NamedAttribute entry : ops.front()->getAttrDictionary()) {
    if (isAnnotated(into, entry.getName()))
      continue;
    SmallVector<Attribute> values;
    for (Operation *op : ops)
      values.push_back(op->getAttr(entry.getName()));
    Attribute to = llvm::is_contained(values, Attribute())
                       ? Attribute()
                       : attribute(entry.getName(), values);
    if (!to)
      return false;
    into->setAttr(entry.getName(), to);
  }
  return true;
}

/// All ops of a module, outer ones first.
static SmallVector<Operation *> flatOps(ModuleOp module) {
  SmallVector<Operation *> ops;
  for (Operation &top : *module.getBody())
    top.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  return ops;
}

OwningOpRef<ModuleOp> SizeResizer::run(ArrayRef<ModuleOp> modules) {
  OwningOpRef<ModuleOp> made = ModuleOp(modules.front()).clone();
  SmallVector<SmallVector<Operation *>> all;
  for (ModuleOp module : modules)
    all.push_back(flatOps(module));
  auto into = flatOps(*made);
  for (size_t i = 0; i < into.size(); ++i) {
    SmallVector<Operation *> ops;
    for (auto &own : all) {
      ops.push_back(i < own.size() ? own[i] : nullptr);
      if (own.size() != into.size() ||
          ops.back()->getName() != into[i]->getName()) {
        failedAt = into[i];
        return {};
      }
    }
    if (!resize(into[i], ops)) {
      failedAt = ops.front();
      return {};
    }
  }
  return made;
}
