//===- Distribute.cpp - a step's share of one rank ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: N processes train on N shares of each batch and must end each step
// with the same bits. Method: every result that depends on samples becomes a
// sum over ranks. Gradients wait for each other in buckets, which are closed in
// the order in which the backward pass makes gradients, so that the sum of the
// first ones can begin while later ones are still computed. Dropouts of samples
// draw the numbers that one process draws for the same samples: the rank's
// number goes into the upper half of the step that they read. Guarantee: which
// gradients share a bucket and the order of every addition follow from the
// program alone; a memory budget is known to later phases only. O(ops).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

namespace {
class Distributor {
public:
  Distributor(func::FuncOp function, const DistributeOptions &options)
      : function(function), options(options) {}

  LogicalResult run();

private:
  LogicalResult check();
  LogicalResult numberDraws();
  LogicalResult checkDraw(Operation *op);
  LogicalResult averageState(const Result &result);
  void addToBucket(Value gradient);
  void closeBucket(Type element);
  void sumGradients(ArrayRef<Result> results);
  Value sum(Value value);

  struct Bucket {
    SmallVector<Value> gradients;
    int64_t bytes = 0;
  };

  func::FuncOp function;
  const DistributeOptions &options;
  int64_t samples = 0;                ///< of a rank; 0: there are no inputs
  llvm::MapVector<Type, Bucket> open; ///< by element type
  llvm::DenseMap<Value, Value> sums;  ///< looked up only
};
} // namespace

LogicalResult Distributor::check() {
  if (options.ranks < 1)
    return function.emitError("distribute: needs 1 rank or more, got ")
           << options.ranks;
  if (options.bucketBytes < 1)
    return function.emitError("distribute: a bucket needs 1 byte or more, got ")
           << options.bucketBytes;
  return success();
}

/// The numbers that an op draws: one for each element, or each score.
static int64_t drawnNumbers(Operation *op) {
  if (!isa<AttentionOp, AttentionGradOp>(op))
    return tensorType(op->getResult(0)).getNumElements();
  int64_t count = tensorType(op->getOperand(1)).getShape().take_back(2)[0];
  for (int64_t size : tensorType(op->getOperand(0)).getShape().drop_back())
    count *= size;
  return count;
}

/// Checks that a rank's numbers follow those of the rank before: samples lie
/// along dimension 0, and blocks of four numbers belong to one rank.
LogicalResult Distributor::checkDraw(Operation *op) {
  if (isa<RandomOp>(op))
    return op->emitError("draws random numbers that depend on no sample: how "
                         "ranks share them is not known");
  if (int64_t count = drawnNumbers(op); count % 4)
    return op->emitError("draws ")
           << count << " numbers for a rank's samples, which come in fours: "
           << "choose another --batch";
  ArrayRef<int64_t> shape = tensorType(op->getResult(0)).getShape();
  if (!samples || (!shape.empty() && shape.front() % samples == 0))
    return success();
  return op->emitError("draws random numbers for ")
         << op->getResult(0).getType() << ", whose dimension 0 does not hold "
         << "the " << samples << " samples of a rank";
}

/// Makes draws for samples depend on the rank. A draw for what no sample enters
/// (weights) stays the same on all ranks. An op's gradient draws the same
/// numbers as the op, which comes first, so the first of a site decides.
LogicalResult Distributor::numberDraws() {
  llvm::DenseSet<Value> fromSamples;
  llvm::DenseMap<int64_t, bool> ofSamples; // by site
  llvm::DenseMap<Value, Value> numbered;
  for (BlockArgument argument : function.getArguments()) {
    StringRef role = argumentRole(function, argument.getArgNumber());
    if (role != roles::kInput && role != roles::kTarget)
      continue;
    fromSamples.insert(argument);
    auto type = cast<RankedTensorType>(argument.getType());
    if (!samples && role == roles::kInput && type.getRank())
      samples = type.getDimSize(0);
  }
  for (Operation &op : function.front()) {
    bool enters = llvm::any_of(op.getOperands(), [&](Value operand) {
      return fromSamples.contains(operand);
    });
    if (enters)
      fromSamples.insert(op.result_begin(), op.result_end());
    std::optional<int64_t> site = randomSite(&op);
    if (!site)
      continue;
    if (!ofSamples.try_emplace(*site, enters || isa<RandomOp>(op))
             .first->second)
      continue;
    if (failed(checkDraw(&op)))
      return failure();
    Value step = isa<DropoutOp>(op)     ? cast<DropoutOp>(op).getStep()
                 : isa<AttentionOp>(op) ? cast<AttentionOp>(op).getStep()
                                        : cast<AttentionGradOp>(op).getStep();
    Value &own = numbered[step];
    if (!own) {
      OpBuilder builder(&op);
      TensorBuilder b(builder, function.getLoc());
      Value rank =
          RankOp::create(builder, b.loc, step.getType(), options.ranks);
      own = b.add(step, b.mul(rank, 0x1p32));
    }
    for (OpOperand &operand : op.getOpOperands())
      if (operand.get() == step)
        operand.set(own);
  }
  return success();
}

