//===- FuseAttention.cpp - products around a softmax become attention -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: exporters write attention as a product, a scale, masks, a softmax
// and a second product; the matrices of scores between them are a transformer's
// largest tensors, and autodiff would keep them.
//
// Method: from each softmax over the last dimension down to the product that
// reads it alone, and up through selects (masks), sums (biases), and scalar
// factors to the product that makes the scores. Factors of query and key go
// into the scale. Masks and biases that are constants are evaluated: those that
// allow every key go, a triangle becomes `causal`. Key heads that were expanded
// to query heads are read where they are.
//
// Guarantee: the same real numbers, summed in another order. Masks of -1e9 and
// below that are constants count as -inf. Rows where NaN is replaced by 0 (as
// exporters treat rows without keys) become rows of zeros. What is matched
// depends on the program alone, and never on a budget; what is not matched
// stays as it was, and the reasons that a user could change are said: a bias
// that is trained. A dropout between softmax and product keeps its seed, site
// and elements, and so its mask.
// Complexity: linear, and the evaluation of constant masks.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/IR/Splat.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/StopGradient.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Normalize/Passes.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

#include <cmath>

namespace ckopt {
#define GEN_PASS_DEF_FUSEATTENTIONPASS
#include "ckopt/Normalize/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

/// Constants of more elements are not looked at.
static constexpr int64_t maxEvaluated = int64_t(1) << 24;
/// Scores that a constant mask sets to this or less count as masked.
static constexpr double masked = -1e9;
static constexpr double infinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

namespace {
/// Evaluates values that depend on nothing but constants.
class Evaluator {
public:
  /// Returns null for other values.
  const reference::Tensor *operator()(Value value);

private:
  DenseMap<Value, std::unique_ptr<reference::Tensor>> known;
};
} // namespace

const reference::Tensor *Evaluator::operator()(Value value) {
  auto [at, isNew] = known.try_emplace(value);
  if (!isNew)
    return at->second.get();
  if (tensorType(value).getNumElements() > maxEvaluated)
    return nullptr;
  if (Attribute constant; matchPattern(value, m_Constant(&constant))) {
    if (auto elements = dyn_cast<ElementsAttr>(constant))
      at->second = std::make_unique<reference::Tensor>(
          reference::Tensor::fromAttr(elements));
    return at->second && *at->second ? at->second.get() : nullptr;
  }
  auto model =
      dyn_cast_or_null<reference::ReferenceOpInterface>(value.getDefiningOp());
  if (!model || !model.isFoldable())
    return nullptr;
  SmallVector<const reference::Tensor *> operands;
  for (Value operand : model->getOperands()) {
    operands.push_back((*this)(operand));
    if (!operands.back())
      return nullptr;
  }
  SmallVector<reference::Tensor> results;
  if (failed(reference::evaluateOp(model, operands, results)))
    return nullptr;
  unsigned number = cast<OpResult>(value).getResultNumber();
  auto &kept = known[value];
  kept = std::make_unique<reference::Tensor>(std::move(results[number]));
  return kept.get();
}

/// Reads a constant mask of [.., queries, keys]: which keys are allowed.
namespace {
struct MaskForm {
  bool all = false;              ///< every key is allowed
  std::optional<int64_t> causal; ///< key j in row i where j <= i + causal
};
} // namespace

template <typename Allows>
static MaskForm readMask(ArrayRef<int64_t> shape, int64_t queries, int64_t keys,
                         Allows allows) {
  MaskForm form;
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  form.all = llvm::all_of(llvm::seq<int64_t>(0, count), allows);
  if (form.all || shape.size() < 2 ||
      shape.take_back(2) != ArrayRef<int64_t>({queries, keys}))
    return form;
  int64_t first = 0;
  while (first < keys && allows(first))
    ++first;
  if (first == 0) // every row has a key
    return form;
  for (int64_t i = 0; i < count; ++i)
    if (allows(i) != (i % keys < i / keys % queries + first))
      return form;
  form.causal = first - 1;
  return form;
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

namespace {
class Attention {
public:
  Attention(SoftmaxOp softmax, Evaluator &evaluate, int64_t leastKeys)
      : softmax(softmax), evaluate(evaluate), leastKeys(leastKeys),
        scores(softmax.getType()) {}

  /// Returns whether it is attention; nothing is changed. `reason` says why it
  /// stays as it is, where a user could change that.
  bool match(std::string &reason);
  void rewrite();

private:
  bool matchWeights();
  bool matchScores();
  bool matchSelect(SelectOp op, Value &next);
  bool matchProducts();
  bool settleMasks();
  bool addMask(Value condition, bool allowedWhere, double fill);
  bool isTrained(Value value) const;
  bool isScores(Value value, unsigned depth = 0) const;

  SoftmaxOp softmax;
  Evaluator &evaluate;
  int64_t leastKeys;
  RankedTensorType scores; ///< [(batch,) heads, queries, keys]

  MatMulOp first, second;
  DropoutOp dropout; ///< of the probabilities, or null
  /// Where rows are replaced by zeros before and after the softmax.
  Value emptyRows;
  bool zeroEmptyRows = false;
  double scale = 1;
  SmallVector<Value> biases;
  /// Conditions, and whether keys are allowed where they hold.
  SmallVector<std::pair<Value, bool>> masks;
  double fill = -infinity;
  std::optional<int64_t> causal;
};
} // namespace

static bool isStopped(Operation *op) { return op->hasAttr(kStopGradientAttr); }

static bool sameBatch(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return a.size() == b.size() && a.drop_back(2) == b.drop_back(2);
}

/// Returns whether the value comes from a product through what matchScores
/// knows.
bool Attention::isScores(Value value, unsigned depth) const {
  Operation *op = value.getDefiningOp();
  if (!op || depth > 8 ||
      tensorType(value).getNumElements() != scores.getNumElements())
    return false;
  if (isa<MatMulOp>(op))
    return true;
  return isa<SelectOp, AddOp, MulOp, DivOp, ReshapeOp>(op) &&
         llvm::any_of(op->getOperands(), [&](Value operand) {
           return isScores(operand, depth + 1);
         });
}

/// Returns whether gradients of parameters flow through the value.
bool Attention::isTrained(Value value) const {
  auto function = softmax->getParentOfType<func::FuncOp>();
  SmallVector<Value> work{value};
  llvm::SmallDenseSet<Value> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!seen.insert(next).second ||
        !isa<FloatType>(getElementTypeOrSelf(next)))
      continue;
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      if (argumentRole(function, argument.getArgNumber()) == roles::kParameter)
        return true;
      continue;
    }
    if (!isStopped(next.getDefiningOp()))
      llvm::append_range(work, next.getDefiningOp()->getOperands());
  }
  return false;
}

