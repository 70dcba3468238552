//===- Step.cpp - compiled steps in Python --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Step.h"

#include "ckopt/Compiler/Reports.h"
#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/Verifier.h"
#include "ckopt/Settings/JoinRanks.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Train/Data/Permutation.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;
using namespace ckopt::python;

namespace {

using Messages = std::vector<Message>;

/// One line each of the errors among the messages, and what belongs to them.
MessageText errorLines(const Messages &messages) {
  ErrorLines lines;
  for (const Message &message : messages)
    lines.add(message);
  return lines.take();
}

} // namespace

const pid_t python::loadedIn = getpid();

Step::Step(const std::string &model, const std::vector<GivenSetting> &settings,
           bool isTemporary, Step *beside) {
  nb::gil_scoped_release release;
  words.temporary = isTemporary ? model : "";
  if (beside)
    shared = beside->shared;
  onThreads([&] {
    std::lock_guard lock(*shared);
    open(model, settings, beside);
  });
}

void Step::open(const std::string &model,
                const std::vector<GivenSetting> &settings, Step *beside) {
  StepSettings all = take(readSettings(model, settings), words);
  all.compile.keepGraph = true; // for curves
  if (beside)
    all.compile.step.remat.budget = {
        MemoryBudget::Kind::Bytes, beside->run->session().manifest().arenaBytes,
        1};
  if (!words.temporary.empty())
    all.compile.modelName = kGivenAsBytes;
  all.compile.messages = [messages = messages](const Message &message) {
    messages->push_back(message);
  };
  auto told = [&] { return Told{errorLines(*messages), words.temporary}; };
  check(joinRanks(all), told());
  auto compiled = compile(std::move(all.compile), std::move(all.data));
  check(compiled.takeError(), told());
  run = take(
      beside ? StepRun::create(std::move(*compiled), all.train, *beside->run)
             : StepRun::create(std::move(*compiled), all.train, all.load),
      told());
}

Step::Step(Step &largest, int64_t size)
    : words(largest.words), messages(largest.messages), shared(largest.shared) {
  auto open = [&] {
    nb::gil_scoped_release release;
    return onThreads([&] {
      std::lock_guard lock(*shared);
      return largest.run->at(size);
    });
  };
  run = take(open(), words);
}

std::vector<std::pair<std::string, std::string>> Step::takeMessages() {
  static constexpr const char *names[] = {"error", "warning", "remark", "note"};
  nb::gil_scoped_release release; // whoever has the lock may want the GIL
  std::lock_guard lock(*shared);
  std::vector<std::pair<std::string, std::string>> result;
  for (const Message &message : *messages)
    result.emplace_back(names[size_t(message.severity)],
                        inPython(message.placed(), words));
  messages->clear();
  return result;
}

static nb::dict describe(const FieldSpec &field, bool copiesOnDevice) {
  nb::dict result;
  result["on_device"] = copiesOnDevice;
  result["name"] = field.name;
  result["array"] = field.array;
  result["dtype"] = std::string(dtypeTable[size_t(field.dtype)].numpy);
  result["batched"] = field.batched;
  result["shape"] = nb::tuple(nb::cast(*field.shape));
  return result;
}

nb::dict Evaluated::numbers() const {
  nb::dict result;
  if (!sums.count)
    return result;
  result["loss"] = sums.meanLoss();
  result["count"] = sums.count;
  if (classified)
    result["accuracy"] = sums.accuracy();
  for (const Metric &metric : metrics)
    result[metric.name().c_str()] = metric.of(sums);
  return result;
}

static std::string planText(StepRun &run) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  printPlan(run.compiled().compilation(), stream);
  return text;
}

/// Checks the plans of all functions by the planner's verifier; the text says
/// what is wrong, and is empty if nothing is. `budget`: bytes; 0: the step's
/// own.
static std::string verifyPlans(StepRun &run, int64_t budget) {
  for (const RematPlan &plan : run.compiled().compilation().planned().plans) {
    if (!plan.wasPlanned())
      continue;
    const std::string &name = plan.problem.graph.name;
    std::string wrong =
        planner::verify(plan.problem.graph, plan.result.plan, /*budget=*/0);
    if (!wrong.empty())
      return "@" + name + ": " + wrong;
    int64_t allowed = budget ? budget : plan.budgetBytes;
    if (plan.arena > allowed)
      return "@" + name + " takes " + std::to_string(plan.arena) + " bytes, " +
             std::to_string(allowed) + " are allowed";
  }
  return "";
}

