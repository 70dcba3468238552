//===- ShapeOps.cpp - constants, shapes and data movement -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InferTypes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace ckopt;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

CKOPT_INFER(ConstantOp) {
  ConstantOp::Adaptor adaptor(operands, attributes, properties, regions);
  results.push_back(adaptor.getValue().getType());
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult IotaOp::verify() {
  int64_t rank = getType().getRank();
  if (int64_t(getAxis()) < 0 || int64_t(getAxis()) >= rank)
    return emitOpError("axis ") << getAxis() << " is outside of rank " << rank;
  return success();
}

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  if (tensorType(getInput()).getNumElements() != getType().getNumElements() ||
      getElementTypeOrSelf(getInput()) != getElementTypeOrSelf(getType()))
    return emitOpError("operand and result must have as many elements, of one "
                       "type: ")
           << getInput().getType() << " and " << getType();
  return success();
}

/// Returns the dimensions that are not 1.
static SmallVector<int64_t> realDims(RankedTensorType type) {
  SmallVector<int64_t> dims;
  for (int64_t size : type.getShape())
    if (size != 1)
      dims.push_back(size);
  return dims;
}

bool ReshapeOp::isFusible() {
  auto input = tensorType(getInput());
  return isRowMajor(input) && isRowMajor(getType()) &&
         realDims(input) == realDims(getType());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto constant = dyn_cast_or_null<DenseElementsAttr>(adaptor.getInput()))
    if (isRowMajor(getType()) && isRowMajor(tensorType(getInput())))
      return constant.reshape(getType());
  return {};
}

namespace {
/// reshape(reshape(x)) is one reshape.
struct MergeReshapes : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<ReshapeOp>();
    if (!inner || !isRowMajor(tensorType(op.getInput())))
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getInput());
    return success();
  }
};
} // namespace

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<MergeReshapes>(context);
}

//===----------------------------------------------------------------------===//
// Transpose
//===----------------------------------------------------------------------===//

CKOPT_INFER(TransposeOp) {
  TransposeOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto type = tensorType(adaptor.getInput());
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  SmallVector<bool> seen(type.getRank());
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation) {
    if (dim < 0 || dim >= type.getRank() || seen[dim])
      return emitOptionalError(loc, "permutation must be one of 0..",
                               type.getRank() - 1);
    seen[dim] = true;
    shape.push_back(type.getDimSize(dim));
  }
  if (int64_t(permutation.size()) != type.getRank())
    return emitOptionalError(loc, "permutation must have ", type.getRank(),
                             " entries");
  results.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

KernelKind TransposeOp::getKernelKind() {
  SmallVector<int64_t> from = getElementStrides(tensorType(getInput()));
  SmallVector<int64_t> to = getElementStrides(getType());
  for (auto [i, dim] : llvm::enumerate(getPermutation()))
    if (getType().getDimSize(i) != 1 && to[i] != from[dim])
      return KernelKind::Indexed;
  return KernelKind::View;
}

/// A transpose is computed inside a loop only if the innermost dimension stays.
bool TransposeOp::isFusible() {
  ArrayRef<int64_t> permutation = getPermutation();
  return getKernelKind() != KernelKind::View && !permutation.empty() &&
         permutation.back() == int64_t(permutation.size()) - 1 &&
         isRowMajor(getType()) && isRowMajor(tensorType(getInput()));
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType() && llvm::is_sorted(getPermutation()))
    return getInput();
  return {};
}

namespace {
/// transpose(transpose(x)) is one transpose; one that moves only dimensions of
/// size 1 is a reshape, which costs nothing.
struct SimplifyTranspose : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto type = tensorType(op.getInput());
    if (!isRowMajor(type) || !isRowMajor(op.getType()))
      return failure();
    if (auto inner = op.getInput().getDefiningOp<TransposeOp>();
        inner && isRowMajor(tensorType(inner.getInput()))) {
      SmallVector<int64_t> merged;
      for (int64_t dim : op.getPermutation())
        merged.push_back(inner.getPermutation()[dim]);
      rewriter.replaceOpWithNewOp<TransposeOp>(op, inner.getInput(), merged);
      return success();
    }
    SmallVector<int64_t> moved;
    for (int64_t dim : op.getPermutation())
      if (type.getDimSize(dim) != 1)
        moved.push_back(dim);
    if (!llvm::is_sorted(moved))
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getInput());
    return success();
  }
};
} // namespace

void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<SimplifyTranspose>(context);
}

//===----------------------------------------------------------------------===//
// Slice, concat, pad, expand
//===----------------------------------------------------------------------===//

