//===- ReductionKernel.cpp - sums, means, moments of a shape --------------===//
//
// All reduce and moments ops of the kernel share the loops. Where the kept
// dimensions alone do not give enough work for many threads, or the data of
// one column block would leave the caches, the outermost reduced loop is cut
// into chunks by shape (never by threads): stage 0 leaves a partial result a
// chunk in scratch, stage 1 combines them in order.
//
// moments: two passes over a chunk (mean, then squares around it; the second
// from cache), combined by Chan, Golub and LeVeque's formula: no cancellation
// whatever the mean.
//
// Time: the data once from memory. Scratch: chunks * kept points * states.
//
//===----------------------------------------------------------------------===//
#include "ColumnCache.h"
#include "GeneratedKernel.h"
#include "Nest.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;

/// Elements of one chunk: what stays in a second-level cache.
static constexpr int64_t kChunkElements = 65536;
/// Vectors of columns that one parallel step reduces together.
static constexpr int64_t kColumnVectors = 4;

/// Most columns whose sums lie in a buffer on the stack.
static constexpr int64_t kWideColumns = 4096;
/// Rows that one pass over the columns adds up.
static constexpr int64_t kTileRows = 8;

namespace {

/// One op of the kernel: its input, its reducer, its results.
struct Item {
  Operation *op;
  Value input;
  Reducer reducer;
  bool moments;
  bool mean;
  SmallVector<int64_t> scratch; ///< byte offsets of its partial states
};

class ReductionKernel : public GeneratedKernel {
public:
  using GeneratedKernel::GeneratedKernel;
  LogicalResult plan() override;
  LogicalResult emit(ModuleOp into) override;

private:
  LogicalResult collect();
  void planChunks();
  void emitPartial(Emitter &e, Value t);
  void emitWidePartial(Emitter &e, Value t);
  /// Adds element(column) of all rows to `sums`, tile by tile of rows.
  void wideFold(
      Emitter &e, ArrayRef<AffineExpr> at, Value low, Value high,
      ArrayRef<const Item *> folded, ArrayRef<Value> sums,
      function_ref<Value(const Item &, size_t, Index, AffineExpr)> element);
  void writeStates(Emitter &e, const Item &item, ArrayRef<Value> states,
                   Value chunk, ArrayRef<AffineExpr> at);
  void emitCombine(Emitter &e, Value t);
  /// Stores an item's final values at the kept point.
  void finish(Emitter &e, const Item &item, ArrayRef<Value> states,
              Index point);
  /// Elements of a chunk's share of one kept point, as a number.
  Value chunkCount(Emitter &e, Value chunk, Type type);
  void chunkRange(Emitter &e, Value chunk, Value &low, Value &high);
  AffineExpr keptNumber(ArrayRef<AffineExpr> at);

  SmallVector<Item> items;
  SmallVector<int64_t> axes;
  std::optional<Domain> domain;
  SmallVector<unsigned> reduced, kept;
  SmallVector<int64_t> trips; ///< kept loops (the last in blocks), then chunks
  bool rows = false;
  /// Columns beyond a few vectors: all of them in one pass over a tile of rows,
  /// sums in a buffer, so that memory is read in order.
  bool wide = false;
  ColumnCache cache;
  SmallVector<Value> buffers;        ///< two an item
  int64_t keptPoints = 1, count = 1; ///< of the whole reduction
  int64_t chunkLength = 1, chunks = 1, vectors = 1;
};

} // namespace

