//===- ScatterKernel.cpp - scatter_add ------------------------------------===//
//
// Parallel over what no two updates share: the dimensions before the axis and
// blocks of columns behind it. Each block starts from init, then adds its
// updates in their order: deterministic, no atomics. On a GPU one launch copies
// init, a second adds: a thread a column.
//
//===----------------------------------------------------------------------===//
#include "GeneratedKernel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// Columns of one block.
static constexpr int64_t kColumns = 384;

namespace {

class ScatterKernel : public GeneratedKernel {
public:
  ScatterKernel(func::FuncOp kernel, const CodegenOptions &options,
                ScatterAddOp op)
      : GeneratedKernel(kernel, options), op(op) {}

  LogicalResult plan() override {
    if (terminator.getNumOperands() != 1 ||
        terminator.getOperand(0) != op.getOutput())
      return op.emitError("must make the only result of its kernel");
    auto type = cast<RankedTensorType>(op.getOutput().getType());
    Accesses accesses;
    accesses.addElsewhere(op.getInit());
    accesses.addElsewhere(op.getIndices());
    accesses.addElsewhere(op.getUpdates());
    if (accesses.unsupported)
      return accesses.unsupported->emitError(
          "cannot be part of a scatter kernel");
    auto init = dyn_cast<BlockArgument>(op.getInit());
    if (init && init.getType() == type && !readBesidesInit(init))
      code.reuse.emplace_back(init.getArgNumber(), 0);
    int64_t rank = type.getRank(), trip = 1;
    int64_t columnBlock = onDevice() ? 1 : kColumns;
    for (int64_t d = 0; d < rank; ++d) {
      if (d == int64_t(op.getAxis()))
        continue;
      bool columns = d == rank - 1;
      int64_t size = type.getDimSize(d);
      dims.push_back(d);
      trips.push_back(columns ? llvm::divideCeil(size, columnBlock) : size);
      trip *= trips.back();
    }
    if (!onDevice()) {
      addStage(trip, 1);
      return success();
    }
    items = trip;
    constexpr llvm::StringLiteral reason = "a thread does a column";
    addLaunch(type.getNumElements(), kBlockThreads, false, reason);
    addLaunch(items, kBlockThreads, false, reason);
    return success();
  }

  LogicalResult emit(ModuleOp into) override {
    if (onDevice())
      return success(succeeded(emitCopy(into)) && succeeded(emitAdd(into)));
    return emitStage(into, 0, [&](Emitter &e) {
      e.forLoop(e.begin, e.end, 1, {}, [&](Value t, ValueRange) {
        emitBlock(e, t);
        return SmallVector<Value>();
      });
    });
  }

private:
  LogicalResult emitCopy(ModuleOp into) {
    auto type = cast<RankedTensorType>(op.getOutput().getType());
    return emitThreads(into, 0, type.getNumElements(),
                       [&](Emitter &e, Value t) {
                         SmallVector<AffineExpr> index;
                         for (Value part : split(e, t, type.getShape()))
                           index.push_back(e.addDim(part));
                         e.store(0, type, index, e.emit(op.getInit(), index));
                       });
  }

  LogicalResult emitAdd(ModuleOp into) {
    auto type = cast<RankedTensorType>(op.getOutput().getType());
    auto indices = cast<RankedTensorType>(op.getIndices().getType());
    return emitThreads(into, 1, items, [&](Emitter &e, Value t) {
      SmallVector<AffineExpr> point(type.getRank(), e.c(0));
      for (auto [part, d] : llvm::zip_equal(split(e, t, trips), dims))
        point[d] = e.addDim(part);
      e.forLoop(e.index(0), e.index(indices.getNumElements()), 1, {},
                [&](Value number, ValueRange) {
                  emitUpdate(e, number, indices, type,
                             [&](function_ref<void(ArrayRef<AffineExpr>)> fn) {
                               fn(point);
                             });
                  return SmallVector<Value>();
                });
    });
  }