static void bindCalls(nb::class_<Step> &step) {
  step.def(
      "step",
      [](Step &self, const nb::dict &arrays) {
        GivenBatch batch = toBatch(arrays, self);
        StepResult result = self.locked(
            [&](StepRun &run) { return run.step(batch.host, batch.onDevice); });
        return std::pair(result.loss, result.updated);
      },
      nb::arg("arrays"));
  step.def(
      "gradients",
      [](Step &self, const nb::dict &arrays) {
        GivenBatch batch = toBatch(arrays, self);
        BatchGradients result = self.locked([&](StepRun &run) {
          return run.gradients(batch.host, batch.onDevice);
        });
        return std::pair(result.loss, toArrays(std::move(result.gradients)));
      },
      nb::arg("arrays"));
  step.def(
      "evaluate",
      [](Step &self, const nb::dict &arrays, const std::string &names) {
        TensorMap samples = toTensors(arrays);
        return self.evaluated(names, [&](StepRun &run, auto metrics) {
          return run.evaluate(samples, std::move(metrics));
        });
      },
      nb::arg("arrays"), nb::arg("metrics"));
  step.def(
      "predict",
      [](Step &self, const nb::dict &arrays) {
        TensorMap samples = toTensors(arrays);
        return toArrays(
            self.locked([&](StepRun &run) { return run.predict(samples); }));
      },
      nb::arg("arrays"));
  step.def(
      "profile",
      [](Step &self, const nb::dict &arrays, int64_t steps) {
        TensorMap batch = toTensors(arrays);
        auto times = self.locked(
            [&](StepRun &run) { return run.profile(batch, steps); });
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
      },
      nb::arg("arrays"), nb::arg("steps"));
}

static void bindLate(nb::class_<Step> &step) {
  step.def(
      "step_later",
      [](Step &self, const nb::dict &arrays) {
        self.stepLater(toBatch(arrays, self));
      },
      nb::arg("arrays"));
  step.def("settle", &Step::settle);
  step.def("has_started", &Step::hasStarted);
  step.def("take_losses", &Step::takeLosses);
}

static void bindWeights(nb::class_<Step> &step) {
  step.def(
      "weights",
      [](Step &self, bool averaged) {
        return toArrays(
            self.locked([&](StepRun &run) { return run.weights(averaged); }));
      },
      nb::arg("averaged"));
  step.def("weight_types", [](Step &self) {
    nb::dict result;
    for (const TensorSpec &spec :
         self.plain([](StepRun &run) { return run.describeWeights(); }))
      // As in arrays: numpy has no bf16.
      result[spec.name.c_str()] =
          dtypeTable[size_t(spec.dtype == DType::BF16 ? DType::F32
                                                      : spec.dtype)]
              .numpy;
    return result;
  });
  step.def(
      "set_weights",
      [](Step &self, const nb::dict &arrays) {
        TensorMap weights = toTensors(arrays);
        self.locked([&](StepRun &run) { return run.setWeights(weights); });
      },
      nb::arg("arrays"));
  step.def(
      "write_weights",
      [](Step &self, const std::string &path, bool averaged, bool trained,
         int64_t bytes) {
        self.locked([&](StepRun &run) {
          return run.writeWeights(path, {averaged, trained, bytes});
        });
      },
      nb::arg("path"), nb::arg("averaged"), nb::arg("trained"),
      nb::arg("bytes"));
  step.def(
      "name_in_folders",
      [](Step &self, const std::string &prefix,
         const std::vector<std::pair<std::string, std::string>> &tied) {
        self.locked([&](StepRun &run) -> llvm::Error {
          GivenWeights &given = run.session().given;
          given.prefix = {prefix, ""};
          given.tied = {tied.begin(), tied.end()};
          return llvm::Error::success();
        });
      },
      nb::arg("prefix"), nb::arg("tied"));
  step.def(
      "write_checkpoint",
      [](Step &self, const std::string &path) {
        self.locked([&](StepRun &run) { return run.writeCheckpoint(path); });
      },
      nb::arg("path"));
  step.def(
      "resume",
      [](Step &self, const std::string &path) {
        self.locked([&](StepRun &run) { return run.resume(path); });
      },
      nb::arg("path"));
  step.def(
      "resume_from", [](Step &self, Step &other) { self.resumeFrom(other); },
      nb::arg("other"));
}

