//===- AddProducts.cpp - sums of products grow product by product ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a product that is added to a residual, or to other products, is
// stored, and a kernel that does nothing but add reads it again.
//
// Method: where a grouping has a kernel of additions alone, products that only
// it reads are added as they are stored (matmul_add), one after the other, to
// the term that is no product or else to the first product. That must move
// fewer bytes. With m products and no other term it moves 2 m - 1 times the
// tensor in place of 2 m + 1, with another term 2 m in place of 2 m + 2. Where
// factors are rounded to 16 bits, a product was stored in 16 and the sum is in
// 32 if the other term is: then this holds for a single product, and if no
// product reads the sum, which would need a copy in 16 bits from a kernel of
// its own. Two other terms need a kernel that adds these, and gain nothing.
// A linear layer's bias is read once for all rows: where a single product is
// added to another term, it goes along.
//
// Guarantee: the sum is rounded no more often than before, and its terms are
// added in the order of the operands; what is rewritten depends on the program
// and the options, never on a budget. Complexity: O(ops and uses).
//
//===----------------------------------------------------------------------===//
#include "Grouping.h"
#include "OpKinds.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::fuse;

namespace {
/// What a kernel of additions alone adds.
struct Terms {
  SmallVector<Value> others;
  SmallVector<MatMulOp> products;
  SmallVector<Value> biases; ///< each is added to a product of its own first
};
} // namespace

/// Returns the product of two matrices that the value is, reshaped or not, if
/// nothing else reads it.
static MatMulOp productOf(Value value) {
  while (value.hasOneUse() && isRowMajor(tensorType(value))) {
    Operation *op = value.getDefiningOp();
    if (auto product = dyn_cast_or_null<MatMulOp>(op))
      return tensorType(value).getRank() == 2 ? product : MatMulOp();
    auto reshape = dyn_cast_or_null<ReshapeOp>(op);
    if (!reshape)
      return {};
    value = reshape.getInput();
  }
  return {};
}

/// Returns whether a product reads the value, or a view of it, as a factor.
static bool isMultiplied(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *op = use.getOwner();
    if (auto product = dyn_cast<ContractionOpInterface>(op))
      return product.isFactor(use.getOperandNumber());
    return isa<KernelOpInterface>(op) && kindOf(op) == KernelKind::View &&
           isMultiplied(op->getResult(0));
  });
}

/// Returns whether the value is added to all rows of a product with this many
/// columns, which is reshaped to the sum's type.
static bool isBias(Value value, RankedTensorType sum, int64_t columns) {
  RankedTensorType type = tensorType(value);
  ArrayRef<int64_t> shape =
      type.getShape().drop_while([](int64_t size) { return size == 1; });
  return type.getElementType() == sum.getElementType() && isRowMajor(type) &&
         type.getNumElements() == columns &&
         shape.size() <= size_t(sum.getRank()) &&
         shape == sum.getShape().take_back(shape.size());
}

/// Collects a product and its bias, if these are what the sum adds.
static bool collectLinear(AddOp sum, const Unit &unit, Terms &terms) {
  for (auto [value, bias] : {std::pair(sum.getLhs(), sum.getRhs()),
                             std::pair(sum.getRhs(), sum.getLhs())}) {
    MatMulOp product = productOf(value);
    if (!product || value.getType() != sum.getType() ||
        !unit.inputs.contains(value) || !unit.inputs.contains(bias) ||
        !isBias(bias, sum.getType(), product.getType().getDimSize(1)))
      continue;
    terms.products.push_back(product);
    terms.biases.push_back(bias);
    return true;
  }
  return false;
}

/// Collects the stored terms of a sum that one kernel makes; returns false
/// where it does more than to add tensors of one type.
static bool collect(AddOp sum, const Unit &unit, Terms &terms) {
  if (collectLinear(sum, unit, terms))
    return true;
  for (Value term : sum->getOperands()) {
    if (term.getType() != sum.getType())
      return false;
    if (!unit.inputs.contains(term)) { // computed inside of the kernel
      auto inner = term.getDefiningOp<AddOp>();
      if (!inner || !term.hasOneUse() || !collect(inner, unit, terms))
        return false;
    } else if (MatMulOp product = productOf(term)) {
      terms.products.push_back(product);
    } else {
      terms.others.push_back(term);
    }
  }
  return true;
}

/// Returns whether sums that grow move fewer bytes.
static bool pays(AddOp sum, const Terms &terms, bool rounds) {
  if (terms.products.empty() || terms.others.size() > 1 ||
      (!terms.biases.empty() &&
       (terms.products.size() > 1 || terms.others.empty())))
    return false;
  return !rounds || terms.others.empty() ||
         (terms.products.size() == 1 && !isMultiplied(sum));
}

/// Returns the value with the shape of this type.
static Value shaped(OpBuilder &builder, Value value, RankedTensorType type) {
  return value.getType() == type
             ? value
             : ReshapeOp::create(builder, value.getLoc(), type, value);
}

/// Replaces the sum by products that are added to one another.
static void grow(AddOp sum, const Terms &terms) {
  OpBuilder builder(sum);
  Value grown;
  for (MatMulOp product : terms.products) {
    RankedTensorType type = product.getType();
    if (!grown && terms.others.empty()) {
      grown = product;
      continue;
    }
    Value addend = shaped(builder, grown ? grown : terms.others.front(), type);
    Value bias;
    if (!terms.biases.empty())
      bias = shaped(
          builder, terms.biases.front(),
          RankedTensorType::get(type.getDimSize(1), type.getElementType()));
    Location loc =
        FusedLoc::get(sum.getContext(), {product.getLoc(), sum.getLoc()});
    auto added = MatMulAddOp::create(
        builder, loc, product.getLhs(), product.getRhs(), addend, bias,
        product.getTransposeLhs(), product.getTransposeRhs());
    bool last = product == terms.products.back();
    copyWishes({last ? sum : product.getOperation(), product}, added);
    grown = added;
  }
  sum.getResult().replaceAllUsesWith(shaped(builder, grown, sum.getType()));
}

bool fuse::addProducts(func::FuncOp function, Grouping &grouping, bool rounds) {
  SmallVector<std::pair<AddOp, Terms>> sums;
  for (Unit *unit : grouping.schedule()) {
    auto sum = dyn_cast<AddOp>(unit->roots.front());
    Terms terms;
    if (sum && unit->roots.size() == 1 && isRowMajor(sum.getType()) &&
        collect(sum, *unit, terms) && pays(sum, terms, rounds))
      sums.emplace_back(sum, terms);
  }
  // A term of a later sum may be an earlier one.
  for (auto &[sum, terms] : llvm::reverse(sums))
    grow(sum, terms);
  if (!sums.empty())
    eraseDeadOps(function);
  return !sums.empty();
}