LogicalResult ReductionKernel::collect() {
  llvm::SmallDenseSet<Operation *> seen;
  for (Value result : terminator.getOperands()) {
    Operation *op = result.getDefiningOp();
    if (!op || !isa<ReduceOp, MomentsOp>(op))
      return kernel.emitError("results of a reduction kernel must be those of "
                              "reduce or moments");
    if (!seen.insert(op).second)
      continue;
    Item item{op, op->getOperand(0), {}, false, false, {}};
    Type element = getElementTypeOrSelf(item.input);
    SmallVector<int64_t> own;
    item.reducer.type = computeType(element);
    item.reducer.kind = ReduceKind::Sum;
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      item.reducer.kind = reduce.getKind();
      item.mean = reduce.getKind() == ReduceKind::Mean;
      own.assign(reduce.getAxes().begin(), reduce.getAxes().end());
      if (auto integer = dyn_cast<IntegerType>(element))
        item.reducer.isSigned = !integer.isUnsigned();
    } else {
      auto moments = cast<MomentsOp>(op);
      item.moments = true;
      own.assign(moments.getAxes().begin(), moments.getAxes().end());
    }
    llvm::sort(own);
    auto type = cast<RankedTensorType>(item.input.getType());
    if (items.empty())
      axes = own;
    else if (own != axes ||
             type.getShape() !=
                 cast<RankedTensorType>(items[0].input.getType()).getShape())
      return op->emitError("reductions of one kernel must share shape and "
                           "axes");
    items.push_back(item);
  }
  if (items.empty())
    return kernel.emitError("kernel has no results");
  return success();
}

LogicalResult ReductionKernel::plan() {
  if (failed(collect()))
    return failure();
  auto type = cast<RankedTensorType>(items[0].input.getType());
  Accesses accesses;
  SmallVector<AffineExpr> point = identityIndex(type.getRank(), ctx);
  for (const Item &item : items)
    accesses.add(item.input, point);
  if (accesses.unsupported)
    return accesses.unsupported->emitError(
        "cannot be part of a reduction kernel");
  SmallVector<int> classes(type.getRank(), 0);
  for (int64_t axis : axes) {
    classes[axis] = 1;
    count *= type.getDimSize(axis);
  }
  // The order in which the largest operand lies in memory.
  SmallVector<int64_t> order = getPhysicalOrder(type);
  for (const Accesses::Read &read : accesses.reads) {
    auto own = cast<RankedTensorType>(read.arg.getType());
    if (own.getShape() == type.getShape() && read.index == point) {
      order = getPhysicalOrder(own);
      break;
    }
  }
  domain.emplace(type.getShape(), order, classes, accesses, ctx);
  for (auto [l, loop] : llvm::enumerate(domain->loops)) {
    if (!loop.dims.empty() && classes[loop.dims.front()]) {
      reduced.push_back(l);
      continue;
    }
    kept.push_back(l);
    trips.push_back(loop.size);
    keptPoints *= loop.size;
  }
  rows = !reduced.empty() && reduced.back() + 1 == domain->loops.size();
  planChunks();
  return success();
}

void ReductionKernel::planChunks() {
  int64_t outermost = reduced.empty() ? 1 : domain->loops[reduced[0]].size;
  int64_t inside =
      std::max<int64_t>(count / std::max<int64_t>(outermost, 1), 1);
  int64_t keptSteps = keptPoints, width = 1;
  if (!rows) {
    int64_t columns = domain->loops.back().size;
    vectors = std::clamp<int64_t>(llvm::divideCeil(columns, lanes), 1,
                                  kColumnVectors);
    width = vectors * lanes;
    wide = columns > width && columns <= kWideColumns && reduced.size() == 1;
    if (wide)
      width = columns;
    trips.back() = llvm::divideCeil(columns, width);
    keptSteps = keptPoints / std::max<int64_t>(columns, 1) * trips.back();
  }
  // A chunk of all columns stays in cache while block after block reads it.
  int64_t side = rows ? 1 : domain->loops.back().size;
  chunkLength = std::max<int64_t>(
      kChunkElements / std::max<int64_t>(inside * side, 1), 1);
  if (rows && reduced.size() == 1)
    chunkLength = llvm::alignTo(chunkLength, lanes * 4);
  else
    chunkLength = std::max<int64_t>(chunkLength, 8);
  if (wide) {
    SmallVector<Value> inputs;
    for (const Item &item : items)
      inputs.push_back(item.input);
    cache.plan(*domain, inputs);
  }
  bool enough = rows ? keptSteps >= 64 : keptSteps >= 64 && count < 4096;
  if (enough || count * width < 2 * kRangeElements)
    chunkLength = std::max<int64_t>(outermost, 1);
  chunks = std::max<int64_t>(llvm::divideCeil(outermost, chunkLength), 1);

  int64_t work = std::max<int64_t>(chunkLength * inside * width, 1);
  int64_t trip = chunks;
  for (int64_t size : trips)
    trip *= size;
  addStage(trip, kRangeElements / work);
  if (chunks == 1)
    return;
  int64_t bytes = 0;
  for (Item &item : items)
    for (int state = 0; state < (item.moments ? 2 : 1); ++state) {
      item.scratch.push_back(bytes);
      bytes += llvm::alignTo(
          chunks * keptPoints * (item.reducer.type.getIntOrFloatBitWidth() / 8),
          64);
    }
  code.workspaceBytes = bytes;
  addStage(llvm::divideCeil(keptPoints, lanes), 16);
}

