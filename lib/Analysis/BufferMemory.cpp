//===- BufferMemory.cpp - what a run of bufferized code has in memory -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a run without data (BufferPeak.cpp) must know which buffers there
// are, and the scalars that decide about them. Method: each memory reference
// stands for the buffer that it shows, each known scalar for an attribute;
// lists of buffers that deallocation keeps in memory are known by cell.
// Guarantee: what is not certain is forgotten, not guessed. Complexity: O(1) an
// op.
//
//===----------------------------------------------------------------------===//
#include "BufferRun.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ckopt;

void BufferRun::give(Value value, int buffer) { shown[value] = buffer; }

Attribute BufferRun::constant(Value value) const {
  Attribute known;
  return matchPattern(value, m_Constant(&known)) ? known : scalar.lookup(value);
}

/// Copies all at once: a loop may swap what it carries.
void BufferRun::copy(ValueRange from, ValueRange to) {
  SmallVector<std::pair<int, Attribute>> values;
  for (Value value : from) {
    auto found = shown.find(value);
    values.emplace_back(found == shown.end() ? -1 : found->second,
                        constant(value));
  }
  for (auto [value, entry] : llvm::zip(to, values)) {
    forget(value);
    if (entry.first >= 0)
      give(value, entry.first);
    if (entry.second)
      scalar[value] = entry.second;
  }
}

void BufferRun::forget(ValueRange values) {
  for (Value value : values) {
    shown.erase(value);
    scalar.erase(value);
  }
}

std::optional<int64_t> BufferRun::integer(Value value) const {
  auto number = dyn_cast_or_null<IntegerAttr>(constant(value));
  return number ? std::optional(number.getValue().getSExtValue())
                : std::nullopt;
}

LogicalResult BufferRun::allocate(Value result, ValueRange sizes) {
  auto type = cast<MemRefType>(result.getType());
  int64_t bytes = 0;
  if (Type element = type.getElementType(); element.isIntOrIndexOrFloat())
    bytes = element.isIndex()
                ? 8
                : int64_t(llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
  else if (auto complex = dyn_cast<ComplexType>(element))
    bytes = 2 * int64_t(llvm::divideCeil(
                    complex.getElementType().getIntOrFloatBitWidth(), 8));
  else
    return failure();
  Buffer buffer;
  size_t dynamic = 0;
  for (int64_t size : type.getShape()) {
    if (ShapedType::isDynamic(size)) {
      std::optional<int64_t> known =
          dynamic < sizes.size() ? integer(sizes[dynamic++]) : std::nullopt;
      if (!known)
        return failure();
      size = *known;
    }
    bytes *= size;
    buffer.shape.push_back(size);
  }
  buffer.bytes = llvm::alignTo(uint64_t(bytes), uint64_t(alignment));
  now += buffer.bytes;
  peak = std::max(peak, now);
  give(result, int(buffers.size()));
  buffers.push_back(std::move(buffer));
  return success();
}

BufferRun::Buffer *BufferRun::whole(Value memory) {
  while (auto cast = memory.getDefiningOp<memref::CastOp>())
    memory = cast.getSource();
  auto found = shown.find(memory);
  bool isWhole =
      isa<BlockArgument>(memory) || memory.getDefiningOp<memref::AllocOp>();
  return isWhole && found != shown.end() ? &buffers[size_t(found->second)]
                                         : nullptr;
}

Attribute *BufferRun::cell(Value memory, ValueRange indices) {
  Buffer *buffer = whole(memory);
  if (!buffer || buffer->shape.size() != indices.size())
    return nullptr;
  int64_t place = 0;
  for (auto [size, index] : llvm::zip(buffer->shape, indices)) {
    std::optional<int64_t> known = integer(index);
    if (!known)
      return nullptr;
    place = place * size + *known;
  }
  return &buffer->cells[place];
}

void BufferRun::fold(Operation *op) {
  forget(op->getResults());
  if (op->getNumResults() != 1 || op->getNumRegions() ||
      !op->getResult(0).getType().isIntOrIndex())
    return;
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands())
    operands.push_back(constant(operand));
  SmallVector<OpFoldResult> results;
  // A fold may change an op in place; this code must stay as it is.
  Operation *scratch = op->clone();
  if (succeeded(scratch->fold(operands, results)) && results.size() == 1) {
    if (auto attr = dyn_cast<Attribute>(results.front()))
      scalar[op->getResult(0)] = attr;
    else if (auto value = cast<Value>(results.front());
             value != scratch->getResult(0))
      copy(value, op->getResult(0));
  }
  scratch->destroy();
}

LogicalResult BufferRun::runMemory(Operation *op) {
  if (auto alloc = dyn_cast<memref::AllocOp>(op))
    return allocate(alloc, alloc.getDynamicSizes());
  if (isa<memref::AllocaOp, memref::GetGlobalOp>(op)) {
    forget(op->getResults());
    auto global = dyn_cast<memref::GetGlobalOp>(op);
    int fresh = int(buffers.size());
    int buffer =
        global ? globals.try_emplace(global.getName(), fresh).first->second
               : fresh;
    if (buffer == fresh)
      buffers.emplace_back();
    give(op->getResult(0), buffer);
    return success();
  }
  if (auto clone = dyn_cast<bufferization::CloneOp>(op)) {
    SmallVector<Value> sizes;
    if (!clone.getType().hasStaticShape())
      return failure();
    return allocate(clone, sizes);
  }
  if (auto end = dyn_cast<memref::DeallocOp>(op)) {
    auto found = shown.find(end.getMemref());
    if (found == shown.end())
      return failure();
    Buffer &buffer = buffers[size_t(found->second)];
    if (buffer.live)
      now -= buffer.bytes;
    buffer.live = false;
    return success();
  }
  if (auto address = dyn_cast<memref::ExtractAlignedPointerAsIndexOp>(op)) {
    auto found = shown.find(address.getSource());
    forget(op->getResults());
    if (found != shown.end())
      scalar[address] =
          Builder(op->getContext()).getIndexAttr((found->second + 1) << 12);
    return success();
  }
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    forget(op->getResults());
    if (Attribute *known = cell(load.getMemRef(), load.getIndices());
        known && *known)
      scalar[load] = *known;
    return success();
  }
  auto store = cast<memref::StoreOp>(op);
  if (Attribute *place = cell(store.getMemRef(), store.getIndices())) {
    *place = constant(store.getValueToStore());
  } else if (auto found = shown.find(store.getMemRef()); found != shown.end()) {
    buffers[size_t(found->second)].cells.clear();
  }
  return success();
}
