//===- FuseRowNorms.cpp - norms of rows as one op each --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exporters spell norms of rows out: layer normalization before opset 17,
//   d = x - mean(x); y = d / sqrt(mean(d * d) + epsilon) * scale + bias
// and RMS normalization before opset 23,
//   y = x / sqrt(mean(x * x) + epsilon) * scale
// with the square as a power or a product and the division as a product with a
// reciprocal. Language models in halves compute the latter in f32, between two
// casts, and scale before the second (Gemma) or behind it (Llama). As one op, a
// norm keeps x and a number or two a row for the backward pass, not up to five
// tensors. Linear in the function.
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
  bool isCentered = true; ///< layer normalization
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
    Value root;
    if (auto reciprocal = inverse.getDefiningOp<ReciprocalOp>())
      root = reciprocal.getInput();
    else if (auto div = inverse.getDefiningOp<DivOp>();
             div && NodeImporter::scalarOf(div.getLhs()) == 1.0)
      root = div.getRhs();
    if (auto sqrt = root ? root.getDefiningOp<SqrtOp>() : SqrtOp())
      return {d, sqrt.getInput()};
  }
  return {};
}

static std::optional<Match> matchAt(Operation *op) {
  auto [d, inside] = quotient(op);
  auto sum = inside ? inside.getDefiningOp<AddOp>() : AddOp();
  if (!sum || d.getType() != op->getResult(0).getType())
    return std::nullopt; // perhaps an epsilon of higher rank
  Match match;
  for (auto [variance, number] : {std::pair(sum.getLhs(), sum.getRhs()),
                                  std::pair(sum.getRhs(), sum.getLhs())}) {
    auto epsilon = NodeImporter::scalarOf(number);
    Value square = epsilon && std::isfinite(*epsilon)
                       ? trailingMean(variance, match.axis)
                       : Value();
    if (!square || squareRootOf(square) != d)
      continue;
    match.epsilon = *epsilon;
    match.x = d;
    break;
  }
  if (!match.x)
    return std::nullopt;
  int64_t axis = -1;
  auto sub = d.getDefiningOp<SubOp>();
  match.isCentered = sub && sub.getLhs().getType() == d.getType() &&
                     trailingMean(sub.getRhs(), axis) == sub.getLhs() &&
                     axis == match.axis;
  if (match.isCentered)
    match.x = sub.getLhs();
  return match;
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

/// Returns the type of `value`'s rows, one number for each.
static Type typeOfRows(Value value, int64_t axis, Type element) {
  return RankedTensorType::get(
      NodeImporter::shape(value).take_front(size_t(axis)), element);
}

static void fuseLayerNorm(Operation *op, const Match &match) {
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
  Type rows = typeOfRows(match.x, match.axis, NodeImporter::element(match.x));
  auto norm = LayerNormOp::create(
      builder, last->getLoc(), TypeRange{match.x.getType(), rows, rows},
      match.x, scale, bias, uint64_t(match.axis), llvm::APFloat(match.epsilon));
  root.replaceAllUsesWith(norm.getOutput());
}

static bool isHalf(Value value) {
  Type element = NodeImporter::element(value);
  return element.isF16() || element.isBF16();
}

/// If the only user of `value`, f32, is a cast to halves, returns that.
static CastOp castToHalf(Value value) {
  if (!value.hasOneUse() || !NodeImporter::element(value).isF32())
    return {};
  auto cast = dyn_cast<CastOp>(*value.user_begin());
  return cast && isHalf(cast.getOutput()) ? cast : CastOp();
}

static void fuseRmsNorm(Operation *op, const Match &match) {
  Value root = op->getResult(0), x = match.x, scale;
  Operation *last = op;
  MulOp mul;
  bool rounds = false;
  if ((scale = rowOperand(root, match.axis, mul))) {
    last = mul;
    root = mul.getOutput();
  }
  if (CastOp cast = castToHalf(root)) {
    last = cast;
    root = cast.getOutput();
    if (!scale && (scale = rowOperand(root, match.axis, mul))) {
      rounds = true;
      last = mul;
      root = mul.getOutput();
    }
  }
  auto cast = x.getDefiningOp<CastOp>();
  if (cast && isHalf(cast.getInput()) && NodeImporter::element(x).isF32())
    x = cast.getInput();
  OpBuilder builder(last);
  Type element = NodeImporter::element(x);
  Type rows = typeOfRows(
      x, match.axis, element.isF64() ? element : Type(builder.getF32Type()));
  auto norm = RmsNormOp::create(
      builder, last->getLoc(), TypeRange{root.getType(), rows}, x, scale,
      uint64_t(match.axis), llvm::APFloat(match.epsilon), rounds);
  root.replaceAllUsesWith(norm.getOutput());
}

void onnx_frontend::fuseRowNorms(func::FuncOp func) {
  SmallVector<std::pair<Operation *, Match>> matches;
  for (Operation &op : func.getBody().front())
    if (isa<DivOp, MulOp>(op))
      if (auto match = matchAt(&op))
        matches.push_back({&op, *match});
  for (auto &[op, match] : matches)
    match.isCentered ? fuseLayerNorm(op, match) : fuseRmsNorm(op, match);
}
