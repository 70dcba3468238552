//===- EmitterTile.cpp - loads of transposed tiles ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lanes run along the innermost loop, in which a transposed operand is not
// contiguous. If it is contiguous along another loop, W of that loop's points
// are computed together: W vectors are loaded along it and transposed in
// registers, and point k of the tile uses one of them. Elements are moved,
// never changed.
//
// Complexity: W loads and W log2 W shuffles for W * W elements.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

std::optional<int64_t> codegen::factorOf(AffineExpr e, AffineExpr dim) {
  if (e == dim)
    return 1;
  bool there = false;
  e.walk([&](AffineExpr part) { there |= part == dim; });
  if (!there)
    return 0;
  auto binary = dyn_cast<AffineBinaryOpExpr>(e);
  auto left = binary ? factorOf(binary.getLHS(), dim) : std::nullopt;
  if (!left)
    return std::nullopt;
  if (e.getKind() == AffineExprKind::Add) {
    auto right = factorOf(binary.getRHS(), dim);
    return right ? std::optional(*left + *right) : std::nullopt;
  }
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (e.getKind() != AffineExprKind::Mul || !factor)
    return std::nullopt;
  return *left * factor.getValue();
}

/// Exchanges the bits of the lane's number and the row's: afterwards vector r
/// holds element r of each vector. Each round picks the even or odd parts of
/// 128 bits from two rows, or interleaves halves within them, since machines do
/// that in one instruction.
static void transposeVectors(ValueBuilder &v, SmallVector<Value> &rows) {
  int64_t lanes = v.lanes;
  unsigned bytes =
      ValueBuilder::elementType(rows[0]).getIntOrFloatBitWidth() / 8;
  unsigned near = llvm::Log2_64(
               std::max<uint64_t>(std::min<uint64_t>(lanes, 16 / bytes), 1)),
           far = llvm::Log2_64(lanes) - near;
  int64_t piece = int64_t(1) << near, pieces = int64_t(1) << far;
  // Returns the lane of row `operand` from which lane p of `choice` comes.
  using Source = function_ref<int64_t(int64_t p, int64_t choice)>;
  auto round = [&](unsigned bit, Source source) {
    for (int64_t i = 0; i < lanes; ++i) {
      if (i >> bit & 1)
        continue;
      Value pair[2] = {rows[i], rows[i | int64_t(1) << bit]};
      for (int64_t choice : {0, 1}) {
        SmallVector<int64_t> from;
        for (int64_t p = 0; p < lanes; ++p)
          from.push_back(source(p, choice));
        rows[i | choice << bit] =
            vector::ShuffleOp::create(v.b, pair[0], pair[1], from);
      }
    }
  };
  for (unsigned bit = near; bit < near + far; ++bit)
    round(bit, [&](int64_t p, int64_t choice) {
      int64_t block = p / piece, half = pieces / 2;
      return block / half * lanes + (block % half * 2 + choice) * piece +
             p % piece;
    });
  for (unsigned bit = near; bit-- > 0;)
    round(bit, [&](int64_t p, int64_t choice) {
      int64_t q = p % piece;
      return (q & 1) * lanes + p / piece * piece + choice * piece / 2 + q / 2;
    });
}

/// Returns e in a form that is the same for all equal sums.
static AffineExpr canonical(AffineExpr e) {
  unsigned numDims = 0, numSymbols = 0;
  e.walk([&](AffineExpr part) {
    if (auto dim = dyn_cast<AffineDimExpr>(part))
      numDims = std::max(numDims, dim.getPosition() + 1);
    else if (auto symbol = dyn_cast<AffineSymbolExpr>(part))
      numSymbols = std::max(numSymbols, symbol.getPosition() + 1);
  });
  return simplifyAffineExpr(e, numDims, numSymbols);
}

bool Emitter::isTransposed(AffineExpr offset,
                           std::optional<int64_t> stride) const {
  return tile && stride && mask == tile->mask && floor == tile->floor &&
         factorOf(offset, tile->dim) == 1;
}

Value Emitter::loadTransposed(Value base, Type storage, AffineExpr offset,
                              int64_t stride) {
  AffineExpr start = canonical(offset - tile->point);
  SmallVector<Value> vectors =
      sharedBy(base.getAsOpaquePointer(), start, lanes, [&] {
        unsigned bits = storage.getIntOrFloatBitWidth();
        Type vector = vectorType(b.getIntegerType(bits));
        Value zero = arith::ConstantOp::create(b, b.getZeroAttr(vector));
        SmallVector<Value> rows(lanes, zero);
        Value first = pointer(base, storage, scalar(start)), some;
        if (tile->points < int64_t(lanes))
          some = cmpi(arith::CmpIPredicate::slt, iota(b.getI32Type(), 1),
                      splat(constant(b.getI32Type(), tile->points)));
        for (int64_t j = 0; j < tile->columns; ++j) {
          Value at = pointer(first, storage, index(j * stride));
          rows[j] = some ? Value(LLVM::MaskedLoadOp::create(b, vector, at, some,
                                                            zero, bits / 8))
                         : Value(LLVM::LoadOp::create(b, vector, at, bits / 8));
          ++report.unitLoads;
        }
        transposeVectors(*this, rows);
        return rows;
      });
  return bitcast(storage, vectors[tile->point]);
}
