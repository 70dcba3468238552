//===- ColumnCache.cpp - values that depend only on the column ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ColumnCache.h"
#include "Kinds/GeneratedKernel.h"
#include "Models/ElementModel.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// The most buffers of one stage; together they stay far below the size of a
/// thread's stack.
static constexpr size_t kBuffers = 6;

/// The least number of rows for which buffers pay.
static constexpr int64_t kManyRows = 8;

void ColumnCache::plan(const Domain &domain, ArrayRef<Value> roots) {
  const Domain::Loop &inner = domain.loops.back();
  int64_t rows = 1;
  for (const Domain::Loop &loop : ArrayRef(domain.loops).drop_back())
    rows *= loop.open ? kManyRows : loop.size;
  if (inner.open || inner.dims.size() != 1 || inner.size > kColumns ||
      rows < kManyRows)
    return;
  dim = inner.dims.front();
  columns = inner.size;
  for (Value root : roots)
    visit(root, identityIndex(domain.shape.size(), domain.ctx));
}

void ColumnCache::visit(Value value, ArrayRef<AffineExpr> given) {
  auto type = cast<RankedTensorType>(value.getType());
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands() == 0)
    return;
  SmallVector<AffineExpr> index(given);
  std::optional<unsigned> component;
  bool columnOnly = isa<FloatType>(type.getElementType());
  for (auto [d, size] : llvm::enumerate(type.getShape())) {
    if (size == 1)
      index[d] = getAffineConstantExpr(0, type.getContext());
    auto own = dyn_cast<AffineDimExpr>(index[d]);
    // The value has exactly the columns of the loop, so every reader, at
    // whatever index (the other half of a split, for example), finds its
    // element in the buffer.
    if (own && own.getPosition() == dim && !component && size == columns)
      component = d;
    else if (!isa<AffineConstantExpr>(index[d]))
      columnOnly = false;
  }
  AffineMap map = AffineMap::get(1 << 16, 0, index, type.getContext());
  if (!seen.insert({value.getAsOpaquePointer(), map.getAsOpaquePointer()})
           .second)
    return;
  if (columnOnly && component && entries.size() < kBuffers) {
    entries.push_back({value, index, *component});
    return;
  }
  const ElementModel *model = ElementModels::get().lookup(op);
  for (unsigned i = 0; model && i < op->getNumOperands(); ++i)
    if (auto point = model->operandIndex(op, i, index))
      visit(op->getOperand(i), *point);
}

void ColumnCache::emit(Emitter &e) const {
  SmallVector<std::pair<const Entry *, Value>> buffers;
  for (const Entry &entry : entries) {
    Type type = computeType(getElementTypeOrSelf(entry.value));
    Value buffer = stackBuffer(e, type, columns);
    vectorLoop(e, e.index(0), e.index(columns), columns, [&](AffineExpr lane) {
      SmallVector<AffineExpr> index(entry.index);
      index[entry.component] = lane;
      e.storeTo(buffer, type, lane, e.emit(entry.value, index));
    });
    buffers.push_back({&entry, buffer});
  }
  for (auto [entry, buffer] : buffers)
    e.cache(entry->value, entry->index, entry->component, buffer);
}

Value codegen::stackBuffer(Emitter &e, Type element, int64_t count) {
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(&e.stage.front());
  return LLVM::AllocaOp::create(e.b, LLVM::LLVMPointerType::get(e.ctx), element,
                                e.index(count), 64);
}
