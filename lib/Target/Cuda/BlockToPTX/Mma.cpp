//===- Mma.cpp - matmuls of warps as loops or tensor cores ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// block.mma assigns elements of the product to threads. On the CPU each thread
// computes its own four by a loop over k; on a GPU the 32 threads load the
// fragments that mma.sync expects in each thread and run it (PTX ISA, "Matrix
// Fragments for mma.m16n8k16 with floating point type", "... mma.m16n8k8").
// Both read the same shared buffers, so barriers are the same.
//
// In 16-bit types, a fragment's register is a pair of neighbors along k. In
// TF32 it is one element, and a thread's two elements of a row are those of k =
// q and q + 4. The order of k does not matter as long as A and B agree, so
// columns of memory are renumbered: 2q becomes q, and 2q + 1 becomes q + 4.
// Then rows along k are read in pairs, too. If rows are multiples of 16 bytes,
// ldmatrix reads fragments of both in the order of k.
//
//===----------------------------------------------------------------------===//
#include "Mma.h"
#include "BlockToGPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::blockform;
using block::MmaOp;

static constexpr int64_t kWarp = 32;

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Returns whether all threads of `forall` are known to have the same v.
static bool isUniform(Value v, scf::ForallOp forall) {
  Operation *op = v.getDefiningOp();
  return (op && op->hasTrait<OpTrait::ConstantLike>()) ||
         !forall->isAncestor(v.getParentBlock()->getParentOp());
}

std::string blockform::mistakeOf(MmaOp mma) {
  // Whole warps must run the operation, and all their threads equally often.
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
/// Builds the replacement of one mma.
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
  bool isTf32() { return mma.getA().getType().getElementType().isF32(); }
  /// Returns the factor to multiply, rounded to TF32 if the op rounds.
  Value rounded(Value v) {
    return mma.getRounds() ? block::RoundTf32Op::create(b, v.getType(), v) : v;
  }
  /// Returns the offsets of rows group and group + 8 of A.
  std::pair<Value, Value> rows() {
    Value row = add(mma.getAOffset(), times(group, mma.getAPitch()));
    return {row, add(row, index(8 * mma.getAPitch()))};
  }

  SmallVector<Value> byLoop();
  SmallVector<Value> byWarp();
  /// Loads the registers of A and of B.
  bool inRows();
  void loadMatrices(SmallVector<Value> &x, SmallVector<Value> &y);
  void loadPairs(SmallVector<Value> &x, SmallVector<Value> &y);
  void loadTf32(SmallVector<Value> &x, SmallVector<Value> &y);

  MmaOp mma;
  ImplicitLocOpBuilder b;
  Value group, twice;
};
} // namespace

SmallVector<Value> Expansion::byLoop() {
  auto [low, high] = rows();
  Value left = add(mma.getBOffset(), times(twice, mma.getBPitch()));
  Value right = add(left, index(mma.getBPitch()));
  Value zero = index(0), depth = index(mma.getDepth()), one = index(1);
  auto loop = scf::ForOp::create(
      b, zero, depth, one,
      ValueRange{mma.getC0(), mma.getC1(), mma.getC2(), mma.getC3()});
  b.setInsertionPointToStart(loop.getBody());
  Value k = loop.getInductionVar();
  auto read = [&](Value buffer, Value from, int64_t step) -> Value {
    Value at = add(from, step == 1 ? k : times(k, step));
    Value v = rounded(memref::LoadOp::create(b, buffer, at));
    return isTf32() ? v : arith::ExtFOp::create(b, b.getF32Type(), v);
  };
  Value x[] = {read(mma.getA(), low, mma.getAStep()),
               read(mma.getA(), high, mma.getAStep())};
  Value y[] = {read(mma.getB(), left, mma.getBStep()),
               read(mma.getB(), right, mma.getBStep())};
  SmallVector<Value> sums;
  for (unsigned i = 0; i < 4; ++i)
    sums.push_back(math::FmaOp::create(b, x[i / 2], y[i % 2],
                                       loop.getRegionIterArgs()[i]));
  scf::YieldOp::create(b, sums);
  return SmallVector<Value>(loop.getResults());
}

