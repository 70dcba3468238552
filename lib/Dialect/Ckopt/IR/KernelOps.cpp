//===- KernelOps.cpp - kernel calls ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace ckopt;

#define GET_OP_CLASSES
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.cpp.inc"

LogicalResult KernelCallOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto callee = tables.lookupNearestSymbolFrom<FunctionOpInterface>(
      getOperation(), getCalleeAttr());
  if (!callee)
    return emitOpError("calls an unknown kernel ") << getCalleeAttr();
  if (!llvm::equal(callee.getArgumentTypes(), getArgs().getTypes()) ||
      !llvm::equal(callee.getResultTypes(), getOuts().getTypes()))
    return emitOpError("operand and result types differ from those of kernel ")
           << getCalleeAttr();
  auto checkPairs = [&](ArrayRef<int64_t> pairs,
                        StringRef what) -> LogicalResult {
    if (pairs.size() % 2)
      return emitOpError() << what << " must hold pairs (operand, result)";
    for (size_t i = 0; i < pairs.size(); i += 2)
      if (pairs[i] < 0 || pairs[i] >= int64_t(getArgs().size()) ||
          pairs[i + 1] < 0 || pairs[i + 1] >= int64_t(getOuts().size()))
        return emitOpError() << what
                             << " names an operand or result that "
                                "does not exist";
    return success();
  };
  if (failed(checkPairs(getReuse(), "reuse")) ||
      failed(checkPairs(getUpdates(), "updates")))
    return failure();
  if (getOffsets() && getOffsets()->size() != getOuts().size())
    return emitOpError("offsets must hold one entry a result");
  return success();
}
