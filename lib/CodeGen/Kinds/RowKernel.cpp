//===- RowKernel.cpp - one row op with fused operands ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of row ops. The parallel dimension counts rows; if the row's
// dimensions are not innermost, it counts vectors of adjacent columns. On a GPU
// a block computes a row, or a thread a short row or a column.
//
//===----------------------------------------------------------------------===//
#include "RowKernel.h"
#include "Device/BlockNest.h"
#include "GeneratedKernel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;

Value RowContext::operand(unsigned number, Index index) {
  return nest.keep(number,
                   [&] { return e.emit(op->getOperand(number), index); });
}

Value RowContext::keep(unsigned number, function_ref<Value()> make) {
  return nest.keep(op->getNumOperands() + number, make);
}

SmallVector<Value>
RowContext::reduce(ArrayRef<Reducer> reducers,
                   function_ref<SmallVector<Value>(Index)> body) {
  return nest.reduce(reducers, [&](Index i, unsigned) { return body(i); });
}

Value RowContext::reduce(ReduceKind kind, Type type,
                         function_ref<Value(Index)> body) {
  return nest
      .reduce(Reducer{kind, type},
              [&](Index i, unsigned) { return SmallVector<Value>{body(i)}; })
      .front();
}

Value RowContext::sumFetching(Type type, function_ref<Value(Index)> body) {
  if (nextRow)
    e.fetch = Emitter::Fetch{e.c(nextRow), {}};
  Value sum = reduce(ReduceKind::Sum, type, body);
  e.fetch.reset();
  return sum;
}

void RowContext::forEach(function_ref<void(Index)> body) {
  nest.forEach([&](Index i, unsigned) { body(i); });
}

void RowContext::store(unsigned result, Index index, Value element) {
  for (auto [r, value] : llvm::enumerate(terminator.getOperands()))
    if (value == op->getResult(result))
      e.store(r, cast<RankedTensorType>(value.getType()), index, element);
}

bool RowContext::isUsed(unsigned result) {
  return llvm::is_contained(terminator.getOperands(), op->getResult(result));
}

Value RowContext::stored(unsigned result, Index index) {
  for (auto [r, value] : llvm::enumerate(terminator.getOperands()))
    if (value == op->getResult(result))
      return e.reload(r, cast<RankedTensorType>(value.getType()), index);
  llvm_unreachable("asked by isUsed() before");
}

namespace {

class RowKernel : public FormedKernel, private LoopRoles {
public:
  RowKernel(func::FuncOp kernel, const CodegenOptions &options, Operation *op,
            const RowModel &model)
      : FormedKernel(kernel, options), op(op), model(model) {}

protected:
  LogicalResult analyze() override {
    for (Value result : terminator.getOperands())
      if (result.getDefiningOp() != op)
        return op->emitError("must make all results of its kernel");
    auto type =
        cast<RankedTensorType>(op->getOperand(model.domainOperand).getType());
    SmallVector<int> classes(type.getRank(), 0);
    for (int64_t axis : model.axes(op)) {
      classes[axis] = 1;
      length *= type.getDimSize(axis);
    }
    Accesses accesses;
    SmallVector<AffineExpr> point = identityIndex(type.getRank(), ctx);
    for (Value operand : op->getOperands()) {
      auto own = cast<RankedTensorType>(operand.getType());
      if (own.getShape() == type.getShape())
        accesses.add(operand, point);
      else
        accesses.addElsewhere(operand);
    }
    if (accesses.unsupported)
      return accesses.unsupported->emitError("cannot be part of a row kernel");
    if (model.inPlace)
      findReuse(accesses, point);
    for (Value result : terminator.getOperands()) {
      auto own = cast<RankedTensorType>(result.getType());
      if (own.getShape() == type.getShape())
        accesses.addUse(own, point);
    }
    domain.emplace(type.getShape(), getPhysicalOrder(type), classes,
                   openDims(type.getShape()), accesses, ctx);
    LoopRoles::operator=(domain->roles(classes));
    return success();
  }

  LogicalResult planRanges() override {
    int64_t work = std::max<int64_t>(length, 1);
    onLanes = rows || !domain->loops.back().open;
    if (!rows && onLanes) {
      trips.back() = llvm::divideCeil(trips.back(), lanes);
      work *= lanes;
    }
    int64_t trip = 1;
    for (int64_t size : trips)
      trip *= size;
    addStage(trip, kRangeElements / work);
    return success();
  }

