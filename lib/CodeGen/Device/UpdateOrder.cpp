//===- UpdateOrder.cpp - updates by destination, in order -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "UpdateOrder.h"
#include "Kinds/GeneratedKernel.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

Value UpdateOrder::read(Emitter &e, int64_t table, Value at) const {
  Value place = e.add(at, e.index(table * count));
  Value number =
      e.loadFrom(e.scratch, e.b.getI32Type(), e.addSymbol(place, true));
  return arith::ExtSIOp::create(e.b, e.b.getI64Type(), number);
}

void UpdateOrder::write(Emitter &e, int64_t table, Value at,
                        Value number) const {
  Type word = e.b.getI32Type();
  e.storeTo(e.scratch, word,
            e.addSymbol(e.add(at, e.index(table * count)), true),
            arith::TruncIOp::create(e.b, word, number));
}

void UpdateOrder::emitRow(Emitter &e, Value number, Value row) const {
  write(e, Row, number, row);
}

void UpdateOrder::emitCounts(Emitter &e, Value item) const {
  SmallVector<Value> at = split(e, item, {parts(), count});
  Value part = at[0], number = at[1], own = row(e, number);
  int64_t length = llvm::divideCeil(count, parts());
  Value low = e.mul(part, e.index(length)),
        high = e.minimum(e.add(low, e.index(length)), e.index(count));
  SmallVector<Value> zeros(3, e.index(0));
  SmallVector<Value> counts =
      e.forLoop(low, high, 1, zeros, [&](Value other, ValueRange sums) {
        auto counted = [&](Value sum, Value condition) {
          return e.add(
              sum, arith::ExtUIOp::create(e.b, e.b.getI64Type(), condition));
        };
        Value theirs = row(e, other);
        Value same = e.cmpi(arith::CmpIPredicate::eq, theirs, own);
        Value earlier = e.cmpi(arith::CmpIPredicate::slt, other, number);
        return SmallVector<Value>{
            counted(sums[Smaller],
                    e.cmpi(arith::CmpIPredicate::slt, theirs, own)),
            counted(sums[Same], same),
            counted(sums[Before], e.andi(same, earlier))};
      });
  for (Kind kind : {Smaller, Same, Before})
    write(e, countsOf(kind), item, counts[kind]);
}

void UpdateOrder::emitPlace(Emitter &e, Value number) const {
  SmallVector<Value> sums(3, e.index(0));
  for (int64_t part = 0; part < parts(); ++part)
    for (Kind kind : {Smaller, Same, Before})
      sums[kind] = e.add(sums[kind], read(e, countsOf(kind) + part, number));
  write(e, Order, e.add(sums[Smaller], sums[Before]), number);
  write(e, Start, number, sums[Smaller]);
  Value first = e.cmpi(arith::CmpIPredicate::eq, sums[Before], e.index(0));
  write(e, Length, number, e.select(first, sums[Same], e.index(0)));
}
