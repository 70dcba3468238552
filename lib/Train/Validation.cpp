//===- Validation.cpp - evaluations of a run, and the best of them --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Validation.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Train/TrainRanks.h"

#include <cmath>

using namespace ckopt;

llvm::Error ckopt::checkValidation(const TrainOptions &options, bool hasSamples,
                                   bool hasMetrics) {
  if (options.bestBy && options.keepBest.empty() && !options.earlyStop)
    return usageError(Setting("best-by") + " judges evaluations for " +
                      Setting("keep-best") + " and " + Setting("early-stop") +
                      ": give one of them");
  MessageText asks;
  if (options.validateEvery)
    asks = Setting("validate-every");
  else if (!options.keepBest.empty())
    asks = Setting("keep-best");
  else if (options.earlyStop)
    asks = Setting("early-stop");
  else if (hasMetrics)
    asks = Setting("metrics");
  if (!asks.empty() && !hasSamples)
    return usageError(asks + " needs " + Setting("validation") + " or " +
                      Setting("holdout"));
  if (options.validateEvery < 0 || options.earlyStop < 0)
    return usageError("steps and evaluations must not be negative");
  llvm::StringRef file = options.keepBest;
  if (!file.empty() && !file.ends_with(".safetensors") &&
      !file.ends_with(".onnx"))
    return usageError(
        Setting("keep-best") +
        " must end in .safetensors (a checkpoint) or .onnx (weights), got '" +
        file + "'");
  if (!file.empty() && file == options.checkpoint)
    return usageError(Setting("keep-best") + " and " + Setting("checkpoint") +
                      " name one file, '" + file + "'; each needs its own");
  return llvm::Error::success();
}

Validation::Validation(Session &session, const StepData &given,
                       const TrainOptions &options)
    : session(session), data(given), options(options),
      bestBy(options.bestBy.value_or(Metric())) {
  if (bestBy.kind != Metric::Kind::Loss &&
      !llvm::is_contained(data.metrics, bestBy))
    data.metrics.push_back(bestBy);
}

llvm::Error Validation::open(BatchSource &source) {
  if (options.validation && options.holdout > 0)
    return usageError("give one of " + Setting("validation") + " and " +
                      Setting("holdout"));
  auto rest = source.holdOut(options.holdout, options.seed);
  if (!rest)
    return rest.takeError();
  heldOut = std::move(*rest);
  samples = heldOut ? heldOut.get() : options.validation;
  if (llvm::Error error =
          checkValidation(options, exists(), !data.metrics.empty()))
    return error;
  if (!exists())
    return llvm::Error::success();
  return checkMetrics(session, data);
}

bool Validation::resume(const std::optional<BestEvaluation> &saved) {
  if (!saved || !wantsBest())
    return true;
  if (saved->metric != bestBy.name())
    return false;
  best = saved;
  return true;
}

bool Validation::isDue(int64_t step, bool epochEnds) const {
  if (!exists())
    return false;
  if (options.validateEvery)
    return step % options.validateEvery == 0;
  return epochEnds && wantsBest();
}

void Validation::judge(int64_t step, const MetricSums &sums) {
  double value = bestBy.of(sums);
  if (std::isfinite(value) && (!best || bestBy.isBetter(value, best->value)))
    best = BestEvaluation{bestBy.name(), value, step, 0};
  else if (best)
    ++best->since;
}

llvm::Expected<Evaluation> Validation::evaluate(int64_t step) {
  if (last && !history.empty() && history.back().step == step)
    return *last;
  auto evaluation = evaluateOnMain(session, *samples, data);
  if (!evaluation)
    return evaluation;
  last = *evaluation;
  history.push_back({step, evaluation->sums});
  if (evaluation->samples && wantsBest())
    judge(step, evaluation->sums);
  return evaluation;
}
