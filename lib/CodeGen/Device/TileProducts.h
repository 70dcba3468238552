//===- TileProducts.h - chains of matmuls on one tile -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: attention multiplies results that it has just computed: a tile of
// scores makes a tile of weights, which multiplies rows of other tensors, block
// after block. Slices of each factor must be in shared memory when they are
// multiplied, and no thread should wait for them.
//
// Method: a block of 256 threads works on 64 x 64 elements. The work is a list
// of steps, one barrier interval each, repeated for each block of columns. A
// step multiplies the contents of one of two shared buffers, while the slices
// of the next step are copied asynchronously, without registers. At its end
// each thread rounds the elements that it copied, if needed, and puts them into
// the other buffer. Elements of 2 bytes without neighbors are loaded into
// registers. There are two kinds of matmuls:
//
//   x y^T    of 64 rows each, whose columns (depth) are summed in slices: the
//            tile of scores. Sums stay with threads.
//   tile z   of a tile in shared memory, which threads made of such sums, and
//            64 rows of z, taken 64 columns at a time
//
// f32 by fused multiply-adds: a thread has 4 x 4 elements. 16-bit types and
// TF32 by tensor cores: the eight warps form 4 x 2 with 16 x 32 elements each,
// and a thread has 2 x 8. In both kinds a thread has the same rows.
//
// Guarantee: the order of additions depends on the shape only.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_DEVICE_TILEPRODUCTS_H
#define CKOPT_LIB_CODEGEN_DEVICE_TILEPRODUCTS_H

#include "DeviceContraction.h"

namespace ckopt::codegen {

/// Rows of a tensor without gaps, `pitch` elements apart.
struct TensorRows {
  Operand operand;
  Value start; ///< offset of the first one's first element
  int64_t pitch = 0, rows = 0, columns = 0;
  unsigned lanes = 1; ///< elements that one access may take

  Value at(Emitter &e, Value row, Value column) const {
    return e.add(start, e.add(e.mul(row, e.index(pitch)), column));
  }
};

class TileProducts {
public:
  static constexpr int64_t kThreads = 256, kTile = 64;

  /// Makes the shared buffers. Operands are multiplied in `form`, have the type
  /// `element` in memory and rows of at most `columns`; one access takes at
  /// least `lanes` elements.
  TileProducts(Emitter &e, OperandForm form, Type element, unsigned lanes,
               int64_t columns);

  //===--- Steps ----------------------------------------------------------===//
  /// A part of a tensor's rows, and its place in a shared buffer.
  struct Slice {
    TensorRows from;
    Value row;      ///< first row of the part
    int64_t column; ///< first column
    bool isAcross;  ///< sums run over its rows
    int64_t place;
  };
  /// The computation of threads in an interval, with the slices in the buffer
  /// that begins at `buffer`.
  struct Step {
    SmallVector<Slice> slices;
    std::function<void(Value thread, Value buffer)> body;
  };
  using Steps = SmallVector<Step>;

  /// Emits the steps of iterations 0 to count - 1, one after the other. The
  /// first step has slices, and all iterations have equally many steps of the
  /// same form. `stepsOf` is called only for these; if count is 0, it is called
  /// for iteration 0, whose slices are loaded.
  void run(Value count, llvm::function_ref<Steps(Value iteration)> stepsOf);

  /// Adds the steps of sums = x y^T, for 64 rows of each from `row`s on.
  void addScores(Steps &steps, const TensorRows &x, Value xRow,
                 const TensorRows &y, Value yRow, Value sums);
  /// Adds the steps of sums += tile z, for the 64 rows of z from `row` on.
  /// There are sums for each 64 columns of z: sumsOfResult(z.columns).
  void addResults(Steps &steps, const TensorRows &z, Value row, Value sums);

  //===--- Elements of threads --------------------------------------------===//
  bool onTensorCores() const { return form.tf32 || isHalf(); }
  /// Rows and columns of a tile that a thread has.
  int64_t rowsOfThread() const { return onTensorCores() ? 2 : 4; }
  int64_t columnsOfThread() const { return onTensorCores() ? 8 : 4; }
  static constexpr int64_t kSums = kTile * kTile / kThreads;
  static int64_t sumsOfResult(int64_t columns) {
    return llvm::divideCeil(columns, kTile) * kSums;
  }
  /// The number of threads with elements of a row, and the thread's number
  /// among them.
  int64_t partsOfRow() const { return onTensorCores() ? 8 : 16; }
  Value partOf(Value thread);
  /// Returns the thread's rows, or columns of scores or of results, in a tile.
  SmallVector<Value> rowsOf(Value thread);
  SmallVector<Value> columnsOf(Value thread, bool ofResult);
  /// Returns the number of the thread's sum in its r-th row and c-th column.
  int64_t sumAt(int64_t r, int64_t c) const {
    return onTensorCores() ? c / 2 * 4 + r * 2 + c % 2
                           : r * columnsOfThread() + c;
  }

