//===- Mutations.cpp - programs that differ in one place ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Mutations.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

namespace {
class Mutator {
public:
  Mutator(func::FuncOp function, int64_t which)
      : function(function), block(function.getBody().front()), which(which) {}

  std::string run();

private:
  /// Counts one change; returns whether it is the one to make.
  template <typename... Parts> bool is(const char *format, Parts... parts) {
    if (which-- != 0)
      return false;
    made = llvm::formatv(format, parts...).str();
    return true;
  }
  bool operands(Operation &op);
  bool kinds(Operation &op);
  bool attributes(Operation &op);
  bool order(Operation &op);
  bool readers(Operation &op);
  bool constants(ConstantOp op);
  bool shapes(BlockArgument argument);
  void replace(Operation &op, StringRef name);

  func::FuncOp function;
  Block &block;
  int64_t which;
  std::string made;
};

std::string nameOf(Operation &op) { return op.getName().stripDialect().str(); }
} // namespace

/// Any earlier value of the operand's type in its place.
bool Mutator::operands(Operation &op) {
  for (OpOperand &operand : op.getOpOperands()) {
    auto tries = [&](Value other) {
      if (other == operand.get() || other.getType() != operand.get().getType())
        return false;
      if (!is("operand {0} of {1} is another value", operand.getOperandNumber(),
              nameOf(op)))
        return false;
      operand.set(other);
      return true;
    };
    for (BlockArgument argument : block.getArguments())
      if (tries(argument))
        return true;
    for (Operation &earlier : block) {
      if (&earlier == &op)
        break;
      for (Value result : earlier.getResults())
        if (tries(result))
          return true;
    }
  }
  return false;
}

void Mutator::replace(Operation &op, StringRef name) {
  OpBuilder b(&op);
  OperationState state(op.getLoc(), ("ckopt." + name).str(), op.getOperands(),
                       op.getResultTypes(), op.getAttrDictionary().getValue());
  op.replaceAllUsesWith(b.create(state));
  op.erase();
}

/// Another op with as many operands and the same attributes.
bool Mutator::kinds(Operation &op) {
  static const std::vector<std::vector<StringRef>> alike = {
      {"add", "sub", "mul", "div", "maximum"},
      {"tanh", "erf", "sigmoid", "exp", "neg"},
      {"sqrt", "rsqrt", "reciprocal", "abs"},
      {"softmax", "log_softmax"},
      {"and", "or", "xor"}};
  StringRef name = op.getName().stripDialect();
  for (const auto &group : alike)
    if (llvm::is_contained(group, name))
      for (StringRef other : group)
        if (other != name && is("{0} is {1}", name, other)) {
          replace(op, other);
          return true;
        }
  return false;
}

/// Each number of each list, each pair of neighbours in it, each enum and flag.
bool Mutator::attributes(Operation &op) {
  MLIRContext *context = op.getContext();
  Builder b(context);
  for (StringAttr key : op.getName().getAttributeNames()) {
    auto set = [&](Attribute value) { op.setAttr(key, value); };
    Attribute old = op.getAttr(key);
    auto list = dyn_cast_or_null<DenseI64ArrayAttr>(old);
    for (size_t i = 0; list && i < size_t(list.size()); ++i) {
      SmallVector<int64_t> numbers(list.asArrayRef());
      for (int64_t step : {-1, 1})
        if (is("{0} of {1}: entry {2} is {3}", key.getValue(), nameOf(op), i,
               numbers[i] + step)) {
          numbers[i] += step;
          set(b.getDenseI64ArrayAttr(numbers));
          return true;
        }
      if (i && numbers[i] != numbers[i - 1] &&
          is("{0} of {1}: entries {2} and {3} swapped", key.getValue(),
             nameOf(op), i - 1, i)) {
        std::swap(numbers[i], numbers[i - 1]);
        set(b.getDenseI64ArrayAttr(numbers));
        return true;
      }
    }
    if (auto number = dyn_cast_or_null<IntegerAttr>(old);
        number && number.getType().isSignlessInteger(64))
      for (int64_t step : {-1, 1})
        if (is("{0} of {1} is {2}", key.getValue(), nameOf(op),
               number.getInt() + step)) {
          set(b.getI64IntegerAttr(number.getInt() + step));
          return true;
        }
    auto truth = dyn_cast_or_null<BoolAttr>(old);
    if (truth && is("{0} of {1} toggled", key.getValue(), nameOf(op))) {
      set(b.getBoolAttr(!truth.getValue()));
      return true;
    }
    bool isFlag = key.getValue().starts_with("transpose_");
    if (isFlag && is("{0} of {1} toggled", key.getValue(), nameOf(op))) {
      if (old)
        op.removeAttr(key);
      else
        set(b.getUnitAttr());
      return true;
    }
  }
  if (auto reduce = dyn_cast<ReduceOp>(op))
    for (ReduceKind kind : {ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max})
      if (kind != reduce.getKind() && is("another kind of reduce")) {
        reduce.setKind(kind);
        return true;
      }
  if (auto compare = dyn_cast<CompareOp>(op))
    for (auto predicate : {ComparePredicate::EQ, ComparePredicate::NE,
                           ComparePredicate::LT, ComparePredicate::GE})
      if (predicate != compare.getPredicate() && is("another comparison")) {
        compare.setPredicate(predicate);
        return true;
      }
  return false;
}

