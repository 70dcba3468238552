//===- StructuredKernel.cpp - scan-like ops with their own loops ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "StructuredKernel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

const StructuredKernels &StructuredKernels::get() {
  static const StructuredKernels kernels = [] {
    StructuredKernels made;
    addScatterKernels(made);
    addScanKernels(made);
    addSelectionKernels(made);
    return made;
  }();
  return kernels;
}

StructuredKernels::Make StructuredKernels::lookup(Operation *op) const {
  auto info = op->getRegisteredInfo();
  return info ? makers.lookup(info->getTypeID()) : nullptr;
}

std::unique_ptr<GeneratedKernel>
codegen::makeStructuredKernel(func::FuncOp kernel,
                              const CodegenOptions &options) {
  for (Operation &op : kernel.front())
    if (auto make = StructuredKernels::get().lookup(&op))
      return make(kernel, options, &op);
  return nullptr;
}

AxisKernel::AxisKernel(func::FuncOp kernel, const CodegenOptions &options,
                       Operation *op, ArrayRef<int64_t> shape, int64_t axis)
    : FormedKernel(kernel, options), op(op), shape(shape), axis(axis),
      columns(axis + 1 != int64_t(shape.size())) {}

LogicalResult AxisKernel::planOp(bool inPlace) {
  if (terminator.getNumOperands() != 1 ||
      terminator.getOperand(0) != op->getResult(0))
    return op->emitError("must make the only result of its kernel");
  Accesses first, others;
  first.addElsewhere(op->getOperand(0));
  for (Value operand : op->getOperands().drop_front())
    others.addElsewhere(operand);
  for (const Accesses *accesses : {&first, &others})
    if (accesses->unsupported)
      return accesses->unsupported->emitError("cannot be part of a kernel of ")
             << op->getName();
  auto start = dyn_cast<BlockArgument>(op->getOperand(0));
  if (inPlace && start && start.getType() == op->getResult(0).getType() &&
      !llvm::is_contained(others.elsewhere, start))
    code.reuse.emplace_back(start.getArgNumber(), 0);
  return success();
}

/// Divides the work into items of `block` columns.
void AxisKernel::divide(int64_t block) {
  int64_t last = int64_t(shape.size()) - 1;
  if (columns && isOpen(shape[last]))
    block = shape[last];
  columnBlock = block;
  for (int64_t d = 0; d <= last; ++d) {
    if (d == axis)
      continue;
    dims.push_back(d);
    trips.push_back(d == last ? llvm::divideCeil(shape[d], block) : shape[d]);
    items *= trips.back();
  }
}

LogicalResult AxisKernel::planRanges() {
  divide(rangeColumns);
  int64_t work = columnWork;
  if (columns)
    work *= std::min(columnBlock, std::max<int64_t>(shape.back(), 1));
  addStage(items, kRangeElements / std::max<int64_t>(work, 1));
  return success();
}

LogicalResult AxisKernel::planBlocks() {
  divide(1);
  addLaunch(items, kBlockThreads, false,
            columns ? "a thread does a column" : "a thread does a row");
  return success();
}

AxisKernel::Place AxisKernel::placeOf(Emitter &e, Value item) {
  Place place;
  place.point.assign(shape.size(), e.c(0));
  SmallVector<Value> parts = split(e, item, trips);
  for (auto [part, d] : llvm::zip_equal(parts, dims))
    if (!columns || d + 1 != int64_t(shape.size()))
      place.point[d] = e.addDim(part);
  if (!columns)
    return place;
  int64_t size = shape.back();
  place.low = e.mul(parts.back(), e.index(columnBlock));
  place.high = e.minimum(e.add(place.low, e.index(columnBlock)), e.index(size));
  if (isOpen(size))
    place.count = std::nullopt;
  else if (size <= columnBlock || size % columnBlock == 0)
    place.count = std::min(size, columnBlock);
  return place;
}

void AxisKernel::overColumns(Emitter &e, const Place &place,
                             function_ref<void(ArrayRef<AffineExpr>)> body) {
  if (!columns)
    return body(place.point);
  auto at = [&](AffineExpr column) {
    SmallVector<AffineExpr> point = place.point;
    point.back() = column;
    body(point);
  };
  if (columnBlock == 1) // without lanes
    return at(e.addDim(place.low));
  vectorLoop(e, place.low, place.high, place.count, at);
}

LogicalResult
AxisKernel::emitItemLaunch(ModuleOp into, unsigned number,
                           function_ref<void(Emitter &, const Place &)> body) {
  return emitThreads(into, number, items,
                     [&](Emitter &e, Value t) { body(e, placeOf(e, t)); });
}

LogicalResult AxisKernel::emitBlocks(ModuleOp into) {
  return emitItemLaunch(
      into, 0, [&](Emitter &e, const Place &place) { emitItem(e, place); });
}

LogicalResult
AxisKernel::emitItemStage(ModuleOp into, unsigned number,
                          function_ref<void(Emitter &, const Place &)> body) {
  return emitStage(into, number, [&](Emitter &e) {
    e.forLoop(e.begin, e.end, 1, {}, [&](Value t, ValueRange) {
      body(e, placeOf(e, t));
      return SmallVector<Value>();
    });
  });
}

LogicalResult AxisKernel::emitRanges(ModuleOp into) {
  return emitItemStage(
      into, 0, [&](Emitter &e, const Place &place) { emitItem(e, place); });
}