LogicalResult ReductionKernel::emit(ModuleOp into) {
  auto loopOver = [](Emitter &e, function_ref<void(Value)> body) {
    e.forLoop(e.begin, e.end, 1, {}, [&](Value t, ValueRange) {
      body(t);
      return SmallVector<Value>();
    });
  };
  if (failed(emitStage(into, 0, [&](Emitter &e) {
        if (wide) {
          cache.emit(e);
          for (const Item &item : items)
            for (int i = 0; i < 2; ++i)
              buffers.push_back(
                  stackBuffer(e, item.reducer.type, domain->loops.back().size));
        }
        loopOver(e, [&](Value t) {
          wide ? emitWidePartial(e, t) : emitPartial(e, t);
        });
      })))
    return failure();
  if (chunks == 1)
    return success();
  return emitStage(into, 1, [&](Emitter &e) {
    loopOver(e, [&](Value t) { emitCombine(e, t); });
  });
}

void ReductionKernel::chunkRange(Emitter &e, Value chunk, Value &low,
                                 Value &high) {
  int64_t outermost = domain->loops[reduced[0]].size;
  low = e.mul(chunk, e.index(chunkLength));
  high = e.minimum(e.add(low, e.index(chunkLength)), e.index(outermost));
}

Value ReductionKernel::chunkCount(Emitter &e, Value chunk, Type type) {
  if (chunks == 1)
    return e.constant(type, double(count));
  Value low, high;
  chunkRange(e, chunk, low, high);
  int64_t inside = count / domain->loops[reduced[0]].size;
  return arith::SIToFPOp::create(e.b, type,
                                 e.mul(e.sub(high, low), e.index(inside)));
}

AffineExpr ReductionKernel::keptNumber(ArrayRef<AffineExpr> at) {
  AffineExpr number = getAffineConstantExpr(0, ctx);
  for (unsigned l : kept)
    number = number * domain->loops[l].size + at[l];
  return number;
}

static Value addressAt(Emitter &e, int64_t bytes) {
  Type ptr = LLVM::LLVMPointerType::get(e.ctx);
  return LLVM::GEPOp::create(e.b, ptr, e.b.getI8Type(), e.scratch,
                             ArrayRef<LLVM::GEPArg>{e.index(bytes)});
}

