//===- EmitterIndex.cpp - index expressions and their code ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

AffineExpr Emitter::addDim(Value iv, bool lane) {
  dims.push_back({iv, lane && lanes > 1, currentLevel()});
  return getAffineDimExpr(dims.size() - 1, ctx);
}

AffineExpr Emitter::addSymbol(Value v, bool nonNegative) {
  symbols.push_back({v, nonNegative, currentLevel()});
  return getAffineSymbolExpr(symbols.size() - 1, ctx);
}

AffineExpr Emitter::addReadIndex(Value read, int64_t size) {
  Type wanted = isVector(read) ? indexType : Type(b.getI64Type());
  auto width = [](Value v) { return elementType(v).getIntOrFloatBitWidth(); };
  if (width(read) < wanted.getIntOrFloatBitWidth())
    read = arith::ExtSIOp::create(b, typeLike(wanted, read), read);
  Value zero = like(read, 0);
  read = select(cmpi(arith::CmpIPredicate::slt, read, zero),
                add(read, like(read, double(size))), read);
  read = minimum(maximum(read, zero), like(read, double(size - 1)));
  if (width(read) > wanted.getIntOrFloatBitWidth())
    read = arith::TruncIOp::create(b, typeLike(wanted, read), read);
  return addSymbol(read, /*nonNegative=*/true);
}

unsigned Emitter::levelOf(AffineExpr e) const {
  unsigned level = 0;
  e.walk([&](AffineExpr part) {
    if (auto dim = dyn_cast<AffineDimExpr>(part))
      level = std::max(level, dims[dim.getPosition()].level);
    else if (auto symbol = dyn_cast<AffineSymbolExpr>(part))
      level = std::max(level, symbols[symbol.getPosition()].level);
  });
  return level;
}

unsigned Emitter::levelOf(Index index, bool &lane) const {
  unsigned level = 0;
  lane = false;
  for (AffineExpr e : index) {
    level = std::max(level, levelOf(e));
    lane |= dependsOnLane(e);
  }
  return level;
}

bool Emitter::dependsOnLane(AffineExpr e) const {
  bool lane = false;
  e.walk([&](AffineExpr part) {
    if (auto dim = dyn_cast<AffineDimExpr>(part))
      lane |= dims[dim.getPosition()].lane;
    else if (auto symbol = dyn_cast<AffineSymbolExpr>(part))
      lane |= isVector(symbols[symbol.getPosition()].value);
  });
  return lane;
}

std::optional<int64_t> Emitter::laneStride(AffineExpr e) const {
  if (!dependsOnLane(e))
    return 0;
  if (auto dim = dyn_cast<AffineDimExpr>(e))
    return 1;
  auto binary = dyn_cast<AffineBinaryOpExpr>(e);
  if (!binary)
    return std::nullopt;
  auto left = laneStride(binary.getLHS());
  if (e.getKind() == AffineExprKind::Add) {
    auto right = laneStride(binary.getRHS());
    if (!left || !right)
      return std::nullopt;
    return *left + *right;
  }
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (e.getKind() == AffineExprKind::Mul && left && factor)
    return *left * factor.getValue();
  return std::nullopt;
}

bool Emitter::isNonNegative(AffineExpr e) const {
  if (auto constant = dyn_cast<AffineConstantExpr>(e))
    return constant.getValue() >= 0;
  if (isa<AffineDimExpr>(e))
    return true;
  if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
    return symbols[symbol.getPosition()].nonNegative;
  auto binary = cast<AffineBinaryOpExpr>(e);
  if (e.getKind() == AffineExprKind::Mod)
    return true;
  return isNonNegative(binary.getLHS()) && isNonNegative(binary.getRHS());
}

bool Emitter::isMultipleOf(AffineExpr e, int64_t n) const {
  if (auto constant = dyn_cast<AffineConstantExpr>(e))
    return constant.getValue() % n == 0;
  if (isa<AffineDimExpr>(e))
    return dependsOnLane(e) && int64_t(lanes) % n == 0;
  auto binary = dyn_cast<AffineBinaryOpExpr>(e);
  if (!binary)
    return false;
  bool left = isMultipleOf(binary.getLHS(), n),
       right = isMultipleOf(binary.getRHS(), n);
  if (e.getKind() == AffineExprKind::Add)
    return left && right;
  return e.getKind() == AffineExprKind::Mul && (left || right);
}

AffineExpr Emitter::simplify(AffineExpr e) {
  unsigned numDims = 0, numSymbols = 0;
  bool divides = false;
  e.walk([&](AffineExpr part) {
    if (auto dim = dyn_cast<AffineDimExpr>(part))
      numDims = std::max(numDims, dim.getPosition() + 1);
    else if (auto symbol = dyn_cast<AffineSymbolExpr>(part))
      numSymbols = std::max(numSymbols, symbol.getPosition() + 1);
    else if (part.getKind() == AffineExprKind::FloorDiv ||
             part.getKind() == AffineExprKind::Mod)
      divides = true;
  });
  return divides ? simplifyAffineExpr(e, numDims, numSymbols) : e;
}

AffineExpr Emitter::linearize(Index index, ArrayRef<int64_t> strides,
                              MLIRContext *ctx) {
  AffineExpr offset = getAffineConstantExpr(0, ctx);
  for (auto [e, stride] : llvm::zip_equal(index, strides))
    offset = offset + e * stride;
  return simplify(offset);
}

//===----------------------------------------------------------------------===//
// Code of expressions
//===----------------------------------------------------------------------===//

