//===- Step.h - a compiled step with a lock ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PYTHON_STEP_H
#define CKOPT_PYTHON_STEP_H

#include "Bindings.h"

#include "ckopt/Settings/Settings.h"
#include "ckopt/Train/StepRun.h"

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

/// What an evaluation found; those of several calls add up.
struct Evaluated {
  MetricSums sums;
  bool classified = false;
  std::vector<Metric> metrics;

  /// Returns the numbers by name; empty where nothing was evaluated.
  nb::dict numbers() const;
};

/// An array of a device, with what keeps it alive.
struct GivenArray {
  using Array = nb::ndarray<nb::ro, nb::device::cuda>;
  Array array;
  DType dtype;
  void *own = nullptr; ///< the stream that made it, if it is not the step's

  DeviceArray named(std::string name, void *stream) const;
};

/// What a step is fed.
struct GivenBatch {
  TensorMap host;
  std::vector<DeviceArray> onDevice;
};

/// A run with a lock: Python's threads may call at once, as each call lets the
/// GIL go while it works. The thread that trains by fit() may call again from
/// its callbacks.
class Step {
public:
  /// `isTemporary`: the file holds a model that was given as bytes. `beside`
  /// (null: none) is the step whose arena, weights and states this one uses.
  Step(const std::string &model, const std::vector<GivenSetting> &settings,
       bool isTemporary, Step *beside);

  /// The same step at another size of the dimension that it leaves open.
  Step(Step &largest, int64_t size);

  /// Calls `work` on the run without the GIL, behind a batch that was started.
  template <typename Work> auto locked(Work work) {
    settle();
    using Result = decltype(work(*run));
    if constexpr (std::is_same_v<Result, llvm::Error>)
      check(inOrder(work), words);
    else
      return take(inOrder(work), words);
  }
  /// Calls `work` as if it were work of the caller's stream, once others read
  /// weights in place.
  template <typename Work> auto inOrder(Work work) {
    return plain([&](StepRun &of) -> decltype(work(of)) {
      if (llvm::Error error = order(of, /*before=*/true))
        return std::move(error);
      auto result = work(of);
      llvm::Error error = order(of, /*before=*/false);
      if (!error)
        return result;
      llvm::consumeError(toError(std::move(result)));
      return std::move(error);
    });
  }
  /// The same for results that are no errors.
  template <typename Work> auto plain(Work work) {
    nb::gil_scoped_release release;
    return onThreads([&] {
      std::lock_guard lock(*shared);
      return work(*run);
    });
  }

  /// Starts an update on a batch; a device works on when this returns.
  void stepLater(const GivenBatch &batch) {
    note(inOrder([&](StepRun &run) {
      return run.stepLater(batch.host, batch.onDevice);
    }));
  }
  /// In whose order the run works: copies of arrays, and all of it once others
  /// read weights in place.
  void *stream() const { return callers; }
  /// Puts work of the run that follows (`before`) behind that of the stream, or
  /// the other way round.
  llvm::Error order(StepRun &of, bool before);
  void setStream(uintptr_t given);
  void letStreamWait();
  /// Reads an array of the device.
  HostTensor toHost(const GivenArray &array);
  /// Waits for the batch that was started, if there is one.
  void settle() {
    if (hasStarted())
      note(plain([](StepRun &run) { return run.settle(); }));
  }
  /// Whether a batch was started whose loss is not known.
  bool hasStarted() {
    return plain([](StepRun &run) { return run.hasStarted(); });
  }
  /// Returns the losses of batches that were started and have ended.
  std::vector<double> takeLosses() { return std::exchange(losses, {}); }

  /// Goes on from another step's weights and states.
  void resumeFrom(Step &other) {
    settle();
    other.settle();
    auto resume = [&] {
      nb::gil_scoped_release release;
      return onThreads([&] {
        std::scoped_lock both(*shared, *other.shared);
        return run->resume(*other.run);
      });
    };
    check(resume(), words);
  }

  /// Calls `work` with the metrics of these names (with commas between).
  template <typename Work>
  Evaluated evaluated(const std::string &names, Work work) {
    Evaluated result;
    if (!names.empty())
      result.metrics = take(parseMetrics(names, "metrics"));
    result.classified =
        plain([](StepRun &run) { return classifies(run.compiled().data()); });
    result.sums =
        locked([&](StepRun &run) { return work(run, result.metrics); });
    return result;
  }

  /// Returns what was said since the last call: severity and text.
  std::vector<std::pair<std::string, std::string>> takeMessages();

private:
  /// Keeps the loss of a batch that ended. One whose numbers are wrong has
  /// none.
  void note(llvm::Expected<std::optional<StepResult>> last) {
    if (last && *last)
      losses.push_back((*last)->loss);
    check(last.takeError(), words);
  }
  static llvm::Error toError(llvm::Error error) { return error; }
  template <typename T> static llvm::Error toError(llvm::Expected<T> result) {
    return result.takeError();
  }
  void open(const std::string &model, const std::vector<GivenSetting> &settings,
            Step *beside);

  Told words; ///< without lines
  std::shared_ptr<std::vector<Message>> messages =
      std::make_shared<std::vector<Message>>();
  /// Of all steps of one arena.
  std::shared_ptr<std::recursive_mutex> shared =
      std::make_shared<std::recursive_mutex>();
  std::unique_ptr<StepRun> run;
  bool hasViews = false; ///< others may read weights in place
  void *callers = reinterpret_cast<void *>(1); ///< stream; 1: the default one
  std::vector<double> losses;
};

GivenBatch toBatch(const nb::dict &arrays, const Step &step);

void bindFit(nb::class_<Step> &step);
void bindDevice(nb::module_ &module, nb::class_<Step> &step);

} // namespace ckopt::python

#endif // CKOPT_PYTHON_STEP_H