/// Finds the product that reads the probabilities.
bool Attention::matchWeights() {
  Value weights = softmax.getOutput();
  auto onlyUser = [](Value value) -> Operation * {
    return value.hasOneUse() ? *value.getUsers().begin() : nullptr;
  };
  Operation *user = onlyUser(weights);
  if (!user) {
    // where(weights != weights, 0, weights): zeros for rows without keys.
    SelectOp replaced;
    for (Operation *op : weights.getUsers()) {
      auto compare = dyn_cast<CompareOp>(op);
      if (auto select = dyn_cast<SelectOp>(op);
          select && select.getOnFalse() == weights)
        replaced = select;
      else if (!compare || compare.getLhs() != weights ||
               compare.getRhs() != weights || !compare->hasOneUse())
        return false;
    }
    auto isNaN = replaced ? replaced.getCondition().getDefiningOp<CompareOp>()
                          : CompareOp();
    if (!isNaN || isNaN.getLhs() != weights ||
        isNaN.getPredicate() != ComparePredicate::NE ||
        splatNumber(replaced.getOnTrue()) != 0.0)
      return false;
    zeroEmptyRows = true;
    weights = replaced.getOutput();
  } else if (auto select = dyn_cast<SelectOp>(user);
             select && select.getOnFalse() == weights &&
             splatNumber(select.getOnTrue()) == 0.0 &&
             select.getType() == scores) {
    emptyRows = select.getCondition();
    zeroEmptyRows = true;
    weights = select.getOutput();
  }
  // Elements are counted row by row, in whatever shape.
  for (user = onlyUser(weights);; user = onlyUser(weights)) {
    auto drops = dyn_cast_or_null<DropoutOp>(user);
    if (!(drops ? !dropout && !isStopped(drops)
                : isa_and_nonnull<ReshapeOp>(user)))
      break;
    if (drops)
      dropout = drops;
    weights = user->getResult(0);
  }
  second = dyn_cast_or_null<MatMulOp>(user);
  return second && second.getLhs() == weights && second.getRhs() != weights &&
         !second.getTransposeLhs() && !isStopped(second);
}