  /// Reads and writes the thread's number `i` in a private buffer.
  Value read(Value buffer, int64_t i);
  void write(Value buffer, int64_t i, Value v);
  /// Makes a private buffer of f32.
  Value numbers(int64_t count) {
    return e.privateBuffer(e.b.getF32Type(), kThreads, count);
  }
  /// Stores the thread's elements of the tile that addResults multiplies, in
  /// its r-th row, by column.
  void storeTile(Value thread, int64_t r, ArrayRef<Value> values);
  /// Reads these elements again, as f32.
  SmallVector<Value> readTile(Value thread, int64_t r);
  /// Stores sums of addResults, times a number for each of the thread's rows,
  /// to the 64 rows of `to` from `row` on.
  void storeResults(Value thread, const TensorRows &to, Value row, Value sums,
                    ArrayRef<Value> factors);

private:
  bool isHalf() const { return !form.type.isF32(); }
  /// The depth of a slice, and the strides of slices and the tile in shared
  /// memory: elements between rows. They are padded so that threads that read
  /// at the same time use different banks, and that ldmatrix may read elements
  /// along k.
  int64_t depth() const { return isHalf() ? halvesDeep : 32; }
  int64_t depthPitch() const { return depth() + (isHalf() ? 8 : 4); }
  int64_t tilePitch() const { return kTile + (isHalf() ? 8 : 4); }
  int64_t acrossPitch() const {
    if (isHalf() && !isAsync)
      return depthPitch();
    return kTile + (onTensorCores() ? 8 : 4);
  }
  /// 16-bit elements that pass through registers lie along the dimension of
  /// sums.
  bool turns(const Slice &s) const {
    return s.isAcross && isHalf() && !isAsync;
  }
  int64_t bufferElements() const { return 2 * kTile * depthPitch(); }

  /// The factors of a product in shared memory: element (i, k) of the first one
  /// lies at start + i * line + k * step. Elements of the second one exist
  /// below k = `end` (null: all of a slice), a number that all threads share.
  struct Factor {
    Value buffer, start;
    int64_t line, step;
    Value end = {};
  };
  /// The place in memory of a slice's element, and the one in shared memory.
  Place from(const Slice &s, Value row, Value column);
  Value to(const Slice &s, Value row, Value column, Value buffer);
  /// Starts to move a thread's part of a step's slices to a buffer, and makes
  /// sure that it has arrived.
  void begin(Value thread, const Step &step, Value buffer);
  void end(Value thread, const Step &step, Value buffer);
  void forEachVector(
      Value thread, const Slice &slice,
      llvm::function_ref<void(Value row, Value column, int64_t staged)> fn);
  void multiply(Value thread, Factor x, Factor y, Value sums, int64_t first,
                bool isFresh);
  SmallVector<Value> multiplyByThreads(Value thread, const Factor &x,
                                       const Factor &y, ArrayRef<Value> sums);
  SmallVector<Value> multiplyByWarps(Value thread, const Factor &x,
                                     const Factor &y, ArrayRef<Value> sums);
  SmallVector<Value> overSlice(Value end, int64_t step, ArrayRef<Value> sums,
                               Emitter::LoopBody body);
  Value quotient(Value x, int64_t by);
  Value remainder(Value x, int64_t by);
  Value plus(Value x, int64_t by) { return e.add(x, e.index(by)); }

  Emitter &e;
  OperandForm form;
  /// Depth of a slice: all of a usual head, since a step's barrier and the wait
  /// for its copies take longer than multiplying 32 elements of 16 bits.
  int64_t halvesDeep;
  Type element;
  /// Copies are asynchronous, and go where they are multiplied.
  bool isAsync;
  /// Shared: two buffers of slices; the tile.
  Value slices, tile;
  SmallVector<Value> staged;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_DEVICE_TILEPRODUCTS_H
