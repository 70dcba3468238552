//===- AttentionMatch.cpp - products around a softmax ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "AttentionMatch.h"
#include "ckopt/Dialect/Ckopt/IR/Splat.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;

/// Constants of more elements are not looked at.
static constexpr int64_t maxEvaluated = int64_t(1) << 24;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

const reference::Tensor *ConstantEvaluator::operator()(Value value) {
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

bool ConstantEvaluator::isConstant(Value value) {
  auto [at, isNew] = constant.try_emplace(value, false);
  if (!isNew)
    return at->second;
  auto model =
      dyn_cast_or_null<reference::ReferenceOpInterface>(value.getDefiningOp());
  bool found = matchPattern(value, m_Constant()) ||
               (model && model.isFoldable() &&
                llvm::all_of(model->getOperands(), [&](Value operand) {
                  return isConstant(operand);
                }));
  return constant[value] = found;
}

/// Copies rows `row` to `row + count` of dimension -2.
static reference::Tensor sliceRows(const reference::Tensor &whole,
                                   RankedTensorType type, int64_t row) {
  reference::Tensor rows(type);
  int64_t keys = type.getShape().back();
  int64_t count = type.getDimSize(type.getRank() - 2);
  int64_t queries = whole.getDimSize(type.getRank() - 2);
  for (int64_t i = 0; i < rows.size(); ++i) {
    int64_t line = i / keys;
    rows.copy(i, whole,
              ((line / count) * queries + row + line % count) * keys +
                  i % keys);
  }
  return rows;
}

/// Returns whether an op computes each row from the same rows of its operands.
static bool keepsRows(Operation *op) {
  if (op->getNumResults() != 1)
    return false;
  if (isa<ExpandOp, IotaOp, TriluOp>(op))
    return true;
  if (auto reduce = dyn_cast<ReduceOp>(op)) // one number a row
    return reduce.getKeepdims() &&
           reduce.getAxes() ==
               ArrayRef<int64_t>(tensorType(reduce.getInput()).getRank() - 1);
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    ArrayRef<int64_t> from = tensorType(reshape.getInput()).getShape();
    return from.size() >= 2 &&
           from.take_back(2) == reshape.getType().getShape().take_back(2);
  }
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return kernel && kernel.getKernelKind() == KernelKind::Elementwise &&
         !op->hasTrait<traits::ReadsPlace>();
}

reference::Tensor ConstantEvaluator::rowsOf(Value value, int64_t row,
                                            int64_t count, int64_t queries) {
  RankedTensorType type = tensorType(value);
  int64_t rank = type.getRank();
  auto whole = [&]() -> reference::Tensor {
    const reference::Tensor *all = (*this)(value);
    return all ? *all : reference::Tensor();
  };
  if (rank < 2 || type.getDimSize(rank - 2) != queries)
    return whole();
  SmallVector<int64_t> shape(type.getShape());
  shape[size_t(rank - 2)] = count;
  auto part = RankedTensorType::get(shape, type.getElementType());
  if (auto splat = splatNumber(value))
    return reference::Tensor::splat(part, *splat);
  Operation *op = value.getDefiningOp();
  if (!keepsRows(op)) {
    const reference::Tensor *all = (*this)(value);
    return all ? sliceRows(*all, part, row) : reference::Tensor();
  }
  SmallVector<reference::Tensor> operands, results;
  SmallVector<const reference::Tensor *> pointers;
  for (Value operand : op->getOperands()) {
    operands.push_back(rowsOf(operand, row, count, queries));
    if (!operands.back())
      return {};
  }
  for (const reference::Tensor &operand : operands)
    pointers.push_back(&operand);
  // The same op for fewer rows, which start at another place.
  Operation *fewer = op->cloneWithoutRegions();
  fewer->getResult(0).setType(part);
  if (auto iota = dyn_cast<IotaOp>(fewer);
      iota && int64_t(iota.getAxis()) == rank - 2)
    iota.setStart(APFloat(iota.getStart().convertToDouble() +
                          double(row) * iota.getDelta().convertToDouble()));
  if (auto trilu = dyn_cast<TriluOp>(fewer))
    trilu.setK(trilu.getK() + uint64_t(row));
  bool failed = mlir::failed(reference::evaluateOp(fewer, pointers, results));
  fewer->destroy();
  return failed ? reference::Tensor() : std::move(results[0]);
}

