//===- Alignment.cpp - proves the alignment of accesses -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A vector of 16 bytes is one access of a GPU only if its address is known to
// be a multiple of 16; if that is wrong, the access faults. So it is proved,
// from the alignment of the kernel's arguments and the powers of two that
// divide the indices; LLVM's own analysis proves the same but gives up six
// operations deep, which an index of a tiled kernel exceeds. An alignment that
// the access states itself is kept.
//
// Powers of two survive the wrapping of integers, so no overflow matters. Each
// value is looked at once.
//
//===----------------------------------------------------------------------===//
#include "BlockToGPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::blockform;

namespace {

/// Computes, as exponents, the powers of two that divide integers and
/// addresses.
class Divisors {
public:
  /// Returns the exponent for an integer or index.
  unsigned ofNumber(Value v);
  /// Returns the exponent for a pointer.
  unsigned ofPointer(Value v);
  /// Returns the exponent for the address that a load or store of a buffer
  /// accesses.
  unsigned ofElement(Operation *access);

private:
  /// The exponent for zero, which is a multiple of every power; no access needs
  /// more.
  static constexpr unsigned kMost = 32;
  static unsigned ofConstant(const APInt &value) {
    return std::min(kMost, value.isZero() ? kMost : value.countr_zero());
  }
  unsigned compute(Value v);
  unsigned computeOf(Operation *op, unsigned result);
  unsigned computeQuotient(Operation *op);

  llvm::DenseMap<Value, unsigned> memo;
};

} // namespace

unsigned Divisors::ofNumber(Value v) {
  if (auto it = memo.find(v); it != memo.end())
    return it->second;
  unsigned result = compute(v);
  memo[v] = result;
  return result;
}

unsigned Divisors::compute(Value v) {
  APInt constant;
  if (matchPattern(v, m_ConstantInt(&constant)))
    return ofConstant(constant);
  if (auto arg = dyn_cast<BlockArgument>(v)) {
    auto loop = dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp());
    if (loop && arg == loop.getInductionVar())
      return std::min(ofNumber(loop.getLowerBound()), ofNumber(loop.getStep()));
    return 0;
  }
  return computeOf(v.getDefiningOp(), cast<OpResult>(v).getResultNumber());
}

/// Computes the exponent of x / c if 2^d divides x and c is 2^j with j <= d.
unsigned Divisors::computeQuotient(Operation *op) {
  APInt divisor;
  unsigned whole = ofNumber(op->getOperand(0));
  if (!matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) ||
      !divisor.isPowerOf2() || divisor.logBase2() > whole)
    return 0;
  return whole - divisor.logBase2();
}

unsigned Divisors::computeOf(Operation *op, unsigned result) {
  auto operand = [&](unsigned i) { return ofNumber(op->getOperand(i)); };
  if (isa<arith::AddIOp, arith::SubIOp, arith::OrIOp, arith::XOrIOp,
          arith::RemUIOp, arith::RemSIOp, arith::MinSIOp, arith::MinUIOp,
          arith::MaxSIOp, arith::MaxUIOp>(op))
    return std::min(operand(0), operand(1));
  if (isa<arith::SelectOp>(op))
    return std::min(operand(1), operand(2));
  if (isa<arith::AndIOp>(op))
    return std::max(operand(0), operand(1));
  if (isa<arith::MulIOp>(op))
    return std::min(kMost, operand(0) + operand(1));
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::ExtUIOp, arith::TruncIOp>(op))
    return operand(0);
  if (isa<arith::DivUIOp, arith::DivSIOp>(op))
    return computeQuotient(op);
  APInt bits;
  if (isa<arith::ShLIOp>(op) &&
      matchPattern(op->getOperand(1), m_ConstantInt(&bits)))
    return unsigned(
        std::min<uint64_t>(kMost, operand(0) + bits.getLimitedValue(kMost)));
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return std::min(ofNumber(branch.thenYield().getOperand(result)),
                    ofNumber(branch.elseYield().getOperand(result)));
  return 0;
}

/// Returns the exponent of the power of two that divides `bytes` > 0.
static unsigned exponentOf(int64_t bytes) {
  return unsigned(llvm::countr_zero(uint64_t(bytes)));
}

