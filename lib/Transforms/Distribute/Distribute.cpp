//===- Distribute.cpp - a step's share of one rank ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: N processes train on N shares of each batch and must end each step
// with the same bits. Method: every result that depends on samples becomes a
// sum over ranks. Gradients wait for each other in buckets, which are closed in
// the order in which the backward pass makes gradients, so that the sum of the
// first ones can begin while later ones are still computed. Random numbers of
// samples are those that one process draws for them (RankDraws.cpp), batch
// norms can have the statistics of all ranks (SyncNorms.cpp). Fully sharded,
// parameters become shards (Sharding.h), and of a gradient's sum each rank gets
// its part, in smaller buckets, so that few gradients are whole at a time.
// Guarantee: which
// gradients share a bucket and the order of every addition follow from the
// program alone; a memory budget is known to later phases only. O(ops).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Distribute/Distribute.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Distribute/Distribution.h"
#include "ckopt/Distribute/Sharding.h"

using namespace mlir;
using namespace ckopt;

namespace {
class Distributor {
public:
  Distributor(func::FuncOp function, const DistributeOptions &options)
      : function(function), options(options) {}

  LogicalResult run();

private:
  LogicalResult check();
  LogicalResult checkGathers(const SampleAxes &axes);
  LogicalResult shareUpdate(Operation *update, const SampleAxes &axes);
  LogicalResult shareState(const Result &result, const SampleAxes &axes);
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

/// Refuses to take samples by numbers that come with the data: they count all
/// samples, of which a rank has its own alone.
LogicalResult Distributor::checkGathers(const SampleAxes &axes) {
  for (auto gather : function.front().getOps<GatherOp>()) {
    SampleAxis data = axes.of(gather.getData());
    if (!data.isPart() || data.axis != int64_t(gather.getAxis()) ||
        !axes.of(gather.getIndices()).isSame())
      continue;
    Value from = gather.getIndices();
    while (Operation *op = from.getDefiningOp()) {
      if (op->getNumOperands() == 0)
        break;
      from = op->getOperand(0);
    }
    auto argument = dyn_cast<BlockArgument>(from);
    if (argument &&
        argumentRole(function, argument.getArgNumber()) == roles::kInput)
      return gather.emitError(
                 "takes samples by their number in the batch, from "
                 "the input '")
             << argumentName(function, argument.getArgNumber())
             << "': a rank has its part of the batch alone";
  }
  return success();
}

/// Makes an op add to a state what one process with the samples of all ranks
/// would add; for batch norms, the mean over ranks.
LogicalResult Distributor::shareUpdate(Operation *update,
                                       const SampleAxes &axes) {
  constexpr unsigned kLearnt = 1;
  Value value = update->getOperand(kLearnt);
  if (axes.of(value).isSame())
    return success();
  OpBuilder builder(update);
  TensorBuilder b(builder, update->getLoc());
  Value source = value;
  while (isa_and_present<CastOp, ReshapeOp>(source.getDefiningOp()))
    source = source.getDefiningOp()->getOperand(0);
  if (isa_and_present<BatchNormOp>(source.getDefiningOp())) {
    update->setOperand(kLearnt, b.mul(sum(value), 1 / double(options.ranks)));
    return success();
  }
  if (Value share = shareOfBatch(value, axes, options.ranks)) {
    update->setOperand(kLearnt, sum(share));
    return success();
  }
  return update->emitError("makes a new value of a state (")
         << update->getName()
         << ") of samples: what one process makes of those of all ranks is "
            "known of batch norms, sums and means over samples alone";
}

/// A layer that runs twice in a step updates its state twice.
LogicalResult Distributor::shareState(const Result &result,
                                      const SampleAxes &axes) {
  for (Value state = result.value; !axes.of(state).isSame();) {
    Operation *maker = makerOf(state);
    if (!maker || !isa<MovingAverageOp, AssignOp>(maker))
      return emitError(state.getLoc())
             << "makes a new value of a state otherwise than by an average or "
                "an "
                "assignment: how ranks would agree on it is not known";
    if (failed(shareUpdate(maker, axes)))
      return failure();
    state = maker->getOperand(0);
  }
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
      (options.syncNorms && failed(syncNorms(function, options.ranks))))
    return failure();
  SampleAxes axes(function);
  if (failed(checkGathers(axes)) ||
      failed(numberDraws(function, axes, options.ranks)))
    return failure();
  share();
  SmallVector<Result> results = takeResults(function);
  sumGradients(results);
  OpBuilder builder(function.getContext());
  for (Result &result : results) {
    if (result.get(kGradientAttr)) {
      Sharing sharing = gradientSharing(result);
      result.value = sums.lookup({result.value, unsigned(sharing.form)});
      if (sharing.form == ShardForm::Whole)
        continue;
      result.set(builder, attrs::kWhole, TypeAttr::get(sharing.whole));
      result.set(builder, attrs::kShards,
                 builder.getI64IntegerAttr(sharing.group.size));
    } else if (result.get(attrs::kUpdates)) {
      if (failed(shareState(result, axes)))
        return failure();
    } else {
      result.value = sum(result.value);
    }
  }
  setResults(function, results);
  return success();
}

LogicalResult ckopt::distribute(func::FuncOp function,
                                const DistributeOptions &options) {
  return Distributor(function, options).run();
}
