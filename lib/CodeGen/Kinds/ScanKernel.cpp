//===- ScanKernel.cpp - cumulative_sum ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each item carries a sum along the axis: a row, or (where the axis is not
// innermost) a vector of neighbouring columns. The order of additions is that
// of the axis, whatever the ranges; f16 and bf16 are summed in f32. On a GPU, a
// thread computes a row or a column.
//
// Complexity: O(elements), as many dependent additions as the axis is long.
//
//===----------------------------------------------------------------------===//
#include "StructuredKernel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

namespace {

class ScanKernel : public AxisKernel {
public:
  ScanKernel(func::FuncOp kernel, const CodegenOptions &options,
             CumulativeSumOp scan)
      : AxisKernel(kernel, options, scan, scan.getType().getShape(),
                   int64_t(scan.getAxis())),
        scan(scan) {}

protected:
  LogicalResult analyze() override {
    rangeColumns = lanes;
    columnWork = shape[axis];
    // Each element is read before its sum is written, so both may share bytes.
    return planOp(/*inPlace=*/true);
  }

  void emitItem(Emitter &e, const Place &place) override {
    overColumns(e, place, [&](ArrayRef<AffineExpr> at) { emitSum(e, at); });
  }

private:
  void emitSum(Emitter &e, ArrayRef<AffineExpr> at) {
    RankedTensorType type = scan.getType();
    int64_t length = shape[axis];
    Value zero = e.constant(computeType(type.getElementType()), int64_t(0));
    if (columns && e.dependsOnLane(at.back()))
      zero = e.splat(zero);
    e.forLoop(e.index(0), e.index(length), 1, {zero},
              [&](Value step, ValueRange carried) {
                if (scan.getReverse())
                  step = e.sub(e.index(length - 1), step);
                SmallVector<AffineExpr> index(at);
                index[axis] = e.addDim(step);
                Value before = carried.front();
                Value sum = e.add(before, e.emit(scan.getInput(), index));
                e.store(0, type, index, scan.getExclusive() ? before : sum);
                return SmallVector<Value>{sum};
              });
  }

  CumulativeSumOp scan;
};

} // namespace

void codegen::addScanKernels(StructuredKernels &kernels) {
  kernels.add<CumulativeSumOp>(
      [](func::FuncOp kernel, const CodegenOptions &options,
         Operation *op) -> std::unique_ptr<GeneratedKernel> {
        return std::make_unique<ScanKernel>(kernel, options,
                                            cast<CumulativeSumOp>(op));
      });
}
