//===- Overlap.h - where collectives start and end --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DISTRIBUTE_OVERLAP_H
#define CKOPT_DISTRIBUTE_OVERLAP_H

#include "ckopt/Analysis/CostModel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Planner/MessagePlanner.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// A collective that is split. Kernel calls are numbered in their order; gap i
/// is before call i.
struct Flight {
  KernelCallOp call;
  int64_t place = 0;         ///< index of the call
  int64_t start = 0;         ///< gap of the start
  int64_t wait = 0;          ///< gap of the wait
  std::vector<bool> inPlace; ///< by tensor: the result has its operand's bytes
  /// Offsets of the results and of the workspace; -1: not packed yet.
  std::vector<int64_t> offsets;
  int64_t workspaceOffset = -1;
  KernelCallOp started, waited; ///< set when it is applied
};

/// Returns the op if the kernel that is called is a collective of several ranks
/// that sends messages, else null.
mlir::Operation *getCollective(KernelCallOp call);

/// The changes that overlap makes in a function.
struct FlightPlan {
  std::vector<Flight> flights; ///< in the order of their starts
  /// Updates of states that wait for a collective, with the gaps to which they
  /// are moved, after the wait.
  llvm::SmallVector<std::pair<KernelCallOp, int64_t>> delayed;
  /// Results of calls with new offsets, and the bytes of all; empty without a
  /// limit.
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> moved;
  int64_t packed = -1;
};

/// Decides where the function's collectives start and end; unchanged ones are
/// not in the list. `packedLimit`: bytes for results and workspaces; negative:
/// no limit, and no offsets are computed.
FlightPlan planFlights(mlir::func::FuncOp function, CostModel &costs,
                       int64_t packedLimit);

/// One action of a function after the split.
struct FlightEvent {
  enum Kind { Call, Start, Wait };
  Kind kind = Call;
  KernelCallOp call;         ///< of Call
  const Flight *flight = {}; ///< of Start and Wait
};

/// Returns calls, starts and waits in their new order. Linear in the gaps,
/// collectives and calls.
std::vector<FlightEvent> orderEvents(mlir::func::FuncOp function,
                                     const FlightPlan &plan);

/// Simulates the two clocks of a rank: of its kernels, and of its messages,
/// which run one collective after the other. `exposed` (optional) receives, for
/// each collective, the seconds that no kernel hides.
planner::StepTime
followEvents(llvm::ArrayRef<FlightEvent> events, CostModel &costs,
             llvm::DenseMap<const Flight *, double> *exposed = nullptr);

/// Returns the bytes that a plan leaves for results and workspaces within a
/// budget of the whole arena (0: none); negative: no limit.
inline int64_t flightLimit(int64_t packed, int64_t budget, int64_t arguments) {
  return budget > 0 ? std::max(packed, budget - arguments) : -1;
}

/// Rewrites the function and makes the kernels that start and wait.
void applyFlights(mlir::func::FuncOp function, FlightPlan &plan);

} // namespace ckopt

#endif // CKOPT_DISTRIBUTE_OVERLAP_H
