//===- Callees.h - what calls run -------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_ANALYSIS_CALLEES_H
#define CKOPT_LIB_ANALYSIS_CALLEES_H

#include "ckopt/Analysis/PlanningProblem.h"
#include "mlir/Interfaces/CallInterfaces.h"

namespace ckopt {

/// Returns whether the op may run again, if an attribute, the client or the op
/// itself states it.
std::optional<bool> isRematerializable(mlir::Operation *op,
                                       const PlanningHooks &hooks);

/// Looks into the functions that calls run, where these may be read. Remembers
/// each callee.
class Callees {
public:
  Callees(const PlanningContext &context, const TypeSizes &sizes,
          CostModel &costs)
      : context(context), sizes(sizes), costs(costs) {}

  /// Tells whether an op is a call that runs nothing but pure ops on values, so
  /// that it may run again.
  bool isPureCall(mlir::Operation *op);
  /// Returns the seconds of an op; of a call without a cost of its own those of
  /// its callee's ops.
  double seconds(mlir::Operation *op, CostSource &source);

private:
  mlir::FunctionOpInterface calleeOf(mlir::Operation *op);
  bool isPure(mlir::Operation *op);

  const PlanningContext &context;
  const TypeSizes &sizes;
  CostModel &costs;
  mlir::SymbolTableCollection symbols;
  llvm::DenseMap<mlir::Operation *, bool> pure;
  llvm::DenseMap<mlir::Operation *, std::pair<double, CostSource>> known;
};

} // namespace ckopt

#endif // CKOPT_LIB_ANALYSIS_CALLEES_H