void ReductionKernel::emitPartial(Emitter &e, Value t) {
  // Chunks outside, column blocks inside: neighbours read the same pages.
  SmallVector<int64_t> sizes(trips);
  sizes.insert(sizes.empty() ? sizes.end() : sizes.end() - 1, chunks);
  size_t chunkAt = trips.empty() ? 0 : trips.size() - 1;
  SmallVector<Value> parts = split(e, t, sizes);
  Value chunk = parts[chunkAt];
  parts.erase(parts.begin() + chunkAt);

  SmallVector<AffineExpr> at(domain->loops.size(), e.c(0));
  AffineExpr lane;
  SmallVector<Value> masks(vectors);
  for (auto [i, l] : llvm::enumerate(kept)) {
    if (rows || l + 1 != domain->loops.size()) {
      at[l] = e.addDim(parts[i]);
      continue;
    }
    int64_t width = vectors * lanes, columns = domain->loops[l].size;
    Value column = e.mul(parts[i], e.index(width));
    at[l] = lane = e.addDim(column, /*lane=*/true);
    for (int64_t u = 0; u < vectors; ++u)
      if (columns % width)
        masks[u] =
            maskBelow(e, e.add(column, e.index(u * lanes)), e.index(columns));
  }
  Nest nest(e, *domain, reduced, rows, at);
  if (!rows)
    nest.setColumns(domain->loops.size() - 1, lane, masks, e.currentLevel());
  if (chunks > 1) {
    Value low, high;
    chunkRange(e, chunk, low, high);
    int64_t outermost = domain->loops[reduced[0]].size;
    std::optional<int64_t> known;
    if (outermost % chunkLength == 0)
      known = chunkLength;
    nest.setRange(low, high, known);
  }

  SmallVector<Reducer> first, second;
  SmallVector<unsigned> momentItems;
  for (auto [i, item] : llvm::enumerate(items)) {
    first.push_back(item.reducer);
    if (item.moments) {
      second.push_back(item.reducer);
      momentItems.push_back(i);
    }
  }
  SmallVector<Value> sums = nest.reduce(first, [&](Index i, unsigned) {
    SmallVector<Value> elements;
    for (const Item &item : items)
      elements.push_back(e.emit(item.input, i));
    return elements;
  });
  unsigned groups = rows ? 1 : nest.vectors();
  size_t n = items.size(), m = momentItems.size();
  for (unsigned u = 0; u < groups; ++u)
    for (unsigned i : momentItems) {
      Value &sum = sums[u * n + i];
      sum = e.div(sum, chunkCount(e, chunk, items[i].reducer.type));
    }
  SmallVector<Value> squares;
  if (m)
    squares = nest.reduce(second, [&](Index index, unsigned u) {
      SmallVector<Value> elements;
      for (unsigned i : momentItems) {
        Value d = e.sub(e.emit(items[i].input, index), sums[u * n + i]);
        elements.push_back(e.mul(d, d));
      }
      return elements;
    });
  for (unsigned u = 0; u < groups; ++u) {
    SmallVector<AffineExpr> place = at;
    if (lane)
      place[domain->loops.size() - 1] = lane + int64_t(u) * int64_t(lanes);
    auto write = [&] {
      size_t nextMoment = 0;
      for (auto [i, item] : llvm::enumerate(items)) {
        SmallVector<Value> states{sums[u * n + i]};
        if (item.moments)
          states.push_back(squares[u * m + nextMoment++]);
        writeStates(e, item, states, chunk, place);
      }
      return Value();
    };
    if (masks[u])
      e.withMask(masks[u], write);
    else
      write();
  }
}

void ReductionKernel::writeStates(Emitter &e, const Item &item,
                                  ArrayRef<Value> states, Value chunk,
                                  ArrayRef<AffineExpr> at) {
  if (chunks == 1)
    return finish(e, item, states, domain->index(at));
  AffineExpr offset = e.addDim(chunk) * keptPoints + keptNumber(at);
  for (auto [s, state] : llvm::enumerate(states))
    e.storeTo(addressAt(e, item.scratch[s]), item.reducer.type, offset, state);
}

