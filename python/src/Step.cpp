//===- Step.cpp - compiled steps in Python --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Bindings.h"

#include "ckopt/Driver/Reports.h"
#include "ckopt/Driver/Settings.h"
#include "ckopt/Driver/StepRun.h"
#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Training/Permutation.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

using namespace ckopt;
using namespace ckopt::python;

namespace {

using Messages = std::vector<Message>;

/// One line each of the errors among the messages, and what belongs to them.
std::string errorLines(const Messages &messages) {
  std::string text;
  bool ofError = false;
  for (const Message &message : messages) {
    if (message.severity != Message::Severity::Note)
      ofError = message.severity == Message::Severity::Error;
    if (ofError)
      text += message.str() + "\n";
  }
  return text;
}

/// A run with a lock: Python's threads may call at once, as each call lets the
/// GIL go while it works.
class Step {
public:
  Step(const std::string &model, const std::vector<Setting> &settings) {
    nb::gil_scoped_release release;
    StepSettings all = take(readSettings(model, settings));
    all.compile.keepGraph = true; // for curves
    all.compile.messages = [messages = messages](const Message &message) {
      messages->push_back(message);
    };
    auto compiled = compile(std::move(all.compile), std::move(all.data));
    check(compiled.takeError(), errorLines(*messages));
    run = take(StepRun::create(std::move(*compiled), all.train, all.load),
               errorLines(*messages));
  }

  /// Calls `work` on the run without the GIL.
  template <typename Work> auto locked(Work work) {
    nb::gil_scoped_release release;
    std::lock_guard lock(mutex);
    using Result = decltype(work(*run));
    if constexpr (std::is_same_v<Result, llvm::Error>)
      check(work(*run));
    else
      return take(work(*run));
  }
  template <typename Work> auto plain(Work work) {
    nb::gil_scoped_release release;
    std::lock_guard lock(mutex);
    return work(*run);
  }

  /// Returns what was said since the last call: severity and text.
  std::vector<std::pair<std::string, std::string>> takeMessages() {
    std::vector<std::pair<std::string, std::string>> result;
    static constexpr const char *names[] = {"error", "warning", "remark",
                                            "note"};
    std::lock_guard lock(mutex);
    for (const Message &message : *messages)
      result.emplace_back(names[size_t(message.severity)],
                          (message.where.empty() ? "" : message.where + ": ") +
                              message.text);
    messages->clear();
    return result;
  }

private:
  std::shared_ptr<Messages> messages = std::make_shared<Messages>();
  std::mutex mutex;
  std::unique_ptr<StepRun> run;
};

} // namespace

static nb::dict describe(const FieldSpec &field) {
  nb::dict result;
  result["name"] = field.name;
  result["array"] = field.array;
  result["dtype"] = std::string(dtypeTable[size_t(field.dtype)].numpy);
  result["batched"] = field.batched;
  result["shape"] = nb::tuple(nb::cast(*field.shape));
  return result;
}

/// Sums, so that those of several calls add up.
static nb::dict metrics(const MetricSums &sums, const DataOptions &data) {
  nb::dict result;
  result["classified"] =
      data.loss == "cross_entropy" || (data.loss.empty() && data.classify);
  result["loss"] = sums.loss;
  result["count"] = sums.count;
  result["correct"] = sums.correct;
  return result;
}

static std::string planText(StepRun &run) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  printPlan(run.compiled().compilation(), stream);
  return text;
}

