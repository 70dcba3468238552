//===- Mma.cpp - products of warps, to loops and to tensor cores ----------===//
//
// block.mma says which elements of the product each thread has. On the CPU each
// thread computes its own four by a loop over k; on a GPU the 32 threads load
// the fragments that mma.sync wants of each, pairs of neighbours along k, and
// run it. Both read the same shared buffers, so barriers are the same.
//
//===----------------------------------------------------------------------===//
#include "Mma.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::blockform;
using block::MmaOp;

static constexpr int64_t kWarp = 32, kDepth = 16;

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Whether all threads of `forall` have the same v, as far as can be seen.
static bool isUniform(Value v, scf::ForallOp forall) {
  Operation *op = v.getDefiningOp();
  return (op && op->hasTrait<OpTrait::ConstantLike>()) ||
         !forall->isAncestor(v.getParentBlock()->getParentOp());
}

std::string blockform::mistakeOf(MmaOp mma) {
  // Whole warps must come here, all their threads as often.
  Operation *op = mma->getParentOp();
  SmallVector<scf::ForOp> loops;
  for (; op && !isThreadForall(op); op = op->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop)
      return "must not be conditional: all threads of a warp run it";
    loops.push_back(loop);
  }
  if (!op)
    return "must be in a forall over threads";
  auto forall = cast<scf::ForallOp>(op);
  for (scf::ForOp loop : loops)
    for (Value bound :
         {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      if (!isUniform(bound, forall))
        return "must be in loops that all threads run as often";
  if (threadsOf(forall) % kWarp)
    return "needs whole warps: a multiple of 32 threads";
  if (withoutCasts(mma.getThread()) != forall.getBody()->getArgument(0))
    return "must be given the thread's number";
  return "";
}

//===----------------------------------------------------------------------===//
// Expansion
//===----------------------------------------------------------------------===//

namespace {
/// Builds what stands for one mma.
struct Expansion {
  explicit Expansion(MmaOp mma) : mma(mma), b(mma.getLoc(), mma) {
    Value lane = arith::RemUIOp::create(b, mma.getThread(), index(kWarp));
    group = arith::DivUIOp::create(b, lane, index(4));
    Value place = arith::RemUIOp::create(b, lane, index(4));
    twice = times(place, 2);
  }
  Value index(int64_t i) { return arith::ConstantIndexOp::create(b, i); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value times(Value x, int64_t by) {
    return arith::MulIOp::create(b, x, index(by));
  }
  /// Where rows group and group + 8 of A begin.
  std::pair<Value, Value> rows() {
    Value row = add(mma.getAOffset(), times(group, mma.getAPitch()));
    return {row, add(row, index(8 * mma.getAPitch()))};
  }

  SmallVector<Value> byLoop();
  SmallVector<Value> byWarp();

  MmaOp mma;
  ImplicitLocOpBuilder b;
  Value group, twice;
};
} // namespace

SmallVector<Value> Expansion::byLoop() {
  auto [low, high] = rows();
  Value left = add(mma.getBOffset(), times(twice, mma.getBPitch()));
  Value right = add(left, index(mma.getBPitch()));
  Value zero = index(0), depth = index(kDepth), one = index(1);
  auto loop = scf::ForOp::create(
      b, zero, depth, one,
      ValueRange{mma.getC0(), mma.getC1(), mma.getC2(), mma.getC3()});
  b.setInsertionPointToStart(loop.getBody());
  Value k = loop.getInductionVar();
  auto read = [&](Value buffer, Value from) -> Value {
    Value half = memref::LoadOp::create(b, buffer, add(from, k));
    return arith::ExtFOp::create(b, b.getF32Type(), half);
  };
  Value x[] = {read(mma.getA(), low), read(mma.getA(), high)};
  Value y[] = {read(mma.getB(), left), read(mma.getB(), right)};
  SmallVector<Value> sums;
  for (unsigned i = 0; i < 4; ++i)
    sums.push_back(math::FmaOp::create(b, x[i / 2], y[i % 2],
                                       loop.getRegionIterArgs()[i]));
  scf::YieldOp::create(b, sums);
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> Expansion::byWarp() {
  Type element = mma.getA().getType().getElementType();
  VectorType pair = VectorType::get({2}, element);
  auto read = [&](Value buffer, Value at) -> Value {
    Value two = vector::LoadOp::create(b, pair, buffer, at);
    if (element.isF16())
      return two;
    // The instruction for bf16 takes words.
    Value word =
        vector::BitCastOp::create(b, VectorType::get({1}, b.getI32Type()), two);
    return vector::ExtractOp::create(b, word, int64_t(0));
  };
  auto [low, high] = rows();
  low = add(low, twice);
  high = add(high, twice);
  Value column =
      add(add(mma.getBOffset(), times(group, mma.getBPitch())), twice);
  SmallVector<Value> x, y;
  for (int64_t k : {0, 8}) {
    x.push_back(read(mma.getA(), add(low, index(k))));
    x.push_back(read(mma.getA(), add(high, index(k))));
    y.push_back(read(mma.getB(), add(column, index(k))));
  }
  Type f32 = b.getF32Type();
  auto type =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
  NVVM::MMATypes half =
      element.isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  int64_t shape[] = {16, 8, 16};
  Value made = NVVM::MmaOp::create(
      b, type, x, y,
      ValueRange{mma.getC0(), mma.getC1(), mma.getC2(), mma.getC3()}, shape,
      /*b1Op=*/std::nullopt, /*intOverflow=*/std::nullopt,
      std::array<NVVM::MMATypes, 2>{half, half},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
  SmallVector<Value> sums;
  for (int64_t i = 0; i < 4; ++i)
    sums.push_back(LLVM::ExtractValueOp::create(b, made, i));
  return sums;
}

void blockform::expandMma(const Kernel &kernel, bool onDevice) {
  SmallVector<MmaOp> all;
  func::FuncOp function = kernel.function;
  function->walk([&](MmaOp mma) { all.push_back(mma); });
  for (MmaOp mma : all) {
    Expansion expansion(mma);
    mma->replaceAllUsesWith(onDevice ? expansion.byWarp() : expansion.byLoop());
    mma->erase();
  }
}
