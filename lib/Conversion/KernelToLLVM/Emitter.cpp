//===- Emitter.cpp - elements of fused ops, on demand ---------------------===//
//
// Levels, memoization, loads and stores. Expressions: EmitterIndex.cpp.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"
#include "ElementModel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

Type codegen::computeType(Type element) {
  if (element.isF16() || element.isBF16())
    return Float32Type::get(element.getContext());
  if (auto type = dyn_cast<IntegerType>(element))
    return IntegerType::get(element.getContext(), type.getWidth());
  return element;
}

Type codegen::storageType(Type element) {
  if (auto type = dyn_cast<IntegerType>(element))
    return IntegerType::get(element.getContext(),
                            std::max(8u, type.getWidth()));
  return element;
}

Emitter::Emitter(func::FuncOp kernel, func::FuncOp stage, OpBuilder &builder,
                 unsigned lanes)
    : ValueBuilder(kernel.getLoc(), builder, lanes), kernel(kernel),
      stage(stage), ctx(kernel.getContext()) {
  Block &entry = stage.front();
  b.setInsertionPointToEnd(&entry);
  Value args = entry.getArgument(0);
  scalarsPtr = entry.getArgument(1);
  begin = entry.getArgument(2);
  end = entry.getArgument(3);
  scratch = entry.getArgument(4);
  indexType = b.getI32Type();
  report.lanes = lanes;
  levels.push_back({nullptr, nextLevelId++});
  Type ptr = LLVM::LLVMPointerType::get(ctx);
  unsigned count = kernel.getNumArguments() + kernel.getNumResults();
  for (unsigned i = 0; i < count; ++i) {
    Value slot = LLVM::GEPOp::create(b, ptr, ptr, args,
                                     ArrayRef<LLVM::GEPArg>{int32_t(i)});
    argPtrs.push_back(LLVM::LoadOp::create(b, ptr, slot));
  }
}

void Emitter::fail(Operation *op, const Twine &message) {
  if (!failed)
    op->emitError("cannot generate code: ") << message;
  failed = true;
}

//===----------------------------------------------------------------------===//
// Levels
//===----------------------------------------------------------------------===//

/// While it lives, code goes to level `level`: before the loop that is being
/// emitted there.
struct Emitter::AtLevel {
  AtLevel(Emitter &e, unsigned level) : e(e) {
    if (level >= e.currentLevel())
      return;
    moved = true;
    point = e.b.saveInsertionPoint();
    saved = e.levels;
    e.levels.truncate(level + 1);
    e.b.setInsertionPoint(e.levels.back().child);
  }
  ~AtLevel() {
    if (!moved)
      return;
    e.levels = saved;
    e.b.restoreInsertionPoint(point);
  }
  Emitter &e;
  bool moved = false;
  OpBuilder::InsertPoint point;
  SmallVector<Level> saved;
};

void Emitter::enter(Operation *child) {
  levels.back().child = child;
  levels.push_back({nullptr, nextLevelId++});
}

void Emitter::leave() { levels.pop_back(); }