static void bindFigures(nb::class_<Step> &step) {
  step.def("messages", &Step::takeMessages);
  step.def_prop_ro("batch", [](Step &self) {
    return self.plain([](StepRun &run) { return run.batch(); });
  });
  step.def_prop_ro("least_batch", [](Step &self) {
    return self.plain(
        [](StepRun &run) { return leastBatch(run.session().manifest()); });
  });
  step.def_prop_ro("updates", [](Step &self) {
    return self.plain([](StepRun &run) { return run.updates(); });
  });
  step.def_prop_ro("loss_scale", [](Step &self) {
    return self.plain([](StepRun &run) {
      const auto &scale = run.lossScale();
      return scale ? std::optional(std::pair(scale->scale, scale->skipped))
                   : std::nullopt;
    });
  });
  step.def_prop_ro("epochs", [](Step &self) {
    return self.plain([](StepRun &run) { return run.epochs(); });
  });
  step.def_prop_ro("learning_rate", [](Step &self) {
    return self.plain([](StepRun &run) { return run.learningRate(); });
  });
  step.def_prop_ro("planned_bytes", [](Step &self) {
    return self.plain([](StepRun &run) {
      return runtime::plannedBytes(run.session().manifest());
    });
  });
  step.def_prop_ro("open_size", [](Step &self) {
    const runtime::OpenSize open =
        self.plain([](StepRun &run) { return run.session().manifest().open; });
    return open.name.empty()
               ? std::nullopt
               : std::optional(std::tuple(open.name, open.low, open.high));
  });
  step.def_prop_ro("fields", [](Step &self) {
    nb::list result;
    std::vector<bool> copies;
    auto fields = self.plain([&](StepRun &run) {
      for (const FieldSpec &field : run.fields())
        copies.push_back(run.copiesOnDevice(field));
      return run.fields().vec();
    });
    for (size_t i = 0; i < fields.size(); ++i)
      result.append(describe(fields[i], copies[i]));
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
  step.def(
      "verify_plans",
      [](Step &self, const std::string &budget) {
        int64_t bytes = budget.empty() ? 0 : take(parseByteSize(budget));
        return self.plain(
            [&](StepRun &run) { return verifyPlans(run, bytes); });
      },
      nb::arg("budget"));
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
  module.def("rank", [] { return placeOfProcess().first; });
  module.def("ranks", [] { return placeOfProcess().second; });
  module.def(
      "leave_ranks", [] { Ranks::met().leave(); },
      nb::call_guard<nb::gil_scoped_release>());
  module.def(
      "epoch_order",
      [](int64_t samples, uint64_t seed, int64_t epoch) {
        return epochPermutation<int64_t>(samples, seed, epoch);
      },
      nb::arg("samples"), nb::arg("seed"), nb::arg("epoch"));
  nb::class_<Evaluated>(module, "Evaluated")
      .def(
          "add",
          [](Evaluated &self, const Evaluated &other) {
            self.sums += other.sums;
          },
          nb::arg("other"))
      .def("numbers", &Evaluated::numbers);
  nb::class_<Step> step(module, "Step");
  step.def(nb::init<const std::string &, const std::vector<GivenSetting> &,
                    bool, Step *>(),
           nb::arg("model"), nb::arg("settings"), nb::arg("is_temporary"),
           nb::arg("beside").none() = nb::none());
  step.def(nb::init<Step &, int64_t>(), nb::arg("largest"), nb::arg("size"));
  bindCalls(step);
  bindFit(step);
  bindLate(step);
  bindWeights(step);
  bindFigures(step);
  bindDevice(module, step);
}