/// Loads by ldmatrix: four matrices of 8 x 8 16-bit elements or 8 x 4 words of
/// A, two below each other of B. Lanes give rows of memory, which lie along k
/// or, to be transposed, across; words across are loaded one by one.
void Expansion::loadMatrices(SmallVector<Value> &x, SmallVector<Value> &y) {
  Type element = mma.getA().getType().getElementType();
  Value lane = arith::RemUIOp::create(b, mma.getThread(), index(kWarp));
  int64_t half = mma.getDepth() / 2;
  auto bit = [&](int64_t of, int64_t factor) -> Value {
    Value shifted = arith::DivUIOp::create(b, lane, index(of));
    return times(arith::RemUIOp::create(b, shifted, index(2)), factor);
  };
  Value row = arith::RemUIOp::create(b, lane, index(8));
  // The matrix of a lane begins at (line, depth).
  auto rows = [&](Value buffer, Value offset, Value line, Value depth,
                  int64_t pitch, int64_t step, size_t count) {
    bool across = step != 1;
    (across ? depth : line) = add(across ? depth : line, row);
    Value at = add(offset, add(times(line, pitch), times(depth, step)));
    auto words = block::LoadMatricesOp::create(
        b, SmallVector<Type>(count, b.getI32Type()), buffer, at, across);
    return SmallVector<Value>(words.getWords());
  };
  auto single = [&](Value buffer, Value offset, int64_t step, size_t count) {
    Value place = arith::RemUIOp::create(b, lane, index(4));
    Value first = add(offset, add(group, times(place, step)));
    SmallVector<Value> words;
    for (size_t i = 0; i < count; ++i) {
      int64_t line = count == 4 ? int64_t(i % 2) * 8 : 0,
              depth = int64_t(count == 4 ? i / 2 : i) * half;
      words.push_back(memref::LoadOp::create(
          b, buffer, add(first, index(line + depth * step))));
    }
    return words;
  };
  auto formed = [&](SmallVector<Value> words) {
    for (Value &word : words) {
      if (isTf32()) {
        Value v = word;
        if (mma.getRounds()) {
          if (v.getType().isInteger(32))
            v = arith::BitcastOp::create(b, b.getF32Type(), v);
          v = rounded(v);
        }
        word = v.getType().isInteger(32)
                   ? v
                   : arith::BitcastOp::create(b, b.getI32Type(), v).getResult();
      } else if (element.isF16()) { // the instruction for bf16 takes words
        Value one = vector::FromElementsOp::create(
            b, VectorType::get({1}, word.getType()), word);
        word = vector::BitCastOp::create(b, VectorType::get({2}, element), one);
      }
    }
    return words;
  };
  bool singleA = isTf32() && mma.getAStep() != 1,
       singleB = isTf32() && mma.getBStep() != 1;
  x = formed(singleA ? single(mma.getA(), mma.getAOffset(), mma.getAStep(), 4)
                     : rows(mma.getA(), mma.getAOffset(), bit(8, 8),
                            bit(16, half), mma.getAPitch(), mma.getAStep(), 4));
  y = formed(singleB ? single(mma.getB(), mma.getBOffset(), mma.getBStep(), 2)
                     : rows(mma.getB(), mma.getBOffset(), index(0),
                            bit(8, half), mma.getBPitch(), mma.getBStep(), 2));
}

/// The same in pairs along k, which need not lie at multiples of 16 bytes.
void Expansion::loadPairs(SmallVector<Value> &x, SmallVector<Value> &y) {
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
  for (int64_t k : {0, 8}) {
    x.push_back(read(mma.getA(), add(low, index(k))));
    x.push_back(read(mma.getA(), add(high, index(k))));
    y.push_back(read(mma.getB(), add(column, index(k))));
  }
}

void Expansion::loadTf32(SmallVector<Value> &x, SmallVector<Value> &y) {
  Type f32 = b.getF32Type(), word = b.getI32Type();
  VectorType pair = VectorType::get({2}, f32);
  /// Reads elements 2q and 2q + 1 along k, as words.
  auto read = [&](Value buffer, Value from, int64_t step) {
    Value two[2];
    if (step == 1) {
      Value both = vector::LoadOp::create(b, pair, buffer, add(from, twice));
      for (int64_t i : {0, 1})
        two[i] = vector::ExtractOp::create(b, both, i);
    } else {
      Value first = add(from, times(twice, step));
      two[0] = memref::LoadOp::create(b, buffer, first);
      two[1] = memref::LoadOp::create(b, buffer, add(first, index(step)));
    }
    for (Value &v : two)
      v = arith::BitcastOp::create(b, word, rounded(v));
    return std::pair(two[0], two[1]);
  };
  auto [low, high] = rows();
  auto [a0, a2] = read(mma.getA(), low, mma.getAStep());
  auto [a1, a3] = read(mma.getA(), high, mma.getAStep());
  Value column = add(mma.getBOffset(), times(group, mma.getBPitch()));
  auto [b0, b1] = read(mma.getB(), column, mma.getBStep());
  x = {a0, a1, a2, a3};
  y = {b0, b1};
}