  bool readBesidesInit(BlockArgument init) {
    Accesses others;
    others.addElsewhere(op.getIndices());
    others.addElsewhere(op.getUpdates());
    return llvm::is_contained(others.elsewhere, init);
  }

  void emitBlock(Emitter &e, Value t) {
    auto type = cast<RankedTensorType>(op.getOutput().getType());
    int64_t rank = type.getRank(), axis = op.getAxis();
    SmallVector<Value> parts = split(e, t, trips);
    SmallVector<AffineExpr> point(rank, e.c(0));
    bool columns = axis != rank - 1;
    for (auto [part, d] : llvm::zip_equal(parts, dims))
      if (!(columns && d == rank - 1))
        point[d] = e.addDim(part);
    // Runs fn at all columns of the block.
    auto overColumns = [&](function_ref<void(ArrayRef<AffineExpr>)> fn) {
      if (!columns)
        return fn(point);
      int64_t size = type.getDimSize(rank - 1);
      Value low = e.mul(parts.back(), e.index(kColumns));
      Value high = e.minimum(e.add(low, e.index(kColumns)), e.index(size));
      std::optional<int64_t> count;
      if (size <= kColumns || size % kColumns == 0)
        count = std::min(size, kColumns);
      vectorLoop(e, low, high, count, [&](AffineExpr lane) {
        SmallVector<AffineExpr> at = point;
        at[rank - 1] = lane;
        fn(at);
      });
    };
    e.forLoop(e.index(0), e.index(type.getDimSize(axis)), 1, {},
              [&](Value row, ValueRange) {
                AffineExpr position = e.addDim(row);
                overColumns([&](ArrayRef<AffineExpr> at) {
                  SmallVector<AffineExpr> index(at);
                  index[axis] = position;
                  e.store(0, type, index, e.emit(op.getInit(), index));
                });
                return SmallVector<Value>();
              });
    auto indices = cast<RankedTensorType>(op.getIndices().getType());
    e.forLoop(e.index(0), e.index(indices.getNumElements()), 1, {},
              [&](Value number, ValueRange) {
                emitUpdate(e, number, indices, type, overColumns);
                return SmallVector<Value>();
              });
  }

  void emitUpdate(
      Emitter &e, Value number, RankedTensorType indices, RankedTensorType type,
      function_ref<void(function_ref<void(ArrayRef<AffineExpr>)>)> columns) {
    int64_t axis = op.getAxis();
    SmallVector<AffineExpr> where;
    for (Value part : split(e, number, indices.getShape()))
      where.push_back(e.addDim(part));
    Value row = e.emit(op.getIndices(), where);
    if (!row.getType().isInteger(64))
      row = arith::ExtSIOp::create(e.b, e.b.getI64Type(), row);
    // Negative ones count from the end; never a write outside of the tensor.
    Value size = e.index(type.getDimSize(axis)), zero = e.index(0);
    row = e.select(e.cmpi(arith::CmpIPredicate::slt, row, zero),
                   e.add(row, size), row);
    row = e.minimum(e.maximum(row, zero), e.sub(size, e.index(1)));
    AffineExpr target = e.addSymbol(row, /*nonNegative=*/true);
    columns([&](ArrayRef<AffineExpr> at) {
      SmallVector<AffineExpr> index(at), update(at.take_front(axis));
      index[axis] = target;
      llvm::append_range(update, where);
      llvm::append_range(update, at.drop_front(axis + 1));
      Value x = e.emit(op.getUpdates(), update);
      e.store(0, type, index, e.add(e.reload(0, type, index), x));
    });
  }

  ScatterAddOp op;
  SmallVector<int64_t> dims, trips;
  int64_t items = 0; ///< of the second launch
};

} // namespace

std::unique_ptr<GeneratedKernel>
codegen::makeScatterKernel(func::FuncOp kernel, const CodegenOptions &options) {
  for (Operation &op : kernel.front())
    if (auto scatter = dyn_cast<ScatterAddOp>(op))
      return std::make_unique<ScatterKernel>(kernel, options, scatter);
  return nullptr;
}
