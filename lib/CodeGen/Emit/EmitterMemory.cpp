//===- EmitterMemory.cpp - loads, stores, constant tables -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"
#include "MathFunctions.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

Value Emitter::pointer(Value base, Type element, Value offset) {
  Type ptr = LLVM::LLVMPointerType::get(ctx);
  Type result = isVector(offset) ? Type(vectorType(ptr)) : ptr;
  return LLVM::GEPOp::create(b, result, element, base,
                             ArrayRef<LLVM::GEPArg>{offset});
}

Value Emitter::lanePointers(Value base, Type element, AffineExpr offset,
                            std::optional<int64_t> stride) {
  if (!stride)
    return pointer(base, element, laneVector(offset));
  Value first = pointer(base, element, scalar(offset));
  return pointer(first, element, iota(laneIndexType(), *stride));
}

Value Emitter::anyMask() {
  if (mask)
    return mask;
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(vectorType(b.getI1Type()), true));
}

Value Emitter::load(Value base, RankedTensorType type, Index index) {
  return loadFrom(base, type.getElementType(),
                  linearize(index, getElementStrides(type), ctx));
}

Value Emitter::loadFrom(Value base, Type element, AffineExpr offset) {
  Type storage = storageType(element);
  unsigned bytes = storage.getIntOrFloatBitWidth() / 8;
  Value raw;
  if (!dependsOnLane(offset)) {
    ++report.broadcasts;
    raw = LLVM::LoadOp::create(b, storage,
                               pointer(base, storage, scalar(offset)), bytes);
  } else if (auto stride = laneStride(offset); stride == 1) {
    ++report.unitLoads;
    Value address = pointer(base, storage, scalar(offset));
    Type vector = vectorType(storage);
    if (fetch && (!fetch->dim || factorOf(offset, fetch->dim) == fetch->factor))
      LLVM::Prefetch::create(
          b, pointer(base, storage, scalar(offset + fetch->ahead)),
          /*rw=*/0u, /*hint=*/2u, /*cache=*/1u);
    if (mask)
      raw = LLVM::MaskedLoadOp::create(
          b, vector, address, mask,
          arith::ConstantOp::create(b, b.getZeroAttr(vector)), bytes);
    else
      raw = LLVM::LoadOp::create(b, vector, address, bytes);
  } else if (isTransposed(offset, stride)) {
    raw = loadTransposed(base, storage, offset, *stride);
  } else {
    ++report.gathers;
    Value addresses = lanePointers(base, storage, offset, stride);
    Type vector = vectorType(storage);
    Value all = anyMask();
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(vector));
    raw = LLVM::masked_gather::create(b, vector, addresses, all,
                                      ValueRange{zero}, uint32_t(bytes));
  }
  if (element.isInteger(1))
    return cmpi(arith::CmpIPredicate::ne, raw, like(raw, 0));
  if (element.isF16() || element.isBF16())
    return arith::ExtFOp::create(b, typeLike(b.getF32Type(), raw), raw);
  return raw;
}

void Emitter::store(unsigned result, RankedTensorType type, Index index,
                    Value element) {
  storeTo(argPtrs[kernel.getNumArguments() + result], type.getElementType(),
          linearize(normalized(type, index), getElementStrides(type), ctx),
          element);
}

Value Emitter::reload(unsigned result, RankedTensorType type, Index index) {
  return loadFrom(
      argPtrs[kernel.getNumArguments() + result], type.getElementType(),
      linearize(normalized(type, index), getElementStrides(type), ctx));
}

Value Emitter::rounded(Type half, Value x) {
  bool onCpu = bool(begin);
  Value narrow = half.isBF16() && onCpu
                     ? emitToBF16(*this, x)
                     : Value(arith::TruncFOp::create(b, typeLike(half, x), x));
  return arith::ExtFOp::create(b, x.getType(), narrow);
}

void Emitter::storeTo(Value base, Type element, AffineExpr offset, Value v) {
  Type storage = storageType(element);
  unsigned bytes = storage.getIntOrFloatBitWidth() / 8;
  bool lane = dependsOnLane(offset);
  if (lane)
    v = splat(v);
  if (element.isInteger(1))
    v = arith::ExtUIOp::create(b, typeLike(storage, v), v);
  else if (element.isBF16() && elementType(v).isBF16())
    ; // as it is
  else if (element.isBF16() && scalarsPtr)
    v = emitToBF16(*this, v);
  else if (element.isF16() || element.isBF16())
    v = arith::TruncFOp::create(b, typeLike(storage, v), v);
  if (!lane) {
    if (isVector(v)) // all lanes agree
      v = vector::ExtractOp::create(b, v, int64_t(0));
    LLVM::StoreOp::create(b, v, pointer(base, storage, scalar(offset)), bytes);
    return;
  }
  auto stride = laneStride(offset);
  if (stride == 1) {
    Value address = pointer(base, storage, scalar(offset));
    if (mask)
      LLVM::MaskedStoreOp::create(b, v, address, mask, bytes);
    else if (pastCaches && isMultipleOf(offset, lanes))
      LLVM::StoreOp::create(b, v, address, bytes * lanes, /*isVolatile=*/false,
                            /*isNonTemporal=*/true);
    else
      LLVM::StoreOp::create(b, v, address, bytes);
    return;
  }
  Value addresses = lanePointers(base, storage, offset, stride);
  LLVM::masked_scatter::create(b, v, addresses, anyMask(), bytes);
}

void Emitter::fenceStores() {
  LLVM::FenceOp::create(b, LLVM::AtomicOrdering::seq_cst);
}

Value Emitter::constantTable(DenseElementsAttr values) {
  auto type = cast<ShapedType>(values.getType());
  Type storage = storageType(type.getElementType());
  auto flat =
      RankedTensorType::get({type.getNumElements()}, type.getElementType());
  DenseElementsAttr data = values.reshape(flat);
  // Bits become bytes, signedness is dropped.
  if (type.getElementType() != storage) {
    SmallVector<APInt> numbers;
    unsigned width = storage.getIntOrFloatBitWidth();
    for (const APInt &bits : values.getValues<APInt>())
      numbers.push_back(bits.zextOrTrunc(width));
    data = DenseElementsAttr::get(
        RankedTensorType::get({type.getNumElements()}, storage), numbers);
  }
  OpBuilder::InsertionGuard guard(b);
  std::string name = (stage.getSymName() + ".c" + Twine(tables++)).str();
  auto module = stage->getParentOfType<ModuleOp>();
  b.setInsertionPointToStart(module.getBody());
  auto global = LLVM::GlobalOp::create(
      b, LLVM::LLVMArrayType::get(storage, type.getNumElements()),
      /*isConstant=*/true, LLVM::Linkage::Private, name, data, 64);
  b.setInsertionPointToStart(&stage.front());
  return LLVM::AddressOfOp::create(b, global);
}

Value Emitter::zeros() {
  if (!zeroTable) {
    auto type = RankedTensorType::get({4}, b.getI32Type());
    zeroTable = constantTable(DenseElementsAttr::get(type, int32_t(0)));
  }
  return zeroTable;
}
