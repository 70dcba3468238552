//===- SampleOrder.cpp - attention reads samples as they lie --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: PyTorch's MultiheadAttention works on [tokens, samples, columns]
// inside, also where it is given [samples, tokens, columns]: exporters write a
// transpose before it and one behind it, and each moves a whole activation,
// forward and backward.
//
// Method: between these transposes and the attention there are products with
// weights, biases and slices of columns, which treat each row alone. So they
// are made again on rows in the order of samples, and attention, which reads
// heads wherever they lie, is given [samples, heads, tokens, columns].
//
// Guarantee: the same numbers, in other places; sums over rows (gradients of
// weights) add them in another order. An attention is changed if its operands
// and its result all come to such transposes, and if nothing else reads what
// lies between.
// Complexity: linear in the operations between.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/StopGradient.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Normalize/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {
#define GEN_PASS_DEF_SAMPLEORDERPASS
#include "ckopt/Normalize/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

namespace {

class SampleOrder {
public:
  explicit SampleOrder(AttentionOp attention) : attention(attention) {}

  bool match();
  void rewrite();

private:
  /// An operand of attention: transpose(reshape(rows)), and its heads.
  struct Heads {
    Value rows; ///< [tokens, samples, columns]
    int64_t heads = 0, columns = 0;
  };
  std::optional<Heads> headsOf(Value operand);
  bool isFrom(Value rows);
  bool isTo(Value rows);
  Operation *stepOf(Value rows, Operation *op);
  Value turned(Value rows);
  Value headsOfSamples(TensorBuilder &b, const Heads &operand);

  AttentionOp attention;
  int64_t samples = 0;
  SmallVector<Heads> operands;
  DenseSet<Operation *> before;    ///< between transposes and operands
  SmallVector<Operation *> behind; ///< up to the transpose, which is the last
  DenseMap<Value, Value> made;
};

bool swapsFirst(TransposeOp op) {
  return op && !op->hasAttr(kStopGradientAttr) &&
         op.getPermutation() == ArrayRef<int64_t>{1, 0, 2};
}

SmallVector<int64_t> swappedFirst(ArrayRef<int64_t> values) {
  SmallVector<int64_t> result(values);
  std::swap(result[0], result[1]);
  return result;
}

/// Returns whether one shape is [tokens, samples, columns], the other [tokens *
/// samples, columns].
bool joinsRows(ArrayRef<int64_t> x, ArrayRef<int64_t> y) {
  if (x.size() > y.size())
    std::swap(x, y);
  return x.size() == 2 && y.size() == 3 && x[0] == y[0] * y[1] && x[1] == y[2];
}

} // namespace

/// Returns the op if it computes each row of `rows`, its operand or result,
/// alone.
Operation *SampleOrder::stepOf(Value rows, Operation *op) {
  if (!op || op->hasAttr(kStopGradientAttr))
    return nullptr;
  if (auto product = dyn_cast<MatMulOp>(op))
    return product.getType().getRank() == 2 && !product.getTransposeLhs() &&
                   tensorType(product.getRhs()).getRank() == 2 &&
                   product.getRhs() != rows
               ? op
               : nullptr;
  if (auto sum = dyn_cast<AddOp>(op))
    return tensorType(sum.getLhs()).getRank() == 1 ||
                   tensorType(sum.getRhs()).getRank() == 1
               ? op
               : nullptr;
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return joinsRows(tensorType(reshape.getInput()).getShape(),
                     reshape.getType().getShape())
               ? op
               : nullptr;
  if (auto slice = dyn_cast<SliceOp>(op)) {
    ArrayRef<int64_t> from = tensorType(slice.getInput()).getShape();
    return from.size() == 3 &&
                   slice.getSizes().take_front(2) == from.take_front(2)
               ? op
               : nullptr;
  }
  return nullptr;
}

/// Returns the operand that has the op's rows.
static Value rowsOf(Operation *op) {
  if (auto sum = dyn_cast<AddOp>(op))
    return tensorType(sum.getLhs()).getRank() == 1 ? sum.getRhs()
                                                   : sum.getLhs();
  return op->getOperand(0);
}

/// Returns whether `rows` is computed from transposes, row by row.
bool SampleOrder::isFrom(Value rows) {
  Operation *op = rows.getDefiningOp();
  if (op && before.contains(op))
    return true;
  if (auto transpose = dyn_cast_or_null<TransposeOp>(op))
    return swapsFirst(transpose) &&
           transpose.getType().getDimSize(1) == samples;
  if (!stepOf({}, op))
    return false;
  before.insert(op);
  return isFrom(rowsOf(op));
}

/// Returns whether `rows` is read by steps alone that end at a transpose.
bool SampleOrder::isTo(Value rows) {
  while (rows.hasOneUse()) {
    Operation *op = *rows.user_begin();
    behind.push_back(op);
    if (auto transpose = dyn_cast<TransposeOp>(op))
      return swapsFirst(transpose) &&
             transpose.getType().getDimSize(0) == samples;
    if (!stepOf(op->getOperand(0) == rows ? Value() : rows, op) ||
        rowsOf(op) != rows)
      return false;
    rows = op->getResult(0);
  }
  return false;
}

std::optional<SampleOrder::Heads> SampleOrder::headsOf(Value operand) {
  auto transpose = operand.getDefiningOp<TransposeOp>();
  if (!swapsFirst(transpose))
    return std::nullopt;
  auto reshape = transpose.getInput().getDefiningOp<ReshapeOp>();
  if (!reshape || !reshape->hasOneUse() ||
      reshape->hasAttr(kStopGradientAttr) ||
      !llvm::all_of(transpose->getUsers(),
                    [&](Operation *user) { return user == attention; }))
    return std::nullopt;
  ArrayRef<int64_t> from = tensorType(reshape.getInput()).getShape(),
                    to = reshape.getType().getShape();
  if (from.size() != 3 || to.size() != 3 || from[0] != to[0] || !to[2] ||
      from[2] % to[2] || from[1] * (from[2] / to[2]) != to[1])
    return std::nullopt;
  before.insert(reshape);
  return Heads{reshape.getInput(), from[2] / to[2], to[2]};
}

