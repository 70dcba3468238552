//===- ScatterKernel.cpp - scatter_add, scatter_elements ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A first stage copies init, row by row in memory order, unless the result
// takes init's bytes. A second stage applies the updates in their order,
// parallel over all dimensions except the axis, along which updates may
// collide. On the CPU it works in blocks of columns. On a GPU it has a thread
// for each column of each row that has updates, if all columns share their
// indices (UpdateOrder), else a thread for each column. It is deterministic:
// there are no atomics, and the order of sums is the same everywhere. Without
// columns one stage does both for each item.
//
// Sums and products in f16 and bf16 are computed in f32, in scratch, and
// rounded once.
//
// Complexity: O(elements of init and updates).
//
//===----------------------------------------------------------------------===//
#include "Device/UpdateOrder.h"
#include "StructuredKernel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// Columns of one block.
static constexpr int64_t kColumns = 384;

static RankedTensorType tensorType(Value v) {
  return cast<RankedTensorType>(v.getType());
}

namespace {

class ScatterKernel : public AxisKernel {
public:
  /// With `ownIndices`, each column has its own indices, in the shape of the
  /// updates; else all columns share them.
  ScatterKernel(func::FuncOp kernel, const CodegenOptions &options,
                Operation *op, int64_t axis, ScatterKind kind, bool ownIndices)
      : AxisKernel(kernel, options, op, tensorType(op->getResult(0)).getShape(),
                   axis),
        type(tensorType(op->getResult(0))), init(op->getOperand(0)),
        indices(op->getOperand(1)), updates(op->getOperand(2)), kind(kind),
        ownIndices(ownIndices) {
    ArrayRef<int64_t> all = tensorType(indices).getShape();
    steps.assign(all.begin(), all.end());
    if (ownIndices)
      steps = {all[axis]};
    for (int64_t size : steps)
      count *= size;
    Type element = type.getElementType();
    wide = (element.isF16() || element.isBF16()) &&
           (kind == ScatterKind::Add || kind == ScatterKind::Mul);
  }

protected:
  LogicalResult analyze() override {
    rangeColumns = kColumns;
    columnWork = (columns ? 0 : shape[axis]) + count;
    if (wide)
      code.workspaceBytes = type.getNumElements() * int64_t(sizeof(float));
    return planOp(/*inPlace=*/true);
  }

  LogicalResult planBlocks() override {
    planCopy();
    if (isOrdered()) {
      code.workspaceBytes = order().bytes();
      for (int64_t items :
           {count, count * order().parts(), count, count * otherPoints()})
        addLaunch(items, kBlockThreads, false,
                  "a thread adds the updates of an element");
      return success();
    }
    if (failed(AxisKernel::planBlocks()))
      return failure();
    if (wide)
      planCopy();
    return success();
  }

  LogicalResult planRanges() override {
    if (columns)
      planRows();
    if (failed(AxisKernel::planRanges()))
      return failure();
    if (columns && wide)
      planRows();
    return success();
  }

  LogicalResult emitRanges(ModuleOp into) override {
    if (!columns)
      return AxisKernel::emitRanges(into);
    auto over = [&](unsigned number, auto body) {
      return emitStage(into, number, [&](Emitter &e) {
        auto rows = [&] {
          overRows(e, [&](ArrayRef<AffineExpr> at) { (this->*body)(e, at); });
          return SmallVector<Value>();
        };
        if (number == 0 && fillsMemory())
          ifAligned(e, rows);
        else if (number == 0)
          unlessInPlace(e, rows);
        else
          rows();
      });
    };
    auto update = [&](Emitter &e, const Place &place) {
      emitItemUpdates(e, place);
    };
    return success(succeeded(over(0, &ScatterKernel::emitStart)) &&
                   succeeded(emitItemStage(into, 1, update)) &&
                   (!wide || succeeded(over(2, &ScatterKernel::emitFinish))));
  }

  void emitItem(Emitter &e, const Place &place) override {
    unlessInPlace(e, [&] {
      overElements(e, place,
                   [&](ArrayRef<AffineExpr> at) { emitStart(e, at); });
      return SmallVector<Value>();
    });
    emitItemUpdates(e, place);
    if (wide)
      overElements(e, place,
                   [&](ArrayRef<AffineExpr> at) { emitFinish(e, at); });
  }

