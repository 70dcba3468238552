//===- ManifestBuilder.h - tensors, calls of a planned module - -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TARGET_CPU_MANIFESTBUILDER_H
#define CKOPT_LIB_TARGET_CPU_MANIFESTBUILDER_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Runtime/Manifest.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace ckopt {

/// Offsets in the arena of every value of a planned function.
class ValueOffsets {
public:
  /// Reads the attributes that plan-memory wrote. Fails with an error that
  /// names the op if one is missing.
  static mlir::FailureOr<ValueOffsets> read(mlir::func::FuncOp function);
  int64_t lookup(mlir::Value value) const { return offsets.at(value); }

private:
  llvm::DenseMap<mlir::Value, int64_t> offsets;
};

/// Returns the runtime's element type.
mlir::FailureOr<DType> runtimeType(mlir::Type element);

/// Returns the names of the source nodes in a location, joined by ", ".
std::string sourceName(mlir::Location location);

/// Adds the function's arguments and results to the manifest; arguments that
/// another function already added (same name and offset) are shared.
mlir::LogicalResult addFunction(mlir::func::FuncOp function,
                                const ValueOffsets &offsets,
                                runtime::Manifest &manifest);

/// Adds calls to the manifest's table, in order of execution.
class CallRecorder {
public:
  runtime::CallInfo &add(KernelCallOp call, int32_t primitive, int32_t function,
                         runtime::Manifest &manifest);
  /// Adds a part of a call: work that comes before the call's results, which
  /// add() records with its last part.
  runtime::CallInfo &addPart(KernelCallOp call, int32_t primitive,
                             int32_t function, runtime::Manifest &manifest);

private:
  /// Maps (function, node) to its first call.
  llvm::DenseMap<std::pair<int64_t, int64_t>, int32_t> originals;
};

} // namespace ckopt

#endif // CKOPT_LIB_TARGET_CPU_MANIFESTBUILDER_H
