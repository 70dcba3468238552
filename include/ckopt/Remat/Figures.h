//===- Figures.h - the figures of a function's plan -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one list of figures of a plan, or of a search that found none. The pass
// stores it on the function (`ckopt.plan`); reports and tables are written from
// it.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_REMAT_FIGURES_H
#define CKOPT_REMAT_FIGURES_H

#include "ckopt/Planner/Answer.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace mlir {
class DictionaryAttr;
class MLIRContext;
} // namespace mlir

namespace ckopt {

struct RematPlan;
namespace planner {
struct StepTime;
}

/// Bytes are those of the whole arena: arguments, results, workspaces.
struct RematFigures {
  std::string function;
  planner::Status status = planner::Status::Unknown;
  planner::Scope scope; ///< as planner::Answer::scope
  std::string strategy, costModel;
  std::string boundsNote; ///< as planner::boundsNote()
  /// Without a plan: the reason, as in the error.
  std::string message;
  int64_t budget = 0;        ///< budget in bytes; 0: none
  int64_t arena = 0;         ///< of the plan; 0: there is none
  int64_t fullArena = 0;     ///< without recomputation and without a budget
  int64_t argumentBytes = 0; ///< resident in every step
  int64_t load = 0;          ///< largest sum of live bytes
  int64_t lowered = 0;       ///< as RematPlan::lowered
  int64_t memoryBound = 0;   ///< proven: no plan of the scope needs less
  int64_t smallestFound = 0; ///< without a plan: the smallest feasible budget
  double seconds = 0, baseSeconds = 0; ///< of the plan, without recomputation
  double lowerBound = 0;               ///< seconds, proven for the budget
  /// Seconds of collectives in a step of several ranks, and those that no
  /// kernel hides, which are the only ones in `seconds`; 0: there are none.
  double communication = 0, exposed = 0;
  double kernelBound = 0; ///< as lowerBound, if all communication were hidden
  int64_t steps = 0, recomputed = 0;
  /// Kinds of bytes that the function needs but that are not counted.
  int64_t uncounted = 0;

  bool unchanged = false; ///< as RematPlan::unchanged
  bool policy = false;    ///< a policy applied
  int64_t regions = 0;    ///< checkpointed regions
  /// The plan for the same budget without the policy; 0: not searched, or none
  /// was found.
  int64_t autoArena = 0;
  double autoSeconds = 0;
  double autoSecondsInArena =
      0; ///< cost of a plan without the policy in the bytes of this plan

  struct Named {
    std::string name;
    int64_t bytes = 0;
  };
  /// Without a plan: the values at the peak of the smallest plan found, largest
  /// first, without arguments.
  std::vector<Named> alive;
  /// Without a plan: the node that needs most bytes when it first runs, in
  /// every plan; the values that are then resident, without arguments, and the
  /// sum with arguments.
  std::string needNode;
  std::vector<Named> need;
  int64_t needBytes = 0;

  bool hasPlan() const { return arena > 0 || message.empty(); }
  /// Takes the times of the plan's clock: `seconds` are those of kernels and of
  /// exposed messages, and the proven bound counts messages as free.
  void noteTime(const planner::StepTime &time);
};

RematFigures getFigures(const RematPlan &plan);

/// Converts the figures to the attribute `ckopt.plan` of a function, and back;
/// unknown members are ignored.
inline constexpr llvm::StringLiteral kPlanAttr = "ckopt.plan";
mlir::DictionaryAttr toAttribute(const RematFigures &figures,
                                 mlir::MLIRContext *context);
RematFigures figuresFromAttribute(mlir::DictionaryAttr attr);

/// Writes the figures as members of the current JSON object.
void writeFigures(llvm::json::OStream &json, const RematFigures &figures);

} // namespace ckopt

#endif // CKOPT_REMAT_FIGURES_H
