//===- Fit.cpp - the library's training loop in Python --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop works without the GIL. It takes it to pull a batch out of Python,
// and after each step to hear of Ctrl-C; what Python raises there ends the run
// and travels on as it was.
//
//===----------------------------------------------------------------------===//
#include "Step.h"

#include "ckopt/Train/Data/Dataset.h"
#include "ckopt/Train/Data/Permutation.h"
#include "ckopt/Train/Data/ReadAhead.h"

#include <cmath>
#include <functional>
#include <variant>

using namespace ckopt;
using namespace ckopt::python;

namespace {

/// What Python raised while the loop called it.
struct Raised {
  std::exception_ptr exception;

  /// Calls `work` with the GIL; an exception is kept, and an error returned.
  template <typename Work> llvm::Error guard(Work work) {
    nb::gil_scoped_acquire acquire;
    try {
      work();
      return llvm::Error::success();
    } catch (...) {
      exception = std::current_exception();
      return makeError(ExitUsage, "Python raised an exception");
    }
  }
};

/// Batches of a Python object.
struct GivenBatches {
  nb::handle object;
  bool canSeek = false; ///< to any place of an epoch
};

/// Batches of an object with `seek(seed, epoch, position)` and `next(buffers)`,
/// which fills arrays with as many samples as there are (python/ckopt/_fit.py).
class PythonSource : public BatchSource {
public:
  PythonSource(GivenBatches given, llvm::ArrayRef<FieldSpec> specs,
               std::optional<int64_t> count, Raised &raised)
      : batches(given), count(count), raised(raised) {
    for (const FieldSpec &spec : specs)
      list.push_back({spec.name, spec.dtype, *spec.shape, spec.batched});
  }

  std::string name() const override { return "the batches"; }
  llvm::ArrayRef<SourceField> fields() const override { return list; }
  std::optional<int64_t> numSamples() const override { return count; }
  bool canSeek() const override { return batches.canSeek; }
  llvm::Expected<std::unique_ptr<BatchSource>> holdOut(double share,
                                                       uint64_t seed) override;
  llvm::Error seek(uint64_t seed, DataPosition place) override {
    return raised.guard([&] {
      batches.object.attr("seek")(seed, place.epoch, place.position);
    });
  }
  llvm::Expected<int64_t> next(int64_t count,
                               llvm::ArrayRef<void *> to) override {
    int64_t given = 0;
    llvm::Error error = raised.guard([&] {
      nb::list buffers;
      for (size_t i = 0; i < list.size(); ++i)
        buffers.append(view(list[i], count, to[i]));
      given = nb::cast<int64_t>(batches.object.attr("next")(buffers));
    });
    if (error)
      return std::move(error);
    return given;
  }

private:
  PythonSource(GivenBatches given, std::vector<SourceField> fields,
               int64_t count, Raised &raised)
      : batches(given), count(count), raised(raised), list(std::move(fields)) {}

  static nb::object view(const SourceField &field, int64_t count, void *data) {
    std::vector<size_t> shape(field.shape.begin(), field.shape.end());
    if (field.batched)
      shape.insert(shape.begin(), size_t(count));
    nb::ndarray<nb::numpy> array(data, shape.size(), shape.data(), nb::handle(),
                                 nullptr, dlpackOf(field.dtype));
    return array.cast(nb::rv_policy::reference);
  }