  LogicalResult emitBlocks(ModuleOp into) override {
    auto over = [&](unsigned number, auto body) {
      return emitThreads(into, number, type.getNumElements() / copyWidth(),
                         [&](Emitter &e, Value t) {
                           auto copy = [&] {
                             (this->*body)(e, copied(e, t));
                             return SmallVector<Value>();
                           };
                           if (number == 0)
                             unlessInPlace(e, copy);
                           else
                             copy();
                         });
    };
    if (isOrdered())
      return success(succeeded(over(0, &ScatterKernel::emitCopy)) &&
                     succeeded(emitOrdered(into)));
    auto update = [&](Emitter &e, const Place &place) {
      emitUpdates(e, place, columns ? place.low : Value());
    };
    return success(succeeded(over(0, &ScatterKernel::emitStart)) &&
                   succeeded(emitItemLaunch(into, 1, update)) &&
                   (!wide || succeeded(over(2, &ScatterKernel::emitFinish))));
  }

private:
  //===--- The element that is being made: the result's, or its sum in f32 ---//

  AffineExpr offset(ArrayRef<AffineExpr> at) {
    return Emitter::linearize(at, getElementStrides(type), ctx);
  }
  Value current(Emitter &e, ArrayRef<AffineExpr> at) {
    return wide ? e.loadFrom(e.scratch, e.b.getF32Type(), offset(at))
                : e.reload(0, type, at);
  }
  void put(Emitter &e, ArrayRef<AffineExpr> at, Value element) {
    if (wide)
      e.storeTo(e.scratch, e.b.getF32Type(), offset(at), element);
    else
      e.store(0, type, at, element);
  }
  void emitStart(Emitter &e, ArrayRef<AffineExpr> at) {
    put(e, at, e.emit(init, at));
  }
  void emitFinish(Emitter &e, ArrayRef<AffineExpr> at) {
    e.store(0, type, at, current(e, at));
  }

  /// Calls `copy`, which starts from init, unless the result already lies there
  /// (sums in f32 lie elsewhere).
  void unlessInPlace(Emitter &e, function_ref<SmallVector<Value>()> copy) {
    if (code.reuse.empty() || wide) {
      copy();
      return;
    }
    Value from = e.argument(code.reuse.front().first),
          to = e.argument(kernel.getNumArguments());
    e.ifThen(LLVM::ICmpOp::create(e.b, LLVM::ICmpPredicate::ne, from, to), copy,
             nullptr);
  }

  //===--- Copies of a launch, whose threads have 16 bytes each ----------===//

  /// Returns how many neighbors of a row a thread copies.
  int64_t copyWidth() const {
    auto isContiguous = [](RankedTensorType t) {
      return getElementStrides(t).back() == 1;
    };
    return shape.back() && shape.back() % int64_t(lanes) == 0 &&
                   isContiguous(type) && isContiguous(tensorType(init))
               ? int64_t(lanes)
               : 1;
  }
  void planCopy() {
    addLaunch(type.getNumElements() / copyWidth(), kBlockThreads, false,
              copyWidth() > 1 ? "" : "a thread moves an element");
  }
  /// Returns the elements that thread t copies.
  SmallVector<AffineExpr> copied(Emitter &e, Value t) {
    int64_t width = copyWidth();
    SmallVector<int64_t> sizes(shape);
    sizes.back() /= width;
    SmallVector<AffineExpr> at;
    SmallVector<Value> parts = split(e, t, sizes);
    for (Value part : ArrayRef(parts).drop_back())
      at.push_back(e.addDim(part));
    at.push_back(width > 1 ? e.addDim(e.mul(parts.back(), e.index(width)), true)
                           : e.addDim(parts.back()));
    return at;
  }

  //===--- Updates by row -----------------------------------------------===//

  UpdateOrder order() const { return {count}; }
  /// Returns whether updates are sorted by row.
  bool isOrdered() const {
    return columns && !ownIndices && UpdateOrder::isWorth(count, shape[axis]) &&
           count * otherPoints() > 0;
  }
  /// Returns the number of points of the dimensions other than the axis.
  int64_t otherPoints() const {
    return shape[axis] ? type.getNumElements() / shape[axis] : 0;
  }
  void emitCopy(Emitter &e, ArrayRef<AffineExpr> at) {
    e.store(0, type, at, e.emit(init, at));
  }
  /// Returns the place of update `number` in the shape of the indices.
  SmallVector<AffineExpr> stepOf(Emitter &e, Value number) {
    SmallVector<AffineExpr> step;
    for (Value part : split(e, number, steps))
      step.push_back(e.addDim(part));
    return step;
  }