void ReductionKernel::wideFold(
    Emitter &e, ArrayRef<AffineExpr> at, Value low, Value high,
    ArrayRef<const Item *> folded, ArrayRef<Value> sums,
    function_ref<Value(const Item &, size_t, Index, AffineExpr)> element) {
  int64_t columns = domain->loops.back().size;
  auto overColumns = [&](function_ref<void(AffineExpr)> body) {
    vectorLoop(e, e.index(0), e.index(columns), columns, body);
  };
  auto rowsFrom = [&](AffineExpr row, int64_t count) {
    overColumns([&](AffineExpr lane) {
      SmallVector<AffineExpr> point(at);
      point.back() = lane;
      SmallVector<Value> running;
      for (auto [i, item] : llvm::enumerate(folded))
        running.push_back(e.loadFrom(sums[i], item->reducer.type, lane));
      for (int64_t k = 0; k < count; ++k) {
        point[reduced[0]] = row + k;
        SmallVector<AffineExpr> index = domain->index(point);
        for (auto [i, item] : llvm::enumerate(folded))
          running[i] = item->reducer.combine(e, running[i],
                                             element(*item, i, index, lane));
      }
      for (auto [i, item] : llvm::enumerate(folded))
        e.storeTo(sums[i], item->reducer.type, lane, running[i]);
    });
  };
  for (auto [i, item] : llvm::enumerate(folded))
    overColumns([&](AffineExpr lane) {
      e.storeTo(sums[i], item->reducer.type, lane, item->reducer.identity(e));
    });
  // Many concatenated operands are much code for one row already.
  int64_t tileRows = kTileRows;
  kernel.walk([&](ConcatOp op) {
    if (op.getInputs().size() > 2)
      tileRows = 1;
  });
  Value tiles = e.sub(high, low), tile = e.index(tileRows);
  tiles = e.add(low, e.mul(arith::DivUIOp::create(e.b, tiles, tile), tile));
  auto loop = [&](Value from, Value to, int64_t step) {
    e.forLoop(from, to, step, {}, [&](Value row, ValueRange) {
      rowsFrom(e.addDim(row), step);
      return SmallVector<Value>();
    });
  };
  loop(low, tiles, tileRows);
  if (tileRows > 1)
    loop(tiles, high, 1);
}

void ReductionKernel::emitWidePartial(Emitter &e, Value t) {
  SmallVector<int64_t> sizes(trips);
  sizes.back() = chunks; // the column blocks' place: there is one
  SmallVector<Value> parts = split(e, t, sizes);
  Value chunk = parts.back(), low = e.index(0),
        high = e.index(domain->loops[reduced[0]].size);
  SmallVector<AffineExpr> at(domain->loops.size(), e.c(0));
  for (auto [i, l] : llvm::enumerate(ArrayRef(kept).drop_back()))
    at[l] = e.addDim(parts[i]);
  if (chunks > 1)
    chunkRange(e, chunk, low, high);

  SmallVector<const Item *> all, withMoments;
  SmallVector<Value> sums, squares, means;
  for (auto [i, item] : llvm::enumerate(items)) {
    all.push_back(&item);
    sums.push_back(buffers[2 * i]);
    if (!item.moments)
      continue;
    withMoments.push_back(&item);
    means.push_back(buffers[2 * i]);
    squares.push_back(buffers[2 * i + 1]);
  }
  wideFold(e, at, low, high, all, sums,
           [&](const Item &item, size_t, Index index, AffineExpr) {
             return e.emit(item.input, index);
           });
  int64_t columns = domain->loops.back().size;
  auto overColumns = [&](function_ref<void(AffineExpr)> body) {
    vectorLoop(e, e.index(0), e.index(columns), columns, body);
  };
  for (auto [i, item] : llvm::enumerate(withMoments)) {
    Type type = item->reducer.type;
    Value count = chunkCount(e, chunk, type);
    overColumns([&](AffineExpr lane) {
      e.storeTo(means[i], type, lane,
                e.div(e.loadFrom(means[i], type, lane), count));
    });
  }
  if (!withMoments.empty())
    wideFold(e, at, low, high, withMoments, squares,
             [&](const Item &item, size_t i, Index index, AffineExpr lane) {
               Value mean = e.loadFrom(means[i], item.reducer.type, lane);
               Value d = e.sub(e.emit(item.input, index), mean);
               return e.mul(d, d);
             });
  overColumns([&](AffineExpr lane) {
    SmallVector<AffineExpr> place = at;
    place.back() = lane;
    for (auto [i, item] : llvm::enumerate(items)) {
      SmallVector<Value> states;
      for (int s = 0; s < (item.moments ? 2 : 1); ++s)
        states.push_back(
            e.loadFrom(buffers[2 * i + s], item.reducer.type, lane));
      writeStates(e, item, states, chunk, place);
    }
  });
}