/// Emits a floor division or remainder by a positive constant.
Value Emitter::divide(Value x, int64_t by, bool remainder, bool nonNegative) {
  Value divisor = like(x, double(by));
  if (nonNegative)
    return remainder ? Value(arith::RemUIOp::create(b, x, divisor))
                     : Value(arith::DivUIOp::create(b, x, divisor));
  Value rest = arith::RemSIOp::create(b, x, divisor);
  Value below = cmpi(arith::CmpIPredicate::slt, rest, like(x, 0));
  if (remainder)
    return select(below, add(rest, divisor), rest);
  Value quotient = arith::DivSIOp::create(b, x, divisor);
  return select(below, sub(quotient, like(x, 1)), quotient);
}

Value Emitter::scalar(AffineExpr e) {
  if (auto constant = dyn_cast<AffineConstantExpr>(e))
    return index(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(e))
    return dims[dim.getPosition()].iv;
  if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
    return symbols[symbol.getPosition()].value;
  auto it = scalarMemo.find(e);
  if (it != scalarMemo.end() && it->second.level < levels.size() &&
      levels[it->second.level].id == it->second.id)
    return it->second.value;
  unsigned level = levelOf(e);
  OpBuilder::InsertPoint point = b.saveInsertionPoint();
  bool moved = level < currentLevel();
  if (moved)
    b.setInsertionPoint(levels[level].child);
  auto binary = cast<AffineBinaryOpExpr>(e);
  Value left = scalar(binary.getLHS()), result;
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  switch (e.getKind()) {
  case AffineExprKind::Add:
    result = add(left, scalar(binary.getRHS()));
    break;
  case AffineExprKind::Mul:
    result = mul(left, scalar(binary.getRHS()));
    break;
  default:
    result = divide(left, factor.getValue(), e.getKind() == AffineExprKind::Mod,
                    isNonNegative(binary.getLHS()));
  }
  if (moved)
    b.restoreInsertionPoint(point);
  scalarMemo[e] = {result, level, levels[level].id};
  return result;
}

Value Emitter::laneVector(AffineExpr e) {
  Type wide = b.getI64Type();
  auto narrow = [&](Value v) -> Value {
    if (indexType == wide)
      return v;
    return arith::TruncIOp::create(b, typeLike(indexType, v), v);
  };
  if (!dependsOnLane(e))
    return splat(narrow(scalar(e)));
  if (auto stride = laneStride(e))
    return add(narrow(scalar(e)), iota(indexType, *stride));
  if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
    return symbols[symbol.getPosition()].value;
  auto it = vectorMemo.find(e);
  if (it != vectorMemo.end() && it->second.level < levels.size() &&
      levels[it->second.level].id == it->second.id)
    return it->second.value;
  auto binary = cast<AffineBinaryOpExpr>(e);
  Value left = laneVector(binary.getLHS()), result;
  switch (e.getKind()) {
  case AffineExprKind::Add:
    result = add(left, laneVector(binary.getRHS()));
    break;
  case AffineExprKind::Mul:
    result = mul(left, laneVector(binary.getRHS()));
    break;
  default:
    result = divide(left, cast<AffineConstantExpr>(binary.getRHS()).getValue(),
                    e.getKind() == AffineExprKind::Mod,
                    isNonNegative(binary.getLHS()));
  }
  vectorMemo[e] = {result, currentLevel(), levels.back().id};
  return result;
}

Value Emitter::materialize(AffineExpr e) {
  return dependsOnLane(e) ? laneVector(e) : scalar(e);
}

//===----------------------------------------------------------------------===//
// Guards
//===----------------------------------------------------------------------===//

static void conjoin(Emitter &e, Emitter::Guard &guard, Value condition) {
  Value &slot = Emitter::isVector(condition) ? guard.laneCondition
                                             : guard.scalarCondition;
  slot = slot ? e.andi(slot, condition) : condition;
}

void Emitter::require(Guard &guard, AffineExpr e, int64_t low, int64_t high,
                      std::optional<std::pair<int64_t, int64_t>> known) {
  bool lowHolds = known && known->first >= low;
  bool highHolds = known && known->second <= high;
  if (!known && low <= 0 && isNonNegative(e))
    lowHolds = true;
  if (lowHolds && highHolds)
    return;
  Value v = materialize(e);
  if (!lowHolds)
    conjoin(*this, guard,
            cmpi(arith::CmpIPredicate::sge, v, like(v, double(low))));
  if (!highHolds)
    conjoin(*this, guard,
            cmpi(arith::CmpIPredicate::slt, v, like(v, double(high))));
}

void Emitter::requireEqual(Guard &guard, AffineExpr e, int64_t value) {
  Value v = materialize(e);
  conjoin(*this, guard,
          cmpi(arith::CmpIPredicate::eq, v, like(v, double(value))));
}

Value Emitter::emitGuarded(const Guard &guard, Value tensor, Index index,
                           Value otherwise) {
  auto inLanes = [&]() -> Value {
    if (!guard.laneCondition)
      return emit(tensor, index);
    Value element =
        withMask(guard.laneCondition, [&] { return emit(tensor, index); });
    return select(guard.laneCondition, element, otherwise);
  };
  if (!guard.scalarCondition)
    return inLanes();
  bool lanesMatter = bool(guard.laneCondition);
  for (AffineExpr e : index)
    lanesMatter |= dependsOnLane(e);
  auto widen = [&](Value v) { return lanesMatter ? splat(v) : v; };
  return ifThen(
             guard.scalarCondition,
             [&] { return SmallVector<Value>{widen(inLanes())}; },
             [&] { return SmallVector<Value>{widen(otherwise)}; })
      .front();
}