  LogicalResult emitOrdered(ModuleOp into) {
    auto row = [&](Emitter &e, Value n) {
      AffineExpr row =
          e.addReadIndex(e.emit(indices, stepOf(e, n)), shape[axis]);
      order().emitRow(e, n, e.scalar(row));
    };
    auto counts = [&](Emitter &e, Value t) { order().emitCounts(e, t); };
    auto place = [&](Emitter &e, Value n) { order().emitPlace(e, n); };
    int64_t parts = order().parts(), points = otherPoints();
    return success(succeeded(emitThreads(into, 1, count, row)) &&
                   succeeded(emitThreads(into, 2, count * parts, counts)) &&
                   succeeded(emitThreads(into, 3, count, place)) &&
                   succeeded(emitThreads(
                       into, 4, count * points,
                       [&](Emitter &e, Value t) { emitRowUpdates(e, t); })));
  }

  /// Adds all updates of one element, if the item's update is the first one of
  /// its row.
  void emitRowUpdates(Emitter &e, Value item) {
    SmallVector<int64_t> sizes(shape);
    sizes.erase(sizes.begin() + axis);
    sizes.insert(sizes.begin(), count);
    SmallVector<Value> parts = split(e, item, sizes);
    Value number = parts.front(), length = order().length(e, number);
    auto apply = [&] {
      SmallVector<AffineExpr> at;
      for (Value part : ArrayRef(parts).drop_front())
        at.push_back(e.addDim(part));
      at.insert(at.begin() + axis, e.addSymbol(order().row(e, number), true));
      Value start = order().start(e, number), begin = e.emit(init, at);
      SmallVector<Value> sum =
          e.forLoop(e.index(0), length, 1, begin, [&](Value i, ValueRange sum) {
            SmallVector<AffineExpr> from(ArrayRef(at).take_front(axis));
            llvm::append_range(from, stepOf(e, order().at(e, e.add(start, i))));
            llvm::append_range(from, ArrayRef(at).drop_front(axis + 1));
            return SmallVector<Value>{
                combine(e, sum.front(), e.emit(updates, from))};
          });
      e.store(0, type, at, sum.front());
      return SmallVector<Value>();
    };
    e.ifThen(e.cmpi(arith::CmpIPredicate::sgt, length, e.index(0)), apply,
             nullptr);
  }

  /// Calls `body` for all elements of an item.
  void overElements(Emitter &e, const Place &place,
                    function_ref<void(ArrayRef<AffineExpr>)> body) {
    e.forLoop(e.index(0), e.index(shape[axis]), 1, {},
              [&](Value position, ValueRange) {
                Place row = place;
                row.point[axis] = e.addDim(position);
                overColumns(e, row, body);
                return SmallVector<Value>();
              });
  }

  //===--- Updates ------------------------------------------------------===//

  /// Returns whether init is a constant with more bytes than a cache keeps
  /// until they are read.
  bool fillsMemory() const {
    constexpr int64_t kCached = 32 << 20;
    return init.getDefiningOp<ConstantOp>() && !wide &&
           getByteSize(type) > kCached;
  }

  /// Calls `rows` with stores past the caches if the result is aligned.
  void ifAligned(Emitter &e, function_ref<SmallVector<Value>()> rows) {
    Value result = e.argument(kernel.getNumArguments());
    Value bits =
        LLVM::PtrToIntOp::create(e.b, e.b.getI64Type(), result).getResult();
    int64_t bytes =
        int64_t(e.lanes) *
        (storageType(type.getElementType()).getIntOrFloatBitWidth() / 8);
    Value rest = e.andi(bits, e.index(bytes - 1));
    e.ifThen(
        e.cmpi(arith::CmpIPredicate::eq, rest, e.index(0)),
        [&] {
          e.pastCaches = true;
          rows();
          e.pastCaches = false;
          e.fenceStores();
          return SmallVector<Value>();
        },
        rows);
  }

  /// Calls `body` for all elements of the stage's range of rows.
  void overRows(Emitter &e, function_ref<void(ArrayRef<AffineExpr>)> body) {
    e.forLoop(e.begin, e.end, 1, {}, [&](Value row, ValueRange) {
      SmallVector<AffineExpr> at;
      for (Value part : split(e, row, shape.drop_back()))
        at.push_back(e.addDim(part));
      at.push_back({});
      int64_t size = shape.back();
      auto known = isOpen(size) ? std::nullopt : std::optional(size);
      vectorLoop(e, e.index(0), e.index(size), known, [&](AffineExpr lane) {
        at.back() = lane;
        body(at);
      });
      return SmallVector<Value>();
    });
  }

