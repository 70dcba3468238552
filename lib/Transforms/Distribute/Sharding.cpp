//===- Sharding.cpp - parameters that ranks share -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: each rank keeps a part of every parameter, and ops need the whole.
// Method: an argument becomes one rank's shard (Base/Shards.h), and its uses
// read what an all_gather makes of the shards. Parameters that are used after
// each other are gathered together while they are small, so that small ones
// share messages. There is one gathering in the program for all uses of a
// parameter: whether it happens again for the backward pass is a question of
// recomputation, which the planner answers by cost and bytes. Guarantee: what
// is gathered together follows from the program alone. O(ops).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Distribute/Sharding.h"

#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"

using namespace mlir;
using namespace ckopt;

/// Returns whether the value can lie in another order than row-major.
static bool isWeightOfConvolution(Value value) {
  auto type = tensorType(value);
  if (type.getRank() > 3)
    return true;
  return type.getRank() == 3 &&
         llvm::any_of(value.getUsers(), [](Operation *user) {
           if (auto cast = dyn_cast<CastOp>(user))
             return isWeightOfConvolution(cast.getResult());
           auto kernel = dyn_cast<KernelOpInterface>(user);
           return kernel && kernel.getLayoutRole() == LayoutRole::Convolution;
         });
}

Sharing ckopt::sharingOf(BlockArgument argument, RankGroup group) {
  RankedTensorType type = tensorType(argument);
  Sharing sharing{ShardForm::Whole, type, group};
  if (isa<FloatType>(type.getElementType()))
    sharing.form = shardForm(std::vector<int64_t>(type.getShape()), group.size,
                             isWeightOfConvolution(argument));
  return sharing;
}

RankedTensorType Sharing::shard() const {
  if (form == ShardForm::Whole)
    return whole;
  SmallVector<int64_t> shape{whole.getNumElements()};
  if (form == ShardForm::Rows)
    shape.assign(whole.getShape().begin(), whole.getShape().end());
  shape.front() = llvm::divideCeil(shape.front(), group.size);
  return RankedTensorType::get(shape, whole.getElementType());
}

Value Sharing::toRows(TensorBuilder &b, Value value) const {
  return form == ShardForm::Flat ? b.reshape(value, {whole.getNumElements()})
                                 : value;
}

Value Sharing::fromRows(TensorBuilder &b, Value rows) const {
  return form == ShardForm::Flat ? b.reshape(rows, whole.getShape()) : rows;
}

int64_t ckopt::bucketBytesFor(int64_t parameterBytes) {
  constexpr int64_t kLeast = int64_t(16) << 10, kMost = int64_t(25) << 20;
  return std::clamp(parameterBytes / 64, kLeast, kMost);
}

namespace {
/// Parameters that are gathered by one op.
struct GatherGroup {
  SmallVector<std::pair<BlockArgument, Sharing>> members;
  Operation *firstUser = nullptr;
  int64_t bytes = 0;
};
} // namespace

/// Returns the first op that reads the argument; null: none does.
static Operation *firstUserOf(BlockArgument argument) {
  Operation *first = nullptr;
  for (Operation *user : argument.getUsers())
    if (!first || user->isBeforeInBlock(first))
      first = user;
  return first;
}

/// Replaces the uses of whole arguments by what is gathered, and makes the
/// arguments shards.
static void gather(const GatherGroup &group) {
  OpBuilder builder(group.firstUser);
  SmallVector<Value> shards;
  SmallVector<int64_t> rows;
  SmallVector<Type> types;
  for (auto [argument, sharing] : group.members) {
    shards.push_back(argument);
    bool flat = sharing.form == ShardForm::Flat;
    rows.push_back(flat ? sharing.whole.getNumElements()
                        : sharing.whole.getDimSize(0));
    types.push_back(flat ? RankedTensorType::get(rows.back(),
                                                 sharing.whole.getElementType())
                         : sharing.whole);
  }
  const Sharing &sharing = group.members.front().second;
  Location loc = group.firstUser->getLoc();
  // The arguments get their types below, so the results' are given.
  auto op = AllGatherOp::create(
      builder, loc, types, shards, builder.getDenseI64ArrayAttr(rows),
      sharing.group.size, sharing.group.groups, sharing.group.stride);
  for (auto [member, rowsOf] :
       llvm::zip_equal(group.members, op.getOutputs())) {
    auto [argument, own] = member;
    TensorBuilder b(builder, loc);
    Value whole = own.fromRows(b, rowsOf);
    argument.replaceUsesWithIf(
        whole, [&](OpOperand &use) { return use.getOwner() != op; });
    argument.setType(own.shard());
  }
}

void ckopt::shardParameters(func::FuncOp function, RankGroup group,
                            llvm::StringMap<Sharing> &known) {
  Builder builder(function.getContext());
  // In the order of their first use, below.
  SmallVector<std::pair<BlockArgument, Sharing>> shared;
  int64_t bytes = 0;
  for (BlockArgument argument : function.getArguments()) {
    StringRef role = argumentRole(function, argument.getArgNumber());
    if (role != roles::kParameter && role != roles::kFrozen)
      continue;
    std::string name = argumentName(function, argument.getArgNumber());
    Sharing sharing =
        known.try_emplace(name, sharingOf(argument, group)).first->second;
    if (sharing.form == ShardForm::Whole)
      continue;
    bytes += getByteSize(sharing.whole);
    shared.emplace_back(argument, sharing);
    function.setArgAttr(argument.getArgNumber(), attrs::kWhole,
                        TypeAttr::get(sharing.whole));
    function.setArgAttr(argument.getArgNumber(), attrs::kShards,
                        builder.getI64IntegerAttr(group.size));
  }
  llvm::sort(shared, [](const auto &a, const auto &b) {
    Operation *first = firstUserOf(a.first), *second = firstUserOf(b.first);
    if (first == second)
      return a.first.getArgNumber() < b.first.getArgNumber();
    return first && (!second || first->isBeforeInBlock(second));
  });
  llvm::MapVector<Type, GatherGroup> open; // by element type
  std::vector<GatherGroup> groups;
  for (const auto &member : shared) {
    Operation *user = firstUserOf(member.first);
    if (!user) {
      BlockArgument unused = member.first;
      unused.setType(member.second.shard());
      continue;
    }
    GatherGroup &own = open[member.second.whole.getElementType()];
    if (own.members.empty())
      own.firstUser = user;
    own.members.push_back(member);
    own.bytes += getByteSize(member.second.whole);
    if (own.bytes >= bucketBytesFor(bytes)) {
      groups.push_back(std::move(own));
      own = GatherGroup();
    }
  }
  for (auto &entry : open)
    if (!entry.second.members.empty())
      groups.push_back(std::move(entry.second));
  for (const GatherGroup &own : groups)
    gather(own);
  function.setFunctionType(FunctionType::get(
      function.getContext(), function.front().getArgumentTypes(),
      function.front().getTerminator()->getOperandTypes()));
}
