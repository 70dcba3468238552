//===- TileProducts.cpp - chains of matmuls on one tile -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TileProducts.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// The part of a result that a warp computes, and the part that one block.mma
/// computes.
static constexpr int64_t kWarpRows = 16, kWarpColumns = 32, kMmaColumns = 8;

static Value place(Emitter &e, Value v) {
  return arith::IndexCastOp::create(e.b, e.b.getIndexType(), v);
}

TileProducts::TileProducts(Emitter &e, OperandForm form, Type element,
                           unsigned lanes, int64_t columns)
    : e(e), form(form), halvesDeep(columns <= 32 ? 32 : 64), element(element),
      isAsync(lanes * element.getIntOrFloatBitWidth() >= 32) {
  slices = e.sharedBuffer(form.type, 2 * bufferElements());
  tile = e.sharedBuffer(form.type, kTile * tilePitch());
  for (int i = 0; !isAsync && i < 2; ++i)
    staged.push_back(
        e.privateBuffer(element, kThreads, kTile * depth() / kThreads));
}

Value TileProducts::quotient(Value x, int64_t by) {
  return arith::DivUIOp::create(e.b, x, e.index(by));
}
Value TileProducts::remainder(Value x, int64_t by) {
  return arith::RemUIOp::create(e.b, x, e.index(by));
}

Value TileProducts::read(Value buffer, int64_t i) {
  return memref::LoadOp::create(
      e.b, buffer,
      {e.threadIndex(), arith::ConstantIndexOp::create(e.b, i).getResult()});
}
void TileProducts::write(Value buffer, int64_t i, Value v) {
  memref::StoreOp::create(
      e.b, v, buffer,
      {e.threadIndex(), arith::ConstantIndexOp::create(e.b, i).getResult()});
}

//===----------------------------------------------------------------------===//
// Elements of a thread
//===----------------------------------------------------------------------===//

Value TileProducts::partOf(Value thread) {
  if (!onTensorCores())
    return remainder(thread, 16);
  Value half = remainder(quotient(thread, kWarp), 2);
  return e.add(e.mul(half, e.index(4)), remainder(thread, 4));
}

SmallVector<Value> TileProducts::rowsOf(Value thread) {
  SmallVector<Value> rows;
  if (!onTensorCores()) {
    Value first = e.mul(quotient(thread, 16), e.index(4));
    for (int64_t i = 0; i < 4; ++i)
      rows.push_back(plus(first, i));
    return rows;
  }
  Value first = e.add(e.mul(quotient(thread, 2 * kWarp), e.index(kWarpRows)),
                      quotient(remainder(thread, kWarp), 4));
  return {first, plus(first, 8)};
}

/// Of scores, an f32 thread has every 16th column, so that threads read
/// consecutive rows of y; of results it has neighbors, which are stored at
/// once.
SmallVector<Value> TileProducts::columnsOf(Value thread, bool ofResult) {
  SmallVector<Value> columns;
  if (!onTensorCores()) {
    Value first = remainder(thread, 16);
    if (ofResult)
      first = e.mul(first, e.index(4));
    for (int64_t j = 0; j < 4; ++j)
      columns.push_back(plus(first, ofResult ? j : 16 * j));
    return columns;
  }
  Value half = remainder(quotient(thread, kWarp), 2);
  Value first = e.add(e.mul(half, e.index(kWarpColumns)),
                      e.mul(remainder(thread, 4), e.index(2)));
  for (int64_t j = 0; j < kWarpColumns / kMmaColumns; ++j)
    for (int64_t i = 0; i < 2; ++i)
      columns.push_back(plus(first, j * kMmaColumns + i));
  return columns;
}

void TileProducts::storeTile(Value thread, int64_t r, ArrayRef<Value> values) {
  SmallVector<Value> columns = columnsOf(thread, /*ofResult=*/false);
  int64_t together = onTensorCores() ? 2 : 1; // neighbors
  Value start = e.mul(rowsOf(thread)[size_t(r)], e.index(tilePitch()));
  for (int64_t c = 0; c < columnsOfThread(); c += together) {
    Value at = place(e, e.add(start, columns[size_t(c)]));
    Value some = vector::FromElementsOp::create(
        e.b, VectorType::get({together}, e.b.getF32Type()),
        values.slice(size_t(c), size_t(together)));
    vector::StoreOp::create(e.b, formed(e, some, form), tile, at);
  }
}

