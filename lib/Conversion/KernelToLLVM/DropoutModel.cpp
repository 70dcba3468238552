//===- DropoutModel.cpp - dropout by counter-based random numbers ---------===//
//
// Philox4x32-10 as in ckopt/Support/Philox.h: key = seed, counter = (e/4, step,
// site), word e mod 4 for element e in logical row-major order. One block
// serves four elements: where the lanes are consecutive elements from a
// multiple of four on, W blocks make the words of four vectors (Emitter::Group)
// or W/4 those of one; else each lane makes its own.
//
//===----------------------------------------------------------------------===//
#include "ElementModel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;

namespace {

/// Arithmetic on i32, scalars or vectors of any length.
class Philox {
public:
  explicit Philox(Emitter &e) : e(e), b(e.b) {}

  SmallVector<Value> rounds(SmallVector<Value> counter, Value key0,
                            Value key1) {
    for (int round = 0; round < 10; ++round) {
      auto [high0, low0] = multiply(counter[0], 0xD2511F53u);
      auto [high1, low1] = multiply(counter[2], 0xCD9E8D57u);
      counter = {xorOf(xorOf(high1, counter[1]), like(counter[0], key0)), low1,
                 xorOf(xorOf(high0, counter[3]), like(counter[0], key1)), low0};
      key0 = e.add(key0, e.constant(key0.getType(), int64_t(0x9E3779B9u)));
      key1 = e.add(key1, e.constant(key1.getType(), int64_t(0xBB67AE85u)));
    }
    return counter;
  }
  /// A scalar as a value of x's type.
  Value like(Value x, Value scalar) {
    if (!isa<VectorType>(x.getType()))
      return scalar;
    return vector::BroadcastOp::create(b, x.getType(), scalar);
  }

private:
  /// High and low words of x * factor.
  std::pair<Value, Value> multiply(Value x, uint32_t factor) {
    Type i64 = b.getI64Type();
    auto type = dyn_cast<VectorType>(x.getType());
    if (type && type.getNumElements() % 2 == 0)
      return multiplyPairs(x, type, factor);
    Type wide = type ? Type(VectorType::get(type.getShape(), i64)) : i64;
    Value product =
        arith::MulIOp::create(b, x64(x, wide), number(x64(x, wide), factor));
    Value high = arith::ShRUIOp::create(b, product, number(product, 32));
    return {arith::TruncIOp::create(b, x.getType(), high),
            arith::TruncIOp::create(b, x.getType(), product)};
  }
  /// The same on pairs of lanes in 64 bits: even and odd ones are what the
  /// machine's widening multiplication takes, without moves between lanes.
  std::pair<Value, Value> multiplyPairs(Value x, VectorType type,
                                        uint32_t factor) {
    auto wide = VectorType::get({type.getNumElements() / 2}, b.getI64Type());
    Value pairs = vector::BitCastOp::create(b, wide, x);
    Value c = number(pairs, factor), bits = number(pairs, 32),
          lowHalf = number(pairs, 0xffffffff),
          highHalf = number(pairs, int64_t(0xffffffff00000000));
    Value even = arith::MulIOp::create(
        b, arith::AndIOp::create(b, pairs, lowHalf).getResult(), c);
    Value odd = arith::MulIOp::create(
        b, arith::ShRUIOp::create(b, pairs, bits).getResult(), c);
    Value high = arith::OrIOp::create(
        b, arith::ShRUIOp::create(b, even, bits).getResult(),
        arith::AndIOp::create(b, odd, highHalf).getResult());
    Value low = arith::OrIOp::create(
        b, arith::AndIOp::create(b, even, lowHalf).getResult(),
        arith::ShLIOp::create(b, odd, bits).getResult());
    return {vector::BitCastOp::create(b, type, high),
            vector::BitCastOp::create(b, type, low)};
  }
  /// A 64-bit number of x's type.
  Value number(Value x, int64_t value) {
    return like(x, e.constant(b.getI64Type(), value));
  }
  Value x64(Value x, Type wide) { return arith::ExtUIOp::create(b, wide, x); }
  Value xorOf(Value x, Value y) { return arith::XOrIOp::create(b, x, y); }

