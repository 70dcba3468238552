//===- NNOps.cpp - types and verifiers of contractions and windows ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InferTypes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ckopt;

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// Returns the shape of a product; reports operands that do not fit.
static FailureOr<SmallVector<int64_t>>
productShape(std::optional<Location> loc, RankedTensorType lhs,
             RankedTensorType rhs, bool transposeLhs, bool transposeRhs) {
  if (lhs.getRank() < 2 || rhs.getRank() < 2)
    return emitOptionalError(loc, "matmul needs operands of rank 2 or more");
  auto rows = lhs.getShape().take_back(2), cols = rhs.getShape().take_back(2);
  int64_t m = rows[transposeLhs], k = rows[!transposeLhs];
  int64_t n = cols[!transposeRhs], k2 = cols[transposeRhs];
  if (k != k2)
    return emitOptionalError(loc, "inner dimensions differ: ", k, " and ", k2,
                             " of ", lhs, " and ", rhs);
  auto shape =
      broadcastShapes(lhs.getShape().drop_back(2), rhs.getShape().drop_back(2));
  if (!shape)
    return emitOptionalError(loc, "batch dimensions do not broadcast: ", lhs,
                             " and ", rhs);
  shape->append({m, n});
  return std::move(*shape);
}

CKOPT_INFER(MatMulOp) {
  MatMulOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto lhs = tensorType(adaptor.getLhs()), rhs = tensorType(adaptor.getRhs());
  auto shape = productShape(loc, lhs, rhs, adaptor.getTransposeLhs(),
                            adaptor.getTransposeRhs());
  if (failed(shape))
    return failure();
  results.push_back(RankedTensorType::get(*shape, lhs.getElementType()));
  return success();
}

double MatMulOp::getFlops() {
  auto lhs = tensorType(getLhs());
  int64_t k = lhs.getShape().take_back(2)[!getTransposeLhs()];
  return 2.0 * double(getType().getNumElements()) * double(k);
}

CKOPT_INFER(MatMulAddOp) {
  MatMulAddOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto lhs = tensorType(adaptor.getLhs()), rhs = tensorType(adaptor.getRhs());
  auto addend = tensorType(adaptor.getAddend());
  if (lhs.getRank() != 2 || rhs.getRank() != 2 || addend.getRank() != 2)
    return emitOptionalError(loc, "matmul_add needs matrices");
  bool tl = adaptor.getTransposeLhs(), tr = adaptor.getTransposeRhs();
  if (lhs.getDimSize(!tl) != rhs.getDimSize(tr) ||
      addend.getDimSize(0) != lhs.getDimSize(tl) ||
      addend.getDimSize(1) != rhs.getDimSize(!tr))
    return emitOptionalError(loc, "sizes do not fit: ", addend, " + ", lhs,
                             " x ", rhs);
  Type wide = addend.getElementType();
  if (lhs.getElementType() != rhs.getElementType() ||
      (lhs.getElementType() != wide &&
       !(wide.isF32() &&
         (lhs.getElementType().isBF16() || lhs.getElementType().isF16()))))
    return emitOptionalError(loc, "element types do not fit: ", addend, " + ",
                             lhs, " x ", rhs);
  auto row = RankedTensorType::get(addend.getDimSize(1), wide);
  if (adaptor.getBias() && adaptor.getBias().getType() != row)
    return emitOptionalError(loc, "the bias of ", addend, " is ", row, ", not ",
                             adaptor.getBias().getType());
  results.push_back(addend);
  return success();
}

double MatMulAddOp::getFlops() {
  double k = double(tensorType(getLhs()).getDimSize(!getTransposeLhs()));
  return 2.0 * double(getType().getNumElements()) * k;
}

namespace {
/// Replaces a transpose of the last two dimensions of an operand by the op's
/// own flag.
struct AbsorbTranspose : OpRewritePattern<MatMulOp> {
  using OpRewritePattern::OpRewritePattern;