bool ConstantEvaluator::scan(
    Value value, int64_t queries,
    function_ref<bool(int64_t, const reference::Tensor &)> see, int64_t keys) {
  if (!isConstant(value))
    return false;
  RankedTensorType type = tensorType(value);
  int64_t rank = type.getRank();
  if (rank < 2 || type.getDimSize(rank - 2) != queries) {
    const reference::Tensor *all = (*this)(value);
    return all && see(0, *all);
  }
  constexpr int64_t atOnce = int64_t(1) << 18;
  int64_t step = std::max<int64_t>(
      1, atOnce / std::max(type.getNumElements() / queries, keys));
  for (int64_t row = 0; row < queries; row += step) {
    reference::Tensor rows =
        rowsOf(value, row, std::min(step, queries - row), queries);
    if (!rows || !see(row, rows))
      return false;
  }
  return true;
}

bool ConstantEvaluator::holdsNowhere(Value condition,
                                     ArrayRef<int64_t> scores) {
  auto [found, isNew] = nowhere.try_emplace(condition, false);
  if (isNew)
    found->second = scan(
        condition, scores[scores.size() - 2],
        [](int64_t, const reference::Tensor &rows) {
          return llvm::all_of(llvm::seq<int64_t>(0, rows.size()),
                              [&](int64_t i) { return rows.get(i) == 0; });
        },
        scores.back());
  return found->second;
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

static bool sameBatch(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return a.size() == b.size() && a.drop_back(2) == b.drop_back(2);
}

/// Returns whether query heads have keys of their own, or one key head that the
/// product broadcasts to them.
static bool readsKeys(ArrayRef<int64_t> queries, ArrayRef<int64_t> keys) {
  size_t rank = queries.size();
  return sameBatch(queries, keys) ||
         (rank > 2 && keys.size() == rank && keys[rank - 3] == 1 &&
          queries.drop_back(3) == keys.drop_back(3));
}

/// Returns whether the value comes from a product through what matchScores
/// knows.
bool AttentionMatch::isScores(Value value, unsigned depth) const {
  Operation *op = value.getDefiningOp();
  if (!op || depth > 8 ||
      tensorType(value).getNumElements() != scores.getNumElements())
    return false;
  if (isa<MatMulOp>(op))
    return true;
  return isa<SelectOp, AddOp, SubOp, MulOp, DivOp, TanhOp, ReshapeOp>(op) &&
         llvm::any_of(op->getOperands(), [&](Value operand) {
           return isScores(operand, depth + 1);
         });
}

/// Returns whether gradients of parameters flow through the value.
bool AttentionMatch::isTrained(Value value) const {
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

/// Returns whether a condition has one value for all keys of a row of scores.
bool AttentionMatch::isByRow(Value condition) const {
  ArrayRef<int64_t> shape = tensorType(condition).getShape();
  if (shape.empty() || shape.back() == 1)
    return true;
  if (auto expand = condition.getDefiningOp<ExpandOp>())
    return isByRow(expand.getInput());
  if (const reference::Tensor *value = evaluate(condition)) {
    int64_t keys = shape.back();
    return llvm::all_of(
        llvm::seq<int64_t>(0, tensorType(condition).getNumElements()),
        [&](int64_t i) {
          return value->get(i) == value->get(i / keys * keys);
        });
  }
  return isa_and_nonnull<NotOp, AndOp, OrOp>(condition.getDefiningOp()) &&
         llvm::all_of(condition.getDefiningOp()->getOperands(),
                      [&](Value operand) { return isByRow(operand); });
}

/// Finds the product that reads the probabilities.
bool AttentionMatch::matchWeights() {
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
    if (!isByRow(select.getCondition()))
      return false;
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

bool AttentionMatch::addMask(Value condition, bool allowedWhere, double value) {
  if ((!masks.empty() && value != fill) || std::isnan(value) ||
      value == infinity)
    return false;
  fill = value;
  masks.emplace_back(condition, allowedWhere);
  return true;
}

bool AttentionMatch::matchSelect(SelectOp op, Value &next) {
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
bool AttentionMatch::matchScores() {
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
    if (auto tanh = dyn_cast<TanhOp>(op)) {
      // Factors so far: c tanh(s / c) is -c tanh(s / -c), too. Kernels divide
      // by it.
      if (cap != 0 || !(std::abs(scale) > 1e-30 && std::abs(scale) < 1e30))
        return false;
      cap = std::abs(scale);
      scaled = true;
      value = tanh.getInput();
      continue;
    }
    if (!isa<AddOp, SubOp, MulOp, DivOp>(op))
      return false;
    bool left = isScores(op->getOperand(0));
    Value other = op->getOperand(left ? 1 : 0);
    if (isa<AddOp, SubOp>(op)) {
      if (scaled || tensorType(op->getOperand(left ? 0 : 1)) != scores ||
          (isa<SubOp>(op) && !left))
        return false;
      if (isa<SubOp>(op)) {
        OpBuilder builder(op);
        other = TensorBuilder(builder, op->getLoc()).neg(other);
        negated.push_back(other.getDefiningOp());
      }
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
  return !openRows && std::isfinite(scale);
}

bool AttentionMatch::matchProducts() {
  ArrayRef<int64_t> left = tensorType(first.getLhs()).getShape();
  ArrayRef<int64_t> right = tensorType(first.getRhs()).getShape();
  ArrayRef<int64_t> values = tensorType(second.getRhs()).getShape();
  ArrayRef<int64_t> all = scores.getShape();
  size_t rank = all.size();
  if (rank < 3 || rank > 4 || first.getTransposeLhs() ||
      !readsKeys(left, right) || !sameBatch(right, values) ||
      first.getType().getShape() != tensorType(second.getLhs()).getShape() ||
      all.back() < leastKeys)
    return false;
  if (first.getType() == scores)
    return true;
  // Sizes of 1 went: one key head of one sample is a matrix.
  if (left.size() == 2)
    return llvm::all_of(all.drop_back(3), [](int64_t n) { return n == 1; }) &&
           left[0] * all.back() == scores.getNumElements() &&
           first.getType().getShape().back() == all.back();
  // Query heads of one key head as more rows of one matrix.
  return rank == 4 && left.size() == rank && left[0] == all[0] && left[1] > 0 &&
         all[1] % left[1] == 0 && left[2] == all[1] / left[1] * all[2] &&
         first.getType().getShape().back() == all.back();
}

bool AttentionMatch::match(std::string &reason) {
  auto element = scores.getElementType();
  if (int64_t(softmax.getAxis()) != scores.getRank() - 1 ||
      !(element.isF32() || element.isF64() || element.isBF16()) ||
      isStopped(softmax) || llvm::is_contained(scores.getShape(), 0))
    return false;
  if (!matchWeights() || !matchScores() || !matchProducts())
    return false;
  int64_t columns = std::max(tensorType(first.getLhs()).getShape().back(),
                             second.getType().getShape().back());
  if (mostColumns && columns > mostColumns) {
    reason = "its heads have " + std::to_string(columns) +
             " columns, and the target has attention of up to " +
             std::to_string(mostColumns);
    return false;
  }
  if (llvm::any_of(biases, [&](Value bias) { return isTrained(bias); })) {
    reason = "a trained bias is added to the scores";
    return false;
  }
  return settleMasks();
}
