//===- UpdateOrder.h - updates by destination, in order ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: updates of one row of a table must be added in their order (bits),
// by many threads (time). In order of their numbers that would be one chain of
// dependent additions for each column, as long as the number of updates.
//
// Method: a stable sort of the updates by row, by counting: the place of update
// n is the number of updates of smaller rows, plus that of earlier ones of its
// own row. Pairs are compared by brute force, in parts of all updates. Each
// update then knows where its row's list begins, and the first one of a row
// knows its length.
//
// Guarantee: nothing depends on the order of threads; the list of a row is in
// ascending order of numbers.
//
// Complexity: n^2 comparisons of n updates, about 0.2 ms for 32,768 on a GPU of
// 132 multiprocessors (estimated; n dependent additions: 20 ms). Scratch: 4 (4
// + 3 parts) n bytes, with at most 8 parts.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_DEVICE_UPDATEORDER_H
#define CKOPT_LIB_CODEGEN_DEVICE_UPDATEORDER_H

#include "Emit/Emitter.h"

namespace ckopt::codegen {

/// Emits the sort of `count` updates, and reads its result. Everything lies in
/// the kernel's scratch, as i32.
struct UpdateOrder {
  int64_t count;

  /// Returns whether sorting pays, and whether numbers fit.
  static bool isWorth(int64_t count, int64_t rows) {
    constexpr int64_t kLeast = 16, kMost = 1 << 20;
    return count >= kLeast && count <= kMost && rows < (int64_t(1) << 31);
  }
  /// Number of parts of the updates; one thread compares an update with one
  /// part.
  int64_t parts() const {
    constexpr int64_t kLength = 256, kParts = 8;
    return std::clamp<int64_t>(count / kLength, 1, kParts);
  }
  int64_t bytes() const { return 4 * count * (4 + 3 * parts()); }

  /// Three launches, one after the other: a thread for each update, for each
  /// update and part, for each update. `row` is the row of update `number`.
  void emitRow(Emitter &e, Value number, Value row) const;
  void emitCounts(Emitter &e, Value item) const;
  void emitPlace(Emitter &e, Value number) const;

  /// Returns the row of an update.
  Value row(Emitter &e, Value number) const { return read(e, Row, number); }
  /// Returns the length of the list that begins with update `number`; 0 if it
  /// is not the first one of its row.
  Value length(Emitter &e, Value number) const {
    return read(e, Length, number);
  }
  /// Returns the place of the list that begins with update `number`.
  Value start(Emitter &e, Value number) const { return read(e, Start, number); }
  /// Returns the number of the update at a place.
  Value at(Emitter &e, Value place) const { return read(e, Order, place); }

private:
  enum Table : int64_t { Row, Length, Start, Order, Counts };
  enum Kind : int64_t { Smaller, Same, Before };
  /// Returns the place of a count in the tables after the first four.
  int64_t countsOf(Kind kind) const { return Counts + kind * parts(); }
  /// Reads and writes element `at` of a table, as i64.
  Value read(Emitter &e, int64_t table, Value at) const;
  void write(Emitter &e, int64_t table, Value at, Value number) const;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_DEVICE_UPDATEORDER_H