  /// Returns the transposed value if `value` swaps exactly its last two
  /// dimensions.
  static Value untransposed(Value value) {
    auto transpose = value.getDefiningOp<TransposeOp>();
    if (!transpose || !isRowMajor(tensorType(value)) ||
        !isRowMajor(tensorType(transpose.getInput())))
      return {};
    SmallVector<int64_t> swapped(transpose.getPermutation());
    if (swapped.size() < 2)
      return {};
    std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
    return llvm::is_sorted(swapped) ? transpose.getInput() : Value();
  }

  LogicalResult matchAndRewrite(MatMulOp op,
                                PatternRewriter &rewriter) const override {
    Value lhs = untransposed(op.getLhs()), rhs = untransposed(op.getRhs());
    if (!lhs && !rhs)
      return failure();
    rewriter.replaceOpWithNewOp<MatMulOp>(
        op, op.getType(), lhs ? lhs : op.getLhs(), rhs ? rhs : op.getRhs(),
        op.getTransposeLhs() != bool(lhs), op.getTransposeRhs() != bool(rhs));
    return success();
  }
};
} // namespace

void MatMulOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<AbsorbTranspose>(context);
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// Returns the number of positions of a window of `kernel` points along a
/// padded dimension, or nothing if the padded dimension or the window overflows
/// an int64.
static std::optional<int64_t> windowPositions(int64_t size, int64_t kernel,
                                              int64_t stride, int64_t low,
                                              int64_t high, int64_t dilation) {
  int64_t padded, reach, span;
  if (llvm::AddOverflow(size, low, padded) ||
      llvm::AddOverflow(padded, high, padded) ||
      llvm::MulOverflow(kernel - 1, dilation, reach) ||
      llvm::SubOverflow(padded, reach, span))
    return std::nullopt;
  return span < 1 ? 0 : (span - 1) / stride + 1;
}

CKOPT_INFER(ConvOp) {
  ConvOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto input = tensorType(adaptor.getInput());
  auto weight = tensorType(adaptor.getWeight());
  size_t spatial = input.getRank() - 2;
  if (input.getRank() < 3 || weight.getRank() != input.getRank() ||
      adaptor.getStrides().size() != spatial ||
      adaptor.getPadsLow().size() != spatial ||
      adaptor.getPadsHigh().size() != spatial ||
      adaptor.getDilations().size() != spatial)
    return emitOptionalError(loc, "input ", input, ", weight ", weight,
                             " and window attributes do not fit together");
  auto positive = [](int64_t value) { return value > 0; };
  auto notNegative = [](int64_t value) { return value >= 0; };
  if (!llvm::all_of(adaptor.getStrides(), positive) ||
      !llvm::all_of(adaptor.getDilations(), positive) ||
      !llvm::all_of(adaptor.getPadsLow(), notNegative) ||
      !llvm::all_of(adaptor.getPadsHigh(), notNegative))
    return emitOptionalError(loc, "strides and dilations must be positive, "
                                  "pads not negative");
  SmallVector<int64_t> shape{input.getDimSize(0), weight.getDimSize(0)};
  for (size_t d = 0; d < spatial; ++d) {
    auto positions =
        windowPositions(input.getDimSize(d + 2), weight.getDimSize(d + 2),
                        adaptor.getStrides()[d], adaptor.getPadsLow()[d],
                        adaptor.getPadsHigh()[d], adaptor.getDilations()[d]);
    if (!positions)
      return emitOptionalError(loc, "spatial dimension ", d,
                               ": the window's size overflows");
    shape.push_back(*positions);
  }
  results.push_back(RankedTensorType::get(shape, input.getElementType(),
                                          input.getEncoding()));
  return success();
}

/// Checks the element types of a convolution or gradient, whose operands have
/// one: the result has it, too, or f32 where it is a half.
static LogicalResult verifyResultType(Operation *op) {
  Type made = getElementTypeOrSelf(op->getResult(0));
  Type given = getElementTypeOrSelf(op->getOperand(0));
  if (made == given || (made.isF32() && (given.isBF16() || given.isF16())))
    return success();
  return op->emitOpError("operands and result must have one element type; "
                         "f16 and bf16 may have a result of f32");
}

