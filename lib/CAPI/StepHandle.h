//===- StepHandle.h - a step with its lock ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of several threads on one step wait for each other. A call by one of
// the step's own callbacks, on the thread that holds the lock already, is
// refused: always while kernels or the compiler work (a message handler), and
// where it would run steps while a training loop stands between two.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CAPI_STEPHANDLE_H
#define CKOPT_LIB_CAPI_STEPHANDLE_H

#include "Handles.h"
#include "ckopt/Train/StepRun.h"

#include <mutex>

struct ckopt_step {
  std::shared_ptr<const ckopt::capi::ModelFile> file;
  std::shared_ptr<ckopt::capi::Messages> messages;
  std::unique_ptr<ckopt::StepRun> run;
  uint64_t seed = 0;
  int64_t accumulate = 1;
  bool pending = false; ///< batches of the next update are in
  std::recursive_mutex mutex;
  bool working = false;  ///< a call is inside of `run`
  bool training = false; ///< a training loop goes on
};

namespace ckopt::capi {

/// Sets a flag while it lives.
class Within {
public:
  explicit Within(bool &flag) : flag(flag) { flag = true; }
  ~Within() { flag = false; }
  Within(const Within &) = delete;

private:
  bool &flag;
};

/// What a call does with the step.
enum class Use {
  Reads, ///< may come between two updates of a training loop
  Steps, ///< may not
};

/// Refuses calls that the step's own callbacks must not make. The caller holds
/// the lock.
inline llvm::Error checkFree(const ckopt_step &step, Use use) {
  if (step.working || (step.training && use == Use::Steps))
    return statusError(CKOPT_BUSY, "the step is at work: one of its callbacks "
                                   "called it");
  return llvm::Error::success();
}

/// Runs `work` on the run, with the lock.
template <typename Work>
ckopt_status onStep(ckopt_step *step, Use use, Work work) {
  return guarded([&]() -> llvm::Error {
    if (!step)
      return misuse("the step is NULL");
    std::lock_guard lock(step->mutex);
    if (llvm::Error error = checkFree(*step, use))
      return error;
    Within working(step->working);
    return step->messages->explain(work(*step->run));
  });
}

} // namespace ckopt::capi

#endif // CKOPT_LIB_CAPI_STEPHANDLE_H