SmallVector<Value> Emitter::forLoop(Value low, Value high, int64_t step,
                                    ArrayRef<Value> inits, LoopBody body) {
  Value stepValue = index(step);
  auto loop = scf::ForOp::create(b, low, high, stepValue, inits);
  Operation *before = levels.back().child;
  enter(loop);
  // The builder leaves an empty body with a terminator only without inits.
  Block *block = loop.getBody();
  if (!block->empty())
    block->back().erase();
  b.setInsertionPointToEnd(block);
  SmallVector<Value> yields =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(b, yields);
  leave();
  levels.back().child = before;
  b.setInsertionPointAfter(loop);
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value>
Emitter::ifThen(Value condition, function_ref<SmallVector<Value>()> then,
                function_ref<SmallVector<Value>()> otherwise) {
  // Result types are known after the branch is made: build it first.
  auto probe = scf::IfOp::create(b, TypeRange(), condition,
                                 /*addThenBlock=*/true,
                                 /*addElseBlock=*/bool(otherwise));
  Operation *before = levels.back().child;
  unsigned outerFloor = floor;
  SmallVector<SmallVector<Value>> yields;
  auto branch = [&](Block *block, function_ref<SmallVector<Value>()> fn) {
    enter(probe);
    floor = currentLevel();
    if (!block->empty())
      block->back().erase();
    b.setInsertionPointToEnd(block);
    yields.push_back(fn());
    scf::YieldOp::create(b, yields.back());
    leave();
  };
  branch(probe.thenBlock(), then);
  if (otherwise)
    branch(probe.elseBlock(), otherwise);
  floor = outerFloor;
  levels.back().child = before;
  b.setInsertionPoint(probe);
  if (yields.front().empty()) {
    b.setInsertionPointAfter(probe);
    return {};
  }
  auto real = scf::IfOp::create(b, ValueRange(yields.front()).getTypes(),
                                condition, /*addThenBlock=*/false,
                                /*addElseBlock=*/false);
  real.getThenRegion().takeBody(probe.getThenRegion());
  real.getElseRegion().takeBody(probe.getElseRegion());
  probe.erase();
  b.setInsertionPointAfter(real);
  return SmallVector<Value>(real.getResults());
}

Value Emitter::withMask(Value lanesInside, function_ref<Value()> fn,
                        std::optional<unsigned> level) {
  Value outer = mask;
  unsigned outerLevel = maskLevel;
  mask = mask ? andi(mask, lanesInside) : lanesInside;
  maskLevel = outer || !level ? currentLevel() : *level;
  Value result = fn();
  mask = outer;
  maskLevel = outerLevel;
  return result;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Emitter::Key Emitter::keyOf(Value tensor, Index index, bool lane) {
  // Maps of equal expressions are equal, whatever was bound since.
  AffineMap map = AffineMap::get(1 << 16, 1 << 16, index, ctx);
  return {tensor.getAsOpaquePointer(), map.getAsOpaquePointer(),
          lane && mask ? mask.getAsOpaquePointer() : nullptr};
}

std::optional<Value> Emitter::recall(const Key &key) const {
  auto it = memo.find(key);
  if (it == memo.end())
    return std::nullopt;
  const Entry &entry = it->second;
  if (entry.level >= levels.size() || levels[entry.level].id != entry.id)
    return std::nullopt;
  return entry.value;
}

/// Dimensions of size 1 have one index: zero.
static SmallVector<AffineExpr> normalized(RankedTensorType type, Index index) {
  SmallVector<AffineExpr> result(index);
  for (auto [d, size] : llvm::enumerate(type.getShape()))
    if (size == 1)
      result[d] = getAffineConstantExpr(0, type.getContext());
  return result;
}

Value Emitter::emit(Value tensor, Index given) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<AffineExpr> index = normalized(type, given);
  bool lane;
  unsigned level = std::max(floor, levelOf(index, lane));
  if (lane && mask)
    level = std::max(level, maskLevel);
  Key key = keyOf(tensor, index, lane);
  if (auto known = recall(key))
    return *known;
  AtLevel at(*this, level);
  Value element = emitAt(tensor, index);
  if (!element) // failed: anything of the right type goes
    element = constant(computeType(type.getElementType()), int64_t(0));
  memo[key] = {element, currentLevel(), levels.back().id};
  return element;
}

void Emitter::remember(Value tensor, Index given, Value element) {
  SmallVector<AffineExpr> index =
      normalized(cast<RankedTensorType>(tensor.getType()), given);
  bool lane;
  levelOf(index, lane);
  memo[keyOf(tensor, index, lane)] = {element, currentLevel(),
                                      levels.back().id};
}

void Emitter::cache(Value tensor, Index pattern, unsigned component,
                    Value buffer) {
  caches.push_back(
      {tensor, SmallVector<AffineExpr>(pattern), component, buffer});
}

Value Emitter::emitAt(Value tensor, Index index) {
  if (auto arg = dyn_cast<BlockArgument>(tensor))
    return load(argPtrs[arg.getArgNumber()],
                cast<RankedTensorType>(tensor.getType()), index);
  for (const Cached &cached : caches) {
    bool fits = cached.tensor == tensor;
    for (size_t d = 0; fits && d < index.size(); ++d)
      fits &= d == cached.component || index[d] == cached.pattern[d];
    if (fits)
      return loadFrom(cached.buffer, computeType(getElementTypeOrSelf(tensor)),
                      index[cached.component]);
  }
  Operation *op = tensor.getDefiningOp();
  const ElementModel *model = ElementModels::get().lookup(op);
  if (!model) {
    fail(op, Twine("no element model of ") + op->getName().getStringRef());
    return {};
  }
  return model->emit(op, cast<OpResult>(tensor).getResultNumber(), index,
                     *this);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value Emitter::pointer(Value base, Type element, Value offset) {
  Type ptr = LLVM::LLVMPointerType::get(ctx);
  Type result = isVector(offset) ? Type(vectorType(ptr)) : ptr;
  return LLVM::GEPOp::create(b, result, element, base,
                             ArrayRef<LLVM::GEPArg>{offset});
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
    if (mask)
      raw = LLVM::MaskedLoadOp::create(
          b, vector, address, mask,
          arith::ConstantOp::create(b, b.getZeroAttr(vector)), bytes);
    else
      raw = LLVM::LoadOp::create(b, vector, address, bytes);
  } else {
    ++report.gathers;
    Value address = base, offsets;
    if (stride) {
      address = pointer(base, storage, scalar(offset));
      offsets = iota(laneIndexType(), *stride);
    } else {
      offsets = laneVector(offset);
    }
    Value addresses = pointer(address, storage, offsets);
    Type vector = vectorType(storage);
    Value all =
        mask ? mask
             : Value(arith::ConstantOp::create(
                   b, DenseElementsAttr::get(vectorType(b.getI1Type()), true)));
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

void Emitter::storeTo(Value base, Type element, AffineExpr offset, Value v) {
  Type storage = storageType(element);
  unsigned bytes = storage.getIntOrFloatBitWidth() / 8;
  bool lane = dependsOnLane(offset);
  if (lane)
    v = splat(v);
  if (element.isInteger(1))
    v = arith::ExtUIOp::create(b, typeLike(storage, v), v);
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
    else
      LLVM::StoreOp::create(b, v, address, bytes);
    return;
  }
  Value address = base, offsets;
  if (stride) {
    address = pointer(base, storage, scalar(offset));
    offsets = iota(laneIndexType(), *stride);
  } else {
    offsets = laneVector(offset);
  }
  Value all =
      mask ? mask
           : Value(arith::ConstantOp::create(
                 b, DenseElementsAttr::get(vectorType(b.getI1Type()), true)));
  LLVM::masked_scatter::create(b, v, pointer(address, storage, offsets), all,
                               bytes);
}

Value Emitter::once(Operation *op, unsigned slot, function_ref<Value()> fn) {
  Key key{op, reinterpret_cast<void *>(uintptr_t(slot)), nullptr};
  if (auto known = recall(key))
    return *known;
  AtLevel at(*this, 0);
  unsigned outerFloor = floor;
  floor = 0;
  Value result = fn();
  floor = outerFloor;
  memo[key] = {result, currentLevel(), levels.back().id};
  return result;
}

SmallVector<Value> Emitter::sharedBy(Operation *op, AffineExpr at,
                                     unsigned count,
                                     function_ref<SmallVector<Value>()> fn) {
  auto keyOfSlot = [&](unsigned slot) {
    return Key{op, at.getAsOpaquePointer(),
               reinterpret_cast<void *>(uintptr_t(slot))};
  };
  SmallVector<Value> values;
  for (unsigned slot = 0; slot < count; ++slot)
    if (auto known = recall(keyOfSlot(slot)))
      values.push_back(*known);
  if (values.size() == count)
    return values;
  values = fn();
  for (auto [slot, value] : llvm::enumerate(values))
    memo[keyOfSlot(slot)] = {value, currentLevel(), levels.back().id};
  return values;
}

Value Emitter::callScalar(int64_t position) {
  AtLevel at(*this, 0);
  return LLVM::LoadOp::create(
      b, b.getI64Type(), pointer(scalarsPtr, b.getI64Type(), index(position)),
      8);
}

Value Emitter::constantTable(DenseElementsAttr values) {
  auto type = cast<ShapedType>(values.getType());
  Type storage = storageType(type.getElementType());
  auto flat =
      RankedTensorType::get({type.getNumElements()}, type.getElementType());
  DenseElementsAttr data = values.reshape(flat);
  if (type.getElementType() != storage) { // bits to bytes, signedness dropped
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
