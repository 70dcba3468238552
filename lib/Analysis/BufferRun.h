//===- BufferRun.h - a run of bufferized code without data ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_ANALYSIS_BUFFERRUN_H
#define CKOPT_LIB_ANALYSIS_BUFFERRUN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"

#include <optional>
#include <vector>

namespace ckopt {

/// The way that a branch which depends on data takes in a run.
struct BufferChoice {
  mlir::Operation *op;
  bool taken;
};

/// One run; see BufferPeak.cpp. `choices` are the ways to take, to which it
/// adds those of branches that are not in it yet.
class BufferRun {
public:
  BufferRun(std::vector<BufferChoice> &choices, int64_t alignment,
            int64_t &steps)
      : choices(choices), alignment(alignment), steps(steps) {}
  /// Runs the function; failure: it cannot be followed.
  mlir::FailureOr<int64_t> run(mlir::func::FuncOp function);

private:
  struct Buffer {
    int64_t bytes = 0;
    bool live = true;
    llvm::SmallVector<int64_t, 4> shape;
    llvm::DenseMap<int64_t, mlir::Attribute> cells;
  };

  mlir::LogicalResult runBlock(mlir::Block &block);
  mlir::LogicalResult runOp(mlir::Operation *op);
  mlir::LogicalResult runFor(mlir::scf::ForOp loop);
  mlir::LogicalResult runWhile(mlir::scf::WhileOp loop);
  mlir::LogicalResult runIf(mlir::scf::IfOp op);
  mlir::LogicalResult runParallel(mlir::Operation *op);
  mlir::LogicalResult runCall(mlir::func::CallOp call);
  mlir::LogicalResult runMemory(mlir::Operation *op);
  void fold(mlir::Operation *op);
  bool choose(mlir::Operation *op, mlir::Value condition);
  mlir::LogicalResult allocate(mlir::Value result, mlir::ValueRange sizes);
  void give(mlir::Value value, int buffer);
  void copy(mlir::ValueRange from, mlir::ValueRange to);
  void forget(mlir::ValueRange values);
  mlir::Attribute constant(mlir::Value value) const;
  std::optional<int64_t> integer(mlir::Value value) const;
  /// Returns the buffer of a reference that shows all of it; else null.
  Buffer *whole(mlir::Value memory);
  /// Returns the cell that an access reads or writes; null if it is not known.
  mlir::Attribute *cell(mlir::Value memory, mlir::ValueRange indices);

  std::vector<BufferChoice> &choices;
  size_t nextChoice = 0;
  llvm::DenseMap<mlir::Operation *, int> chosen; ///< how often an op chose
  int64_t alignment;
  int64_t &steps;
  int64_t now = 0, peak = 0;
  std::vector<Buffer> buffers;
  llvm::DenseMap<mlir::Value, int> shown; ///< the buffer of a memory reference
  llvm::DenseMap<mlir::Value, mlir::Attribute> scalar; ///< known scalars
  llvm::DenseMap<llvm::StringRef, int> globals;
  mlir::SymbolTableCollection symbols;
  llvm::SmallPtrSet<mlir::Operation *, 4> running;
};

} // namespace ckopt

#endif // CKOPT_LIB_ANALYSIS_BUFFERRUN_H