bool SliceOp::isFusible() {
  return getSteps().empty() || getSteps().back() == 1;
}

CKOPT_INFER(SliceOp) {
  SliceOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto type = tensorType(adaptor.getInput());
  if (int64_t(adaptor.getSizes().size()) != type.getRank())
    return emitOptionalError(loc, "sizes must have ", type.getRank(),
                             " entries");
  if (llvm::any_of(adaptor.getSizes(), [](int64_t size) { return size < 0; }))
    return emitOptionalError(loc, "sizes must not be negative");
  results.push_back(
      RankedTensorType::get(adaptor.getSizes(), type.getElementType()));
  return success();
}

LogicalResult SliceOp::verify() {
  auto type = tensorType(getInput());
  size_t rank = type.getRank();
  if (getStarts().size() != rank || getSizes().size() != rank ||
      getSteps().size() != rank)
    return emitOpError("starts, sizes and steps must have ")
           << rank << " entries";
  for (size_t d = 0; d < rank; ++d) {
    int64_t first = getStarts()[d], size = getSizes()[d], step = getSteps()[d];
    if (step == 0)
      return emitOpError("steps must not be 0");
    // Check sizes and steps against the dimension first: the product below must
    // not overflow.
    int64_t count = type.getDimSize(d);
    bool tooFar =
        size > count || (size > 1 && (step >= count || step <= -count));
    int64_t last = tooFar ? first : first + (size - 1) * step;
    if (size > 0 &&
        (tooFar || first < 0 || first >= count || last < 0 || last >= count))
      return emitOpError("reads outside of dimension ")
             << d << ": " << size << " elements from " << first
             << " by steps of " << step << ", of " << count;
  }
  return success();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType() &&
      llvm::all_of(getSteps(), [](int64_t step) { return step == 1; }))
    return getInput();
  return {};
}

namespace {
/// A slice that reads one operand of a concat becomes a slice of that operand.
struct SliceOfConcat : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const override {
    auto concat = op.getInput().getDefiningOp<ConcatOp>();
    if (!concat || op.getType().getNumElements() == 0)
      return failure();
    int64_t axis = concat.getAxis();
    int64_t first = op.getStarts()[axis];
    int64_t last = first + (op.getSizes()[axis] - 1) * op.getSteps()[axis];
    if (first > last)
      std::swap(first, last);
    int64_t begin = 0;
    for (Value input : concat.getInputs()) {
      int64_t end = begin + tensorType(input).getDimSize(axis);
      if (first >= begin && last < end) {
        SmallVector<int64_t> starts(op.getStarts());
        starts[axis] -= begin;
        rewriter.replaceOpWithNewOp<SliceOp>(op, op.getType(), input, starts,
                                             op.getSizes(), op.getSteps());
        return success();
      }
      begin = end;
    }
    return failure();
  }
};
} // namespace

namespace {
/// A slice of a slice is one slice.
struct MergeSlices : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<SliceOp>();
    if (!inner || op.getType().getNumElements() == 0)
      return failure();
    SmallVector<int64_t> starts, steps;
    for (auto [first, size, step, innerFirst, innerStep] :
         llvm::zip(op.getStarts(), op.getSizes(), op.getSteps(),
                   inner.getStarts(), inner.getSteps())) {
      starts.push_back(innerFirst + first * innerStep);
      // A single element has no step, and the product might overflow.
      steps.push_back(size == 1 ? 1 : step * innerStep);
    }
    rewriter.replaceOpWithNewOp<SliceOp>(op, op.getType(), inner.getInput(),
                                         starts, op.getSizes(), steps);
    return success();
  }
};
} // namespace

void SliceOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<SliceOfConcat, MergeSlices>(context);
}

/// A fused concat chooses its operand by comparing the index; with more
/// operands than this it is a kernel of its own.
bool ConcatOp::isFusible() {
  constexpr unsigned maxJoined = 8;
  return getNumOperands() <= maxJoined;
}