bool SampleOrder::match() {
  if (attention.getBias() || attention.getMask() || attention.getSegments() ||
      tensorType(attention.getQuery()).getRank() != 3 ||
      !attention.getLse().use_empty() || !attention.getOutput().hasOneUse())
    return false;
  for (Value operand :
       {attention.getQuery(), attention.getKey(), attention.getValue()}) {
    std::optional<Heads> heads = headsOf(operand);
    if (!heads)
      return false;
    operands.push_back(*heads);
    samples = tensorType(operands.front().rows).getDimSize(1);
    if (tensorType(heads->rows).getDimSize(1) != samples ||
        !isFrom(heads->rows))
      return false;
  }
  // Heads alone may leave what is before them.
  for (Operation *op : before)
    for (Operation *user : op->getUsers())
      if (!before.contains(user) &&
          llvm::none_of(user->getResults(), [&](Value result) {
            return llvm::is_contained(attention->getOperands(), result);
          }))
        return false;
  auto transpose = dyn_cast<TransposeOp>(*attention.getOutput().user_begin());
  if (!swapsFirst(transpose) || !transpose->hasOneUse())
    return false;
  // Heads of a sample become its columns again, in one step or two.
  auto reshape = dyn_cast<ReshapeOp>(*transpose->user_begin());
  if (!reshape || reshape->hasAttr(kStopGradientAttr))
    return false;
  int64_t tokens = transpose.getType().getDimSize(0),
          columns = operands.front().heads * operands.back().columns;
  ArrayRef<int64_t> shape = reshape.getType().getShape();
  if (shape != ArrayRef<int64_t>{tokens * samples, columns} &&
      shape != ArrayRef<int64_t>{tokens, samples, columns})
    return false;
  behind.push_back(reshape);
  return isTo(reshape.getOutput());
}

/// Returns the rows in the order of samples.
Value SampleOrder::turned(Value rows) {
  if (Value known = made.lookup(rows))
    return known;
  Operation *op = rows.getDefiningOp();
  if (auto transpose = dyn_cast<TransposeOp>(op); swapsFirst(transpose))
    return transpose.getInput();
  OpBuilder builder(op);
  TensorBuilder b(builder, op->getLoc());
  Value from = turned(rowsOf(op)), result;
  if (auto product = dyn_cast<MatMulOp>(op)) {
    result = b.make<MatMulOp>(from, product.getRhs(), false,
                              product.getTransposeRhs());
  } else if (auto sum = dyn_cast<AddOp>(op)) {
    bool right = rowsOf(op) == sum.getRhs();
    result = right ? b.add(sum.getLhs(), from) : b.add(from, sum.getRhs());
  } else if (auto slice = dyn_cast<SliceOp>(op)) {
    result = b.make<SliceOp>(
        RankedTensorType::get(swappedFirst(slice.getSizes()),
                              slice.getType().getElementType()),
        from, swappedFirst(slice.getStarts()), swappedFirst(slice.getSizes()),
        swappedFirst(slice.getSteps()));
  } else {
    ArrayRef<int64_t> shape = tensorType(rows).getShape();
    result = b.reshape(from, shape.size() == 3 ? swappedFirst(shape)
                                               : SmallVector<int64_t>(shape));
  }
  made[rows] = result;
  return result;
}

Value SampleOrder::headsOfSamples(TensorBuilder &b, const Heads &operand) {
  int64_t tokens = tensorType(operand.rows).getDimSize(0);
  Value heads = b.reshape(turned(operand.rows),
                          {samples, tokens, operand.heads, operand.columns});
  return b.transpose(heads, {0, 2, 1, 3});
}

void SampleOrder::rewrite() {
  OpBuilder builder(attention);
  TensorBuilder b(builder, attention.getLoc());
  SmallVector<Value> x;
  for (const Heads &operand : operands)
    x.push_back(headsOfSamples(b, operand));
  auto result = AttentionOp::create(
      builder, attention.getLoc(), x[0], x[1], x[2], Value(), Value(), Value(),
      attention.getSeed(), attention.getStep(), attention.getScaleAttr(),
      attention.getSoftcapAttr(), attention.getFillAttr(),
      attention.getCausalAttr(), attention.getWindowAttr(),
      attention.getZeroEmptyRowsAttr(), attention.getRatioAttr(),
      attention.getSiteAttr());
  result->setDiscardableAttrs(attention->getDiscardableAttrDictionary());
  Value rows = b.transpose(result.getOutput(), {0, 2, 1, 3});
  auto first = cast<ReshapeOp>(behind.front());
  ArrayRef<int64_t> shape = first.getType().getShape();
  made[first.getOutput()] =
      b.reshape(rows, shape.size() == 3 ? swappedFirst(shape)
                                        : SmallVector<int64_t>(shape));
  auto last = cast<TransposeOp>(behind.back());
  last.getOutput().replaceAllUsesWith(turned(last.getInput()));
}

namespace {
struct SampleOrderPass : ckopt::impl::SampleOrderPassBase<SampleOrderPass> {
  void runOnOperation() override {
    SmallVector<AttentionOp> all;
    getOperation().walk([&](AttentionOp op) { all.push_back(op); });
    for (AttentionOp op : all)
      if (SampleOrder order(op); order.match())
        order.rewrite();
  }
};
} // namespace