/// Returns whether rows lie at multiples of 16 bytes, and 8 of them use
/// different banks: at odd multiples. Words across k use different banks if
/// their distance is 8 more than a multiple of 32.
bool Expansion::inRows() {
  int64_t wide = isTf32() ? 4 : 8;
  auto are = [&](Value offset, int64_t pitch, int64_t step) {
    if (isTf32() && step != 1)
      return step % 32 == 8;
    return (step == 1 ? pitch : step) % (2 * wide) == wide &&
           isMultiple(offset, isTf32() ? 2 : 3);
  };
  return are(mma.getAOffset(), mma.getAPitch(), mma.getAStep()) &&
         are(mma.getBOffset(), mma.getBPitch(), mma.getBStep());
}

SmallVector<Value> Expansion::byWarp() {
  SmallVector<Value> x, y;
  if (isTf32())
    inRows() ? loadMatrices(x, y) : loadTf32(x, y);
  else
    inRows() ? loadMatrices(x, y) : loadPairs(x, y);
  Type element = mma.getA().getType().getElementType();
  Type f32 = b.getF32Type();
  auto type =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
  NVVM::MMATypes operand = isTf32()          ? NVVM::MMATypes::tf32
                           : element.isF16() ? NVVM::MMATypes::f16
                                             : NVVM::MMATypes::bf16;
  int64_t shape[] = {16, 8, mma.getDepth()};
  Value made = NVVM::MmaOp::create(
      b, type, x, y,
      ValueRange{mma.getC0(), mma.getC1(), mma.getC2(), mma.getC3()}, shape,
      /*b1Op=*/std::nullopt, /*intOverflow=*/std::nullopt,
      std::array<NVVM::MMATypes, 2>{operand, operand},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
  SmallVector<Value> sums;
  for (int64_t i = 0; i < 4; ++i)
    sums.push_back(LLVM::ExtractValueOp::create(b, made, i));
  return sums;
}

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

/// Rounds with integers: half of the last kept bit is added to the magnitude,
/// which carries correctly into the exponent and up to infinity.
static Value roundedByBits(ImplicitLocOpBuilder &b, Value x) {
  Type type = b.getI32Type();
  if (auto vector = dyn_cast<VectorType>(x.getType()))
    type = vector.clone(type);
  auto constant = [&](uint32_t bits) -> Value {
    TypedAttr value = b.getI32IntegerAttr(int32_t(bits));
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector, value);
    return arith::ConstantOp::create(b, value);
  };
  Value bits = arith::BitcastOp::create(b, type, x);
  Value rounded = arith::AddIOp::create(b, bits, constant(0x1000));
  rounded = arith::AndIOp::create(b, rounded, constant(0xffffe000));
  Value magnitude = arith::AndIOp::create(b, bits, constant(0x7fffffff));
  Value isNan = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, magnitude,
                                      constant(0x7f800000));
  rounded = arith::SelectOp::create(b, isNan, constant(0x7fffffff), rounded);
  return arith::BitcastOp::create(b, x.getType(), rounded);
}

static Value roundedByDevice(ImplicitLocOpBuilder &b, Value x) {
  auto vector = dyn_cast<VectorType>(x.getType());
  SmallVector<Value> elements;
  for (int64_t i = 0; i < (vector ? vector.getNumElements() : 1); ++i) {
    Value element = vector ? vector::ExtractOp::create(b, x, i).getResult() : x;
    Value bits = NVVM::ConvertFloatToTF32Op::create(b, b.getI32Type(), element,
                                                    NVVM::FPRoundingMode::RNA);
    elements.push_back(arith::BitcastOp::create(b, b.getF32Type(), bits));
  }
  if (!vector)
    return elements.front();
  return vector::FromElementsOp::create(b, vector, elements);
}

void blockform::expandMma(const Kernel &kernel, bool byWarps) {
  SmallVector<MmaOp> all;
  func::FuncOp function = kernel.function;
  function->walk([&](MmaOp mma) { all.push_back(mma); });
  for (MmaOp mma : all) {
    Expansion expansion(mma);
    mma->replaceAllUsesWith(byWarps ? expansion.byWarp() : expansion.byLoop());
    mma->erase();
  }
  SmallVector<block::RoundTf32Op> roundings;
  function->walk([&](block::RoundTf32Op op) { roundings.push_back(op); });
  for (block::RoundTf32Op op : roundings) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    op.replaceAllUsesWith(byWarps ? roundedByDevice(b, op.getX())
                                  : roundedByBits(b, op.getX()));
    op->erase();
  }
}