void ReductionKernel::emitCombine(Emitter &e, Value t) {
  Value start = e.mul(t, e.index(lanes));
  AffineExpr number = e.addDim(start, /*lane=*/true);
  auto loadState = [&](const Item &item, unsigned state, AffineExpr chunk) {
    return e.loadFrom(addressAt(e, item.scratch[state]), item.reducer.type,
                      chunk * keptPoints + number);
  };
  // Folds `element` of all chunks.
  auto fold = [&](const Reducer &reducer,
                  function_ref<Value(Value, AffineExpr)> element) {
    Value init = e.splat(reducer.identity(e));
    return e
        .forLoop(e.index(0), e.index(chunks), 1, init,
                 [&](Value iv, ValueRange sum) {
                   AffineExpr chunk = e.addDim(iv);
                   return SmallVector<Value>{
                       e.splat(reducer.combine(e, sum[0], element(iv, chunk)))};
                 })
        .front();
  };
  auto all = [&] {
    SmallVector<AffineExpr> at(domain->loops.size(), e.c(0));
    AffineExpr rest = number;
    for (size_t i = kept.size(); i-- > 0;) {
      int64_t size = domain->loops[kept[i]].size;
      at[kept[i]] = i == 0 ? rest : rest % size;
      rest = rest.floorDiv(size);
    }
    for (const Item &item : items) {
      SmallVector<Value> states;
      Type type = item.reducer.type;
      if (!item.moments) {
        states.push_back(fold(item.reducer, [&](Value, AffineExpr chunk) {
          return loadState(item, 0, chunk);
        }));
      } else {
        Value sum = fold(item.reducer, [&](Value iv, AffineExpr chunk) {
          return e.mul(loadState(item, 0, chunk), chunkCount(e, iv, type));
        });
        Value mean = e.div(sum, e.constant(type, double(count)));
        Value squares = fold(item.reducer, [&](Value iv, AffineExpr chunk) {
          Value d = e.sub(loadState(item, 0, chunk), mean);
          Value between = e.mul(e.mul(d, d), chunkCount(e, iv, type));
          return e.add(loadState(item, 1, chunk), between);
        });
        states.append({mean, squares});
      }
      finish(e, item, states, domain->index(at));
    }
    return Value();
  };
  if (keptPoints % lanes)
    e.withMask(maskBelow(e, start, e.index(keptPoints)), all);
  else
    all();
}

void ReductionKernel::finish(Emitter &e, const Item &item,
                             ArrayRef<Value> states, Index point) {
  SmallVector<Value> values(states);
  if (item.moments)
    values[1] = e.div(values[1], e.like(values[1], double(count)));
  else if (item.mean && Emitter::isFloat(values[0]))
    values[0] = e.div(values[0], e.like(values[0], double(count)));
  else if (item.mean) // toward zero
    values[0] = arith::DivSIOp::create(
        e.b, values[0], e.like(values[0], double(std::max<int64_t>(count, 1))));
  bool keepdims = false;
  if (auto reduce = dyn_cast<ReduceOp>(item.op))
    keepdims = reduce.getKeepdims();
  SmallVector<AffineExpr> index;
  for (auto [d, position] : llvm::enumerate(point)) {
    if (!llvm::is_contained(axes, int64_t(d)))
      index.push_back(position);
    else if (keepdims)
      index.push_back(e.c(0));
  }
  for (auto [r, value] : llvm::enumerate(terminator.getOperands()))
    if (value.getDefiningOp() == item.op)
      e.store(r, cast<RankedTensorType>(value.getType()), index,
              values[cast<OpResult>(value).getResultNumber()]);
}

std::unique_ptr<GeneratedKernel>
codegen::makeReductionKernel(func::FuncOp kernel,
                             const CodegenOptions &options) {
  return std::make_unique<ReductionKernel>(kernel, options);
}
