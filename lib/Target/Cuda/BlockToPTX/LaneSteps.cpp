//===- LaneSteps.cpp - the last 32 lanes of a tree by shuffles ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tree over a shared buffer ends in five intervals of 32 threads, steps
// s = 16, 8, 4, 2, 1: thread t < s combines elements t and t + s into element
// t. All 32 threads are one warp, so they can exchange values in registers:
//
//   x = buffer[t]
//   for s: y = x of lane t + s; x = t < s ? combine(x, y) : x
//   buffer[t] = x
//
// This is exact: lane t's x after step s is element t after interval s, for
// every t. If t >= s, the interval writes nothing, and x stays; if t < s, lane
// t + s < 32 exists and holds element t + s. So memory after the run is the
// same, too. Several buffers of one run are combined together.
//
// A run of another form stays unchanged: still correct, only slower.
//
//===----------------------------------------------------------------------===//
#include "BlockToGPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::blockform;

static constexpr int64_t kLanes = 32;
static constexpr int64_t kSteps[] = {16, 8, 4, 2, 1};

namespace {
/// One interval of the run.
struct Step {
  scf::ForallOp forall;
  scf::IfOp guarded;
  /// By buffer, in the order of the stores: the buffer, loads of elements t and
  /// t + s, and the stored element.
  SmallVector<Value> buffers, own, other, combined;
};
} // namespace

/// Returns the constant c if v is t + c.
static std::optional<int64_t> offsetFrom(Value t, Value v) {
  v = withoutCasts(v);
  if (v == t)
    return 0;
  Operation *op = v.getDefiningOp();
  APInt constant;
  if (!op || !isa<arith::AddIOp>(op))
    return std::nullopt;
  for (unsigned side : {0u, 1u})
    if (matchPattern(op->getOperand(side), m_ConstantInt(&constant)))
      if (auto offset = offsetFrom(t, op->getOperand(1 - side)))
        return *offset + constant.getSExtValue();
  return std::nullopt;
}

/// Returns whether `condition` is t < s.
static bool isBelow(Value condition, Value t, int64_t s) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  APInt limit;
  return compare &&
         (compare.getPredicate() == arith::CmpIPredicate::ult ||
          compare.getPredicate() == arith::CmpIPredicate::slt) &&
         offsetFrom(t, compare.getLhs()) == 0 &&
         matchPattern(compare.getRhs(), m_ConstantInt(&limit)) &&
         limit.getSExtValue() == s;
}

static bool isPlainPure(Operation &op) {
  return op.getNumRegions() == 0 && isMemoryEffectFree(&op);
}

/// Reads loads and stores of the guarded code; returns false if it has another
/// form.
static bool readAccesses(Step &step, Value t, int64_t s) {
  llvm::SmallDenseMap<Value, Value> own, other;
  for (Operation &op : step.guarded.thenBlock()->without_terminator()) {
    if (isPlainPure(op))
      continue;
    auto load = dyn_cast<memref::LoadOp>(op);
    auto store = dyn_cast<memref::StoreOp>(op);
    if ((!load && !store) || indicesOf(&op).size() != 1)
      return false;
    Value buffer = bufferOf(&op);
    auto offset = offsetFrom(t, indicesOf(&op)[0]);
    if (store) {
      if (offset != 0 || llvm::is_contained(step.buffers, buffer))
        return false;
      step.buffers.push_back(buffer);
      step.combined.push_back(store.getValue());
      continue;
    }
    // A load after the store would have to see the stored value.
    if (llvm::is_contained(step.buffers, buffer) ||
        (offset != 0 && offset != s))
      return false;
    auto &loads = offset == 0 ? own : other;
    if (!loads.try_emplace(buffer, load.getResult()).second)
      return false;
  }
  for (Value buffer : step.buffers) {
    step.own.push_back(own.lookup(buffer));
    step.other.push_back(other.lookup(buffer));
    auto type = cast<MemRefType>(buffer.getType());
    if (!step.own.back() || !step.other.back() || type.getDimSize(0) < kLanes ||
        !type.getElementType().isIntOrFloat())
      return false;
  }
  return !step.buffers.empty() && own.size() == step.buffers.size() &&
         other.size() == step.buffers.size();
}

static std::optional<Step> matchStep(scf::ForallOp forall, int64_t s) {
  auto attr = forall->getAttrOfType<IntegerAttr>(kLaneStep);
  if (!attr || attr.getInt() != s || !isThreadForall(forall) ||
      threadsOf(forall) != kLanes)
    return std::nullopt;
  Step step;
  step.forall = forall;
  for (Operation &op : forall.getBody()->without_terminator()) {
    auto guarded = dyn_cast<scf::IfOp>(op);
    if (guarded && !step.guarded)
      step.guarded = guarded;
    else if (!isPlainPure(op))
      return std::nullopt;
  }
  Value t = forall.getBody()->getArgument(0);
  if (!step.guarded || step.guarded.elseBlock() ||
      step.guarded.getNumResults() ||
      !isBelow(step.guarded.getCondition(), t, s) || !readAccesses(step, t, s))
    return std::nullopt;
  return step;
}