  LogicalResult emitBlocks(ModuleOp into) override {
    auto item = [&](Emitter &e, Value t) { emitItem(e, t); };
    return together ? emitLaunch(into, 0, item)
                    : emitThreads(into, 0, items, item);
  }

  LogicalResult emitRanges(ModuleOp into) override {
    return emitStage(into, 0, [&](Emitter &e) {
      e.forLoop(e.begin, e.end, 1, {}, [&](Value t, ValueRange) {
        emitRow(e, t);
        return SmallVector<Value>();
      });
    });
  }

  LogicalResult planBlocks() override {
    for (int64_t size : trips)
      items *= size;
    together = rows && length > kThreadRow;
    if (!together) {
      addLaunch(items, kBlockThreads, false,
                rows ? "a thread does a whole short row"
                     : "a thread does a column");
      return success();
    }
    int64_t inner = domain->loops.back().size;
    vectors = inner % int64_t(lanes) == 0;
    int64_t width = vectors ? lanes : 1;
    if (reduced.size() == 1)
      std::tie(threads, keptVectors) = BlockNest::keepingRows(inner, width);
    else
      threads = BlockNest::threadsFor(inner, width);
    std::string reason;
    if (!vectors)
      reason = "rows of " + std::to_string(inner) + " elements are unaligned";
    addLaunch(items, threads, true, reason);
    return success();
  }

private:
  /// Computes a row or column, by a thread or by a block.
  void emitItem(Emitter &e, Value t) {
    e.approximates &=
        llvm::any_of(llvm::concat<const Type>(kernel.getArgumentTypes(),
                                              kernel.getResultTypes()),
                     [](Type type) {
                       Type element = getElementTypeOrSelf(type);
                       return element.isF16() || element.isBF16();
                     });
    SmallVector<Value> outer = split(e, t, trips);
    SmallVector<AffineExpr> at(domain->loops.size(), e.c(0));
    for (auto [i, l] : llvm::enumerate(kept))
      at[l] = e.addDim(outer[i]);
    BlockNest block(e, *domain, reduced, at, threads, vectors, keptVectors);
    Nest thread(e, *domain, reduced, /*laneReduced=*/false, at);
    thread.setScalar();
    PointNest &nest = together ? static_cast<PointNest &>(block) : thread;
    RowContext context(e, nest, terminator, op, domain->index(at), length);
    model.emit(context);
  }

  void emitRow(Emitter &e, Value t) {
    SmallVector<Value> outer = split(e, t, trips);
    SmallVector<AffineExpr> at(domain->loops.size(), e.c(0));
    Value mask;
    for (auto [i, l] : llvm::enumerate(kept)) {
      if (rows || !onLanes || l + 1 != domain->loops.size()) {
        at[l] = e.addDim(outer[i]);
        continue;
      }
      Value column = e.mul(outer[i], e.index(lanes));
      at[l] = e.addDim(column, /*lane=*/true);
      if (domain->loops[l].size % lanes)
        mask = maskBelow(e, column, e.index(domain->loops[l].size));
    }
    Nest nest(e, *domain, reduced, rows, at);
    if (!onLanes)
      nest.setScalar();
    RowContext context(e, nest, terminator, op, domain->index(at), length,
                       rows && lanes > 1 ? length : 0);
    auto emitAll = [&] {
      model.emit(context);
      return Value();
    };
    if (mask)
      e.withMask(mask, emitAll);
    else
      emitAll();
  }

  Operation *op;
  const RowModel &model;
  std::optional<Domain> domain;
  int64_t length = 1;
  bool onLanes = true; ///< of rows, or of columns whose number is known
  // Items and threads of a launch.
  int64_t items = 1, threads = 32;
  int64_t keptVectors =
      0;                 ///< vectors of a row that a thread keeps in registers
  bool together = false; ///< a block computes a row together
  bool vectors = false;
};

} // namespace

std::unique_ptr<GeneratedKernel>
codegen::makeRowKernel(func::FuncOp kernel, const CodegenOptions &options) {
  for (Operation &op : kernel.front())
    if (const RowModel *model = lookupRowModel(&op))
      return std::make_unique<RowKernel>(kernel, options, &op, *model);
  // Row ops that need no pass over the row (cross_entropy_grad).
  return makeElementwiseKernel(kernel, options);
}
