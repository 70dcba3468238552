//===- Bufferize.cpp - ckopt.barrier in one-shot bufferization ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bufferizes barriers: a barrier becomes its operand. After bufferization a
// clone writes to its own buffer and can no longer be merged with its original,
// so the barrier is not needed.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "ckopt/Interfaces/Compat.h"
#include "ckopt/Remat/Remat.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"

using namespace mlir;
using namespace mlir::bufferization;

namespace {
struct BarrierModel
    : ckopt::compat::BufferModel<BarrierModel, ckopt::BarrierOp> {
  /// Barriers on scalars are removed as well.
  bool hasTensorSemantics(Operation *) const { return true; }
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return false;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *op, OpOperand &,
                                      const AnalysisState &) const {
    return {{op->getResult(0), BufferRelation::Equivalent}};
  }
  LogicalResult toBuffers(Operation *op, RewriterBase &rewriter,
                          ckopt::compat::GetBuffer getBuffer) const {
    Value input = op->getOperand(0);
    if (!isa<TensorType>(input.getType())) {
      rewriter.replaceOp(op, input);
      return success();
    }
    FailureOr<Value> buffer = getBuffer(input);
    if (failed(buffer))
      return failure();
    replaceOpWithBufferizedValues(rewriter, op, *buffer);
    return success();
  }
};
} // namespace

void ckopt::registerBarrierBufferization(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, ckopt::CkoptDialect *dialect) {
        BarrierOp::attachInterface<BarrierModel>(*context);
      });
}
