//===- FuseLayerNorm.cpp - layer normalization as one op ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before opset 17 exporters spell layer normalization out:
//   d = x - mean(x); y = d / sqrt(mean(d * d) + epsilon) * scale + bias
// with the square as a power or a product and the division as a product with a
// reciprocal. As one op, it keeps x and two numbers a row for the backward
// pass, not five tensors. Linear in the function.
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
struct Match {
  Value x;
  int64_t axis = 0;
  double epsilon = 0;
};
} // namespace

/// Returns the operand of a mean over trailing dimensions that are kept, and
/// the first of them.
static Value trailingMean(Value value, int64_t &axis) {
  auto reduce = value.getDefiningOp<ReduceOp>();
  if (!reduce || reduce.getKind() != ReduceKind::Mean || !reduce.getKeepdims())
    return {};
  Shape axes(reduce.getAxes());
  llvm::sort(axes);
  int64_t rank = NodeImporter::rank(reduce.getInput());
  for (auto [i, each] : llvm::enumerate(axes))
    if (each != rank - int64_t(axes.size()) + int64_t(i))
      return {};
  axis = rank - int64_t(axes.size());
  return axes.empty() ? Value() : reduce.getInput();
}

/// Returns the root of `value` if it is a square.
static Value squareRootOf(Value value) {
  if (auto mul = value.getDefiningOp<MulOp>())
    return mul.getLhs() == mul.getRhs() ? mul.getLhs() : Value();
  auto pow = value.getDefiningOp<PowOp>();
  return pow && NodeImporter::scalarOf(pow.getRhs()) == 2.0 ? pow.getLhs()
                                                            : Value();
}

/// If `value` is d / sqrt(r), in either form, returns d and r.
static std::pair<Value, Value> quotient(Operation *op) {
  if (auto div = dyn_cast<DivOp>(op)) {
    auto sqrt = div.getRhs().getDefiningOp<SqrtOp>();
    return {div.getLhs(), sqrt ? sqrt.getInput() : Value()};
  }
  auto mul = cast<MulOp>(op);
  for (auto [d, inverse] : {std::pair(mul.getLhs(), mul.getRhs()),
                            std::pair(mul.getRhs(), mul.getLhs())}) {
    if (auto rsqrt = inverse.getDefiningOp<RsqrtOp>())
      return {d, rsqrt.getInput()};
    auto reciprocal = inverse.getDefiningOp<ReciprocalOp>();
    if (!reciprocal)
      continue;
    if (auto sqrt = reciprocal.getInput().getDefiningOp<SqrtOp>())
      return {d, sqrt.getInput()};
  }
  return {};
}

static std::optional<Match> matchAt(Operation *op) {
  auto [d, inside] = quotient(op);
  auto sub = d ? d.getDefiningOp<SubOp>() : SubOp();
  auto sum = inside ? inside.getDefiningOp<AddOp>() : AddOp();
  if (!sub || !sum)
    return std::nullopt;
  Match match;
  match.x = sub.getLhs();
  if (match.x.getType() != op->getResult(0).getType())
    return std::nullopt; // an epsilon of higher rank
  int64_t axis = -1;
  if (trailingMean(sub.getRhs(), match.axis) != match.x)
    return std::nullopt;
  for (auto [variance, number] : {std::pair(sum.getLhs(), sum.getRhs()),
                                  std::pair(sum.getRhs(), sum.getLhs())}) {
    auto epsilon = NodeImporter::scalarOf(number);
    Value square = epsilon && std::isfinite(*epsilon)
                       ? trailingMean(variance, axis)
                       : Value();
    if (!square || axis != match.axis || squareRootOf(square) != d)
      continue;
    match.epsilon = *epsilon;
    return match;
  }
  return std::nullopt;
}

/// If the only user of `value` is an `Op` whose other operand is a weight with
/// the shape of a row, returns that operand.
template <typename Op>
static Value rowOperand(Value value, int64_t axis, Op &user) {
  if (!value.hasOneUse())
    return {};
  user = dyn_cast<Op>(*value.user_begin());
  if (!user || user.getType() != value.getType())
    return {};
  Value other = user.getLhs() == value ? user.getRhs() : user.getLhs();
  bool fits = NodeImporter::shape(other) ==
              NodeImporter::shape(value).drop_front(size_t(axis));
  return fits ? other : Value();
}

static void fuseAt(Operation *op, const Match &match) {
  Value root = op->getResult(0), scale, bias;
  Operation *last = op;
  MulOp mul;
  AddOp add;
  if ((scale = rowOperand(root, match.axis, mul))) {
    last = mul;
    root = mul.getOutput();
  }
  if ((bias = rowOperand(root, match.axis, add))) {
    last = add;
    root = add.getOutput();
  }
  OpBuilder builder(last);
  auto rows = RankedTensorType::get(
      NodeImporter::shape(match.x).take_front(size_t(match.axis)),
      NodeImporter::element(match.x));
  auto norm = LayerNormOp::create(
      builder, last->getLoc(), TypeRange{match.x.getType(), rows, rows},
      match.x, scale, bias, uint64_t(match.axis), llvm::APFloat(match.epsilon));
  root.replaceAllUsesWith(norm.getOutput());
}

void onnx_frontend::fuseLayerNorm(func::FuncOp func) {
  SmallVector<std::pair<Operation *, Match>> matches;
  for (Operation &op : func.getBody().front())
    if (isa<DivOp, MulOp>(op))
      if (auto match = matchAt(&op))
        matches.push_back({&op, *match});
  for (auto &[op, match] : matches)
    fuseAt(op, match);
}