/// Returns the op behind which the value can be used; null: an argument.
static Operation *makerOf(Value value) { return value.getDefiningOp(); }

/// Returns the sum over ranks of a single value, made right behind it.
Value Distributor::sum(Value value) {
  OpBuilder builder(function.getContext());
  if (Operation *maker = makerOf(value))
    builder.setInsertionPointAfter(maker);
  else
    builder.setInsertionPointToStart(&function.front());
  return AllReduceOp::create(builder, value.getLoc(), value, options.ranks)
      .getResult(0);
}

/// Makes what a moving average learns from its rank's samples the mean over
/// ranks.
LogicalResult Distributor::averageState(const Result &result) {
  Operation *maker = makerOf(result.value);
  if (!maker)
    return success(); // the state stays as it is, on all ranks alike
  auto average = dyn_cast<MovingAverageOp>(maker);
  if (!average)
    return maker->emitError("makes a new value of a state (")
           << maker->getName()
           << "); how ranks would agree on it is not known: data parallel "
              "training has running statistics alone";
  Value total = sum(average.getValue());
  OpBuilder builder(average);
  TensorBuilder b(builder, average.getLoc());
  average.getValueMutable().assign(b.mul(total, 1 / double(options.ranks)));
  return success();
}

void Distributor::closeBucket(Type element) {
  Bucket bucket = std::move(open[element]);
  open[element] = Bucket();
  if (bucket.gradients.empty())
    return;
  OpBuilder builder(function.getContext());
  builder.setInsertionPointToStart(&function.front());
  Operation *last = nullptr;
  for (Value gradient : bucket.gradients)
    if (Operation *maker = makerOf(gradient))
      if (!last || last->isBeforeInBlock(maker))
        last = maker;
  if (last)
    builder.setInsertionPointAfter(last);
  auto op = AllReduceOp::create(builder, bucket.gradients.back().getLoc(),
                                bucket.gradients, options.ranks);
  for (auto [gradient, total] :
       llvm::zip_equal(bucket.gradients, op.getOutputs()))
    sums[gradient] = total;
}

void Distributor::addToBucket(Value gradient) {
  auto type = cast<RankedTensorType>(gradient.getType());
  Bucket &bucket = open[type.getElementType()];
  bucket.gradients.push_back(gradient);
  bucket.bytes += getByteSize(type);
  if (bucket.bytes >= options.bucketBytes)
    closeBucket(type.getElementType());
}

void Distributor::sumGradients(ArrayRef<Result> results) {
  // In the order of the backward pass; what is no op's result comes first.
  llvm::DenseMap<Operation *, unsigned> places;
  for (auto [i, op] : llvm::enumerate(function.front()))
    places[&op] = unsigned(i) + 1;
  SmallVector<std::pair<unsigned, unsigned>> order; // place, number
  for (auto [i, result] : llvm::enumerate(results))
    if (result.get(kGradientAttr))
      order.push_back({places.lookup(makerOf(result.value)), unsigned(i)});
  llvm::sort(order);
  llvm::DenseSet<Value> taken;
  for (auto [place, i] : order)
    if (taken.insert(results[i].value).second)
      addToBucket(results[i].value);
  SmallVector<Type> elements;
  for (const auto &entry : open)
    elements.push_back(entry.first);
  for (Type element : elements)
    closeBucket(element);
}

LogicalResult Distributor::run() {
  if (failed(checkStraightLine(function)) || failed(check()) ||
      failed(numberDraws()))
    return failure();
  SmallVector<Result> results = takeResults(function);
  sumGradients(results);
  for (Result &result : results) {
    if (result.get(kGradientAttr))
      result.value = sums.lookup(result.value);
    else if (result.get(attrs::kUpdates)) {
      if (failed(averageState(result)))
        return failure();
    } else {
      result.value = sum(result.value);
    }
  }
  setResults(function, results);
  return success();
}

LogicalResult autodiff::distribute(func::FuncOp function,
                                   const DistributeOptions &options) {
  return Distributor(function, options).run();
}
