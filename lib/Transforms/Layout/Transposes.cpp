//===- Transposes.cpp - transposes that are views, and what copies --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Transposes.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Support/ByteSize.h"

using namespace mlir;
using namespace ckopt;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Splits dimensions `fine` into one run for each of `coarse`, whose product it
/// has; false if `coarse` does not come from joining neighbours.
static bool findRuns(ArrayRef<int64_t> fine, ArrayRef<int64_t> coarse,
                     SmallVectorImpl<SmallVector<int64_t>> &runs) {
  size_t next = 0;
  for (int64_t size : coarse) {
    int64_t product = 1;
    auto &run = runs.emplace_back();
    do {
      if (next == fine.size())
        return false;
      run.push_back(int64_t(next));
      product *= fine[next++];
    } while (product < size);
    if (product != size)
      return false;
  }
  return next == fine.size();
}

/// Returns the runs one after another in the order of the permutation if that
/// puts dimension 1 last and leaves the others as they are; else nothing.
static std::optional<SmallVector<int64_t>>
channelsLastOrder(ArrayRef<SmallVector<int64_t>> runs,
                  ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> order;
  for (int64_t run : permutation)
    llvm::append_range(order, runs[run]);
  if (order.size() < 3 || order.back() != 1 || order.front() != 0)
    return std::nullopt;
  for (size_t i = 1; i + 1 < order.size(); ++i)
    if (order[i] != int64_t(i) + 1)
      return std::nullopt;
  return order;
}

/// transpose(reshape(x)) to [N, points, C] becomes reshape(transpose(x)).
static void hoistAbove(TransposeOp op) {
  auto reshape = op.getInput().getDefiningOp<ReshapeOp>();
  if (!reshape)
    return;
  SmallVector<SmallVector<int64_t>> runs;
  if (!findRuns(typeOf(reshape.getInput()).getShape(),
                reshape.getType().getShape(), runs))
    return;
  auto order = channelsLastOrder(runs, op.getPermutation());
  if (!order || order->size() == op.getPermutation().size())
    return;
  OpBuilder b(op);
  Value turned =
      TransposeOp::create(b, op.getLoc(), reshape.getInput(), *order);
  op.replaceAllUsesWith(
      ReshapeOp::create(b, op.getLoc(), op.getType(), turned).getOutput());
  op.erase();
  if (reshape->use_empty())
    reshape.erase();
}

/// reshape(transpose(x)) from [N, points, C] becomes transpose(reshape(x)).
static void sinkBelow(ReshapeOp reshape) {
  auto op = reshape.getInput().getDefiningOp<TransposeOp>();
  if (!op)
    return;
  ArrayRef<int64_t> shape = reshape.getType().getShape();
  SmallVector<SmallVector<int64_t>> runs;
  if (!findRuns(shape, op.getType().getShape(), runs))
    return;
  ArrayRef<int64_t> permutation = op.getPermutation();
  SmallVector<int64_t> inverse(permutation.size());
  for (auto [i, dim] : llvm::enumerate(permutation))
    inverse[dim] = i;
  auto order = channelsLastOrder(runs, inverse);
  if (!order || order->size() == permutation.size())
    return;
  SmallVector<int64_t> split, back(shape.size());
  for (auto [i, dim] : llvm::enumerate(*order)) {
    split.push_back(shape[dim]);
    back[dim] = i;
  }
  OpBuilder b(reshape);
  auto type = RankedTensorType::get(split, reshape.getType().getElementType());
  Value points =
      ReshapeOp::create(b, reshape.getLoc(), type, op.getInput()).getOutput();
  reshape.replaceAllUsesWith(
      TransposeOp::create(b, op.getLoc(), points, back).getOutput());
  reshape.erase();
  if (op->use_empty())
    op.erase();
}

void ckopt::hoistTransposes(func::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(function.front()))
    if (auto transpose = dyn_cast<TransposeOp>(op))
      hoistAbove(transpose);
  for (Operation &op : llvm::make_early_inc_range(function.front()))
    if (auto reshape = dyn_cast<ReshapeOp>(op))
      sinkBelow(reshape);
}

/// Returns whether the user reads the operand in place with these strides.
static bool readsInPlace(OpOperand &use, ArrayRef<int64_t> strides) {
  auto kernel = dyn_cast<KernelOpInterface>(use.getOwner());
  return kernel && kernel.getLayoutRole() == LayoutRole::Matrices &&
         kernel.acceptsStrides(/*isResult=*/false, use.getOperandNumber(),
                               strides);
}

static void placeTranspose(TransposeOp op) {
  auto type = op.getType(), input = typeOf(op.getInput());
  if (!isRowMajor(type) || !isRowMajor(input))
    return;
  ArrayRef<int64_t> permutation = op.getPermutation();
  SmallVector<int64_t> inverse(permutation.size());
  for (auto [i, dim] : llvm::enumerate(permutation))
    inverse[dim] = i;
  auto product = op.getInput().getDefiningOp<KernelOpInterface>();
  RankedTensorType written = withOrder(input, permutation);
  SmallVector<int64_t> strides = getElementStrides(written);
  if (product && product.getLayoutRole() == LayoutRole::Matrices &&
      product.acceptsStrides(/*isResult=*/true,
                             cast<OpResult>(op.getInput()).getResultNumber(),
                             strides) &&
      llvm::all_of(op.getInput().getUses(), [&](OpOperand &use) {
        return use.getOwner() == op || readsInPlace(use, strides);
      })) {
    op.getInput().setType(written);
    return;
  }
  RankedTensorType read = withOrder(type, inverse);
  strides = getElementStrides(read);
  if (!op->use_empty() && llvm::all_of(op->getUses(), [&](OpOperand &use) {
        return readsInPlace(use, strides);
      }))
    op.getOutput().setType(read);
}

void ckopt::placeTransposes(func::FuncOp function) {
  for (auto op : function.getOps<TransposeOp>())
    placeTranspose(op);
}

namespace {
struct Count {
  int64_t ops = 0, bytes = 0;

  /// Counts an op that reads and writes every element of its result.
  void add(Operation *op) {
    ++ops;
    bytes += 2 * getByteSize(typeOf(op->getResult(0)));
  }
};
} // namespace

/// "1 relayout moves up to 2 MiB", "no relayout".
static std::string textOf(Count count, StringRef noun) {
  if (!count.ops)
    return ("no " + noun).str();
  return (Twine(count.ops) + " " + noun +
          (count.ops == 1 ? " moves up to " : "s move up to ") +
          formatBytes(count.bytes))
      .str();
}

void ckopt::remarkCopies(func::FuncOp function) {
  Count relayouts, transposes;
  int64_t views = 0;
  bool hasConvolution = false;
  for (Operation &op : function.front()) {
    auto kernel = dyn_cast<KernelOpInterface>(op);
    hasConvolution |=
        kernel && kernel.getLayoutRole() == LayoutRole::Convolution;
    if (isa<RelayoutOp>(op)) {
      relayouts.add(&op);
    } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
      if (transpose.getKernelKind() == KernelKind::View)
        ++views;
      else
        transposes.add(&op);
    }
  }
  if (!relayouts.ops && !transposes.ops && !views && !hasConvolution)
    return;
  emitRemark(function.getLoc())
      << "layout of '" << function.getSymName()
      << "': " << textOf(relayouts, "relayout") << ", "
      << textOf(transposes, "transpose") << " (" << views << " more are views)";
}
