//===- StateRounding.cpp - states and parameters in bf16 ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "StateRounding.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Optimizers/Optimizers.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace ckopt;

/// Sites of updates, which dropouts, numbered from 0 on, do not reach.
static int64_t siteOf(StringRef name) {
  constexpr uint64_t kFirst = uint64_t(1) << 30;
  return int64_t(kFirst | (llvm::xxh3_64bits(name) & (kFirst - 1)));
}

void ckopt::storeParameters(func::FuncOp function) {
  Type half = BFloat16Type::get(function.getContext());
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (argumentRole(function, argument.getArgNumber()) != roles::kParameter ||
        !type || !type.getElementType().isF32() || type.getRank() < 2 ||
        type.getNumElements() < kLeastNarrowElements || argument.use_empty())
      continue;
    Operation *first = *argument.user_begin();
    for (Operation *user : argument.getUsers())
      if (user->isBeforeInBlock(first))
        first = user;
    OpBuilder builder(first);
    auto wide = CastOp::create(builder, first->getLoc(), type, argument);
    argument.replaceAllUsesExcept(wide, wide);
    argument.setType(type.clone(half));
  }
  function.setFunctionType(FunctionType::get(
      function.getContext(), function.front().getArgumentTypes(),
      function.getResultTypes()));
}

StateRounding::StateRounding(func::FuncOp function, Value step)
    : function(function), seed(findOrAddNumber(function, "seed", roles::kSeed)),
      step(step) {}

/// Returns the numbers of a rank's part of what is drawn for the whole tensor.
Value StateRounding::drawShard(TensorBuilder &b, RankedTensorType type,
                               int64_t shards, int64_t site) {
  if (!place) {
    auto ranks = function->getAttrOfType<IntegerAttr>(attrs::kRanks);
    Value rank = RankOp::create(b.builder, b.loc, step.getType(),
                                ranks ? ranks.getInt() : shards);
    place = b.sub(rank, b.mul(b.div(rank, b.number(rank, double(shards))),
                              double(shards)));
  }
  const int64_t own = type.getNumElements();
  auto draw = [&](RankedTensorType drawn, Value number) {
    return RandomOp::create(b.builder, b.loc, drawn, RandomKind::Uniform, seed,
                            number, uint64_t(site));
  };
  // Elements of a shard count on from those before, in blocks of four.
  if (own % 4 == 0)
    return draw(type, b.add(step, b.mul(place, 0x1p32)));
  Value whole = draw(type.clone({own * shards}), step);
  auto places = RankedTensorType::get({own}, b.builder.getI64Type());
  Value offsets = IotaOp::create(b.builder, b.loc, places, /*axis=*/0,
                                 APFloat(0.0), APFloat(1.0));
  Value part = b.make<GatherOp>(
      whole, b.add(offsets, b.mul(place, double(own))), int64_t(0));
  return b.reshape(part, type.getShape());
}

Value StateRounding::draw(TensorBuilder &b, BlockArgument parameter,
                          ArrayRef<int64_t> shape, StringRef name) {
  auto type = RankedTensorType::get(shape, b.builder.getF32Type());
  if (auto shards = function.getArgAttrOfType<IntegerAttr>(
          parameter.getArgNumber(), attrs::kShards))
    return drawShard(b, type, shards.getInt(), siteOf(name));
  return RandomOp::create(b.builder, b.loc, type, RandomKind::Uniform, seed,
                          step, uint64_t(siteOf(name)));
}

void StateRounding::round(TensorBuilder &b, BlockArgument parameter,
                          Value &value, StringRef name) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  value = b.make<RoundRandomOp>(value, draw(b, parameter, shape, name));
}

void StateRounding::round(TensorBuilder &b, BlockArgument parameter,
                          ArrayRef<Value *> states,
                          ArrayRef<std::string> names) {
  // 12 of a number's 24 bits are for one state, 12 for another; half of the
  // last one is added, so that probabilities are those of the middle.
  constexpr double kHalf = 0x1p-13;
  for (size_t i = 0; i < states.size(); i += 2) {
    Value scaled = b.mul(
        draw(b, parameter, tensorType(parameter).getShape(), names[i]), 0x1p12);
    Value high = b.make<FloorOp>(scaled);
    auto rounded = [&](Value state, Value u) {
      return b.make<RoundRandomOp>(state, b.add(u, kHalf));
    };
    *states[i] = rounded(*states[i], b.mul(high, 0x1p-12));
    if (i + 1 < states.size())
      *states[i + 1] = rounded(*states[i + 1], b.sub(scaled, high));
  }
}
