//===- Step.h - a compiled step with a lock ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PYTHON_STEP_H
#define CKOPT_PYTHON_STEP_H

#include "Bindings.h"

#include "ckopt/Driver/Settings.h"
#include "ckopt/Driver/StepRun.h"

#include <future>
#include <memory>
#include <mutex>
#include <unistd.h>

namespace ckopt::python {

/// The process that loaded the module.
extern const pid_t loadedIn;
/// Whether onThreads() made this thread.
inline thread_local bool isNewThread = false;

/// Calls `work`, in a forked process on a new thread: those of libgomp stay
/// behind in a fork, and the thread that made it would wait for them forever,
/// where a new one gets others.
template <typename Work> auto onThreads(Work work) {
  if (isNewThread || getpid() == loadedIn)
    return work();
  return std::async(std::launch::async,
                    [&] {
                      isNewThread = true;
                      return work();
                    })
      .get();
}

/// A run with a lock: Python's threads may call at once, as each call lets the
/// GIL go while it works. The thread that trains by fit() may call again from
/// its callbacks.
class Step {
public:
  Step(const std::string &model, const std::vector<Setting> &settings);

  /// Calls `work` on the run without the GIL.
  template <typename Work> auto locked(Work work) {
    using Result = decltype(work(*run));
    if constexpr (std::is_same_v<Result, llvm::Error>)
      check(plain(work));
    else
      return take(plain(work));
  }
  /// The same for results that are no errors.
  template <typename Work> auto plain(Work work) {
    nb::gil_scoped_release release;
    return onThreads([&] {
      std::lock_guard lock(mutex);
      return work(*run);
    });
  }

  /// Returns what was said since the last call: severity and text.
  std::vector<std::pair<std::string, std::string>> takeMessages();

private:
  void open(const std::string &model, const std::vector<Setting> &settings);

  std::shared_ptr<std::vector<Message>> messages =
      std::make_shared<std::vector<Message>>();
  std::recursive_mutex mutex;
  std::unique_ptr<StepRun> run;
};

/// Sums, so that those of several calls add up.
nb::dict metrics(const MetricSums &sums, bool classified);

void bindFit(nb::class_<Step> &step);

} // namespace ckopt::python

#endif // CKOPT_PYTHON_STEP_H
