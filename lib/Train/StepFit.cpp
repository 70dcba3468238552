//===- StepFit.cpp - train a StepRun from a source ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run that is fed batch by batch can also be trained by the library's loop.
// The loop counts updates and epochs on from those of earlier calls, so that
// two calls of one epoch each give the bits of one call of two.
//
//===----------------------------------------------------------------------===//
#include "StepRunImpl.h"

#include "ckopt/Support/Error.h"
#include "ckopt/Train/TrainRanks.h"

using namespace ckopt;

int64_t StepRun::epochs() const { return impl->epochs; }

llvm::Expected<TrainResult> StepRun::fit(BatchSource &source,
                                         TrainOptions options,
                                         std::vector<Metric> metrics) {
  if (llvm::Error error = impl->finish())
    return std::move(error);
  llvm::Error own = llvm::Error::success();
  if (impl->pending)
    own = usageError(llvm::Twine(impl->pending) + " of " +
                     llvm::Twine(impl->train.accumulate) +
                     " batches of the next update are in already");
  else if (options.checkpointEvery && options.checkpoint.empty())
    own = usageError(Setting("checkpoint-every") + " is for " +
                     Setting("checkpoint") + ": nothing else reads it");
  if (llvm::Error error = impl->meet({Call::Fit}, std::move(own)))
    return std::move(error);
  options.seed = impl->train.seed;
  options.schedule = impl->train.schedule;
  options.accumulate = impl->train.accumulate;
  if (options.resume.empty()) {
    options.stepsBefore = impl->updates;
    options.epochsBefore = impl->epochs;
  }
  // The count holds before the caller hears of a step, and whatever fails.
  options.started = [this](int64_t step) { impl->updates = step; };
  StepData data = impl->compiled.data();
  data.metrics = std::move(metrics);
  if (llvm::Error error =
          checkRanksAgree(impl->compiled.compilation(), *impl->session, source,
                          options.validation, options))
    return std::move(error);
  impl->isSet = false;
  impl->given = 0;
  if (!impl->session->ranks().isMain())
    leaveFilesToMain(options);
  auto result = train(impl->compiled.compilation(), *impl->session, data,
                      source, std::move(options));
  if (!result)
    return result.takeError();
  impl->updates = result->steps;
  if (llvm::Error error = impl->skips.begin(*impl->session))
    return std::move(error);
  impl->classes = result->classes;
  impl->epochs = result->position.epoch + (result->position.position > 0);
  return result;
}