  Emitter &e;
  ImplicitLocOpBuilder &b;
};

struct DropoutModel : ElementModel {
  static AffineExpr element(Operation *op, Index index) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    AffineExpr number = getAffineConstantExpr(0, op->getContext());
    for (auto [size, i] : llvm::zip_equal(type.getShape(), index))
      number = number * size + (size == 1 ? i * 0 : i);
    return Emitter::simplify(number);
  }
  SmallVector<AffineExpr> indexUses(Operation *op, Index index) const override {
    return {element(op, index)};
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
    Value word = words(dropout, element(op, index), e);
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

private:
  static Value low32(Emitter &e, Value x) {
    return arith::TruncIOp::create(e.b, e.b.getI32Type(), x);
  }

  static Value words(DropoutOp op, AffineExpr element, Emitter &e) {
    Operation *key = op;
    auto seedWord = [&](int64_t shift) {
      return e.once(key, unsigned(shift), [&] {
        Value seed = e.emit(op.getSeed(), {});
        return low32(e, shift ? e.shr(seed, shift) : seed);
      });
    };
    Value key0 = seedWord(0), key1 = seedWord(32);
    Value step =
        e.once(key, 1, [&] { return low32(e, e.emit(op.getStep(), {})); });
    Value site = e.once(
        key, 2, [&] { return low32(e, e.callScalar(int64_t(op.getSite()))); });
    Philox philox(e);
    if (e.laneStride(element) == 1 && e.lanes % 4 == 0 &&
        e.isMultipleOf(element, 4))
      return blocks(op, philox, element, key0, key1, step, site, e);
    // Each lane (or the scalar) makes its own block.
    Value number = e.materialize(element);
    Value block = e.shr(number, 2), high;
    Type i32 = e.typeLike(e.b.getI32Type(), number);
    if (Emitter::elementType(number).isInteger(64)) {
      high = arith::TruncIOp::create(e.b, i32, e.shr(block, 32));
      block = arith::TruncIOp::create(e.b, i32, block);
      number = arith::TruncIOp::create(e.b, i32, number);
    } else {
      high = e.like(block, 0);
    }
    SmallVector<Value> out = philox.rounds(
        {block, high, philox.like(block, step), philox.like(block, site)}, key0,
        key1);
    Value which = e.andi(number, e.like(number, 3)), result = out[3];
    for (int word = 2; word >= 0; --word)
      result =
          e.select(e.cmpi(arith::CmpIPredicate::eq, which, e.like(which, word)),
                   out[word], result);
    return result;
  }

  /// The words of consecutive elements: the blocks of a whole group of vectors
  /// at once.
  static Value blocks(DropoutOp op, Philox &philox, AffineExpr element,
                      Value key0, Value key1, Value step, Value site,
                      Emitter &e) {
    int64_t share = e.lanes / 4, count = share * e.group.count;
    AffineExpr start =
        Emitter::simplify(element - int64_t(e.group.vector) * e.lanes);
    SmallVector<Value> out = e.sharedBy(op, start, 4, [&] {
      Type i32 = e.b.getI32Type();
      Value first = e.shr(e.scalar(start), 2);
      auto type = VectorType::get({count}, i32);
      SmallVector<Attribute> steps;
      for (int64_t i = 0; i < count; ++i)
        steps.push_back(e.b.getI32IntegerAttr(i));
      // As i64: a group may cross a multiple of 2^32 blocks.
      auto wide = VectorType::get({count}, e.b.getI64Type());
      Value block =
          arith::ConstantOp::create(e.b, DenseElementsAttr::get(type, steps));
      block = arith::ExtUIOp::create(e.b, wide, block);
      block = arith::AddIOp::create(e.b, block, philox.like(block, first));
      Value high = arith::TruncIOp::create(
          e.b, type,
          arith::ShRUIOp::create(e.b, block, philox.like(block, e.index(32)))
              .getResult());
      block = arith::TruncIOp::create(e.b, type, block);
      return philox.rounds(
          {block, high, philox.like(block, step), philox.like(block, site)},
          key0, key1);
    });
    // Word k of block i is element 4i + k.
    int64_t from = share * e.group.vector;
    SmallVector<int64_t> join, weave;
    for (int64_t half : {int64_t(0), count})
      for (int64_t i = 0; i < share; ++i)
        join.push_back(half + from + i);
    for (int64_t i = 0; i < share; ++i)
      for (int64_t k = 0; k < 4; ++k)
        weave.push_back(k * share + i);
    Value low = vector::ShuffleOp::create(e.b, out[0], out[1], join);
    Value top = vector::ShuffleOp::create(e.b, out[2], out[3], join);
    return vector::ShuffleOp::create(e.b, low, top, weave);
  }
};

} // namespace

void codegen::addDropoutModel(ElementModels &models) {
  models.add<DropoutOp, DropoutModel>();
}
