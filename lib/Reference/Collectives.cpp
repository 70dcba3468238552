//===- Collectives.cpp - what ops of several ranks compute ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: say what an op means whose results depend on the tensors of other
// processes. Method: N interpreters in lockstep hand their operands over; sums
// are added in the order of ranks and, where asked, rounded after each
// addition, as processes round them.
//
//===----------------------------------------------------------------------===//
#include "Collectives.h"

#include "Models.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

namespace {
/// The operands of an op on all ranks.
using Parts = ArrayRef<SmallVector<const Tensor *>>;
} // namespace

static LogicalResult checkWorld(Operation *op, int64_t ranks, size_t here) {
  if (size_t(ranks) == here)
    return success();
  return op->emitOpError("is for ") << ranks << " ranks, not for " << here;
}

/// Returns what the members of a rank's group have as operand i, in their
/// order.
static SmallVector<const Tensor *> membersOf(Parts parts, RankGroup group,
                                             size_t rank, unsigned i) {
  SmallVector<const Tensor *> members;
  for (int64_t place = 0; place < group.size; ++place)
    members.push_back(parts[size_t(group.member(int64_t(rank), place))][i]);
  return members;
}

/// Adds tensors in their order.
static Tensor addInOrder(ArrayRef<const Tensor *> terms,
                         const Options &options) {
  Tensor sum = *terms.front();
  for (const Tensor *term : terms.drop_front()) {
    for (int64_t e = 0; e < sum.size(); ++e)
      sum.real(e) += term->real(e);
    if (options.roundToType)
      sum.roundToType();
  }
  return sum;
}

/// Returns the rows that a member of a group keeps of a tensor, and zeros.
static Tensor rowsOf(const Tensor &whole, RankedTensorType type,
                     RankGroup group, int64_t place) {
  Tensor own(type);
  Shards shards{whole.size(), group.size, own.size()};
  for (int64_t e = 0; e < shards.count(place); ++e)
    own.copy(e, whole, shards.begin(place) + e);
  return own;
}

/// Returns what members' rows are together.
static Tensor joinRows(ArrayRef<const Tensor *> rows, RankedTensorType type) {
  Tensor whole(type);
  Shards shards{whole.size(), int64_t(rows.size()), rows.front()->size()};
  for (auto [place, own] : llvm::enumerate(rows))
    for (int64_t e = 0; e < shards.count(int64_t(place)); ++e)
      whole.copy(shards.begin(int64_t(place)) + e, *own, e);
  return whole;
}

/// Runs an op with a group: `make(rank, place, i)` is result i of a rank.
static LogicalResult
forEachResult(Operation *op, RankGroup group, Parts parts, World &results,
              function_ref<Tensor(size_t, int64_t, unsigned)> make) {
  if (failed(checkWorld(op, group.world(), parts.size())))
    return failure();
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    SmallVector<Tensor> &own = results.emplace_back();
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      own.push_back(make(rank, group.place(int64_t(rank)), i));
  }
  return success();
}

LogicalResult reference::runTogether(Operation *op, Parts parts, World &results,
                                     const Options &options) {
  auto typeOf = [&](unsigned i) {
    return cast<RankedTensorType>(op->getResult(i).getType());
  };
  if (auto number = dyn_cast<RankOp>(op)) {
    if (failed(checkWorld(op, number.getRanks(), parts.size())))
      return failure();
    for (size_t rank = 0; rank < parts.size(); ++rank)
      results.push_back({Tensor::splat(typeOf(0), double(rank))});
    return success();
  }
  auto collective = cast<CollectiveOpInterface>(op);
  StringRef kind = collective.getCollective();
  RankGroup group = collective.getGroup();
  return forEachResult(
      op, group, parts, results,
      [&](size_t rank, int64_t place, unsigned i) -> Tensor {
        if (i >= op->getNumOperands()) // bytes in which a start works
          return Tensor(typeOf(i));
        auto members = membersOf(parts, group, rank, i);
        if (kind == "all_reduce")
          return addInOrder(members, options);
        if (kind == "reduce_scatter")
          return rowsOf(addInOrder(members, options), typeOf(i), group, place);
        if (kind == "all_gather")
          return joinRows(members, typeOf(i));
        if (kind == "own_rows")
          return rowsOf(*parts[rank][i], typeOf(i), group, place);
        if (kind == "broadcast")
          return *members[size_t(collective.getRoot())];
        return *parts[rank][i]; // what was started is there already
      });
}

static LogicalResult checkAlone(Operation *op, int64_t ranks) {
  if (ranks == 1)
    return success();
  return op->emitOpError("is for ")
         << ranks << " ranks, which evaluateWorld() runs together";
}

static LogicalResult interpretRank(RankOp op, Operands, Results,
                                   const Environment &) {
  return checkAlone(op, op.getRanks()); // results are zeros
}

/// One rank alone: its own tensors are the sum, and all rows.
template <typename Op>
static LogicalResult interpretAlone(Op op, Operands in, Results out,
                                    const Environment &) {
  if (failed(checkAlone(op, op.getGroup().world())))
    return failure();
  for (auto [result, operand] : llvm::zip_equal(out, in))
    result = *operand;
  return success();
}

/// What is in flight is what was started: the bytes are there already.
static LogicalResult interpretWait(CollectiveWaitOp, Operands in, Results out,
                                   const Environment &) {
  for (auto [result, operand] : llvm::zip(out, in))
    result = *operand;
  return success();
}

static LogicalResult interpretStart(CollectiveStartOp op, Operands in,
                                    Results out, const Environment &) {
  if (failed(checkAlone(op, op.getGroup().world())))
    return failure();
  for (auto [result, operand] : llvm::zip(out, in))
    result = *operand;
  return success();
}

void reference::attachCollectiveModels(MLIRContext *context) {
  attachModel<AllReduceOp, interpretAlone<AllReduceOp>, false>(context);
  attachModel<AllGatherOp, interpretAlone<AllGatherOp>, false>(context);
  attachModel<ReduceScatterOp, interpretAlone<ReduceScatterOp>, false>(context);
  attachModel<BroadcastOp, interpretAlone<BroadcastOp>, false>(context);
  attachModel<OwnRowsOp, interpretAlone<OwnRowsOp>, false>(context);
  attachModel<CollectiveStartOp, interpretStart, false>(context);
  attachModel<CollectiveWaitOp, interpretWait, false>(context);
  attachModel<RankOp, interpretRank, false>(context);
}