unsigned Divisors::ofPointer(Value v) {
  if (auto arg = dyn_cast<BlockArgument>(v)) {
    auto function = dyn_cast<gpu::GPUFuncOp>(arg.getOwner()->getParentOp());
    auto align = function ? function.getArgAttrOfType<IntegerAttr>(
                                arg.getArgNumber(),
                                LLVM::LLVMDialect::getAlignAttrName())
                          : IntegerAttr();
    return align && align.getInt() > 0 ? exponentOf(align.getInt()) : 0;
  }
  if (auto select = v.getDefiningOp<arith::SelectOp>())
    return std::min(ofPointer(select.getTrueValue()),
                    ofPointer(select.getFalseValue()));
  if (auto choice = v.getDefiningOp<scf::IndexSwitchOp>()) {
    unsigned result = cast<OpResult>(v).getResultNumber(), least = kMost;
    for (Region &region : choice->getRegions())
      least = std::min(
          least, ofPointer(region.front().getTerminator()->getOperand(result)));
    return least;
  }
  if (auto table = v.getDefiningOp<LLVM::AddressOfOp>()) {
    auto global = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(
        table, table.getGlobalNameAttr());
    return global && global.getAlignment() ? exponentOf(*global.getAlignment())
                                           : 0;
  }
  auto gep = v.getDefiningOp<LLVM::GEPOp>();
  Type element = gep ? gep.getElemType() : Type();
  if (!gep || !element.isIntOrFloat() || gep.getIndices().size() != 1)
    return 0;
  unsigned size = exponentOf((element.getIntOrFloatBitWidth() + 7) / 8);
  auto index = gep.getIndices()[0];
  unsigned divisor = isa<Value>(index)
                         ? ofNumber(cast<Value>(index))
                         : ofConstant(cast<IntegerAttr>(index).getValue());
  return std::min(ofPointer(gep.getBase()), size + divisor);
}

unsigned Divisors::ofElement(Operation *access) {
  Value buffer = bufferOf(access);
  auto type = cast<MemRefType>(buffer.getType());
  unsigned size = exponentOf((type.getElementTypeBitWidth() + 7) / 8);
  unsigned divisor = exponentOf(kSharedAlign);
  int64_t stride = 1;
  for (auto [index, extent] :
       llvm::reverse(llvm::zip_equal(indicesOf(access), type.getShape()))) {
    divisor = std::min(divisor, size + ofNumber(index) + exponentOf(stride));
    stride *= extent;
  }
  return divisor;
}

bool blockform::isMultiple(Value number, unsigned exponent) {
  return Divisors().ofNumber(number) >= exponent;
}

/// Gives an access of `type` the alignment 2^exponent unless it has a better
/// one. Elements always lie at multiples of their size; vectors only if the
/// access does not state less.
template <typename Op>
static void improve(Op op, Type type, unsigned exponent) {
  Type element = getElementTypeOrSelf(type);
  if (!element.isIntOrFloat())
    return;
  int64_t size = (element.getIntOrFloatBitWidth() + 7) / 8;
  int64_t align = std::max(int64_t(1) << std::min(exponent, 6u),
                           int64_t(1) << exponentOf(size));
  auto given = op.getAlignment();
  if (!given || int64_t(*given) < align)
    op.setAlignment(uint64_t(align));
}

void blockform::deriveAlignment(gpu::GPUFuncOp function) {
  Divisors divisors;
  function->walk([&](Operation *op) {
    if (auto load = dyn_cast<LLVM::LoadOp>(op))
      improve(load, load.getType(), divisors.ofPointer(load.getAddr()));
    else if (auto store = dyn_cast<LLVM::StoreOp>(op))
      improve(store, store.getValue().getType(),
              divisors.ofPointer(store.getAddr()));
    else if (auto load = dyn_cast<vector::LoadOp>(op))
      improve(load, load.getVectorType(), divisors.ofElement(op));
    else if (auto store = dyn_cast<vector::StoreOp>(op))
      improve(store, store.getVectorType(), divisors.ofElement(op));
  });
}