SmallVector<Value> TileProducts::readTile(Value thread, int64_t r) {
  SmallVector<Value> columns = columnsOf(thread, /*ofResult=*/false), values;
  int64_t together = onTensorCores() ? 2 : 1; // neighbors
  Value start = e.mul(rowsOf(thread)[size_t(r)], e.index(tilePitch()));
  for (int64_t c = 0; c < columnsOfThread(); c += together) {
    Value some = vector::LoadOp::create(
        e.b, VectorType::get({together}, form.type), tile,
        place(e, e.add(start, columns[size_t(c)])));
    some = formed(e, some, {e.b.getF32Type()});
    for (int64_t i = 0; i < together; ++i)
      values.push_back(vector::ExtractOp::create(e.b, some, i));
  }
  return values;
}

void TileProducts::storeResults(Value thread, const TensorRows &to, Value row,
                                Value sums, ArrayRef<Value> factors) {
  int64_t together = onTensorCores() ? 2 : 4;
  if (to.lanes == 1)
    together = 1;
  SmallVector<Value> rows = rowsOf(thread),
                     columns = columnsOf(thread, /*ofResult=*/true);
  for (int64_t first = 0; first < to.columns; first += kTile)
    for (int64_t r = 0; r < rowsOfThread(); ++r)
      for (int64_t c = 0; c < columnsOfThread(); c += together) {
        Value at = e.add(row, rows[r]), column = plus(columns[c], first);
        SmallVector<Value> values;
        for (int64_t i = 0; i < together; ++i)
          values.push_back(e.mul(
              read(sums, first / kTile * kSums + sumAt(r, c + i)), factors[r]));
        Value inside;
        auto require = [&](Value x, int64_t limit) {
          Value below = e.cmpi(arith::CmpIPredicate::slt, x, e.index(limit));
          inside = inside ? e.andi(inside, below) : below;
        };
        if (to.rows % kTile)
          require(at, to.rows);
        if (first + kTile > to.columns)
          require(column, to.columns);
        auto put = [&] {
          Value all = values.front();
          if (together > 1)
            all = vector::FromElementsOp::create(
                e.b, VectorType::get({together}, all.getType()), values);
          to.operand.store(e, to.at(e, at, column), all);
          return SmallVector<Value>();
        };
        if (inside)
          e.ifThen(inside, put, nullptr);
        else
          put();
      }
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// Visits the thread's vectors of a slice: adjacent threads have adjacent ones.
void TileProducts::forEachVector(Value thread, const Slice &s,
                                 function_ref<void(Value, Value, int64_t)> fn) {
  int64_t width = s.isAcross ? kTile : depth(), lanes = s.from.lanes;
  for (int64_t i = 0; i < kTile * depth() / kThreads; i += lanes) {
    Value at = plus(e.mul(thread, e.index(lanes)), i * kThreads);
    fn(quotient(at, width), remainder(at, width), i);
  }
}

Place TileProducts::from(const Slice &s, Value row, Value column) {
  int64_t width = s.isAcross ? kTile : depth();
  row = e.add(s.row, row);
  column = plus(column, s.column);
  Value inside;
  auto require = [&](Value x, int64_t limit) {
    Value below = e.cmpi(arith::CmpIPredicate::slt, x, e.index(limit));
    inside = inside ? e.andi(inside, below) : below;
  };
  if (s.from.rows % kTile)
    require(row, s.from.rows);
  if (s.column + width > s.from.columns)
    require(column, s.from.columns);
  return s.from.operand.place(e, s.from.at(e, row, column), inside);
}

Value TileProducts::to(const Slice &s, Value row, Value column, Value buffer) {
  if (turns(s))
    std::swap(row, column);
  int64_t pitch = s.isAcross ? acrossPitch() : depthPitch();
  return e.add(e.add(plus(buffer, s.place), column),
               e.mul(row, e.index(pitch)));
}

void TileProducts::begin(Value thread, const Step &step, Value buffer) {
  for (auto [index, s] : llvm::enumerate(step.slices))
    forEachVector(thread, s, [&](Value row, Value column, int64_t number) {
      Place found = from(s, row, column);
      if (isAsync) {
        if (!found.inside)
          found.inside = arith::ConstantIntOp::create(e.b, 1, 1);
        block::CopyAsyncOp::create(e.b, slices,
                                   place(e, to(s, row, column, buffer)),
                                   found.address, found.inside, s.from.lanes);
        ++(s.from.lanes == 1 ? e.report.broadcasts : e.report.unitLoads);
        return;
      }
      Value loaded = found.load(e, element, s.from.lanes);
      Value at[] = {e.threadIndex(),
                    arith::ConstantIndexOp::create(e.b, number)};
      if (s.from.lanes == 1)
        memref::StoreOp::create(e.b, loaded, staged[index], at);
      else
        vector::StoreOp::create(e.b, loaded, staged[index], at);
    });
  if (isAsync && !step.slices.empty())
    block::CommitCopiesOp::create(e.b);
}

/// A thread rounds the elements that it copied itself, so that no other thread
/// has to wait.
void TileProducts::end(Value thread, const Step &step, Value buffer) {
  if (isAsync && !step.slices.empty())
    block::WaitCopiesOp::create(e.b, 0);
  if (isAsync && !form.tf32)
    return;
  for (auto [index, s] : llvm::enumerate(step.slices))
    forEachVector(thread, s, [&](Value row, Value column, int64_t number) {
      int64_t lanes = s.from.lanes;
      VectorType type = VectorType::get({lanes}, element);
      Value at = to(s, row, column, buffer), v;
      if (isAsync)
        v = vector::LoadOp::create(e.b, type, slices, place(e, at));
      else
        v = vector::LoadOp::create(
            e.b, type, staged[index],
            {e.threadIndex(),
             arith::ConstantIndexOp::create(e.b, number).getResult()});
      v = formed(e, v, form);
      if (!turns(s)) {
        vector::StoreOp::create(e.b, v, slices, place(e, at));
        return;
      }
      for (int64_t i = 0; i < lanes; ++i)
        memref::StoreOp::create(e.b, vector::ExtractOp::create(e.b, v, i),
                                slices, place(e, plus(at, i * acrossPitch())));
    });
}

//===----------------------------------------------------------------------===//
// Matmuls
//===----------------------------------------------------------------------===//

/// Emits the loop over a slice, which is not unrolled: prefetched factors would
/// take registers that sums need.
SmallVector<Value> TileProducts::overSlice(Value end, int64_t step,
                                           ArrayRef<Value> sums,
                                           Emitter::LoopBody body) {
  SmallVector<Value> all =
      e.forLoop(e.index(0), end ? end : e.index(depth()), step, sums, body);
  all.front().getDefiningOp()->setAttr("ckopt.gpu.unroll",
                                       e.b.getI64IntegerAttr(1));
  return all;
}

SmallVector<Value> TileProducts::multiplyByThreads(Value thread,
                                                   const Factor &x,
                                                   const Factor &y,
                                                   ArrayRef<Value> sums) {
  SmallVector<Value> rows = rowsOf(thread),
                     columns = columnsOf(thread, /*ofResult=*/y.step != 1);
  // Takes two of k at once: with four, factors would take half of the registers
  // that sums leave.
  constexpr int64_t kTogether = 2;
  auto read = [&](const Factor &from, Value at, int64_t count) -> Value {
    return vector::LoadOp::create(e.b, VectorType::get({count}, form.type),
                                  from.buffer, place(e, at));
  };
  return overSlice(y.end, kTogether, sums, [&](Value k, ValueRange before) {
    SmallVector<Value> a, b;
    for (Value row : rows)
      a.push_back(read(x, e.add(e.add(x.start, k), e.mul(row, e.index(x.line))),
                       kTogether));
    if (y.step == 1)
      for (Value column : columns)
        b.push_back(
            read(y, e.add(e.add(y.start, k), e.mul(column, e.index(y.line))),
                 kTogether));
    else
      for (int64_t i = 0; i < kTogether; ++i)
        b.push_back(read(y,
                         e.add(e.add(y.start, columns.front()),
                               e.mul(plus(k, i), e.index(y.step))),
                         4));
    SmallVector<Value> next(before);
    for (int64_t i = 0; i < kTogether; ++i)
      for (int64_t r = 0; r < 4; ++r)
        for (int64_t c = 0; c < 4; ++c) {
          Value left = vector::ExtractOp::create(e.b, a[r], i);
          Value right = y.step == 1 ? vector::ExtractOp::create(e.b, b[c], i)
                                    : vector::ExtractOp::create(e.b, b[i], c);
          Value &sum = next[sumAt(r, c)];
          sum = e.fma(left, right, sum);
        }
    return next;
  });
}

SmallVector<Value> TileProducts::multiplyByWarps(Value thread, const Factor &x,
                                                 const Factor &y,
                                                 ArrayRef<Value> sums) {
  Value warp = quotient(thread, kWarp);
  Value row = e.mul(quotient(warp, 2), e.index(kWarpRows)),
        column = e.mul(remainder(warp, 2), e.index(kWarpColumns));
  SmallVector<Type> fourSums(4, e.b.getF32Type());
  return overSlice(
      y.end, form.tf32 ? 8 : 16, sums, [&](Value k, ValueRange before) {
        SmallVector<Value> next;
        auto at = [&](const Factor &from, Value line) {
          return place(e,
                       e.add(from.start, e.add(e.mul(line, e.index(from.line)),
                                               e.mul(k, e.index(from.step)))));
        };
        for (int64_t j = 0; j < kWarpColumns / kMmaColumns; ++j) {
          ValueRange c = before.slice(next.size(), 4);
          auto mma = block::MmaOp::create(
              e.b, fourSums, e.threadIndex(), x.buffer, at(x, row), x.line,
              x.step, y.buffer, at(y, plus(column, j * kMmaColumns)), y.line,
              y.step, c[0], c[1], c[2], c[3]);
          llvm::append_range(next, mma->getResults());
        }
        return next;
      });
}

void TileProducts::multiply(Value thread, Factor x, Factor y, Value sums,
                            int64_t first, bool isFresh) {
  SmallVector<Value> total;
  for (int64_t i = 0; i < kSums; ++i)
    total.push_back(isFresh ? e.constant(e.b.getF32Type(), 0.0)
                            : read(sums, first + i));
  total = onTensorCores() ? multiplyByWarps(thread, x, y, total)
                          : multiplyByThreads(thread, x, y, total);
  for (int64_t i = 0; i < kSums; ++i)
    write(sums, first + i, total[i]);
}

void TileProducts::addScores(Steps &steps, const TensorRows &x, Value xRow,
                             const TensorRows &y, Value yRow, Value sums) {
  int64_t yPlace = kTile * depthPitch();
  for (int64_t column = 0; column < x.columns; column += depth())
    steps.push_back({{{x, xRow, column, /*isAcross=*/false, 0},
                      {y, yRow, column, /*isAcross=*/false, yPlace}},
                     [=, this](Value thread, Value buffer) {
                       multiply(thread, {slices, buffer, depthPitch(), 1},
                                {slices, plus(buffer, yPlace), depthPitch(), 1},
                                sums, 0, /*isFresh=*/column == 0);
                     }});
}

void TileProducts::addResults(Steps &steps, const TensorRows &z, Value row,
                              Value sums) {
  bool turns = isHalf() && !isAsync;
  int64_t line = turns ? acrossPitch() : 1, step = turns ? 1 : acrossPitch();
  for (int64_t column = 0; column < z.columns; column += kTile)
    for (int64_t from = 0; from < kTile; from += depth()) {
      Value first = plus(row, from), end;
      if (z.rows % kTile && onTensorCores())
        end = e.minimum(e.sub(e.index(z.rows), first), e.index(depth()));
      steps.push_back({{{z, first, column, /*isAcross=*/true, 0}},
                       [=, this](Value thread, Value buffer) {
                         multiply(thread, {tile, e.index(from), tilePitch(), 1},
                                  {slices, buffer, line, step, end}, sums,
                                  column / kTile * kSums, /*isFresh=*/false);
                       }});
    }
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void TileProducts::run(Value count, function_ref<Steps(Value)> stepsOf) {
  Steps start = stepsOf(e.index(0));
  int64_t fills = llvm::count_if(
      start, [](const Step &step) { return !step.slices.empty(); });
  // Buffers alternate; `fill` counts the loads of an iteration.
  auto bufferOf = [&](Value iteration, int64_t fill) {
    if (fills % 2 == 0)
      return e.index(fill % 2 * bufferElements());
    return e.mul(remainder(plus(iteration, fill), 2),
                 e.index(bufferElements()));
  };
  Value first = bufferOf(e.index(0), 0);
  e.forThreads(kThreads, [&](Value thread) {
    begin(thread, start.front(), first);
    end(thread, start.front(), first);
  });
  e.forLoop(e.index(0), count, 1, {}, [&](Value iteration, ValueRange) {
    Steps steps = stepsOf(iteration);
    // The last iteration loads once more than needed; that is not used.
    steps.push_back(
        stepsOf(e.minimum(plus(iteration, 1), plus(count, -1))).front());
    int64_t fill = 0;
    for (size_t s = 0; s + 1 < steps.size(); ++s) {
      const Step &step = steps[s], &next = steps[s + 1];
      Value buffer = bufferOf(iteration, fill);
      fill += !step.slices.empty();
      Value other = bufferOf(iteration, fill);
      e.forThreads(kThreads, [&](Value thread) {
        begin(thread, next, other);
        step.body(thread, buffer);
        end(thread, next, other);
      });
    }
    return SmallVector<Value>();
  });
}