CKOPT_INFER(ConcatOp) {
  ConcatOp::Adaptor adaptor(operands, attributes, properties, regions);
  if (operands.empty())
    return emitOptionalError(loc, "concat needs an operand");
  auto type = tensorType(operands.front());
  int64_t axis = adaptor.getAxis();
  if (failed(checkAxis(loc, axis, type)))
    return failure();
  SmallVector<int64_t> shape(type.getShape());
  for (Value operand : operands.drop_front()) {
    auto other = tensorType(operand);
    if (other.getRank() != type.getRank())
      return emitOptionalError(loc, "operands must have equal ranks");
    for (int64_t d = 0; d < type.getRank(); ++d) {
      if (d == axis) {
        if (llvm::AddOverflow(shape[d], other.getDimSize(d), shape[d]))
          return emitOptionalError(loc, "dimension ", d, " overflows");
      } else if (shape[d] != other.getDimSize(d))
        return emitOptionalError(loc, "operands differ in dimension ", d, ": ",
                                 type, " and ", other);
    }
  }
  results.push_back(
      RankedTensorType::get(shape, type.getElementType(), type.getEncoding()));
  return success();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  if (getInputs().size() == 1 && getInputs()[0].getType() == getType())
    return getInputs()[0];
  return {};
}

bool PadOp::isFusible() {
  return llvm::all_of(getInterior(), [](int64_t n) { return n == 0; });
}

CKOPT_INFER(PadOp) {
  PadOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto type = tensorType(adaptor.getInput());
  size_t rank = type.getRank();
  if (adaptor.getLow().size() != rank || adaptor.getHigh().size() != rank ||
      adaptor.getInterior().size() != rank)
    return emitOptionalError(loc, "low, high and interior must have ", rank,
                             " entries");
  for (ArrayRef<int64_t> widths :
       {adaptor.getLow(), adaptor.getHigh(), adaptor.getInterior()})
    if (llvm::any_of(widths, [](int64_t width) { return width < 0; }))
      return emitOptionalError(loc,
                               "padding must not be negative (slice instead)");
  SmallVector<int64_t> shape;
  for (size_t d = 0; d < rank; ++d) {
    int64_t size = type.getDimSize(d), gaps = std::max<int64_t>(size - 1, 0);
    if (llvm::MulOverflow(gaps, adaptor.getInterior()[d], gaps) ||
        llvm::AddOverflow(size, gaps, size) ||
        llvm::AddOverflow(size, adaptor.getLow()[d], size) ||
        llvm::AddOverflow(size, adaptor.getHigh()[d], size))
      return emitOptionalError(loc, "padding of dimension ", d, " overflows");
    shape.push_back(size);
  }
  results.push_back(
      RankedTensorType::get(shape, type.getElementType(), type.getEncoding()));
  return success();
}

LogicalResult PadOp::verify() {
  Type element = getElementTypeOrSelf(getType());
  double value = getValue().convertToDouble();
  if (!isa<FloatType>(element) && value != std::trunc(value))
    return emitOpError("value ") << value << " is no " << element;
  return success();
}

static bool isZero(ArrayRef<int64_t> values) {
  return llvm::all_of(values, [](int64_t value) { return value == 0; });
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType() && isZero(getLow()) &&
      isZero(getHigh()) && isZero(getInterior()))
    return getInput();
  return {};
}

LogicalResult ExpandOp::verify() {
  auto merged =
      broadcastShapes(tensorType(getInput()).getShape(), getType().getShape());
  if (!merged || *merged != getType().getShape())
    return emitOpError() << getInput().getType() << " does not broadcast to "
                         << getType();
  if (getElementTypeOrSelf(getInput()) != getElementTypeOrSelf(getType()))
    return emitOpError("operand and result must have one element type");
  return success();
}

OpFoldResult ExpandOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  auto constant = dyn_cast_or_null<DenseElementsAttr>(adaptor.getInput());
  if (constant && constant.isSplat())
    return constant.resizeSplat(getType());
  return {};
}

//===----------------------------------------------------------------------===//
// Gather, scatter, relayout
//===----------------------------------------------------------------------===//

/// The vector lanes run over dimensions after the gathered one, so there must
/// be some.
bool GatherOp::isFusible() {
  // Loads from a short list (the levels of quantized numbers) cost less than
  // storing what they give.
  constexpr int64_t kShortList = 64;
  RankedTensorType data = tensorType(getData());
  return int64_t(getAxis()) + 1 < data.getRank() ||
         (data.getRank() == 1 && data.getNumElements() <= kShortList);
}

/// A data tensor without elements can only be indexed by no indices.
static LogicalResult checkIndexed(std::optional<Location> loc,
                                  RankedTensorType data,
                                  RankedTensorType indices, int64_t axis) {
  if (data.getDimSize(axis) == 0 && indices.getNumElements() != 0)
    return emitOptionalError(loc, "there is nothing to index along axis ",
                             axis);
  return success();
}