bool Attention::addMask(Value condition, bool allowedWhere, double value) {
  if (!masks.empty() && value != fill)
    return false;
  fill = value;
  masks.emplace_back(condition, allowedWhere);
  return true;
}

bool Attention::matchSelect(SelectOp op, Value &next) {
  bool fillsWhereTrue = isScores(op.getOnFalse());
  next = fillsWhereTrue ? op.getOnFalse() : op.getOnTrue();
  auto value = splatNumber(fillsWhereTrue ? op.getOnTrue() : op.getOnFalse());
  if (!value || tensorType(next) != scores)
    return false;
  if (emptyRows && op.getCondition() == emptyRows)
    return fillsWhereTrue && *value == 0;
  // What is added to a masked score changes a finite one.
  if (!biases.empty() && *value != -infinity)
    return false;
  return addMask(op.getCondition(), !fillsWhereTrue, *value);
}

/// Goes up from the softmax to the product that makes the scores.
bool Attention::matchScores() {
  Value value = softmax.getInput();
  bool scaled = false, openRows = emptyRows != nullptr;
  for (;;) {
    Operation *op = value.getDefiningOp();
    if (!op || !value.hasOneUse() || isStopped(op))
      return false;
    if ((first = dyn_cast<MatMulOp>(op)))
      break;
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      value = reshape.getInput();
      if (!isa_and_nonnull<MatMulOp>(value.getDefiningOp()))
        return false;
      continue;
    }
    if (auto select = dyn_cast<SelectOp>(op)) {
      openRows &= select.getCondition() != emptyRows;
      if (scaled || !matchSelect(select, value))
        return false;
      continue;
    }
    if (!isa<AddOp, MulOp, DivOp>(op))
      return false;
    bool left = isScores(op->getOperand(0));
    Value other = op->getOperand(left ? 1 : 0);
    if (isa<AddOp>(op)) {
      if (scaled || tensorType(op->getOperand(left ? 0 : 1)) != scores)
        return false;
      biases.push_back(other);
    } else {
      auto factor = splatNumber(other);
      if (!factor || (isa<DivOp>(op) && !left) ||
          tensorType(op->getResult(0)).getNumElements() !=
              scores.getNumElements())
        return false;
      scale *= isa<DivOp>(op) ? 1 / *factor : *factor;
      scaled = true;
    }
    value = op->getOperand(left ? 0 : 1);
  }
  // Only rows whose scores were replaced have weights that are no NaN.
  return !openRows;
}

bool Attention::matchProducts() {
  ArrayRef<int64_t> left = tensorType(first.getLhs()).getShape();
  ArrayRef<int64_t> right = tensorType(first.getRhs()).getShape();
  ArrayRef<int64_t> values = tensorType(second.getRhs()).getShape();
  ArrayRef<int64_t> all = scores.getShape();
  size_t rank = all.size();
  if (rank < 3 || rank > 4 || first.getTransposeLhs() ||
      !sameBatch(left, right) || !sameBatch(left, values) ||
      first.getType().getShape() != tensorType(second.getLhs()).getShape() ||
      left.size() != rank || all.back() < leastKeys)
    return false;
  if (first.getType() == scores)
    return true;
  // Query heads of one key head as more rows of one matrix.
  return rank == 4 && left[0] == all[0] && left[1] > 0 &&
         all[1] % left[1] == 0 && left[2] == all[1] / left[1] * all[2] &&
         first.getType().getShape().back() == all.back();
}

