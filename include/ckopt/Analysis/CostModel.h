//===- CostModel.h - seconds of an op ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cost model predicts the seconds of an op. It asks these sources in turn
// and takes the first answer: the attribute `ckopt.cost`; the client's
// callback; an entry of a profile file; the op's PlanningOpInterface; an
// estimate (the larger of its arithmetic at the rate of its kind and its bytes
// at the machine's bandwidth, plus a start cost). Plans only need the
// proportions. An estimate for a loop of unknown length is a guess, and ops
// with one are never recomputed.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_COSTMODEL_H
#define CKOPT_ANALYSIS_COSTMODEL_H

#include "ckopt/Analysis/CostOptions.h"
#include "ckopt/Analysis/CostProfile.h"
#include "ckopt/Analysis/PlanningHooks.h"
#include "ckopt/Target/MachineRates.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>

namespace ckopt {

/// The source of an op's cost.
enum class CostSource {
  Attribute,
  Callback,
  Profile,
  Interface,
  Analytic,
  Guess, ///< an estimate with a loop of unknown length, as if it ran once
};

/// The number of ops of a plan whose cost each source gave.
struct CostUse {
  int64_t attribute = 0, callback = 0, profile = 0, interface = 0, analytic = 0,
          guess = 0;
  /// Entries of a profile that no op of the plan used.
  std::vector<std::string> unused;

  void add(CostSource source);
  /// Formats the numbers: "analytic", or "profile: 12 ops, analytic: 3 ops,
  /// guess: 1 op"; then the unused entries of the profile.
  std::string describe() const;
};

/// Predicts costs of ops, and remembers the cost of each kernel symbol. Not
/// thread safe.
class CostModel {
public:
  explicit CostModel(const MachineRates &rates = {}) : rates(rates) {}
  /// A profile's own rates come before the machine's.
  explicit CostModel(CostOptions options, const MachineRates &rates = {});

  /// Returns the seconds of one execution, finite and not negative. For kernel
  /// calls without attribute and profile this is their `cost` if it is set,
  /// else an estimate of the callee.
  double seconds(mlir::Operation *op, CostSource *source = nullptr);

  /// Makes the client's callbacks a source of costs and of sizes of types.
  void setHooks(const PlanningHooks &hooks, mlir::Operation *scope);

  const CostOptions &getOptions() const { return options; }

  /// Estimates one call of a kernel (a function), whatever a profile says.
  double kernelSeconds(mlir::Operation *callee);

private:
  double estimate(mlir::Operation *op);
  std::optional<double> ofClient(mlir::Operation *op) const;
  std::optional<double> ofInterface(mlir::Operation *op) const;
  double bytesOf(mlir::ValueRange values) const;
  double bytesRead(mlir::Operation *op, mlir::Value read) const;
  double bytesRead(mlir::BlockArgument argument) const;

  CostOptions options;
  std::function<std::optional<double>(mlir::Operation *)> hook;
  TypeSizes sizes;
  MachineRates rates;
  llvm::DenseMap<mlir::Operation *, double> kernels;
  mlir::SymbolTableCollection symbols;
};

/// Returns the work that the estimate of a kernel (a function) counts. 16-bit
/// matmuls count as the f32 matmuls that take as long, by the ratio of their
/// rates in `rates`.
KernelWork kernelWork(mlir::Operation *callee, const MachineRates &rates = {});

/// Sets `cost` on every kernel call of the function that has none, or whose
/// cost comes from an attribute or a profile.
void annotateCosts(mlir::Operation *function, CostModel &model);

/// Returns the known seconds of an op, or nothing.
using KnownSeconds =
    llvm::function_ref<std::optional<double>(mlir::Operation *)>;

/// Estimates the seconds of the arithmetic of one op, regions included, at
/// these rates. `known` (may be null) gives the seconds of some ops. Ops
/// without ckopt's interfaces are estimated by their loops (linalg), their trip
/// counts (loops), or their shapes and names (matmul, conv, exp, ...).
double arithmeticSeconds(mlir::Operation *op, const MachineRates &rates,
                         KnownSeconds known = nullptr);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_COSTMODEL_H