/// Matches the five steps that begin with `first`; between them only operations
/// without effects may lie.
static std::optional<SmallVector<Step, 0>> matchRun(scf::ForallOp first) {
  SmallVector<Step, 0> steps;
  Operation *op = first;
  for (int64_t s : kSteps) {
    while (op && isPlainPure(*op))
      op = op->getNextNode();
    auto forall = dyn_cast_or_null<scf::ForallOp>(op);
    std::optional<Step> step;
    if (forall)
      step = matchStep(forall, s);
    if (!step || (!steps.empty() && step->buffers != steps[0].buffers))
      return std::nullopt;
    steps.push_back(*step);
    op = op->getNextNode();
  }
  return steps;
}

/// Returns the i32 of lane t + s.
static Value shuffleWord(ImplicitLocOpBuilder &b, Value word, int64_t s) {
  return gpu::ShuffleOp::create(b, word, int32_t(s), int32_t(kLanes),
                                gpu::ShuffleMode::DOWN)
      .getShuffleResult();
}

/// Returns x of lane t + s. A shuffle moves 32 bits.
static Value shuffleDown(ImplicitLocOpBuilder &b, Value x, int64_t s) {
  Type type = x.getType(), i32 = b.getI32Type();
  unsigned bits = type.getIntOrFloatBitWidth();
  if (type.isF32() || type == i32)
    return shuffleWord(b, x, s);
  Type integer = b.getIntegerType(bits);
  Value word = x;
  if (type != integer)
    word = arith::BitcastOp::create(b, integer, word);
  if (bits < 32) {
    word = arith::ExtUIOp::create(b, i32, word);
    word = arith::TruncIOp::create(b, integer, shuffleWord(b, word, s));
  } else { // 64 bits move as two words
    Value half = arith::ConstantIntOp::create(b, integer, 32);
    Value low = arith::TruncIOp::create(b, i32, word);
    Value high = arith::ShRUIOp::create(b, word, half);
    high = arith::TruncIOp::create(b, i32, high);
    low = arith::ExtUIOp::create(b, integer, shuffleWord(b, low, s));
    high = arith::ExtUIOp::create(b, integer, shuffleWord(b, high, s));
    high = arith::ShLIOp::create(b, high, half);
    word = arith::OrIOp::create(b, high, low);
  }
  return type == integer ? word
                         : arith::BitcastOp::create(b, type, word).getResult();
}

/// Copies the operations that combine elements in one step.
static void combine(ImplicitLocOpBuilder &b, const Step &step, Value t,
                    int64_t s, SmallVector<Value> &x) {
  scf::ForallOp forall = step.forall;
  scf::IfOp guarded = step.guarded;
  IRMapping map;
  map.map(forall.getBody()->getArgument(0), t);
  for (size_t i = 0; i < x.size(); ++i) {
    map.map(step.own[i], x[i]);
    map.map(step.other[i], shuffleDown(b, x[i], s));
  }
  for (Block *block : {forall.getBody(), guarded.thenBlock()})
    for (Operation &op : block->without_terminator())
      if (isPlainPure(op))
        b.clone(op, map);
  Value below = map.lookup(guarded.getCondition());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = arith::SelectOp::create(b, below,
                                   map.lookupOrDefault(step.combined[i]), x[i]);
}

static void merge(ArrayRef<Step> steps) {
  scf::ForallOp first = steps[0].forall;
  ImplicitLocOpBuilder b(first.getLoc(), steps.back().forall);
  auto merged =
      scf::ForallOp::create(b, ArrayRef<OpFoldResult>{b.getIndexAttr(kLanes)},
                            ValueRange(), first.getMapping());
  b.setInsertionPoint(merged.getBody()->getTerminator());
  Value t = merged.getBody()->getArgument(0);
  SmallVector<Value> x;
  for (Value buffer : steps[0].buffers)
    x.push_back(memref::LoadOp::create(b, buffer, t));
  for (auto [step, s] : llvm::zip_equal(steps, kSteps))
    combine(b, step, t, s, x);
  for (auto [buffer, value] : llvm::zip_equal(steps[0].buffers, x))
    memref::StoreOp::create(b, value, buffer, t);
  for (const Step &step : steps)
    step.forall->erase();
}

TreeCount blockform::mergeLaneSteps(const Kernel &kernel) {
  TreeCount count;
  SmallVector<scf::ForallOp> starts;
  kernel.function->walk([&](scf::ForallOp forall) {
    auto attr = forall->getAttrOfType<IntegerAttr>(kLaneStep);
    if (attr && attr.getInt() == kSteps[0])
      starts.push_back(forall);
  });
  for (scf::ForallOp first : starts) {
    if (auto steps = matchRun(first)) {
      merge(*steps);
      ++count.shuffled;
    } else {
      ++count.plain;
    }
  }
  return count;
}
