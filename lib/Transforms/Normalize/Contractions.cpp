//===- Contractions.cpp - products in the forms that libraries take -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewrites products and convolutions into forms that libraries have. The CPU's
// library has no f16: such ops are computed in f32 and rounded once. A product
// has at most two batch dimensions with strides of their own: where
// broadcasting makes more of them, the operands are expanded, after which all
// batch dimensions merge into one.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Normalize/Normalize.h"

using namespace mlir;
using namespace ckopt;

/// Computes the op in f32, between casts.
static void widen(Operation *op) {
  OpBuilder builder(op);
  Value result = op->getResult(0);
  RankedTensorType type = tensorType(result);
  for (OpOperand &operand : op->getOpOperands()) {
    TensorBuilder b(builder, op->getLoc());
    if (getElementTypeOrSelf(operand.get()).isF16())
      operand.set(b.cast(operand.get(), builder.getF32Type()));
  }
  result.setType(type.clone(builder.getF32Type()));
  builder.setInsertionPointAfter(op);
  auto narrow = CastOp::create(builder, op->getLoc(), type, result);
  result.replaceAllUsesExcept(narrow, narrow);
}

/// Returns whether `operand` is repeated along dimension `d` of the result's
/// batch.
static bool repeats(RankedTensorType operand, RankedTensorType result,
                    int64_t d) {
  int64_t own = d - (result.getRank() - operand.getRank());
  return result.getDimSize(d) != 1 && (own < 0 || operand.getDimSize(own) == 1);
}

/// Counts groups of adjacent batch dimensions in which each operand is either
/// repeated or not.
static int64_t countRuns(MatMulOp op) {
  RankedTensorType result = op.getType();
  int64_t runs = 0;
  std::pair<bool, bool> last;
  for (int64_t d = 0; d + 2 < result.getRank(); ++d) {
    if (result.getDimSize(d) == 1)
      continue;
    std::pair<bool, bool> now{repeats(tensorType(op.getLhs()), result, d),
                              repeats(tensorType(op.getRhs()), result, d)};
    runs += runs == 0 || now != last;
    last = now;
  }
  return runs;
}

/// Expands the operands and merges the batch into one dimension without
/// repetition.
static void flattenBatch(MatMulOp op) {
  OpBuilder builder(op);
  TensorBuilder b(builder, op.getLoc());
  ArrayRef<int64_t> result = op.getType().getShape();
  int64_t batch = 1;
  for (int64_t size : result.drop_back(2))
    batch *= size;
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    ArrayRef<int64_t> matrix = tensorType(operand).getShape().take_back(2);
    SmallVector<int64_t> whole(result.drop_back(2));
    llvm::append_range(whole, matrix);
    operands.push_back(
        b.reshape(b.expand(operand, whole), {batch, matrix[0], matrix[1]}));
  }
  Value product = b.make<MatMulOp>(operands[0], operands[1],
                                   op.getTransposeLhs(), op.getTransposeRhs());
  op.getOutput().replaceAllUsesWith(b.reshape(product, result));
  op.erase();
}

void ckopt::fitContractions(func::FuncOp function, bool widenHalves) {
  SmallVector<Operation *> halves;
  SmallVector<MatMulOp> products;
  function.walk([&](Operation *op) {
    auto kernel = dyn_cast<KernelOpInterface>(op);
    if (!kernel || kernel.getKernelKind() != KernelKind::Library)
      return;
    if (widenHalves && getElementTypeOrSelf(op->getResult(0)).isF16())
      halves.push_back(op);
    if (auto product = dyn_cast<MatMulOp>(op);
        product && countRuns(product) > 2)
      products.push_back(product);
  });
  for (Operation *op : halves)
    widen(op);
  for (MatMulOp op : products)
    flattenBatch(op);
}
