//===- RandomModels.cpp - counter-based random numbers, dropout -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers are those of Philox4x32-10 as in ckopt/Base/Philox.h: key =
// seed, counter = (e/4, step, site), word e mod 4 for element e in logical
// row-major order. One block serves four elements. If the lanes are consecutive
// elements from a multiple of four on, W blocks make the words of four vectors
// (Emitter::Group), or W/4 blocks those of one; else each lane makes its own.
// Normal numbers are made from pairs of words by Box and Muller's transform,
// each element by itself: a cosine for the even one, a sine for the odd one.
// f16 and bf16 are rounded from f32, so that a uniform number close to 1
// becomes 1.
//
//===----------------------------------------------------------------------===//
#include "ElementModel.h"
#include "Emit/MathFunctions.h"
#include "Emit/Philox.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include <numbers>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;

namespace {

/// Computes the random words of one op's elements.
class RandomWords {
public:
  template <typename Op>
  RandomWords(Op op, Index index, Emitter &e)
      : e(e), op(op), element(elementOf(op, index)), philox(e) {
    Value seed = op.getSeed(), number = op.getStep();
    int64_t position = int64_t(op.getSite());
    auto seedWord = [&](int64_t shift) {
      return e.once(op, unsigned(shift), [&] {
        Value word = e.emit(seed, {});
        return low32(shift ? e.shr(word, shift) : word);
      });
    };
    key0 = seedWord(0);
    key1 = seedWord(32);
    step = e.once(op, 1, [&] { return low32(e.emit(number, {})); });
    site = e.once(op, 2, [&] { return low32(e.callScalar(position)); });
    // Elements of rank r, the upper half of the step, are numbered after those
    // of the ranks before.
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    firstBlock = e.once(op, 3, [&] {
      Value rank = e.shr(e.emit(number, {}), 32);
      return e.mul(rank, philox.number(rank, type.getNumElements() / 4));
    });
  }

  /// Returns the element's position in logical row-major order.
  static AffineExpr elementOf(Operation *op, Index index) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    AffineExpr number = getAffineConstantExpr(0, op->getContext());
    for (auto [size, i] : llvm::zip_equal(type.getShape(), index))
      number = number * size + (size == 1 ? i * 0 : i);
    return Emitter::simplify(number);
  }

  /// Returns the element's own word.
  Value word() {
    if (inBlocks())
      return words();
    auto [out, which] = ownBlock();
    Value result = out[3];
    for (int word = 2; word >= 0; --word)
      result =
          e.select(e.cmpi(arith::CmpIPredicate::eq, which, e.like(which, word)),
                   out[word], result);
    return result;
  }

  struct Pair {
    Value first, second; ///< words 0 and 1, or 2 and 3
    Value isSecond;      ///< whether the second is the element's own
  };
  Pair pair() {
    if (inBlocks()) {
      Value own = words();
      SmallVector<int64_t> even, odd;
      for (int64_t i = 0; i < int64_t(e.lanes); ++i) {
        even.push_back(i & ~int64_t(1));
        odd.push_back(i | 1);
      }
      Value lane = e.iota(e.b.getI32Type(), 1);
      return {vector::ShuffleOp::create(e.b, own, own, even),
              vector::ShuffleOp::create(e.b, own, own, odd), isOdd(lane)};
    }
    auto [out, which] = ownBlock();
    Value high = e.cmpi(arith::CmpIPredicate::uge, which, e.like(which, 2));
    return {e.select(high, out[2], out[0]), e.select(high, out[3], out[1]),
            isOdd(which)};
  }

private:
  Value low32(Value x) {
    return arith::TruncIOp::create(e.b, e.b.getI32Type(), x);
  }
  Value isOdd(Value x) {
    return e.cmpi(arith::CmpIPredicate::ne, e.andi(x, e.like(x, 1)),
                  e.like(x, 0));
  }

  /// Returns whether lanes are consecutive elements from a multiple of four on.
  bool inBlocks() {
    return e.laneStride(element) == 1 && e.lanes % 4 == 0 &&
           e.isMultipleOf(element, 4);
  }
  int64_t share() const { return e.lanes / 4; } ///< blocks of one vector
  int64_t count() const { return share() * e.group.count; }
  int64_t first() const { return share() * e.group.vector; }

  /// Returns the words of the current vector's elements.
  Value words() {
    // Pairs of words of blocks, of all vectors of the group: words 0 and 1, 2
    // and 3.
    SmallVector<Value> halves = blocks();
    SmallVector<int64_t> weave;
    for (int64_t i = 0; i < share(); ++i)
      weave.append({first() + i, count() + first() + i});
    Value own = vector::ShuffleOp::create(e.b, halves[0], halves[1], weave);
    return vector::BitCastOp::create(e.b, e.vectorType(e.b.getI32Type()), own);
  }

  /// Returns the words of consecutive elements, for all blocks of a group of
  /// vectors at once. Word k of block i is for element 4i + k.
  SmallVector<Value> blocks() {
    AffineExpr start =
        Emitter::simplify(element - int64_t(e.group.vector) * e.lanes);
    return e.sharedBy(op, start, 2, [&] {
      auto type = VectorType::get({count()}, e.b.getI64Type());
      SmallVector<Attribute> steps;
      for (int64_t i = 0; i < count(); ++i)
        steps.push_back(e.b.getI64IntegerAttr(i));
      Value block =
          arith::ConstantOp::create(e.b, DenseElementsAttr::get(type, steps));
      Value first = e.add(e.shr(e.scalar(start), 2), firstBlock);
      block = arith::AddIOp::create(e.b, block, philox.like(block, first));
      SmallVector<Value> out = wideRounds(block);
      auto half = [&](Value low, Value high) -> Value {
        low = arith::AndIOp::create(e.b, low, philox.number(low, 0xffffffff));
        high = arith::ShLIOp::create(e.b, high, philox.number(high, 32));
        return arith::OrIOp::create(e.b, low, high);
      };
      return SmallVector<Value>{half(out[0], out[1]), half(out[2], out[3])};
    });
  }

