//===- CollectiveRules.cpp - gradients of ops of several ranks ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each rank's results count, so a rank's operand has the sum of the gradients
// that all ranks have for what became of it. Gradients that are needed travel
// together, as the tensors did.
//
//===----------------------------------------------------------------------===//
#include "RuleBuilder.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

namespace {
/// The gradients of an op's results whose operands need one.
struct Incoming {
  SmallVector<Value> gradients;
  SmallVector<unsigned> operands;

  Incoming(Operation *op, RuleBuilder &b) {
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (b.needs(i) && b.grad(i)) {
        gradients.push_back(b.grad(i));
        operands.push_back(i);
      }
  }
  void set(RuleBuilder &b, ValueRange values) const {
    for (auto [operand, value] : llvm::zip_equal(operands, values))
      b.set(operand, value);
  }
};
} // namespace

static void allReduceRule(AllReduceOp op, RuleBuilder &b) {
  Incoming in(op, b);
  if (!in.gradients.empty())
    in.set(b, AllReduceOp::create(b.builder, b.loc, in.gradients, op.getRanks(),
                                  op.getGroups(), op.getStride())
                  .getOutputs());
}

static void allGatherRule(AllGatherOp op, RuleBuilder &b) {
  Incoming in(op, b);
  if (!in.gradients.empty())
    in.set(b, ReduceScatterOp::create(b.builder, b.loc, in.gradients,
                                      op.getRanks(), op.getGroups(),
                                      op.getStride())
                  .getOutputs());
}

static void reduceScatterRule(ReduceScatterOp op, RuleBuilder &b) {
  Incoming in(op, b);
  SmallVector<int64_t> rows;
  for (unsigned operand : in.operands)
    rows.push_back(tensorType(op.getOperand(operand)).getDimSize(0));
  if (!in.gradients.empty())
    in.set(b, AllGatherOp::create(b.builder, b.loc, in.gradients, rows,
                                  op.getRanks(), op.getGroups(), op.getStride())
                  .getOutputs());
}

/// Only the tensor of the rank that sends is read.
static void broadcastRule(BroadcastOp op, RuleBuilder &b) {
  Incoming in(op, b);
  if (in.gradients.empty())
    return;
  auto sums = AllReduceOp::create(b.builder, b.loc, in.gradients, op.getRanks(),
                                  op.getGroups(), op.getStride());
  RankGroup group = op.getGroup();
  auto number = RankedTensorType::get({}, b.builder.getI64Type());
  Value rank = RankOp::create(b.builder, b.loc, number, group.world());
  // The place in the group, rank / stride % size, in whole numbers.
  Value steps = b.div(rank, b.number(rank, double(group.stride)));
  Value rounds = b.div(steps, b.number(rank, double(group.size)));
  Value place = b.sub(steps, b.mul(rounds, double(group.size)));
  Value sends = b.compare(ComparePredicate::EQ, place, double(op.getRoot()));
  SmallVector<Value> own;
  for (Value sum : sums.getOutputs())
    own.push_back(b.where(sends, sum));
  in.set(b, own);
}

void autodiff::addCollectiveRules(MLIRContext *context) {
  addRule<AllReduceOp>(
      context, [](AllReduceOp op, RuleBuilder &b) { allReduceRule(op, b); });
  addRule<AllGatherOp>(
      context, [](AllGatherOp op, RuleBuilder &b) { allGatherRule(op, b); });
  addRule<ReduceScatterOp>(context, [](ReduceScatterOp op, RuleBuilder &b) {
    reduceScatterRule(op, b);
  });
  addRule<BroadcastOp>(
      context, [](BroadcastOp op, RuleBuilder &b) { broadcastRule(op, b); });
}