  GivenBatches batches;
  std::optional<int64_t> count;
  Raised &raised;
  std::vector<SourceField> list;
};

llvm::Expected<std::unique_ptr<BatchSource>>
PythonSource::holdOut(double share, uint64_t seed) {
  if (!batches.canSeek)
    return BatchSource::holdOut(share, seed);
  int64_t all = 0;
  auto size = raised.guard(
      [&] { all = nb::cast<int64_t>(batches.object.attr("count")); });
  if (size)
    return std::move(size);
  auto parts = drawHeldOut(all, share, seed);
  if (!parts)
    return parts.takeError();
  if (parts->held.empty())
    return nullptr;
  GivenBatches held{{}, true};
  llvm::Error error = raised.guard([&] {
    // The object keeps the other one.
    held.object =
        batches.object.attr("hold_out")(parts->train, parts->held).ptr();
  });
  if (error)
    return std::move(error);
  count = int64_t(parts->train.size());
  return std::unique_ptr<BatchSource>(
      new PythonSource(held, list, int64_t(parts->held.size()), raised));
}

/// Samples as Python gives them: none, settings that say where they are,
/// arrays, batches.
using Samples = std::variant<std::monostate, std::vector<GivenSetting>,
                             TensorMap, GivenBatches>;

Samples readSamples(nb::handle value) {
  if (value.is_none())
    return std::monostate();
  if (nb::isinstance<nb::list>(value))
    return nb::cast<std::vector<GivenSetting>>(value);
  if (nb::isinstance<nb::dict>(value))
    return toTensors(nb::cast<nb::dict>(value));
  return GivenBatches{value, nb::cast<bool>(value.attr("can_seek"))};
}

/// What fit() is asked for.
struct Request {
  Samples samples, validation;
  std::optional<int64_t> count; ///< samples of an epoch of batches
  nb::handle report;            ///< called with each step; may be None
  /// Step::order(), around what Python does with weights meanwhile.
  std::function<llvm::Error(bool before)> order;
  bool strict = false; ///< a batch that is not full is an error
  std::vector<Metric> metrics;
  TrainOptions options;
};

/// Opens samples that the library reads itself; labels count `classes` where
/// these are known.
llvm::Expected<std::unique_ptr<BatchSource>>
openNamed(StepRun &run, const std::vector<GivenSetting> &settings,
          DatasetSource::Order order, std::vector<std::string> classes) {
  StepData data = run.compiled().data();
  if (llvm::Error error = readDataSettings(settings, data))
    return std::move(error);
  data.classNames = std::move(classes);
  return openSource(run.session(), data, order);
}

/// Returns a source; null where there are no samples.
llvm::Expected<std::unique_ptr<BatchSource>>
openSamples(StepRun &run, const Samples &samples, const Request &request,
            DatasetSource::Order order, Raised &raised,
            std::vector<std::string> classes = {}) {
  if (const auto *settings = std::get_if<std::vector<GivenSetting>>(&samples))
    return openNamed(run, *settings, order, std::move(classes));
  if (const auto *arrays = std::get_if<TensorMap>(&samples)) {
    auto data = Dataset::fromTensors(*arrays, run.fields(), "the arrays");
    if (!data)
      return data.takeError();
    return std::make_unique<DatasetSource>(std::move(*data), order);
  }
  if (const auto *batches = std::get_if<GivenBatches>(&samples)) {
    bool trains = order == DatasetSource::Order::Shuffled;
    return std::make_unique<PythonSource>(
        *batches, run.fields(), trains ? request.count : std::nullopt, raised);
  }
  return nullptr;
}

/// Reads one batch of samples that the library reads itself, by the names of
/// arrays; empty where they do not fill one.
llvm::Expected<TensorMap> readBatch(StepRun &run,
                                    const std::vector<GivenSetting> &settings) {
  auto source = openNamed(run, settings, DatasetSource::Order::AsStored, {});
  if (!source)
    return source.takeError();
  std::vector<HostTensor> tensors;
  std::vector<void *> to;
  for (const SourceField &field : (*source)->fields()) {
    std::vector<int64_t> shape = field.shape;
    if (field.batched)
      shape.insert(shape.begin(), run.batch());
    tensors.emplace_back(field.dtype, std::move(shape));
    to.push_back(tensors.back().mutableRawData());
  }
  if (llvm::Error error = (*source)->seek(/*seed=*/0, {}))
    return std::move(error);
  auto given = (*source)->next(run.batch(), to);
  if (!given)
    return given.takeError();
  TensorMap batch;
  for (auto [field, tensor] : llvm::zip_equal((*source)->fields(), tensors))
    for (const FieldSpec &spec : run.fields())
      if (*given == run.batch() && spec.name == field.name)
        batch.set(spec.array, std::move(tensor));
  return batch;
}

/// An error where the samples that train do not fill whole batches.
llvm::Error checkWhole(StepRun &run, const BatchSource &source,
                       double holdout) {
  auto samples = source.numSamples();
  if (!samples)
    return llvm::Error::success(); // their end will tell
  // As DatasetSource::holdOut() counts.
  int64_t held = int64_t(std::floor(double(*samples) * holdout + 1e-9));
  int64_t rest = (*samples - held) % run.batch();
  if (rest == 0 || rest >= leastBatch(run.session().manifest()))
    return llvm::Error::success();
  return inputError("the last batch of an epoch has " + llvm::Twine(rest) +
                    " samples, the step was compiled for " +
                    llvm::Twine(run.batch()));
}

nb::dict describe(const MetricSums &sums, bool classified,
                  llvm::ArrayRef<Metric> metrics) {
  return Evaluated{sums, classified, metrics.vec()}.numbers();
}

nb::dict describeStep(const StepReport &step, llvm::ArrayRef<Metric> metrics) {
  nb::dict result;
  result["step"] = step.step;
  result["epoch"] = step.position.epoch + 1;
  result["loss"] = step.loss;
  result["learning_rate"] = step.learningRate;
  result["seconds"] = step.seconds;
  if (step.lossScale) {
    result["loss_scale"] = step.lossScale->scale;
    result["skipped"] = step.skipped;
  }
  if (step.validation)
    result["validation"] = describe(*step.validation, step.classified, metrics);
  return result;
}

llvm::Expected<TrainResult> runFit(StepRun &run, Request &request,
                                   Raised &raised) {
  auto opened = openSamples(run, request.samples, request,
                            DatasetSource::Order::Shuffled, raised);
  if (!opened)
    return opened.takeError();
  auto validation = openSamples(run, request.validation, request,
                                DatasetSource::Order::AsStored, raised,
                                (*opened)->classNames());
  if (!validation)
    return validation.takeError();
  TrainOptions &options = request.options;
  options.validation = validation->get();
  if (request.strict)
    if (llvm::Error error = checkWhole(run, **opened, options.holdout))
      return std::move(error);
  // Batches of Python are pulled by the thread that called, which hears Ctrl-C.
  if (!std::holds_alternative<GivenBatches>(request.samples))
    *opened = std::make_unique<ReadAheadSource>(std::move(*opened));
  options.reportsLate = request.report.is_none();
  options.report = [&](const StepReport &step) {
    llvm::Error error = request.order(/*before=*/false);
    if (!error)
      error = raised.guard([&] {
        if (PyErr_CheckSignals())
          nb::raise_python_error();
        if (!request.report.is_none())
          request.report(describeStep(step, request.metrics));
      });
    return error ? std::move(error) : request.order(/*before=*/true);
  };
  return run.fit(**opened, options, request.metrics);
}

template <typename T>
void setOption(const nb::dict &options, const char *name, T &to) {
  if (options.contains(name))
    to = nb::cast<T>(options[name]);
}

nb::dict describeResult(const TrainResult &result,
                        llvm::ArrayRef<Metric> metrics) {
  nb::dict made;
  made["losses"] = result.losses;
  made["steps"] = result.losses.size();
  made["epochs"] = result.position.epoch;
  made["dropped"] = result.droppedPerEpoch;
  made["dropped_batches"] = result.droppedBatches;
  if (result.lossScale)
    made["skipped_updates"] = result.skippedUpdates;
  made["seconds_per_step"] = result.stepSeconds;
  made["measured_peak_bytes"] = result.measuredPeak;
  made["classes"] = result.classes;
  made["stopped_early"] = result.stoppedEarly;
  made["all_ignored"] = result.allIgnored;
  made["validation"] = describe(result.evaluation, result.classified, metrics);
  made["averages"] =
      describe(result.averageEvaluation, result.classified, metrics);
  nb::list points;
  for (const ValidationPoint &point : result.validations) {
    nb::dict entry = describe(point.sums, result.classified, metrics);
    entry["step"] = point.step;
    points.append(entry);
  }
  made["validations"] = points;
  return made;
}

nb::dict fit(Step &self, nb::object samples, nb::object validation,
             std::optional<int64_t> count, nb::object report,
             const nb::dict &options) {
  Request request{.samples = readSamples(samples),
                  .validation = readSamples(validation),
                  .count = count,
                  .report = report,
                  .metrics = {},
                  .options = {}};
  TrainOptions &train = request.options;
  setOption(options, "strict", request.strict);
  setOption(options, "log", train.log);
  setOption(options, "keep_best", train.keepBest);
  setOption(options, "early_stop", train.earlyStop);
  setOption(options, "epochs", train.epochs);
  setOption(options, "max_steps", train.maxSteps);
  setOption(options, "holdout", train.holdout);
  setOption(options, "validate_every", train.validateEvery);
  setOption(options, "checkpoint", train.checkpoint);
  setOption(options, "checkpoint_every", train.checkpointEvery);
  setOption(options, "resume", train.resume);
  setOption(options, "progress", train.progress);
  std::string names, best;
  setOption(options, "metrics", names);
  setOption(options, "best_by", best);
  if (!names.empty())
    request.metrics = take(parseMetrics(names, "metrics"));
  if (!best.empty())
    train.bestBy = take(parseMetric(best, "best_by"));
  Raised raised;
  try {
    TrainResult result = self.locked([&](StepRun &run) {
      request.order = [&](bool before) { return self.order(run, before); };
      return runFit(run, request, raised);
    });
    return describeResult(result, request.metrics);
  } catch (const Failure &) {
    if (raised.exception)
      std::rethrow_exception(raised.exception);
    throw;
  }
}

} // namespace

void python::bindFit(nb::class_<Step> &step) {
  step.def(
      "evaluate_named",
      [](Step &self, const std::vector<GivenSetting> &settings,
         const std::string &names) {
        using Sums = llvm::Expected<MetricSums>;
        return self.evaluated(names, [&](StepRun &run, auto metrics) -> Sums {
          auto source =
              openNamed(run, settings, DatasetSource::Order::AsStored, {});
          if (!source)
            return source.takeError();
          return run.evaluate(**source, std::move(metrics));
        });
      },
      nb::arg("settings"), nb::arg("metrics"),
      "Evaluates samples that the library reads itself.");
  step.def(
      "read_batch",
      [](Step &self, const std::vector<GivenSetting> &settings) {
        return toArrays(self.locked(
            [&](StepRun &run) { return readBatch(run, settings); }));
      },
      nb::arg("settings"),
      "One batch of samples that the library reads itself, or nothing.");
  step.def("fit", fit, nb::arg("samples"), nb::arg("validation").none(),
           nb::arg("count").none(), nb::arg("report").none(),
           nb::arg("options"),
           "Trains by the library's loop; python/ckopt/_fit.py says on what.");
}