/// Drops masks that allow everything, and finds causality.
bool Attention::settleMasks() {
  ArrayRef<int64_t> all = scores.getShape();
  int64_t queries = all[all.size() - 2], keys = all.back();
  bool low = fill <= masked;
  SmallVector<std::pair<Value, bool>> open;
  std::optional<int64_t> triangle;
  for (auto [condition, allowedWhere] : masks) {
    const reference::Tensor *value = evaluate(condition);
    MaskForm form;
    if (value)
      form = readMask(value->getShape(), queries, keys, [&](int64_t i) {
        return (value->get(i) != 0) == allowedWhere;
      });
    if (form.all)
      continue;
    if (form.causal && low && !triangle)
      triangle = form.causal;
    else
      open.emplace_back(condition, allowedWhere);
  }
  // A finite fill counts as -inf only where every row keeps a key.
  if (triangle && (fill == -infinity || open.empty())) {
    masks = open;
    fill = -infinity;
    causal = triangle;
  } else if (!triangle) {
    masks = open;
  }
  SmallVector<Value> kept;
  for (Value bias : biases) {
    const reference::Tensor *value = evaluate(bias);
    MaskForm form;
    bool isMask = value && llvm::all_of(value->getReals(), [](double x) {
                    return x == 0 || x <= masked;
                  });
    if (isMask)
      form = readMask(value->getShape(), queries, keys,
                      [&](int64_t i) { return value->get(i) == 0; });
    if (form.all)
      continue;
    if (form.causal && !causal && (masks.empty() || fill == -infinity))
      causal = form.causal;
    else
      kept.push_back(bias);
  }
  biases = kept;
  if (masks.empty())
    fill = -infinity;
  return !causal || fill == -infinity;
}

bool Attention::match(std::string &reason) {
  auto element = scores.getElementType();
  if (int64_t(softmax.getAxis()) != scores.getRank() - 1 ||
      !(element.isF32() || element.isF64()) || isStopped(softmax) ||
      llvm::is_contained(scores.getShape(), 0))
    return false;
  if (!matchWeights() || !matchScores() || !matchProducts())
    return false;
  if (llvm::any_of(biases, [&](Value bias) { return isTrained(bias); })) {
    reason = "a trained bias is added to the scores";
    return false;
  }
  return settleMasks();
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// Looks through products with constants; `scale` is multiplied by them.
static Value unscaled(Value value, double &scale) {
  for (;;) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<MulOp, DivOp>(op) || isStopped(op))
      return value;
    bool right = isa<MulOp>(op) && splatNumber(op->getOperand(0));
    auto factor = splatNumber(op->getOperand(right ? 0 : 1));
    Value next = op->getOperand(right ? 1 : 0);
    if (!factor || *factor == 0 || next.getType() != value.getType())
      return value;
    scale *= isa<DivOp>(op) ? 1 / *factor : *factor;
    value = next;
  }
}

/// Swaps the last two dimensions; undoes a transpose that did so.
static Value swapped(TensorBuilder &b, Value value) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  size_t rank = shape.size();
  Value inner = value;
  while (auto reshape = inner.getDefiningOp<ReshapeOp>()) {
    Value from = reshape.getInput();
    if (tensorType(from).getRank() < 2 || isStopped(reshape) ||
        tensorType(from).getShape().take_back(2) != shape.take_back(2))
      break;
    inner = from;
  }
  SmallVector<int64_t> permutation, result(shape);
  std::swap(result[rank - 1], result[rank - 2]);
  if (auto transpose = inner.getDefiningOp<TransposeOp>();
      transpose && !isStopped(transpose)) {
    permutation.assign(transpose.getPermutation().begin(),
                       transpose.getPermutation().end());
    inner = transpose.getInput();
  } else {
    permutation =
        llvm::to_vector(llvm::seq<int64_t>(0, tensorType(inner).getRank()));
  }
  std::swap(permutation[permutation.size() - 1],
            permutation[permutation.size() - 2]);
  return b.reshape(b.transpose(inner, permutation), result);
}

/// Returns the key heads that `value` repeats for each query head of a group
/// ([batch, key heads, 1, keys, n] expanded and reshaped), or null.
static Value beforeGroups(TensorBuilder &b, Value value) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  Value inner = value;
  while (auto reshape = inner.getDefiningOp<ReshapeOp>()) {
    if (isStopped(reshape))
      return {};
    inner = reshape.getInput();
  }
  auto expand = inner.getDefiningOp<ExpandOp>();
  if (!expand || isStopped(expand) || shape.size() != 4)
    return {};
  ArrayRef<int64_t> wide = expand.getType().getShape();
  ArrayRef<int64_t> narrow = tensorType(expand.getInput()).getShape();
  if (wide.size() != 5 || narrow.size() != 5 || wide[0] != shape[0] ||
      wide[1] * wide[2] != shape[1] || wide.take_back(2) != shape.take_back(2))
    return {};
  SmallVector<int64_t> single(wide);
  single[2] = 1;
  if (narrow != ArrayRef<int64_t>(single))
    return {};
  return b.reshape(expand.getInput(), {wide[0], wide[1], wide[3], wide[4]});
}

