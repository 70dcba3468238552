//===- MakeEval.cpp - the evaluation form of a training function ----------===//
//
// The clone is rewritten op by op: dropout becomes its input, batch
// normalization takes the statistics that training tracks: its own mean and
// variance lead, through moving_average ops, to the arguments that hold the
// running ones.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Normalize/Passes.h"
#include "mlir/IR/SymbolTable.h"

namespace ckopt {
#define GEN_PASS_DEF_MAKEEVALPASS
#include "ckopt/Normalize/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

/// The argument that tracks a batch statistic: old value of the moving average
/// that the statistic reaches, directly or through one-to-one ops (a cast, a
/// factor that makes a variance unbiased).
static BlockArgument trackedBy(Value statistic, unsigned depth = 0) {
  for (OpOperand &use : statistic.getUses()) {
    Operation *user = use.getOwner();
    if (auto average = dyn_cast<MovingAverageOp>(user)) {
      auto argument = dyn_cast<BlockArgument>(average.getOld());
      if (argument && average.getValue() == statistic)
        return argument;
      continue;
    }
    if (depth < 4 && user->getNumResults() == 1 &&
        isa<CastOp, MulOp, DivOp, ReshapeOp>(user))
      if (BlockArgument found = trackedBy(user->getResult(0), depth + 1))
        return found;
  }
  return {};
}

static void useRunningStatistics(BatchNormOp op) {
  BlockArgument mean = trackedBy(op.getMean());
  BlockArgument variance = trackedBy(op.getVariance());
  if (!mean || !variance || mean.getType() != op.getMean().getType() ||
      variance.getType() != op.getVariance().getType()) {
    InFlightDiagnostic remark =
        op.emitRemark("evaluation normalizes with the statistics of the batch: "
                      "no argument tracks running ones");
    if (StringRef node = nodeName(op.getLoc()); !node.empty())
      remark << " (node '" << node << "')";
    return;
  }
  OpBuilder builder(op);
  Value output = BatchNormInferenceOp::create(
      builder, op.getLoc(), op.getInput(), op.getScale(), op.getBias(), mean,
      variance, op.getEpsilonAttr());
  op.getOutput().replaceAllUsesWith(output);
  op.getMean().replaceAllUsesWith(mean);
  op.getVariance().replaceAllUsesWith(variance);
  op.erase();
}

FailureOr<func::FuncOp> ckopt::makeEval(func::FuncOp function, StringRef name,
                                        bool asWritten) {
  if (failed(checkStraightLine(function)))
    return failure();
  auto symbol = StringAttr::get(function.getContext(), name);
  if (SymbolTable::lookupNearestSymbolFrom(function, symbol))
    return function.emitError("the module has a '") << name << "' already";
  func::FuncOp eval = function.clone();
  eval.setSymName(name);
  OpBuilder builder(function.getContext());
  builder.setInsertionPointAfter(function);
  builder.insert(eval);
  SmallVector<BatchNormOp> norms;
  for (Operation &op : eval.getBody().front()) {
    if (asWritten)
      break;
    if (auto dropout = dyn_cast<DropoutOp>(op))
      dropout.getOutput().replaceAllUsesWith(dropout.getInput());
    else if (auto norm = dyn_cast<BatchNormOp>(op))
      norms.push_back(norm);
  }
  for (BatchNormOp norm : norms)
    useRunningStatistics(norm);
  SmallVector<Result> results = takeResults(eval);
  llvm::erase_if(results, [](const Result &result) {
    return bool(result.get(attrs::kUpdates));
  });
  setResults(eval, results);
  eraseDeadOps(eval);
  return eval;
}

namespace {
struct MakeEval : ckopt::impl::MakeEvalPassBase<MakeEval> {
  using MakeEvalPassBase::MakeEvalPassBase;
  void runOnOperation() override {
    auto found = getOperation().lookupSymbol<func::FuncOp>(function);
    if (!found) {
      getOperation().emitError("no function '") << function << "'";
      return signalPassFailure();
    }
    if (failed(makeEval(found, result, asWritten)))
      return signalPassFailure();
    if (replace)
      found.erase();
  }
};
} // namespace