  /// Adds a stage over all rows of the result.
  void planRows() {
    int64_t rows = 1;
    for (int64_t size : shape.drop_back())
      rows *= size;
    addStage(shape.back() ? rows : 0,
             kRangeElements / std::max<int64_t>(shape.back(), 1));
  }

  void emitItemUpdates(Emitter &e, const Place &place) {
    Place updated = place;
    if (columns && extent(lastDim()) < shape.back())
      narrow(e, updated, extent(lastDim()));
    emitUpdates(e, updated, nullptr);
  }

  /// Returns the number of updates along dimension d of the result, which is
  /// not the axis.
  int64_t extent(int64_t d) const {
    return ownIndices ? tensorType(indices).getDimSize(d) : shape[d];
  }

  int64_t lastDim() const { return int64_t(shape.size()) - 1; }

  /// `column` is the only column, which may have no updates; null if all
  /// columns of the item have some.
  void emitUpdates(Emitter &e, const Place &place, Value column) {
    Value inside; // null: all of the item's elements have updates
    auto require = [&](Value at, int64_t d) {
      if (extent(d) == shape[d])
        return;
      Value below = e.cmpi(arith::CmpIPredicate::slt, at, e.index(extent(d)));
      inside = inside ? e.andi(inside, below) : below;
    };
    for (int64_t d = 0; d <= lastDim(); ++d)
      if (d != axis && !(columns && d == lastDim()))
        require(e.scalar(place.point[d]), d);
    if (column)
      require(column, lastDim());
    auto apply = [&] {
      e.forLoop(e.index(0), e.index(count), 1, {},
                [&](Value number, ValueRange) {
                  emitUpdate(e, number, place);
                  return SmallVector<Value>();
                });
      return SmallVector<Value>();
    };
    if (inside)
      e.ifThen(inside, apply, nullptr);
    else
      apply();
  }

  /// Restricts the item to the columns below `size`.
  static void narrow(Emitter &e, Place &place, int64_t size) {
    place.high = e.maximum(e.minimum(place.high, e.index(size)), place.low);
    place.count = std::nullopt;
  }

  void emitUpdate(Emitter &e, Value number, const Place &place) {
    SmallVector<AffineExpr> step = stepOf(e, number);
    overColumns(e, place, [&](ArrayRef<AffineExpr> at) {
      SmallVector<AffineExpr> from(at.take_front(axis)), to(at);
      llvm::append_range(from, step);
      llvm::append_range(from, at.drop_front(axis + 1));
      Value index = e.emit(indices, ownIndices ? from : step);
      to[axis] = e.addReadIndex(index, shape[axis]);
      Value update = e.emit(updates, from);
      bool replaces = kind == ScatterKind::Set;
      put(e, to, combine(e, replaces ? Value() : current(e, to), update));
    });
  }

  /// Returns `update`'s new value of an element.
  Value combine(Emitter &e, Value element, Value update) {
    bool isSigned = !type.getElementType().isUnsignedInteger();
    switch (kind) {
    case ScatterKind::Set:
      return update;
    case ScatterKind::Add:
      return e.add(element, update);
    case ScatterKind::Mul:
      return e.mul(element, update);
    case ScatterKind::Max:
      return e.maximum(element, update, isSigned);
    case ScatterKind::Min:
      return e.minimum(element, update, isSigned);
    }
    llvm_unreachable("kinds are listed above");
  }

  RankedTensorType type;
  Value init, indices, updates;
  ScatterKind kind;
  bool ownIndices;
  SmallVector<int64_t> steps; ///< shape of the updates of one column
  int64_t count = 1;          ///< their number
  bool wide;                  ///< sums are computed in f32
};

} // namespace

void codegen::addScatterKernels(StructuredKernels &kernels) {
  kernels.add<ScatterAddOp>(
      [](func::FuncOp kernel, const CodegenOptions &options,
         Operation *op) -> std::unique_ptr<GeneratedKernel> {
        return std::make_unique<ScatterKernel>(
            kernel, options, op, int64_t(cast<ScatterAddOp>(op).getAxis()),
            ScatterKind::Add, /*ownIndices=*/false);
      });
  kernels.add<ScatterElementsOp>(
      [](func::FuncOp kernel, const CodegenOptions &options,
         Operation *op) -> std::unique_ptr<GeneratedKernel> {
        auto scatter = cast<ScatterElementsOp>(op);
        return std::make_unique<ScatterKernel>(
            kernel, options, op, int64_t(scatter.getAxis()), scatter.getKind(),
            /*ownIndices=*/true);
      });
}
