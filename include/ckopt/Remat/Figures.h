//===- Figures.h - the figures of a function's plan -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one list of what tools tell of a plan, or of the search for one that
// found none: the pass leaves it on the function (`ckopt.plan`), reports and
// tables are written from it.
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
  /// Without a plan: why, as the error says it.
  std::string message;
  int64_t budget = 0;        ///< bytes; 0: none
  int64_t arena = 0;         ///< of the plan; 0: there is none
  int64_t fullArena = 0;     ///< without recomputation and without a budget
  int64_t argumentBytes = 0; ///< there all the time
  int64_t load = 0;          ///< largest sum of live bytes
  int64_t lowered = 0;       ///< as RematPlan::lowered
  int64_t memoryBound = 0;   ///< proven: no plan of the scope needs less
  int64_t smallestFound = 0; ///< without a plan: the smallest feasible budget
  double seconds = 0, baseSeconds = 0; ///< of the plan, without recomputation
  double lowerBound = 0;               ///< seconds, proven for the budget
  /// Seconds of collectives in a step of several ranks, and those that no
  /// kernel hides, which `seconds` has alone; 0: there are none.
  double communication = 0, exposed = 0;
  double kernelBound = 0; ///< as lowerBound, where all communication is hidden
  int64_t steps = 0, recomputed = 0;
  /// Kinds of bytes that the function needs and that are not counted.
  int64_t uncounted = 0;

  bool unchanged = false; ///< as RematPlan::unchanged
  bool policy = false;    ///< one held
  int64_t regions = 0;    ///< checkpointed ones
  /// The plan for the same budget without the policy; 0: it was not looked for,
  /// or none was found.
  int64_t autoArena = 0;
  double autoSeconds = 0;
  double autoSecondsInArena = 0; ///< of one within the bytes of this plan

  struct Named {
    std::string name;
    int64_t bytes = 0;
  };
  /// Without a plan: the values at the peak of the smallest plan found, largest
  /// first, without arguments.
  std::vector<Named> alive;
  /// Without a plan: the node that needs most while it first runs, in every
  /// plan, with what is then there beside the arguments, and the sum with them.
  std::string needNode;
  std::vector<Named> need;
  int64_t needBytes = 0;

  bool hasPlan() const { return arena > 0 || message.empty(); }
  /// Takes over what the plan's clock says: `seconds` are those of kernels and
  /// of exposed messages, and the proven bound counts messages as free.
  void noteTime(const planner::StepTime &time);
};

RematFigures getFigures(const RematPlan &plan);

/// The figures as the attribute `ckopt.plan` of a function, and back; unknown
/// members are ignored.
inline constexpr llvm::StringLiteral kPlanAttr = "ckopt.plan";
mlir::DictionaryAttr toAttribute(const RematFigures &figures,
                                 mlir::MLIRContext *context);
RematFigures figuresFromAttribute(mlir::DictionaryAttr attr);

/// Writes the figures as members of the current JSON object.
void writeFigures(llvm::json::OStream &json, const RematFigures &figures);

} // namespace ckopt

#endif // CKOPT_REMAT_FIGURES_H
