//===- MakeEval.cpp - the evaluation form of a training function ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes the evaluation function of a training step. The clone is rewritten op
// by op: dropout becomes its input, also where exporters write it out as random
// numbers (of whole channels, of paths), and batch normalization takes the
// running statistics: its own mean and variance lead, through moving_average
// ops, to the arguments that hold them. Batch norms that are not trained take
// them in training as well (freezeNorms). Other random numbers are the model's
// function and stay, which a remark says.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/IR/Splat.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/StopGradient.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Normalize/Passes.h"
#include "mlir/IR/SymbolTable.h"

namespace ckopt {
#define GEN_PASS_DEF_MAKEEVALPASS
#define GEN_PASS_DEF_FREEZENORMSPASS
#include "ckopt/Normalize/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

/// Returns the argument that tracks a batch statistic: the old value of the
/// moving average that the statistic reaches, directly or through one-to-one
/// ops (a cast, a factor that makes a variance unbiased).
static BlockArgument trackedBy(Value statistic, unsigned depth = 0) {
  for (OpOperand &use : statistic.getUses()) {
    Operation *user = use.getOwner();
    if (auto average = dyn_cast<MovingAverageOp>(user)) {
      // A layer that runs twice has two averages in a row.
      Value old = average.getOld();
      while (auto earlier = old.getDefiningOp<MovingAverageOp>())
        old = earlier.getOld();
      auto argument = dyn_cast<BlockArgument>(old);
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

/// Returns the arguments that track an op's mean and variance, or null.
static std::pair<BlockArgument, BlockArgument> runningOf(BatchNormOp op) {
  BlockArgument mean = trackedBy(op.getMean());
  BlockArgument variance = trackedBy(op.getVariance());
  if (!mean || !variance || mean.getType() != op.getMean().getType() ||
      variance.getType() != op.getVariance().getType())
    return {};
  return {mean, variance};
}

static void useRunningStatistics(BatchNormOp op) {
  auto [mean, variance] = runningOf(op);
  if (!mean) {
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

/// Whether a quotient is the factor of a dropout: 1/p with probability p, else
/// 0. PyTorch's exporter writes dropout1d to 3d as such, and libraries of
/// networks the dropout of paths.
static bool isDropoutFactor(DivOp op) {
  auto cast = op.getLhs().getDefiningOp<CastOp>();
  auto less = cast ? cast.getInput().getDefiningOp<CompareOp>() : nullptr;
  if (!less || less.getPredicate() != ComparePredicate::LT)
    return false;
  auto random = less.getLhs().getDefiningOp<RandomOp>();
  std::optional<double> p = splatNumber(less.getRhs());
  return random && random.getKind() == RandomKind::Uniform && p &&
         p == splatNumber(op.getRhs()) && op.getType() == cast.getType();
}

static void replaceByOne(DivOp op) {
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(op.getType());
  auto ones = DenseElementsAttr::get(
      type, builder.getFloatAttr(type.getElementType(), 1.0));
  op.getOutput().replaceAllUsesWith(
      ConstantOp::create(builder, op.getLoc(), type, ones));
}

/// Says that evaluation draws random numbers.
static void reportRandom(func::FuncOp eval) {
  auto ops = eval.getBody().front().getOps<RandomOp>();
  if (ops.empty())
    return;
  InFlightDiagnostic remark =
      (*ops.begin())
          .emitRemark("evaluation draws the random numbers of the model, too");
  if (size_t others = llvm::range_size(ops) - 1)
    remark << " (and of " << others << " more nodes)";
}

/// Takes the dropout out of attention.
static void dropNothing(AttentionOp op) {
  op.getSeedMutable().clear();
  op.getStepMutable().clear();
  op.removeRatioAttr();
  op.removeSiteAttr();
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
    else if (auto attention = dyn_cast<AttentionOp>(op))
      dropNothing(attention);
    else if (auto quotient = dyn_cast<DivOp>(op);
             quotient && isDropoutFactor(quotient))
      replaceByOne(quotient);
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
  removeStops(eval.getBody().front());
  eraseDeadOps(eval);
  if (!asWritten)
    reportRandom(eval);
  return eval;
}

//===----------------------------------------------------------------------===//
// Norms that are not trained
//===----------------------------------------------------------------------===//

/// Returns the role of the argument that a scale or bias comes from; "" for a
/// constant.
static StringRef roleOf(func::FuncOp function, Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (op->getNumOperands() != 1)
      return "";
    value = op->getOperand(0); // a cast, a reshape
  }
  return argumentRole(function, cast<BlockArgument>(value).getArgNumber());
}

static bool isFrozenNorm(func::FuncOp function, BatchNormOp op) {
  StringRef scale = roleOf(function, op.getScale());
  StringRef bias = roleOf(function, op.getBias());
  if (scale == roles::kParameter || bias == roles::kParameter)
    return false;
  if (scale == roles::kFrozen || bias == roles::kFrozen)
    return true;
  BlockArgument mean = runningOf(op).first;
  return mean && function.getArgAttr(mean.getArgNumber(), kFrozenAttr);
}

SmallVector<Operation *> ckopt::findFrozenNorms(func::FuncOp function) {
  SmallVector<Operation *> norms;
  function.walk([&](BatchNormOp op) {
    if (isFrozenNorm(function, op))
      norms.push_back(op);
  });
  return norms;
}

LogicalResult ckopt::freezeNorms(func::FuncOp function) {
  if (failed(checkStraightLine(function)))
    return failure();
  llvm::SmallDenseSet<int64_t> kept;
  SmallVector<BatchNormOp> norms;
  for (Operation *op : findFrozenNorms(function)) {
    auto norm = cast<BatchNormOp>(op);
    auto [mean, variance] = runningOf(norm);
    if (!mean)
      return norm.emitError("cannot be frozen: no argument tracks its running "
                            "statistics");
    kept.insert(mean.getArgNumber());
    kept.insert(variance.getArgNumber());
    norms.push_back(norm);
  }
  SmallVector<Result> results = takeResults(function);
  llvm::erase_if(results, [&](const Result &result) {
    auto updated = dyn_cast_or_null<IntegerAttr>(result.get(attrs::kUpdates));
    return updated && kept.contains(updated.getInt());
  });
  setResults(function, results);
  // The moving averages are dead now, but still lead to the arguments.
  for (BatchNormOp norm : norms)
    useRunningStatistics(norm);
  eraseDeadOps(function);
  return success();
}

namespace {
struct FreezeNorms : ckopt::impl::FreezeNormsPassBase<FreezeNorms> {
  using FreezeNormsPassBase::FreezeNormsPassBase;
  void runOnOperation() override {
    auto found = getOperation().lookupSymbol<func::FuncOp>(function);
    if (!found) {
      getOperation().emitError("no function '") << function << "'";
      return signalPassFailure();
    }
    if (failed(freezeNorms(found)))
      signalPassFailure();
  }
};

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
