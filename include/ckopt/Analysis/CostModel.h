//===- CostModel.h - seconds of an op ---------------------------*- C++ -*-===//
//
// What an op is expected to take. The first source that knows the op: its
// attribute `ckopt.cost`; the client's callback; an entry of a profile file;
// the op's PlanningOpInterface; an estimate (the larger of its arithmetic at
// the rate of its kind and its bytes at the machine's bandwidth, plus a start).
// A plan only needs the proportions. Estimates of loops of unknown length are
// guesses: what has one is not to be run again.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_COSTMODEL_H
#define CKOPT_ANALYSIS_COSTMODEL_H

#include "ckopt/Analysis/CostProfile.h"
#include "ckopt/Analysis/PlanningHooks.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>

namespace ckopt {

/// Where an op's cost comes from.
enum class CostSource {
  Attribute,
  Callback,
  Profile,
  Interface,
  Analytic,
  Guess, ///< an estimate with a loop of unknown length, as if it ran once
};

/// How many ops of a plan have their cost from where.
struct CostUse {
  int64_t attribute = 0, callback = 0, profile = 0, interface = 0, analytic = 0,
          guess = 0;

  void add(CostSource source);
  /// "analytic", "profile: 12 ops, analytic: 3 ops, guess: 1 op".
  std::string describe() const;
};

/// Which sources to use.
struct CostOptions {
  /// Every op must have `ckopt.cost`; buildProblem emits an error otherwise.
  bool attributesOnly = false;
  std::shared_ptr<const CostProfile> profile;
  /// As parseCostModel() read it.
  std::string source = "analytic";
};

/// "analytic", "attribute" or "profile=FILE"; the file is read.
llvm::Expected<CostOptions> parseCostModel(llvm::StringRef text);

/// Costs of ops; remembers each kernel symbol's. Not thread safe.
class CostModel {
public:
  explicit CostModel(const MachineRates &rates = {}) : rates(rates) {}
  /// A profile's own rates come before the machine's.
  explicit CostModel(CostOptions options, const MachineRates &rates = {});

  /// Seconds of one execution, finite and not negative. Kernel calls without
  /// attribute and profile: their `cost` if it is set, else an estimate of the
  /// callee.
  double seconds(mlir::Operation *op, CostSource *source = nullptr);

  /// Makes the client's callbacks a source of costs and of sizes of types.
  void setHooks(const PlanningHooks &hooks, mlir::Operation *scope);

  const CostOptions &getOptions() const { return options; }

private:
  double kernelSeconds(mlir::Operation *callee);
  double estimate(mlir::Operation *op);
  std::optional<double> ofClient(mlir::Operation *op) const;
  std::optional<double> ofInterface(mlir::Operation *op) const;
  double bytesOf(mlir::ValueRange values) const;

  CostOptions options;
  std::function<std::optional<double>(mlir::Operation *)> hook;
  TypeSizes sizes;
  MachineRates rates;
  llvm::DenseMap<mlir::Operation *, double> kernels;
  mlir::SymbolTableCollection symbols;
};

/// Sets `cost` on every kernel call of the function that has none, or whose
/// cost an attribute or profile gives.
void annotateCosts(mlir::Operation *function, CostModel &model);

/// Seconds that are known of an op, or nothing.
using KnownSeconds =
    llvm::function_ref<std::optional<double>(mlir::Operation *)>;

/// Seconds of the arithmetic of one op, regions included, at these rates; of
/// ops that `known` knows (it may be null), what it says. Ops that implement
/// none of our interfaces: linalg by its loops; loops by their trip counts;
/// others by shapes and by what their names say (matmul, conv, exp, ...).
double arithmeticSeconds(mlir::Operation *op, const MachineRates &rates,
                         KnownSeconds known = nullptr);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_COSTMODEL_H
