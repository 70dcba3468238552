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
// number goes into the upper half of the step that they read. Fully sharded,
// parameters become shards (Sharding.h), and of a gradient's sum each rank gets
// its part, in smaller buckets, so that few gradients are whole at a time.
// Guarantee: which
// gradients share a bucket and the order of every addition follow from the
// program alone; a memory budget is known to later phases only. O(ops).
//
//===----------------------------------------------------------------------===//
#include "Sharding.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"

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
  void share();
  Sharing gradientSharing(const Result &result);

  /// Gradients that are summed by one op; those of shards with how they are
  /// shared.
  struct Bucket {
    SmallVector<Value> gradients;
    SmallVector<Sharing> sharings;
    int64_t bytes = 0;
  };
  /// Buckets hold one element type, and shards or whole tensors.
  using Kind = std::pair<Type, unsigned>;
  void addToBucket(Value gradient, const Sharing &sharing);
  void closeBucket(Kind kind);
  void scatterBucket(OpBuilder &builder, const Bucket &bucket);
  void sumGradients(ArrayRef<Result> results);
  Value sum(Value value);

  func::FuncOp function;
  const DistributeOptions &options;
  int64_t samples = 0;               ///< of a rank; 0: there are no inputs
  RankGroup group;                   ///< of ranks that share parameters
  llvm::StringMap<Sharing> sharings; ///< by name of the argument
  int64_t scatterBytes = 0;          ///< where a bucket of shards is closed
  llvm::MapVector<Kind, Bucket> open;
  /// By gradient and form; looked up only.
  llvm::DenseMap<std::pair<Value, unsigned>, Value> sums;
};
} // namespace

LogicalResult Distributor::check() {
  if (options.ranks < 1)
    return function.emitError("distribute: needs 1 rank or more, got ")
           << options.ranks;
  if (options.shards < 1 || options.ranks % options.shards)
    return function.emitError("distribute: ")
           << options.shards
           << " ranks share parameters, which does not divide " << options.ranks
           << " ranks";
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

/// Makes shards of parameters, in all functions that have them.
void Distributor::share() {
  group = {options.shards, 1, options.ranks / options.shards};
  if (options.ranks > 1)
    function->setAttr(
        attrs::kRanks,
        Builder(function.getContext()).getI64IntegerAttr(options.ranks));
  if (options.shards == 1)
    return;
  int64_t bytes = 0;
  for (BlockArgument argument : function.getArguments())
    if (argumentRole(function, argument.getArgNumber()) == roles::kParameter)
      bytes += getByteSize(tensorType(argument));
  scatterBytes = std::min(options.bucketBytes, bucketBytesFor(bytes));
  shardParameters(function, group, sharings);
  if (auto module = function->getParentOfType<ModuleOp>())
    for (auto other : module.getOps<func::FuncOp>())
      if (other != function && !other.isExternal())
        shardParameters(other, group, sharings);
}

/// Returns how ranks share the parameter of a gradient.
Sharing Distributor::gradientSharing(const Result &result) {
  auto index = dyn_cast_or_null<IntegerAttr>(result.get(kGradientAttr));
  if (!index || index.getInt() < 0 ||
      index.getInt() >= function.getNumArguments())
    return Sharing();
  auto found = sharings.find(argumentName(function, unsigned(index.getInt())));
  return found == sharings.end() ? Sharing() : found->second;
}

/// Gives each rank its part of the sums.
void Distributor::scatterBucket(OpBuilder &builder, const Bucket &bucket) {
  TensorBuilder b(builder, bucket.gradients.back().getLoc());
  SmallVector<Value> rows;
  for (auto [gradient, sharing] :
       llvm::zip_equal(bucket.gradients, bucket.sharings))
    rows.push_back(sharing.toRows(b, gradient));
  ValueRange parts = ReduceScatterOp::create(builder, b.loc, rows, group.size,
                                             group.groups, group.stride)
                         .getOutputs();
  // Groups have the same shards, ranks of one place being group.size apart.
  if (group.groups > 1)
    parts = AllReduceOp::create(builder, b.loc, parts, group.groups, group.size,
                                group.size)
                .getOutputs();
  for (auto [gradient, sharing, part] :
       llvm::zip_equal(bucket.gradients, bucket.sharings, parts))
    sums[{gradient, unsigned(sharing.form)}] = part;
}

void Distributor::closeBucket(Kind kind) {
  Bucket bucket = std::move(open[kind]);
  open[kind] = Bucket();
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
  if (kind.second)
    return scatterBucket(builder, bucket);
  auto op = AllReduceOp::create(builder, bucket.gradients.back().getLoc(),
                                bucket.gradients, options.ranks);
  for (auto [gradient, total] :
       llvm::zip_equal(bucket.gradients, op.getOutputs()))
    sums[{gradient, unsigned(ShardForm::Whole)}] = total;
}

void Distributor::addToBucket(Value gradient, const Sharing &sharing) {
  auto type = cast<RankedTensorType>(gradient.getType());
  bool scatters = sharing.form != ShardForm::Whole;
  Kind kind{type.getElementType(), scatters};
  Bucket &bucket = open[kind];
  bucket.gradients.push_back(gradient);
  bucket.sharings.push_back(sharing);
  bucket.bytes += getByteSize(type);
  if (bucket.bytes >= (scatters ? scatterBytes : options.bucketBytes))
    closeBucket(kind);
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
  llvm::DenseSet<std::pair<Value, unsigned>> taken;
  for (auto [place, i] : order) {
    Sharing sharing = gradientSharing(results[i]);
    if (taken.insert({results[i].value, unsigned(sharing.form)}).second)
      addToBucket(results[i].value, sharing);
  }
  SmallVector<Kind> kinds;
  for (const auto &entry : open)
    kinds.push_back(entry.first);
  for (Kind kind : kinds)
    closeBucket(kind);
}

LogicalResult Distributor::run() {
  if (failed(checkStraightLine(function)) || failed(check()) ||
      failed(numberDraws()))
    return failure();
  share();
  SmallVector<Result> results = takeResults(function);
  sumGradients(results);
  for (Result &result : results) {
    if (result.get(kGradientAttr))
      result.value =
          sums.lookup({result.value, unsigned(gradientSharing(result).form)});
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
