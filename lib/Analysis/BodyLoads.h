//===- BodyLoads.h - bytes that bodies and callees need ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_ANALYSIS_BODYLOADS_H
#define CKOPT_LIB_ANALYSIS_BODYLOADS_H

#include "ckopt/Analysis/PlanningProblem.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/StringMap.h"

namespace ckopt {

/// Computes the workspace of ops: the bytes that they need beside their
/// operands and results while they run. Lists the memory that cannot be
/// counted.
class BodyLoads {
public:
  BodyLoads(mlir::FunctionOpInterface function, const PlanningContext &context);

  /// Returns the workspace of an op of the function's own block, and records
  /// what it cannot count.
  int64_t workspace(mlir::Operation *op);
  /// Records values of the type if their bytes are not known.
  void noteType(mlir::Type type, mlir::Location where);

  /// Returns the records so far, in order.
  std::vector<Uncounted> takeUncounted() { return std::move(uncounted); }

private:
  void note(mlir::Location where, const llvm::Twine &what, bool own = true);
  void noteResults(mlir::Operation *op);
  int64_t ofRegions(mlir::Operation *op);
  int64_t ofRegion(mlir::Region &region, mlir::Operation *owner);
  int64_t ofBlock(mlir::Block &block, mlir::Operation *owner);
  int64_t ofBlocks(mlir::Region &region, mlir::Operation *owner);
  int64_t ofCall(mlir::CallOpInterface call);
  int64_t ofCallee(mlir::FunctionOpInterface callee, mlir::Location where);
  /// Returns an upper bound of the bytes of a value that a body makes.
  int64_t valueBytes(mlir::Value value);

  const PlanningContext &context;
  TypeSizes sizes;
  mlir::SymbolTableCollection symbols;
  llvm::DenseMap<mlir::Operation *, int64_t> callees;
  /// Callees on the current call path.
  llvm::SmallPtrSet<mlir::Operation *, 4> running;
  std::vector<Uncounted> uncounted;
  llvm::StringMap<size_t> noted; ///< position of a record by its text
};

} // namespace ckopt

#endif // CKOPT_LIB_ANALYSIS_BODYLOADS_H