static void bindCalls(nb::class_<Step> &step) {
  step.def("step", [](Step &self, const nb::dict &arrays) {
    TensorMap batch = toTensors(arrays);
    StepResult result =
        self.locked([&](StepRun &run) { return run.step(batch); });
    return std::pair(result.loss, result.updated);
  });
  step.def("gradients", [](Step &self, const nb::dict &arrays) {
    TensorMap batch = toTensors(arrays);
    BatchGradients result =
        self.locked([&](StepRun &run) { return run.gradients(batch); });
    return std::pair(result.loss, toArrays(std::move(result.gradients)));
  });
  step.def("evaluate", [](Step &self, const nb::dict &arrays) {
    TensorMap samples = toTensors(arrays);
    DataOptions data =
        self.plain([](StepRun &run) { return run.compiled().data(); });
    return metrics(
        self.locked([&](StepRun &run) { return run.evaluate(samples); }), data);
  });
  step.def("predict", [](Step &self, const nb::dict &arrays) {
    TensorMap samples = toTensors(arrays);
    return toArrays(
        self.locked([&](StepRun &run) { return run.predict(samples); }));
  });
  step.def("profile", [](Step &self, const nb::dict &arrays, int64_t steps) {
    TensorMap batch = toTensors(arrays);
    auto times =
        self.locked([&](StepRun &run) { return run.profile(batch, steps); });
    nb::list result;
    for (const CallTime &call : times) {
      nb::dict row;
      row["kernel"] = call.kernel;
      row["source"] = call.source;
      row["primitive"] = call.primitive;
      row["recomputed"] = call.recomputed;
      row["seconds"] = call.seconds;
      result.append(row);
    }
    return result;
  });
}

static void bindWeights(nb::class_<Step> &step) {
  step.def("weights", [](Step &self, bool averaged) {
    return toArrays(
        self.locked([&](StepRun &run) { return run.weights(averaged); }));
  });
  step.def("set_weights", [](Step &self, const nb::dict &arrays) {
    TensorMap weights = toTensors(arrays);
    self.locked([&](StepRun &run) { return run.setWeights(weights); });
  });
  step.def("write_weights", [](Step &self, const std::string &path,
                               bool averaged) {
    self.locked([&](StepRun &run) { return run.writeWeights(path, averaged); });
  });
  step.def("write_checkpoint", [](Step &self, const std::string &path) {
    self.locked([&](StepRun &run) { return run.writeCheckpoint(path); });
  });
  step.def("resume", [](Step &self, const std::string &path) {
    self.locked([&](StepRun &run) { return run.resume(path); });
  });
}

static void bindFigures(nb::class_<Step> &step) {
  step.def("messages", &Step::takeMessages);
  step.def_prop_ro("batch", [](Step &self) {
    return self.plain([](StepRun &run) { return run.batch(); });
  });
  step.def_prop_ro("updates", [](Step &self) {
    return self.plain([](StepRun &run) { return run.updates(); });
  });
  step.def_prop_ro("learning_rate", [](Step &self) {
    return self.plain([](StepRun &run) { return run.learningRate(); });
  });
  step.def_prop_ro("fields", [](Step &self) {
    auto fields = self.plain([](StepRun &run) { return run.fields().vec(); });
    nb::list result;
    for (const FieldSpec &field : fields)
      result.append(describe(field));
    return result;
  });
  step.def("measured_peak", [](Step &self) {
    return self.locked(
        [](StepRun &run) { return run.session().measuredPeak(); });
  });
  step.def("report", [](Step &self) {
    return self.plain(
        [](StepRun &run) { return stepReport(run.compiled().compilation()); });
  });
  step.def("plan_report", [](Step &self) {
    return self.plain([](StepRun &run) {
      return rematReport(run.compiled().compilation().planned().plans);
    });
  });
  step.def("graph", [](Step &self) {
    return self.plain([](StepRun &run) {
      const auto &graph = run.compiled().compilation().graph();
      return graph ? planner::printGraph(graph->searched()) : std::string();
    });
  });
  step.def("plan_text", [](Step &self) { return self.plain(planText); });
  step.def("timeline_svg", [](Step &self) {
    return self.plain([](StepRun &run) {
      return timelineSvg(memoryTimeline(run.compiled().compilation()));
    });
  });
  step.def("timeline_json", [](Step &self) {
    return self.plain([](StepRun &run) {
      return memoryTrace(memoryTimeline(run.compiled().compilation()));
    });
  });
}

void python::bindStep(nb::module_ &module) {
  module.def("epoch_order", epochPermutation, nb::arg("samples"),
             nb::arg("seed"), nb::arg("epoch"));
  nb::class_<Step> step(module, "Step");
  step.def(nb::init<const std::string &, const std::vector<Setting> &>(),
           nb::arg("model"), nb::arg("settings"));
  bindCalls(step);
  bindWeights(step);
  bindFigures(step);
}
