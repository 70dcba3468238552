//===- FuseGelu.cpp - GELU as one op --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exporters before opset 20 spell GELU out: x * 0.5 * (1 + erf(x / sqrt 2)) or
// x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), with the products in
// any order and the scaling as a product or a quotient. As one op, GELU keeps
// one value for the backward pass, not five. The match works on a product's
// factors, so no order needs a pattern of its own. Linear in the function.
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// Collects the factors of a product: operands of nested products that nothing
/// else reads; constants are multiplied into `number`.
static void collectFactors(Value value, bool root, SmallVectorImpl<Value> &rest,
                           double &number) {
  if (auto constant = NodeImporter::scalarOf(value)) {
    number *= *constant;
    return;
  }
  if (auto mul = value.getDefiningOp<MulOp>();
      mul && (root || value.hasOneUse())) {
    collectFactors(mul.getLhs(), false, rest, number);
    collectFactors(mul.getRhs(), false, rest, number);
    return;
  }
  if (auto div = value.getDefiningOp<DivOp>();
      div && (root || value.hasOneUse()))
    if (auto divisor = NodeImporter::scalarOf(div.getRhs());
        divisor && *divisor) {
      number /= *divisor;
      collectFactors(div.getLhs(), false, rest, number);
      return;
    }
  rest.push_back(value);
}

/// Files hold these numbers rounded to float32, or products of such. With fewer
/// digits it is another function.
static bool near(double x, double y) { return std::abs(x - y) < 5e-7 * y; }

/// Returns the operand of f in 1 + f(operand).
template <typename Op> static Value onePlus(Value value) {
  auto add = value.getDefiningOp<AddOp>();
  if (!add)
    return {};
  for (auto [one, other] : {std::pair(add.getLhs(), add.getRhs()),
                            std::pair(add.getRhs(), add.getLhs())}) {
    auto number = NodeImporter::scalarOf(one);
    auto inner = other.template getDefiningOp<Op>();
    if (number && *number == 1 && inner)
      return inner.getInput();
  }
  return {};
}

/// Whether `value` is `factor` * x.
static bool isScaled(Value value, Value x, double factor) {
  SmallVector<Value> rest;
  double number = 1;
  collectFactors(value, true, rest, number);
  return rest.size() == 1 && rest[0] == x && near(number, factor);
}

/// Returns n where `value` is x^n with n = 1, 2 or 3, else 0.
static int powerOf(Value value, Value x) {
  if (value == x)
    return 1;
  auto pow = value.getDefiningOp<PowOp>();
  auto exponent = pow && pow.getLhs() == x
                      ? NodeImporter::scalarOf(pow.getRhs())
                      : std::nullopt;
  return exponent == 1.0 || exponent == 2.0 || exponent == 3.0 ? int(*exponent)
                                                               : 0;
}

/// Whether `value` is 0.044715 * x^3, as any product of powers of x.
static bool isCubicTerm(Value value, Value x) {
  SmallVector<Value> rest;
  double number = 1;
  collectFactors(value, true, rest, number);
  int power = 0;
  for (Value factor : rest) {
    int each = powerOf(factor, x);
    if (!each)
      return false;
    power += each;
  }
  return power == 3 && near(number, 0.044715);
}

/// Whether `value` is sqrt(2 / pi) * (x + 0.044715 x^3).
static bool isTanhArgument(Value value, Value x) {
  SmallVector<Value> rest;
  double number = 1;
  collectFactors(value, true, rest, number);
  auto add = rest.size() == 1 ? rest[0].getDefiningOp<AddOp>() : AddOp();
  if (!add || !near(number, 0.7978845608))
    return false;
  return (add.getLhs() == x && isCubicTerm(add.getRhs(), x)) ||
         (add.getRhs() == x && isCubicTerm(add.getLhs(), x));
}

static bool fuseAt(Operation *root) {
  SmallVector<Value> factors;
  double number = 1;
  collectFactors(root->getResult(0), true, factors, number);
  if (factors.size() != 2 || !near(number, 0.5))
    return false;
  for (auto [x, gate] :
       {std::pair(factors[0], factors[1]), std::pair(factors[1], factors[0])}) {
    if (x.getType() != root->getResult(0).getType())
      continue;
    Value erf = onePlus<ErfOp>(gate), tanh = onePlus<TanhOp>(gate);
    bool exact = erf && isScaled(erf, x, 0.7071067812);
    if (!exact && !(tanh && isTanhArgument(tanh, x)))
      continue;
    OpBuilder builder(root);
    Value gelu = GeluOp::create(builder, root->getLoc(), x.getType(), x,
                                /*tanh=*/!exact);
    root->getResult(0).replaceAllUsesWith(gelu);
    return true;
  }
  return false;
}

void onnx_frontend::fuseGelu(func::FuncOp func) {
  // Walk from the end, so that the root of a product comes before its parts.
  for (Operation &op : llvm::reverse(func.getBody().front()))
    if (isa<MulOp, DivOp>(op) && !op.use_empty())
      fuseAt(&op);
}
