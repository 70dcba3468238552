//===- FormulaTerms.cpp - what formulas are made of -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: the dialects whose ops are described may not be loaded, so that
// their attributes are text. Method: lists of dimensions are read from an
// attribute's text, which is the same whether its dialect is known or not.
//
//===----------------------------------------------------------------------===//
#include "FormulaTerms.h"
#include "ckopt/Support/Error.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::formula;
using llvm::Expected;

Attribute ckopt::findAttribute(Operation *op, StringRef name) {
  if (Attribute attr = op->getAttr(name))
    return attr;
  auto all = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  return all ? all.get(name) : Attribute();
}

Expected<SmallVector<Type>> Values::of(Operation *op) const {
  SmallVector<Type> all = results
                              ? llvm::to_vector_of<Type>(op->getResultTypes())
                              : llvm::to_vector_of<Type>(op->getOperandTypes());
  if (!index)
    return all;
  if (*index >= int64_t(all.size()))
    return inputError(std::string("the op has no ") +
                      (results ? "results[" : "operands[") +
                      std::to_string(*index) + "]");
  return SmallVector<Type>{all[size_t(*index)]};
}

Term formula::constant(double number) {
  return [number](const FormulaScope &) -> Expected<double> { return number; };
}

Term formula::combine(Term a, Term b, char sign) {
  return [=](const FormulaScope &scope) -> Expected<double> {
    Expected<double> x = a(scope);
    if (!x)
      return x;
    Expected<double> y = b(scope);
    if (!y)
      return y;
    switch (sign) {
    case '+':
      return *x + *y;
    case '-':
      return *x - *y;
    case '*':
      return *x * *y;
    case '<':
      return std::min(*x, *y);
    case '>':
      return std::max(*x, *y);
    default:
      if (*y == 0)
        return inputError("division by zero");
      return *x / *y;
    }
  };
}

static Expected<Shape> shapeOf(Type type, const FormulaScope &scope) {
  if (std::optional<Shape> shape = scope.shape(type))
    return *shape;
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return inputError("the shape of '" + text + "' is not known");
}

static Expected<double> product(const Shape &shape) {
  double elements = 1;
  for (int64_t size : shape)
    elements *= double(size);
  return elements;
}

Term formula::overAll(Values values, bool bytes) {
  return [=](const FormulaScope &scope) -> Expected<double> {
    Expected<SmallVector<Type>> types = values.of(scope.op);
    if (!types)
      return types.takeError();
    double all = 0;
    for (Type type : *types) {
      if (bytes) {
        std::optional<int64_t> size = scope.bytes(type);
        if (!size)
          return inputError("the bytes of an operand or result are not known");
        all += double(*size);
        continue;
      }
      Expected<Shape> shape = shapeOf(type, scope);
      if (!shape)
        return shape.takeError();
      all += *product(*shape);
    }
    return all;
  };
}

/// Calls `figure` with the shape of one value.
template <typename Figure> static Term ofShape(Values values, Figure figure) {
  return [=](const FormulaScope &scope) -> Expected<double> {
    Expected<SmallVector<Type>> types = values.of(scope.op);
    if (!types)
      return types.takeError();
    Expected<Shape> shape = shapeOf(types->front(), scope);
    if (!shape)
      return shape.takeError();
    return figure(*shape, scope);
  };
}

static Expected<double> sizeOf(const Shape &shape, int64_t dim) {
  int64_t index = dim < 0 ? dim + int64_t(shape.size()) : dim;
  if (index < 0 || index >= int64_t(shape.size()))
    return inputError("there is no dimension " + std::to_string(dim) +
                      " among " + std::to_string(shape.size()));
  return double(shape[size_t(index)]);
}

static std::string textOf(Operation *op, StringRef name) {
  std::string text;
  if (Attribute attr = findAttribute(op, name))
    llvm::raw_string_ostream(text) << attr;
  return text;
}

/// Returns the text within the bracket `number` of those in a text.
static std::optional<StringRef> bracket(StringRef text, int64_t number) {
  for (; number >= 0; --number) {
    size_t open = text.find('[');
    if (open == StringRef::npos)
      return std::nullopt;
    text = text.drop_front(open + 1);
  }
  return text.take_until([](char c) { return c == ']'; });
}

/// Returns the product of the sizes of the dimensions that a list names.
static Expected<double> listed(const Shape &shape, Operation *op,
                               StringRef path) {
  auto [name, key] = path.split('.');
  std::string whole = textOf(op, name);
  StringRef text = whole, list;
  if (!key.empty()) {
    size_t found = text.find((key + " = ").str());
    if (found == StringRef::npos)
      return 1.0;
    text = text.drop_front(found + key.size() + 3);
  }
  if (text.consume_front("array<i64"))
    list = text.take_until([](char c) { return c == '>'; }).ltrim(": ");
  else if (text.starts_with("[") || text.starts_with("dense<["))
    list = *bracket(text, 0);
  double all = 1;
  SmallVector<StringRef> parts;
  list.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    int64_t dim = 0;
    if (part.trim().split(' ').first.getAsInteger(10, dim))
      return inputError("'" + path.str() + "' is no list of dimensions");
    Expected<double> size = sizeOf(shape, dim);
    if (!size)
      return size;
    all *= *size;
  }
  return all;
}

static Expected<double> labelled(const Shape &shape, Operation *op,
                                 StringRef name, int64_t group,
                                 StringRef label) {
  std::string text = textOf(op, name);
  if (std::optional<StringRef> list = bracket(text, group)) {
    SmallVector<StringRef> labels;
    list->split(labels, ',');
    if (labels.size() == shape.size())
      for (auto [dim, each] : llvm::enumerate(labels))
        if (each.trim() == label)
          return double(shape[dim]);
  }
  return inputError("'" + name.str() + "' gives no dimension the label '" +
                    label.str() + "' in bracket " + std::to_string(group));
}

Term formula::rank(Values value) {
  return ofShape(value, [](const Shape &shape, const FormulaScope &) {
    return Expected<double>(double(shape.size()));
  });
}

Term formula::size(Values value, int64_t dim) {
  return ofShape(value, [dim](const Shape &shape, const FormulaScope &) {
    return sizeOf(shape, dim);
  });
}

Term formula::listedSizes(Values value, std::string path) {
  return ofShape(value, [path](const Shape &shape, const FormulaScope &scope) {
    return listed(shape, scope.op, path);
  });
}

Term formula::labelledSize(Values value, std::string attr, int64_t bracket,
                           std::string label) {
  return ofShape(value, [=](const Shape &shape, const FormulaScope &scope) {
    return labelled(shape, scope.op, attr, bracket, label);
  });
}

Term formula::attribute(std::string name, std::optional<int64_t> otherwise) {
  return [=](const FormulaScope &scope) -> Expected<double> {
    Attribute attr = findAttribute(scope.op, name);
    if (auto number = dyn_cast_or_null<IntegerAttr>(attr))
      return number.getValue().roundToDouble(/*isSigned=*/true);
    if (auto number = dyn_cast_or_null<FloatAttr>(attr))
      return number.getValueAsDouble();
    if (!attr && otherwise)
      return double(*otherwise);
    return inputError("the op has no number '" + name + "'");
  };
}
