//===- TileProducts.cpp - chains of products of one tile ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Device/TileProducts.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// The part of a result that a warp has, and that one block.mma makes.
static constexpr int64_t kWarpRows = 16, kWarpColumns = 32, kMmaColumns = 8;

static Value place(Emitter &e, Value v) {
  return arith::IndexCastOp::create(e.b, e.b.getIndexType(), v);
}

TileProducts::TileProducts(Emitter &e, OperandForm form, Type element)
    : e(e), form(form), element(element) {
  slices = e.sharedBuffer(form.type, 2 * bufferElements());
  tile = e.sharedBuffer(form.type, kTile * tilePitch());
  for (int i = 0; i < 2; ++i)
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
// Elements of threads
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

/// Of scores, f32 has every 16th column, so that threads read rows of y that
/// follow each other; of results neighbours, which are stored at once.
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

void TileProducts::storeTile(Value thread, ArrayRef<Value> values) {
  SmallVector<Value> columns = columnsOf(thread, /*ofResult=*/false);
  int64_t together = onTensorCores() ? 2 : 1; // neighbours
  for (auto [r, row] : llvm::enumerate(rowsOf(thread)))
    for (int64_t c = 0; c < columnsOfThread(); c += together) {
      Value at = e.add(e.mul(row, e.index(tilePitch())), columns[c]);
      Value v = values[sumAt(int64_t(r), c)];
      if (together == 1) {
        memref::StoreOp::create(e.b, formed(e, v, form), tile, place(e, at));
        continue;
      }
      Value pair = vector::FromElementsOp::create(
          e.b, VectorType::get({2}, v.getType()),
          ValueRange{v, values[sumAt(int64_t(r), c + 1)]});
      vector::StoreOp::create(e.b, formed(e, pair, form), tile, place(e, at));
    }
}

SmallVector<Value> TileProducts::readTile(Value thread) {
  SmallVector<Value> columns = columnsOf(thread, /*ofResult=*/false);
  SmallVector<Value> values(kSums, Value());
  int64_t together = onTensorCores() ? 2 : 1; // neighbours
  for (auto [r, row] : llvm::enumerate(rowsOf(thread)))
    for (int64_t c = 0; c < columnsOfThread(); c += together) {
      Value at = e.add(e.mul(row, e.index(tilePitch())), columns[c]);
      Value some = vector::LoadOp::create(
          e.b, VectorType::get({together}, form.type), tile, place(e, at));
      some = formed(e, some, {e.b.getF32Type()});
      for (int64_t i = 0; i < together; ++i)
        values[size_t(sumAt(int64_t(r), c + i))] =
            vector::ExtractOp::create(e.b, some, i);
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

void TileProducts::load(Value thread, const Step &step) {
  for (auto [s, staged] : llvm::zip(step.slices, staged))
    forEachVector(thread, s, [&](Value row, Value column, int64_t number) {
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
      Value loaded = s.from.operand.load(e, s.from.at(e, row, column),
                                         s.from.lanes, inside);
      Value to[] = {e.threadIndex(),
                    arith::ConstantIndexOp::create(e.b, number)};
      if (s.from.lanes == 1)
        memref::StoreOp::create(e.b, loaded, staged, to);
      else
        vector::StoreOp::create(e.b, loaded, staged, to);
    });
}

void TileProducts::copy(Value thread, const Step &step, Value buffer) {
  for (auto [s, staged] : llvm::zip(step.slices, staged))
    forEachVector(thread, s, [&](Value row, Value column, int64_t number) {
      int64_t lanes = s.from.lanes;
      Value from[] = {e.threadIndex(),
                      arith::ConstantIndexOp::create(e.b, number)};
      Value v = lanes == 1
                    ? memref::LoadOp::create(e.b, staged, from).getResult()
                    : vector::LoadOp::create(
                          e.b, VectorType::get({lanes}, element), staged, from);
      v = formed(e, v, form);
      // Halves lie along what is summed over.
      bool turns = s.isAcross && isHalf();
      if (turns)
        std::swap(row, column);
      int64_t pitch = s.isAcross ? acrossPitch() : depthPitch();
      Value at = e.add(e.add(plus(buffer, s.place), column),
                       e.mul(row, e.index(pitch)));
      if (lanes == 1) {
        memref::StoreOp::create(e.b, v, slices, place(e, at));
      } else if (!turns) {
        vector::StoreOp::create(e.b, v, slices, place(e, at));
      } else {
        for (int64_t i = 0; i < lanes; ++i)
          memref::StoreOp::create(e.b, vector::ExtractOp::create(e.b, v, i),
                                  slices, place(e, plus(at, i * pitch)));
      }
    });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

SmallVector<Value> TileProducts::multiplyByThreads(Value thread,
                                                   const Factor &x,
                                                   const Factor &y,
                                                   ArrayRef<Value> sums) {
  SmallVector<Value> rows = rowsOf(thread),
                     columns = columnsOf(thread, /*ofResult=*/y.step != 1);
  // Two of k at once: of four, factors would take half of the registers that
  // sums leave.
  constexpr int64_t kTogether = 2;
  auto read = [&](const Factor &from, Value at, int64_t count) -> Value {
    return vector::LoadOp::create(e.b, VectorType::get({count}, form.type),
                                  from.buffer, place(e, at));
  };
  return e.forLoop(
      e.index(0), e.index(depth()), kTogether, sums,
      [&](Value k, ValueRange before) {
        SmallVector<Value> a, b;
        for (Value row : rows)
          a.push_back(
              read(x, e.add(e.add(x.start, k), e.mul(row, e.index(x.line))),
                   kTogether));
        if (y.step == 1)
          for (Value column : columns)
            b.push_back(read(
                y, e.add(e.add(y.start, k), e.mul(column, e.index(y.line))),
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
              Value right = y.step == 1
                                ? vector::ExtractOp::create(e.b, b[c], i)
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
  return e.forLoop(
      e.index(0), e.index(depth()), form.tf32 ? 8 : 16, sums,
      [&](Value k, ValueRange before) {
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
  int64_t line = isHalf() ? acrossPitch() : 1,
          step = isHalf() ? 1 : acrossPitch();
  for (int64_t column = 0; column < z.columns; column += kTile)
    for (int64_t from = 0; from < kTile; from += depth())
      steps.push_back({{{z, plus(row, from), column, /*isAcross=*/true, 0}},
                       [=, this](Value thread, Value buffer) {
                         multiply(thread, {tile, e.index(from), tilePitch(), 1},
                                  {slices, buffer, line, step}, sums,
                                  column / kTile * kSums, /*isFresh=*/false);
                       }});
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void TileProducts::run(Value count, function_ref<Steps(Value)> stepsOf) {
  Steps start = stepsOf(e.index(0));
  int64_t fills = llvm::count_if(
      start, [](const Step &step) { return !step.slices.empty(); });
  // Buffers take turns; `fill` counts what is loaded in an iteration.
  auto bufferOf = [&](Value iteration, int64_t fill) {
    if (fills % 2 == 0)
      return e.index(fill % 2 * bufferElements());
    return e.mul(remainder(plus(iteration, fill), 2),
                 e.index(bufferElements()));
  };
  Value first = bufferOf(e.index(0), 0);
  e.forThreads(kThreads, [&](Value thread) {
    load(thread, start.front());
    copy(thread, start.front(), first);
  });
  e.forLoop(e.index(0), count, 1, {}, [&](Value iteration, ValueRange) {
    Steps steps = stepsOf(iteration);
    // After the last iteration, what is loaded once more is not used.
    steps.push_back(
        stepsOf(e.minimum(plus(iteration, 1), plus(count, -1))).front());
    int64_t fill = 0;
    for (size_t s = 0; s + 1 < steps.size(); ++s) {
      const Step &step = steps[s], &next = steps[s + 1];
      Value buffer = bufferOf(iteration, fill);
      fill += !step.slices.empty();
      Value other = bufferOf(iteration, fill);
      e.forThreads(kThreads, [&](Value thread) {
        load(thread, next);
        step.body(thread, buffer);
        copy(thread, next, other);
      });
    }
    return SmallVector<Value>();
  });
}