  /// Returns the words of the block of each lane (or scalar), and which of them
  /// is the element's.
  std::pair<SmallVector<Value>, Value> ownBlock() {
    Value number = e.materialize(element);
    Type i32 = e.typeLike(e.b.getI32Type(), number);
    if (!Emitter::isVector(number)) {
      Value block = e.add(e.shr(number, 2), firstBlock);
      Value which = low32(number);
      return {philox.rounds({low32(block), low32(e.shr(block, 32)), step, site},
                            key0, key1),
              e.andi(which, e.like(which, 3))};
    }
    Value wide = number;
    if (Emitter::elementType(number).isInteger(32))
      wide = arith::ExtUIOp::create(e.b, e.typeLike(e.b.getI64Type(), number),
                                    number);
    else
      number = arith::TruncIOp::create(e.b, i32, number);
    Value block = e.shr(wide, 2);
    SmallVector<Value> out =
        wideRounds(e.add(block, philox.like(block, firstBlock)));
    for (Value &word : out)
      word = arith::TruncIOp::create(e.b, i32, word);
    return {out, e.andi(number, e.like(number, 3))};
  }

  /// Returns the words of vectors of blocks as philox.wideRounds().
  SmallVector<Value> wideRounds(Value block) {
    auto wide = [&](Value x) -> Value {
      return arith::ExtUIOp::create(e.b, e.b.getI64Type(), x);
    };
    // Few tensors have more than 2^32 blocks, on all of 1024 ranks together.
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Value high = e.index(0);
    if (type.getNumElements() > int64_t(1) << 24)
      high = arith::ShRUIOp::create(e.b, block, philox.number(block, 32));
    return philox.wideRounds({block, high, wide(step), wide(site)}, key0, key1);
  }

  Emitter &e;
  Operation *op;
  AffineExpr element;
  Philox philox;
  Value key0, key1, step, site;
  Value firstBlock; ///< scalar, i64
};

struct DropoutModel : ElementModel {
  SmallVector<AffineExpr> indexUses(Operation *op, Index index) const override {
    return {RandomWords::elementOf(op, index)};
  }
  std::optional<SmallVector<AffineExpr>>
  operandIndex(Operation *op, unsigned number, Index index) const override {
    if (number == 0)
      return SmallVector<AffineExpr>(index);
    return SmallVector<AffineExpr>();
  }

  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    auto dropout = cast<DropoutOp>(op);
    Value x = operand(op, 0, index, e);
    double ratio = dropout.getRatio().convertToDouble();
    if (ratio <= 0)
      return x;
    Value word = RandomWords(dropout, index, e).word();
    // u = (word >> 8) * 2^-24 >= ratio, exactly.
    int64_t threshold = int64_t(std::ceil(std::ldexp(ratio, 24)));
    Value keep = e.cmpi(arith::CmpIPredicate::uge, e.shr(word, 8),
                        e.like(word, double(threshold)));
    double scale = ratio < 1 ? 1 / (1 - ratio) : 0;
    if (!Emitter::elementType(x).isF64())
      scale = 1.0f / (1.0f - float(ratio));
    return e.select(keep, e.mul(x, e.like(x, ratio < 1 ? scale : 0)),
                    e.like(x, 0));
  }
};

struct RandomModel : ElementModel {
  SmallVector<AffineExpr> indexUses(Operation *op, Index index) const override {
    return {RandomWords::elementOf(op, index)};
  }
  std::optional<SmallVector<AffineExpr>> operandIndex(Operation *, unsigned,
                                                      Index) const override {
    return SmallVector<AffineExpr>();
  }

  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    auto random = cast<RandomOp>(op);
    Type type = computeType(getElementTypeOrSelf(random.getType()));
    RandomWords words(random, index, e);
    if (random.getKind() == RandomKind::Uniform)
      return uniform(e, words.word(), type);
    RandomWords::Pair pair = words.pair();
    Value u = uniform(e, pair.first, type);
    u = e.sub(e.like(u, 1), u); // in (0, 1], exact
    Value radius = e.sqrt(e.mul(e.like(u, -2), emitLog(e, u)));
    if (!type.isF64())
      return e.mul(radius, emitCircle(e, e.shr(pair.second, 8), pair.isSecond));
    e.report.libmCalls += 3;
    Value angle = uniform(e, pair.second, type);
    angle = e.mul(angle, e.like(angle, 2 * std::numbers::pi));
    return e.mul(radius,
                 e.select(pair.isSecond, emitSin(e, angle), emitCos(e, angle)));
  }

private:
  /// Returns a number in [0, 1), a multiple of 2^-24.
  static Value uniform(Emitter &e, Value word, Type type) {
    Value x =
        arith::SIToFPOp::create(e.b, e.typeLike(type, word), e.shr(word, 8));
    return e.mul(x, e.like(x, 0x1p-24));
  }
};

} // namespace

void codegen::addRandomModels(ElementModels &models) {
  models.add<DropoutOp, DropoutModel>();
  models.add<RandomOp, RandomModel>();
}