CKOPT_INFER(GatherOp) {
  GatherOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto data = tensorType(adaptor.getData());
  auto indices = tensorType(adaptor.getIndices());
  int64_t axis = adaptor.getAxis();
  if (failed(checkAxis(loc, axis, data)))
    return failure();
  if (failed(checkIndexed(loc, data, indices, axis)))
    return failure();
  SmallVector<int64_t> shape(data.getShape().take_front(axis));
  llvm::append_range(shape, indices.getShape());
  llvm::append_range(shape, data.getShape().drop_front(axis + 1));
  results.push_back(RankedTensorType::get(shape, data.getElementType()));
  return success();
}

CKOPT_INFER(ScatterAddOp) {
  ScatterAddOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto init = tensorType(adaptor.getInit());
  auto updates = tensorType(adaptor.getUpdates());
  int64_t axis = adaptor.getAxis();
  if (failed(checkAxis(loc, axis, init)))
    return failure();
  auto indices = tensorType(adaptor.getIndices());
  if (failed(checkIndexed(loc, init, indices, axis)))
    return failure();
  SmallVector<int64_t> shape(init.getShape().take_front(axis));
  llvm::append_range(shape, indices.getShape());
  llvm::append_range(shape, init.getShape().drop_front(axis + 1));
  if (ArrayRef<int64_t>(shape) != updates.getShape() ||
      init.getElementType() != updates.getElementType())
    return emitOptionalError(
        loc, "updates must have the type of a gather from init, ",
        RankedTensorType::get(shape, init.getElementType()), ", got ", updates);
  results.push_back(operands.front().getType());
  return success();
}

/// Checks the indices of gather_elements and scatter_elements against the data.
static LogicalResult checkElementIndices(std::optional<Location> loc,
                                         RankedTensorType data,
                                         RankedTensorType indices,
                                         int64_t axis) {
  if (failed(checkAxis(loc, axis, data)))
    return failure();
  if (indices.getRank() != data.getRank())
    return emitOptionalError(loc, "indices must have the rank of the data, ",
                             data.getRank(), ", got ", indices);
  for (int64_t d = 0; d < data.getRank(); ++d)
    if (d != axis && indices.getDimSize(d) > data.getDimSize(d))
      return emitOptionalError(loc, "indices have ", indices.getDimSize(d),
                               " entries in dimension ", d,
                               " where the data has ", data.getDimSize(d));
  return checkIndexed(loc, data, indices, axis);
}

CKOPT_INFER(GatherElementsOp) {
  GatherElementsOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto data = tensorType(adaptor.getData());
  auto indices = tensorType(adaptor.getIndices());
  if (failed(checkElementIndices(loc, data, indices, adaptor.getAxis())))
    return failure();
  results.push_back(
      RankedTensorType::get(indices.getShape(), data.getElementType()));
  return success();
}

CKOPT_INFER(ScatterElementsOp) {
  ScatterElementsOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto init = tensorType(adaptor.getInit());
  auto indices = tensorType(adaptor.getIndices());
  auto updates = tensorType(adaptor.getUpdates());
  if (failed(checkElementIndices(loc, init, indices, adaptor.getAxis())))
    return failure();
  if (indices.getShape() != updates.getShape() ||
      init.getElementType() != updates.getElementType())
    return emitOptionalError(
        loc, "updates must be ",
        RankedTensorType::get(indices.getShape(), init.getElementType()),
        ", got ", updates);
  if (adaptor.getKind() != ScatterKind::Set &&
      init.getElementType().isInteger(1))
    return emitOptionalError(loc, "truth values can only be set");
  results.push_back(operands.front().getType());
  return success();
}

CKOPT_INFER(CumulativeSumOp) {
  CumulativeSumOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto type = tensorType(adaptor.getInput());
  int64_t axis = adaptor.getAxis();
  if (failed(checkAxis(loc, axis, type)))
    return failure();
  results.push_back(type);
  return success();
}

CKOPT_INFER(TopKOp) {
  TopKOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto type = tensorType(adaptor.getInput());
  int64_t axis = adaptor.getAxis(), k = adaptor.getK();
  if (failed(checkAxis(loc, axis, type)))
    return failure();
  if (k < 0 || k > type.getDimSize(axis))
    return emitOptionalError(loc, "k is ", k, ", but axis ", axis, " has ",
                             type.getDimSize(axis), " elements");
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = k;
  results.push_back(
      RankedTensorType::get(shape, IntegerType::get(context, 64)));
  return success();
}

CKOPT_INFER(PinOp) {
  results.push_back(operands.front().getType());
  return success();
}

OpFoldResult RelayoutOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto inner = getInput().getDefiningOp<RelayoutOp>())
    if (inner.getInput().getType() == getType())
      return inner.getInput();
  return {};
}