/// Checks that input, weight and output belong to one convolution.
template <typename Op>
static LogicalResult verifyConv(Op op, RankedTensorType input,
                                RankedTensorType weight,
                                RankedTensorType output) {
  int64_t rank = input.getRank(), groups = op.getGroups();
  if (rank < 3 || rank > 5 || weight.getRank() != rank ||
      output.getRank() != rank)
    return op.emitOpError("needs tensors of equal rank 3 to 5");
  if (failed(verifyResultType(op)))
    return failure();
  size_t spatial = rank - 2;
  if (op.getStrides().size() != spatial || op.getPadsLow().size() != spatial ||
      op.getPadsHigh().size() != spatial || op.getDilations().size() != spatial)
    return op.emitOpError("window attributes need ") << spatial << " entries";
  if (groups < 1 || input.getDimSize(1) != weight.getDimSize(1) * groups ||
      output.getDimSize(1) != weight.getDimSize(0) ||
      weight.getDimSize(0) % groups ||
      input.getDimSize(0) != output.getDimSize(0))
    return op.emitOpError("channels do not fit: input ")
           << input << ", weight " << weight << ", output " << output
           << ", groups " << groups;
  for (size_t d = 0; d < spatial; ++d) {
    if (op.getStrides()[d] < 1 || op.getDilations()[d] < 1 ||
        op.getPadsLow()[d] < 0 || op.getPadsHigh()[d] < 0)
      return op.emitOpError("strides and dilations must be positive, pads not "
                            "negative");
    std::optional<int64_t> want = windowPositions(
        input.getDimSize(d + 2), weight.getDimSize(d + 2), op.getStrides()[d],
        op.getPadsLow()[d], op.getPadsHigh()[d], op.getDilations()[d]);
    if (!want)
      return op.emitOpError("spatial dimension ")
             << d << ": the window's size overflows";
    if (*want != output.getDimSize(d + 2))
      return op.emitOpError("spatial dimension ")
             << d << ": the window has " << *want << " positions, the output "
             << output.getDimSize(d + 2);
  }
  return success();
}

/// Counts two operations for each point of the kernel at each output.
static double convFlops(RankedTensorType weight, RankedTensorType output) {
  return 2.0 * double(output.getNumElements()) *
         double(weight.getNumElements()) / double(weight.getDimSize(0));
}