/// Masks and biases are read broadcast.
static Value unexpanded(Value value) {
  while (auto expand = value.getDefiningOp<ExpandOp>()) {
    if (isStopped(expand))
      break;
    value = expand.getInput();
  }
  return value;
}

void Attention::rewrite() {
  OpBuilder builder(second);
  Location loc =
      FusedLoc::get(builder.getContext(),
                    {first.getLoc(), softmax.getLoc(), second.getLoc()});
  TensorBuilder b(builder, loc);
  Value query = unscaled(first.getLhs(), scale);
  Value key = unscaled(first.getRhs(), scale);
  if (!first.getTransposeRhs())
    key = swapped(b, key);
  Value value = second.getRhs();
  if (second.getTransposeRhs())
    value = swapped(b, value);
  ArrayRef<int64_t> all = scores.getShape();
  SmallVector<int64_t> rows(all);
  rows.back() = tensorType(query).getShape().back();
  query = b.reshape(query, rows);
  Value keyHeads = beforeGroups(b, key), valueHeads = beforeGroups(b, value);
  if (keyHeads && valueHeads &&
      tensorType(keyHeads).getDimSize(1) ==
          tensorType(valueHeads).getDimSize(1)) {
    key = keyHeads;
    value = valueHeads;
  }
  Value bias, mask;
  for (Value one : biases)
    bias = bias ? b.add(bias, unexpanded(one)) : unexpanded(one);
  if (emptyRows)
    masks.emplace_back(emptyRows, false);
  for (auto [condition, allowedWhere] : masks) {
    Value open = unexpanded(condition);
    if (!allowedWhere)
      open = b.make<NotOp>(open);
    mask = mask ? b.make<AndOp>(mask, open) : open;
  }
  auto number = [&](double x) { return builder.getF64FloatAttr(x); };
  bool drops = dropout && dropout.getRatio().convertToDouble() > 0;
  auto made = AttentionOp::create(
      builder, loc, query, key, value, bias, mask,
      drops ? dropout.getSeed() : Value(), drops ? dropout.getStep() : Value(),
      number(scale), mask && fill != -infinity ? number(fill) : FloatAttr(),
      causal ? builder.getI64IntegerAttr(*causal) : IntegerAttr(),
      zeroEmptyRows ? builder.getUnitAttr() : UnitAttr(),
      drops ? dropout.getRatioAttr() : FloatAttr(),
      drops ? dropout.getSiteAttr() : IntegerAttr());
  made->setDiscardableAttrs(second->getDiscardableAttrDictionary());
  Value output = b.reshape(made.getOutput(), second.getType().getShape());
  second.getOutput().replaceAllUsesWith(output);
}

namespace {
struct FuseAttention : ckopt::impl::FuseAttentionPassBase<FuseAttention> {
  using FuseAttentionPassBase::FuseAttentionPassBase;

  void runOnOperation() override {
    SmallVector<SoftmaxOp> softmaxes;
    getOperation().walk([&](SoftmaxOp op) { softmaxes.push_back(op); });
    Evaluator evaluate;
    llvm::MapVector<StringRef, SmallVector<SoftmaxOp>> left;
    std::vector<std::unique_ptr<std::string>> reasons;
    for (SoftmaxOp op : softmaxes) {
      auto reason = std::make_unique<std::string>();
      Attention attention(op, evaluate, leastKeys);
      if (attention.match(*reason)) {
        attention.rewrite();
      } else if (!reason->empty()) {
        left[*reason].push_back(op);
        reasons.push_back(std::move(reason));
      }
    }
    for (auto &[reason, ops] : left)
      ops.front().emitRemark()
          << "attention keeps its matrix of scores here"
          << (ops.size() > 1
                  ? " and in " + std::to_string(ops.size() - 1) + " more"
                  : std::string())
          << ": " << reason;
  }
};
} // namespace