/// An op that alone reads the result of another changes places with it.
bool Mutator::order(Operation &op) {
  for (OpOperand &through : op.getOpOperands()) {
    Operation *first = through.get().getDefiningOp();
    if (!first || !first->hasOneUse() || first->getNumResults() != 1 ||
        op.getNumResults() != 1)
      continue;
    for (OpOperand &from : first->getOpOperands()) {
      Type type = from.get().getType();
      if (type != through.get().getType() ||
          type != op.getResult(0).getType() ||
          !is("{0} before {1}", nameOf(op), nameOf(*first)))
        continue;
      op.getResult(0).replaceAllUsesWith(first->getResult(0));
      through.set(from.get());
      from.set(op.getResult(0));
      first->moveAfter(&op);
      return true;
    }
  }
  return false;
}

/// The result is returned, too.
bool Mutator::readers(Operation &op) {
  Operation *end = block.getTerminator();
  for (Value result : op.getResults())
    if (&op != end && is("{0} has another reader", nameOf(op))) {
      end->insertOperands(end->getNumOperands(), result);
      return true;
    }
  return false;
}

/// Returns the elements with one of them changed.
static DenseElementsAttr withElement(DenseElementsAttr elements, int64_t i) {
  if (elements.getElementType().isInteger(1)) {
    SmallVector<bool> values(elements.getValues<bool>());
    values[size_t(i)] = !values[size_t(i)];
    return DenseElementsAttr::get(elements.getType(), values);
  }
  SmallVector<APFloat> values(elements.getValues<APFloat>());
  APFloat &value = values[size_t(i)];
  value = value.isZero() ? APFloat::getInf(value.getSemantics(), true)
                         : APFloat::getZero(value.getSemantics());
  return DenseElementsAttr::get(elements.getType(), values);
}

bool Mutator::constants(ConstantOp op) {
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  bool isFloat = elements && isa<FloatType>(elements.getElementType());
  if (!isFloat && !(elements && elements.getElementType().isInteger(1)))
    return false;
  for (int64_t i : {int64_t(0), elements.getNumElements() / 2,
                    elements.getNumElements() - 1})
    if (elements.getNumElements() > 1 && is("element {0} of a constant", i)) {
      op.setValueAttr(withElement(elements, i));
      return true;
    }
  if (!elements.isSplat() || !isFloat)
    return false;
  double old = elements.getSplatValue<APFloat>().convertToDouble();
  for (double number : {old * (1 + 1e-5), old + 1, old - 1, -old, old / 1e5,
                        0.0, double(INFINITY), double(NAN)})
    if (is("constant {0} is {1}", old, number)) {
      APFloat value(number);
      bool lossy;
      value.convert(
          cast<FloatType>(elements.getElementType()).getFloatSemantics(),
          APFloat::rmNearestTiesToEven, &lossy);
      op.setValueAttr(DenseElementsAttr::get(elements.getType(), value));
      return true;
    }
  for (int64_t rank : {1, 2, 4, 5})
    if (is("constant {0} has rank {1}", old, rank)) {
      auto type = RankedTensorType::get(SmallVector<int64_t>(size_t(rank), 1),
                                        elements.getElementType());
      op.setValueAttr(
          DenseElementsAttr::get(type, elements.getSplatValue<Attribute>()));
      op.getResult().setType(type);
      return true;
    }
  return false;
}

/// One dimension is 1, a dimension is in front, or the first one is missing.
bool Mutator::shapes(BlockArgument argument) {
  auto type = cast<RankedTensorType>(argument.getType());
  auto set = [&](ArrayRef<int64_t> shape) {
    argument.setType(type.clone(shape));
    return true;
  };
  SmallVector<int64_t> shape(type.getShape());
  for (int64_t &size : shape)
    if (int64_t old = size; old != 1) {
      size = 1;
      if (is("argument {0} has one of {1} entries", argument.getArgNumber(),
             old))
        return set(shape);
      size = old;
    }
  if (is("argument {0} has one more dimension", argument.getArgNumber())) {
    shape.insert(shape.begin(), 1);
    return set(shape);
  }
  return !shape.empty() &&
         is("argument {0} has one dimension less", argument.getArgNumber()) &&
         set(ArrayRef<int64_t>(shape).drop_front());
}

std::string Mutator::run() {
  for (BlockArgument argument : block.getArguments())
    if (shapes(argument))
      return made;
  for (Operation &op : block)
    if ((isa<ConstantOp>(op) && constants(cast<ConstantOp>(op))) ||
        operands(op) || kinds(op) || attributes(op) || order(op) || readers(op))
      return made;
  return {};
}

/// Infers all types anew, as far as ops do.
static void inferTypes(func::FuncOp function) {
  Block &block = function.getBody().front();
  for (Operation &op : block) {
    SmallVector<Type> types;
    auto infers = dyn_cast<InferTypeOpInterface>(op);
    if (!infers || failed(infers.inferReturnTypes(
                       op.getContext(), std::nullopt, op.getOperands(),
                       op.getDiscardableAttrDictionary(),
                       op.getPropertiesStorage(), op.getRegions(), types)))
      continue;
    for (auto [result, type] : llvm::zip(op.getResults(), types))
      result.setType(type);
  }
  function.setType(FunctionType::get(function.getContext(),
                                     block.getArgumentTypes(),
                                     block.getTerminator()->getOperandTypes()));
}

std::string test::mutate(func::FuncOp function, int64_t which) {
  std::string made = Mutator(function, which).run();
  if (!made.empty())
    inferTypes(function);
  return made;
}
