//===- Validation.h - evaluations of a run, and the best --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_VALIDATION_H
#define CKOPT_TRAIN_VALIDATION_H

#include "ckopt/Train/Training.h"

namespace ckopt {

/// Refuses options that ask for evaluations without samples for them, and
/// options that contradict each other.
llvm::Error checkValidation(const TrainOptions &options, bool hasSamples,
                            bool hasMetrics);

/// Manages the evaluations of held-out samples: when they are made, which was
/// the best, and whether the run should end early. O(1) in addition to
/// evaluating.
class Validation {
public:
  Validation(Session &session, const StepData &data,
             const TrainOptions &options);

  /// Finds the samples: those of the options, or a share of the source's.
  llvm::Error open(BatchSource &source);
  bool exists() const { return samples; }
  BatchSource &source() const { return *samples; }
  /// Continues from a checkpoint; false: its best was judged by another metric.
  bool resume(const std::optional<BestEvaluation> &saved);

  /// Tells whether the options ask for the best evaluation.
  bool wantsBest() const {
    return !options.keepBest.empty() || options.earlyStop;
  }
  bool isDue(int64_t step, bool epochEnds) const;
  /// Evaluates the weights that a step left, once.
  llvm::Expected<Evaluation> evaluate(int64_t step);
  /// Tells whether the evaluation after this step was the best so far.
  bool isBest(int64_t step) const { return best && best->step == step; }
  /// Tells whether enough evaluations were no better than the best.
  bool isEnough() const {
    return options.earlyStop && best && best->since >= options.earlyStop;
  }
  const std::optional<BestEvaluation> &bestSoFar() const { return best; }
  const std::vector<ValidationPoint> &points() const { return history; }

private:
  void judge(int64_t step, const MetricSums &sums);

  Session &session;
  StepData data; ///< includes the metric that decides the best
  const TrainOptions &options;
  const Metric bestBy;
  BatchSource *samples = nullptr; ///< null: there is nothing to evaluate
  std::unique_ptr<BatchSource> heldOut;
  std::optional<BestEvaluation> best;
  std::vector<ValidationPoint> history;
  std::optional<Evaluation> last; ///< of the step of `history.back()`
};

} // namespace ckopt

#endif // CKOPT_TRAIN_VALIDATION_H