LogicalResult ConvOp::verify() {
  return verifyConv(*this, tensorType(getInput()), tensorType(getWeight()),
                    getType());
}
LogicalResult ConvInputGradOp::verify() {
  return verifyConv(*this, getType(), tensorType(getWeight()),
                    tensorType(getGrad()));
}
LogicalResult ConvWeightGradOp::verify() {
  return verifyConv(*this, tensorType(getInput()), getType(),
                    tensorType(getGrad()));
}
double ConvOp::getFlops() {
  return convFlops(tensorType(getWeight()), getType());
}
double ConvInputGradOp::getFlops() {
  return convFlops(tensorType(getWeight()), tensorType(getGrad()));
}
double ConvWeightGradOp::getFlops() {
  return convFlops(getType(), tensorType(getGrad()));
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

template <typename Op>
static LogicalResult verifyPool(Op op, RankedTensorType input,
                                RankedTensorType output) {
  int64_t rank = input.getRank();
  if (rank < 3 || output.getRank() != rank ||
      input.getDimSize(0) != output.getDimSize(0) ||
      input.getDimSize(1) != output.getDimSize(1) ||
      input.getElementType() != output.getElementType())
    return op.emitOpError("input and output must agree in rank, batch, "
                          "channels and element type: ")
           << input << " and " << output;
  size_t spatial = rank - 2;
  for (ArrayRef<int64_t> list :
       {op.getKernel(), op.getStrides(), op.getPadsLow(), op.getPadsHigh(),
        op.getDilations()})
    if (list.size() != spatial)
      return op.emitOpError("window attributes need ") << spatial << " entries";
  for (size_t d = 0; d < spatial; ++d) {
    if (op.getKernel()[d] < 1 || op.getStrides()[d] < 1 ||
        op.getDilations()[d] < 1 || op.getPadsLow()[d] < 0)
      return op.emitOpError("kernel, strides and dilations must be positive");
    std::optional<int64_t> want = windowPositions(
        input.getDimSize(d + 2), op.getKernel()[d], op.getStrides()[d],
        op.getPadsLow()[d], op.getPadsHigh()[d], op.getDilations()[d]);
    if (!want)
      return op.emitOpError("spatial dimension ")
             << d << ": the window's size overflows";
    if (*want != output.getDimSize(d + 2))
      return op.emitOpError("spatial dimension ")
             << d << ": the window has " << *want << " positions, the output "
             << output.getDimSize(d + 2);
  }
  return success();
}

/// An i8 can hold the positions of windows of up to 127 points.
template <typename Op>
static LogicalResult verifyIndex(Op op, RankedTensorType output) {
  auto index = dyn_cast<RankedTensorType>(op.getIndex().getType());
  if (!index || index.getShape() != output.getShape())
    return op.emitOpError("index must have the output's shape");
  int64_t points = 1;
  for (int64_t size : op.getKernel())
    if (llvm::MulOverflow(points, size, points))
      return op.emitOpError("the window's size overflows");
  if (index.getElementType().isInteger(8) && points > 127)
    return op.emitOpError("a window of ")
           << points << " points needs an i32 index";
  return success();
}

LogicalResult MaxPoolOp::verify() {
  if (failed(verifyIndex(*this, tensorType(getOutput()))))
    return failure();
  return verifyPool(*this, tensorType(getInput()), tensorType(getOutput()));
}
LogicalResult MaxPoolGradOp::verify() {
  if (failed(verifyIndex(*this, tensorType(getGrad()))))
    return failure();
  return verifyPool(*this, getType(), tensorType(getGrad()));
}
LogicalResult AvgPoolOp::verify() {
  return verifyPool(*this, tensorType(getInput()), getType());
}
LogicalResult AvgPoolGradOp::verify() {
  return verifyPool(*this, getType(), tensorType(getGrad()));
}

//===----------------------------------------------------------------------===//
// Batch normalization
//===----------------------------------------------------------------------===//

static LogicalResult checkChannels(std::optional<Location> loc,
                                   ValueRange operands) {
  auto input = tensorType(operands.front());
  if (input.getRank() < 2)
    return emitOptionalError(loc, "batch normalization needs rank 2 or more");
  for (Value operand : operands.drop_front())
    if (tensorType(operand).getShape() != input.getShape().slice(1, 1))
      return emitOptionalError(loc, "per-channel operands must have shape [",
                               input.getDimSize(1), "], got ",
                               operand.getType());
  return success();
}

CKOPT_INFER(BatchNormOp) {
  if (failed(checkChannels(loc, operands)))
    return failure();
  results.push_back(operands[0].getType());
  results.append(2, operands[1].getType());
  return success();
}
CKOPT_INFER(BatchNormInferenceOp) {
  if (failed(checkChannels(loc, operands)))
    return failure();
  results.push_back(operands[0].getType());
  return success();
}
CKOPT_INFER(BatchNormGradOp) {
  if (tensorType(operands[0]).getShape() != tensorType(operands[1]).getShape())
    return emitOptionalError(loc, "grad and input must have one shape, got ",
                             operands[0].getType(), " and ",
                             operands[1].getType());
  if (failed(checkChannels(loc, operands.drop_front())))
    return failure();
  results.push_back(operands[1].getType());
  results.append(2, operands[2].getType());
  return success();
}
