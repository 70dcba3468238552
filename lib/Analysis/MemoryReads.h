//===- MemoryReads.h - tensors whose bytes are still in memory --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_ANALYSIS_MEMORYREADS_H
#define CKOPT_LIB_ANALYSIS_MEMORYREADS_H

#include "ckopt/Analysis/PlanningHooks.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace ckopt {

/// Tracks tensors that become, once bufferized, a buffer that other code can
/// write to, and tells which ops read or write such a buffer.
class MemoryReads {
public:
  struct Access {
    bool reads = false, writes = false;
  };

  explicit MemoryReads(const TypeSizes &sizes) : sizes(sizes) {}

  /// Returns what the op does to buffers through its tensors. Ops must be
  /// visited after the makers of their operands.
  Access visit(mlir::Operation *op);
  /// Returns whether a tensor is such a buffer, once its maker was visited.
  bool isMemory(mlir::Value tensor) const;

private:
  /// Whether a value is such a buffer, and whether ops may write to it in
  /// place.
  enum class Buffer : char { None, ReadOnly, Writable };

  const TypeSizes &sizes;
  llvm::DenseMap<mlir::Value, Buffer> buffers;
};

} // namespace ckopt

#endif // CKOPT_LIB_ANALYSIS_MEMORYREADS_H
