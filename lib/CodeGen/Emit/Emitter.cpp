//===- Emitter.cpp - elements of fused ops, on demand ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Levels and memoization of the emitter. Expressions are in EmitterIndex.cpp,
// loads and stores in EmitterMemory.cpp.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"
#include "Models/ElementModel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/SaveAndRestore.h"

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

/// Moves the builder to level `level`, before the loop that is being emitted
/// there, until destroyed.
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
  // The builder adds a terminator to an empty body only if there are no inits.
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
  // Result types are only known after a branch is built, so build it first.
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
  // Equal expressions give equal maps, even if symbols were added since.
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

SmallVector<AffineExpr> codegen::normalized(RankedTensorType type,
                                            Index index) {
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
  if (!element) // after a failure, return any value of the right type
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
  llvm::SaveAndRestore allowed(approximates, approximatesElements);
  return model->emit(op, cast<OpResult>(tensor).getResultNumber(), index,
                     *this);
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

SmallVector<Value> Emitter::sharedBy(const void *owner, AffineExpr at,
                                     unsigned count,
                                     function_ref<SmallVector<Value>()> fn) {
  auto keyOfSlot = [&](unsigned slot) {
    return Key{const_cast<void *>(owner), at.getAsOpaquePointer(),
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
  if (!scalarsPtr) {
    unsigned first = argPtrs.size();
    for (; launchScalars <= position; ++launchScalars)
      (void)stage.insertArgument(first + launchScalars, b.getI64Type(), {},
                                 b.getLoc());
    return stage.getArgument(first + position);
  }
  AtLevel at(*this, 0);
  return LLVM::LoadOp::create(
      b, b.getI64Type(), pointer(scalarsPtr, b.getI64Type(), index(position)),
      8);
}
