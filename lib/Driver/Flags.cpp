//===- Flags.cpp - the flags of the ckopt tool ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Defines which subcommands take which flag, its meaning, and the field that it
// sets.
//
//===----------------------------------------------------------------------===//
#include "Flags.h"
#include "Commands.h"
#include "Parallel.h"
#include "ckopt/Planner/SearchFlags.h"
#include "ckopt/Runtime/Primitive.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Target/TargetRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ckopt;
using llvm::StringRef;

using namespace ckopt::takers;

DriverFlags::DriverFlags(DriverOptions &options) : o(options) {
  addModelFlags();
  addLossFlags();
  addOptimizerFlags();
  addScheduleFlags();
  addBudgetFlags();
  addDataFlags();
  addCompilerFlags();
  addToolFlags();
}

void DriverFlags::addModelFlags() {
  table.beginSection("The model");
  auto &import = o.compile.import;
  add("batch", "N", Models,
      "batch size (fixes a symbolic one, changes a baked-in one)",
      [&import](StringRef text) -> llvm::Error {
        int64_t value = 0;
        if (llvm::Error error = flag::number<int64_t>("batch", value, 1)(text))
          return error;
        import.batch = value;
        return llvm::Error::success();
      });
  add("dim", "NAME=N", Models,
      "value of another symbolic dimension (repeatable)",
      [&import](StringRef text) -> llvm::Error {
        auto [name, value] = text.split('=');
        int64_t size = 0;
        if (llvm::Error error = flag::number<int64_t>("dim", size, 1)(value))
          return error;
        import.dims[name.str()] = size;
        return llvm::Error::success();
      });
  add("shape", "NAME=2x3", Models,
      "shape of an input whose file leaves it open (repeatable)",
      [&import](StringRef text) -> llvm::Error {
        auto [name, sizes] = text.split('=');
        std::vector<int64_t> &shape = import.shapes[name.str()];
        while (!sizes.empty()) {
          int64_t size = 0;
          StringRef first;
          std::tie(first, sizes) = sizes.split('x');
          if (llvm::Error error =
                  flag::number<int64_t>("shape", size, 0)(first))
            return error;
          shape.push_back(size);
        }
        return llvm::Error::success();
      });
  add("constant", "A=ARRAY,...", Run | Grad,
      "inputs that decide shapes, axes or trip counts: fixed to their values "
      "in the data",
      [this](StringRef text) -> llvm::Error {
        auto mappings = parseArrayMappings(text, "--constant");
        if (!mappings)
          return mappings.takeError();
        o.constants = std::move(*mappings);
        return llvm::Error::success();
      });
  add("as-written", "", Run,
      "dropouts and batch norms do what the file says (default: evaluation)",
      flag::turnOn(o.compile.step.asWritten));
  add("inputs", "A=ARRAY,...", Models,
      "data inputs, and the arrays they are read from",
      [this, &import](StringRef text) -> llvm::Error {
        auto mappings = parseArrayMappings(text, "--inputs");
        if (!mappings)
          return mappings.takeError();
        o.data.inputs = text.str();
        for (const ArrayMapping &mapping : *mappings)
          import.inputs.push_back(mapping.name);
        return llvm::Error::success();
      });
  add("params-from-constants", "", Models,
      "weights that a file makes by ConstantOfShape are parameters without "
      "values (--init)",
      flag::turnOn(import.paramsFromConstants));
  add("freeze", "REGEX", Models & ~Run,
      "weights that are not trained (a whole name has to match)",
      flag::text("freeze", import.freezeRegex));
  add("train", "REGEX", Models & ~Run,
      "weights that are trained, no others; --freeze wins where both match",
      flag::text("train", import.trainRegex));
  add("freeze-norms", "", Stepping | Grad,
      "batch norms without trained weights use and keep their running "
      "statistics",
      flag::turnOn(o.compile.step.freezeNorms));
  add("init", "RULE", Models,
      "weights without values: auto (default, by role), kaiming, xavier, "
      "normal",
      flag::oneOf("init", o.compile.init,
                  {"auto", "kaiming", "xavier", "normal"}));
  add("compute-type", "TYPE", Models,
      "f32 (default) or f64 (slow, for checking)",
      [this, &import](StringRef value) -> llvm::Error {
        if (value != "f32" && value != "f64")
          return usageError("--compute-type: '" + value +
                            "' is not one of f32, f64");
        import.computeType = value == "f64" ? "f64" : "";
        o.compile.keepDenormals = value == "f64";
        return llvm::Error::success();
      });
  add("weights", "FILE", Models & ~(Import | Plan | Check),
      "initial weights (.safetensors), in place of the model's own",
      flag::text("weights", o.weights));
  add("seed", "N", Models & ~(Import | Check),
      "seed of initialization, sample order and dropout (default 0)",
      flag::number<uint64_t>("seed", o.seed, 0));
}

llvm::Error DriverFlags::setBudget(StringRef flag, const MemoryBudget &budget) {
  if (!budgetFlag.empty() && budgetFlag != flag)
    return usageError("give one of " + budgetFlag + " and " + flag.str());
  budgetFlag = flag.str();
  o.compile.step.remat.budget = budget;
  return llvm::Error::success();
}

void DriverFlags::addBudgetFlags() {
  table.beginSection("Memory and the plan");
  StepOptions &step = o.compile.step;
  unsigned one = Stepping & ~Compare;
  add("memory-budget", "BYTES", one,
      "real peak: 512MiB, 2GB, plain bytes, 0.6x (--budget-ratio), or min",
      [this](StringRef text) -> llvm::Error {
        auto budget = parseMemoryBudget(text);
        if (!budget)
          return budget.takeError();
        if (budget->kind == MemoryBudget::Kind::Bytes && budget->bytes == 0)
          return usageError("--memory-budget: 0 bytes hold nothing; 'min' asks "
                            "for the smallest possible");
        return setBudget("--memory-budget", *budget);
      });
  auto ratio = [this](StringRef flag, MemoryBudget::Kind kind) {
    return [this, flag, kind](StringRef text) -> llvm::Error {
      auto budget = parseBudgetRatio(text, kind, flag);
      if (!budget)
        return budget.takeError();
      return setBudget(flag, *budget);
    };
  };
  add("budget-ratio", "R", one, "R times the arena without recomputation",
      ratio("--budget-ratio", MemoryBudget::Kind::Ratio));
  add("activation-ratio", "R", one,
      "R applied to the part that recomputation can reduce",
      ratio("--activation-ratio", MemoryBudget::Kind::ActivationRatio));
  add("minimum", "", one, "the smallest budget that can be found",
      [this](StringRef) {
        MemoryBudget budget;
        budget.kind = MemoryBudget::Kind::Minimum;
        return setBudget("--minimum", budget);
      });
  table.addOldName("budget", "memory-budget", one);
  add("budgets", "LIST", Compare,
      "budgets, ratios (0.6) or min, separated by commas (default "
      "none,0.6,min)",
      [this](StringRef text) -> llvm::Error {
        llvm::SmallVector<StringRef> parts;
        text.split(parts, ',');
        for (StringRef part : parts) {
          double ratioValue;
          if (part == "none") {
            o.budgets.push_back({});
          } else if (part.contains('.') && !part.getAsDouble(ratioValue)) {
            auto budget =
                parseBudgetRatio(part, MemoryBudget::Kind::Ratio, "--budgets");
            if (!budget)
              return budget.takeError();
            o.budgets.push_back(*budget);
          } else {
            auto budget = parseMemoryBudget(part);
            if (!budget)
              return budget.takeError();
            o.budgets.push_back(*budget);
          }
        }
        return llvm::Error::success();
      });
  addPolicyFlags();
  add("pareto", "[=N]", Plan,
      "plan N budgets (default 11) from the smallest to no recomputation; -o "
      "writes the curve (ckopt-pareto/1)",
      [this](StringRef text) -> llvm::Error {
        o.paretoPoints = 11;
        return text.empty()
                   ? llvm::Error::success()
                   : flag::number<int>("pareto", o.paretoPoints, 2, 1000)(text);
      });
  add("curve", "FILE", Plan, "a picture of the curve of --pareto (.svg)",
      flag::text("curve", o.curve));
  add("graph-out", "FILE", Plan,
      "write the planning graph (ckopt-graph/1) for ckopt-plan",
      flag::text("graph-out", o.graphOut));
  add("chart", "[=WIDTH]", Plan, "memory over the step as text, before, after",
      [this](StringRef text) -> llvm::Error {
        o.chart = true;
        return text.empty() ? llvm::Error::success()
                            : flag::number<unsigned>("chart", o.chartWidth, 40,
                                                     400)(text);
      });
  add("ascii", "", Plan, "no block characters in the chart",
      flag::turnOn(o.asciiChart));
  table.beginSection("The search for the plan");
  // The search flags have the same names as in ckopt-plan.
  planner::addSearchFlags(table, step.remat.search, Stepping, 0,
                          /*onlySeed=*/false);
  for (StringRef name : {"strategy", "fixed-order", "order-only", "time-limit",
                         "work-limit", "effort"})
    table.addOldName(("remat-" + name).str(), name, Stepping);
  table.addOldName("remat-seed", "search-seed", Stepping);
  table.addOldName("remat-threads", "search-threads", Stepping);
  add("cost-model", "MODEL", Stepping,
      "times of kernels: analytic (default) or profile=FILE, as bench "
      "--profile-out writes it",
      flag::text("cost-model", o.costModel));
}

void DriverFlags::addPolicyFlags() {
  table.beginSection("What is kept and what is computed again");
  StepOptions &step = o.compile.step;
  unsigned one = Stepping & ~Compare;
  auto rules = [](std::vector<std::string> &list) {
    return [&list](StringRef text) -> llvm::Error {
      list.push_back(text.str());
      return llvm::Error::success();
    };
  };
  add("remat", "POLICY", Stepping,
      "auto (default), per-block, sequential:K, nothing_saveable, "
      "dots_saveable, ... (docs/checkpointing.md)",
      [&step](StringRef text) {
        return parseRematMode(text, step.remat.policy);
      });
  add("save", "RULE", Stepping,
      "values that stay: a regular expression on node names, or op:, scope:, "
      "class: and one (repeatable)",
      rules(step.remat.policy.save));
  add("recompute", "RULE", Stepping,
      "values to compute again for the backward pass (repeatable)",
      rules(step.remat.policy.recompute));
  add("auto", "RULE", Stepping,
      "values that the planner decides about (repeatable)",
      rules(step.remat.policy.automatic));
  add("checkpoint-region", "RULE", Stepping,
      "modules, by name or class, that keep only their inputs (repeatable)",
      rules(step.remat.policy.checkpoint));
  add("plan", "FILE", one, "take the plan from a file of --plan-out",
      flag::text("plan", o.plan));
  add("plan-hint", "FILE", one,
      "start from a plan of --plan-out; the answer is never worse",
      flag::text("plan-hint", o.planHint));
  add("remat-compare", "HOW", Stepping,
      "what a policy costs against a plan without it: quick (default: with at "
      "most a quarter more work), on (as long as for the policy), off",
      [&step](StringRef text) -> llvm::Error {
        auto how = parseComparison(text);
        if (!how)
          return usageError("--remat-" + takeErrorText(how.takeError()).text);
        step.remat.compare = *how;
        return llvm::Error::success();
      });
  unsigned command = one & ~Program;
  add("plan-out", "FILE", command, "write the plan; it may be edited",
      flag::text("plan-out", o.planOut));
  add("plan-report", "FILE", command,
      "each value that is kept or computed again, and why (JSON)",
      flag::text("plan-report", o.planReport));
}

void DriverFlags::addDataFlags() {
  table.beginSection("Data");
  unsigned data = Train | Compare | Grad | Run;
  add("data", "FILE", data,
      "arrays of samples: .npz, .npy, a folder of .npy, a pattern "
      "('train-*.npz'), or - (.npy arrays one after another)",
      flag::text("data", o.data.path));
  add("data-cache", "FOLDER", data,
      "where compressed arrays of .npz files are unpacked to, once (default: "
      "memory)",
      flag::text("data-cache", o.data.cache));
  add("tokens", "FILE", data,
      "a text as numbers without a header: pieces of --sequence tokens are the "
      "array 'tokens', the tokens that follow 'next'",
      flag::text("tokens", o.data.tokens));
  add("token-type", "TYPE", data, "uint8, uint16 (default), int32 or uint32",
      [this](StringRef text) -> llvm::Error {
        auto type = llvm::StringSwitch<std::optional<DType>>(text)
                        .Case("uint8", DType::U8)
                        .Case("uint16", DType::U16)
                        .Case("int32", DType::I32)
                        .Case("uint32", DType::U32)
                        .Default(std::nullopt);
        if (!type)
          return usageError("--token-type: '" + text +
                            "' is not one of uint8, uint16, int32, uint32");
        o.data.tokenType = *type;
        return llvm::Error::success();
      });
  add("sequence", "N", data, "tokens of a sample",
      flag::number<int64_t>("sequence", o.data.sequence, 1));
  add("images", "FOLDER", data,
      "PNG and JPEG files, a folder for each class; labels count the classes' "
      "names in sorted order",
      flag::text("images", o.data.images));
  add("resize", "N", data,
      "images: their shorter side before the middle is cut out (default: the "
      "smallest that holds what the model takes)",
      flag::number<int64_t>("resize", o.data.imageOptions.resize, 1));
  add("augment", "LIST", Train | Compare,
      "images: flip, crop[:PADDING], resized-crop[:LEAST_AREA], at random",
      [this](StringRef text) -> llvm::Error {
        auto augment = parseAugmentation(text, "--augment");
        if (!augment)
          return augment.takeError();
        o.data.imageOptions.augment = *augment;
        return llvm::Error::success();
      });
  add("normalize", "M,.../D,...", data,
      "images: means and deviations of values from 0 to 1, or 'imagenet' "
      "(default: none)",
      [this](StringRef text) {
        return parseNormalization(text, "--normalize", o.data.imageOptions);
      });
  add("validation", "FILE", Train | Compare,
      "samples for evaluation alone, as --data, --tokens or --images",
      flag::text("validation", o.validation));
  add("validate-every", "N", Train,
      "evaluate after every N steps, too (default: at the end)",
      flag::number<int64_t>("validate-every", o.train.validateEvery, 1));
  add("metrics", "LIST", Train | Compare,
      "what evaluations compute beside loss and accuracy: topK (top5), "
      "perplexity, mse",
      [this](StringRef text) -> llvm::Error {
        auto metrics = parseMetrics(text, "--metrics");
        if (!metrics)
          return metrics.takeError();
        o.data.metrics = std::move(*metrics);
        return llvm::Error::success();
      });
  add("best-by", "METRIC", Train,
      "what the best evaluation is judged by: loss (default), accuracy or one "
      "of --metrics",
      [this](StringRef text) -> llvm::Error {
        auto metric = parseMetric(text, "--best-by");
        if (!metric)
          return metric.takeError();
        o.train.bestBy = *metric;
        return llvm::Error::success();
      });
  add("keep-best", "FILE", Train,
      "the state of the best evaluation: a checkpoint (.safetensors) or "
      "weights (.onnx)",
      flag::text("keep-best", o.train.keepBest));
  add("early-stop", "N", Train,
      "stop after N evaluations in a row that were not better",
      flag::number<int64_t>("early-stop", o.train.earlyStop, 1));
  add("log", "FILE", Train,
      "a line for each step: loss, rate, time, validation (.csv or .jsonl)",
      flag::text("log", o.train.log));
  add("html", "FILE", Train,
      "a page about the run: loss, evaluations, memory, plan, options",
      flag::text("html", o.train.html));
  add("targets", "ARRAY", data | Program,
      "array of targets (default y); of several losses OUTPUT=ARRAY,...",
      flag::text("targets", o.data.targets));
  table.beginSection("The run");
  add("epochs", "N", Train | Compare, "passes over the data (default 1)",
      flag::number<int64_t>("epochs", o.train.epochs, 0));
  add("max-steps", "N", Train | Compare, "stop after so many steps",
      flag::number<int64_t>("max-steps", o.train.maxSteps, 0));
  add("holdout", "F", Train | Compare,
      "share of the samples kept for evaluation (seeded)",
      flag::number<double>("holdout", o.train.holdout, 0));
  add("checkpoint", "FILE", Train,
      "write a checkpoint (.safetensors) after each epoch",
      flag::text("checkpoint", o.train.checkpoint));
  add("checkpoint-every", "N", Train, "steps between checkpoints",
      flag::number<int64_t>("checkpoint-every", o.train.checkpointEvery, 1));
  add("resume", "FILE", Train, "go on from a checkpoint, with the same bits",
      flag::text("resume", o.train.resume));
  add("check-finite", "", Train | Compare | Bench | Program,
      "name the first op that makes a NaN or infinity",
      flag::turnOn(o.checkFinite));
  add("verify-remat", "[=keep]", Train | Compare | Program,
      "compare each recomputed value with the first one",
      [this](StringRef value) -> llvm::Error {
        if (!value.empty() && value != "keep")
          return usageError("--verify-remat takes no value or 'keep'");
        o.verifyRemat = true;
        o.keepValues = value == "keep";
        return llvm::Error::success();
      });
  add("parallel", "dp:N|fsdp:N|dp:M,fsdp:N", Train | Plan,
      "N (or M times N) processes train together, each on a share of every "
      "batch: mpirun -n N ckopt train ... (docs/parallel.md); --batch is that "
      "of all; fsdp: N of them share weights and states",
      [this](StringRef text) -> llvm::Error {
        return parseParallel(text, o.compile.step);
      });
  add("rank-timeout", "SECONDS", Train,
      "with --parallel: end where another rank has not answered for so long "
      "(default: wait)",
      flag::number<double>("rank-timeout", o.rankTimeout, 0));
  table.beginSection("Times");
  add("steps", "N", Bench, "steps to time (default 10)",
      flag::number<int64_t>("steps", o.steps, 1));
  add("profile", "", Bench | Program,
      "time each kernel; print the table by time", flag::turnOn(o.profile));
  add("profile-out", "FILE", Bench,
      "time each kernel; write the times for --cost-model=profile=FILE",
      flag::text("profile-out", o.profileOut));
  add("calibrate", "FILE", Bench,
      "time each kernel; fit the machine's rates to the times and write them "
      "for --cost-model=profile=FILE, for this and other models",
      flag::text("calibrate", o.calibrate));
  add("tune", "FILE", Bench,
      "time each product and pointwise convolution of the step alone in all "
      "forms that libraries have, and write a table of the fastest for "
      "--library-table=FILE",
      flag::text("tune", o.tune));
  add("warmup", "N", Bench, "steps before timing (default 2)",
      flag::number<int64_t>("warmup", o.warmup, 0));
}

void DriverFlags::addCompilerFlags() {
  table.beginSection("The compiler");
  StepOptions &step = o.compile.step;
  unsigned all = Stepping | Grad | Run;
  add("threads", "N", all, "threads of the step (default: the cores)",
      flag::number<int32_t>("threads", step.threads, 1));
  add("layout", "NAME", all, "channels-last (default) or none",
      flag::oneOf("layout", step.layout, {"channels-last", "none"}));
  add("precision", "TYPE", all,
      "f32 (default), bf16, f16: products and convolutions from halves, which "
      "activations are stored in; parameters, their gradients, sums and losses "
      "stay f32 (docs/precision.md)",
      flag::oneOf("precision", step.precision, {"f32", "bf16", "f16"}));
  addLossScaleFlags();
  add("keep-f32", "REGEX", all,
      "with --precision=bf16 or f16: nodes that stay as they are in f32 (a "
      "whole name "
      "has to match)",
      flag::text("keep-f32", o.compile.step.keepF32));
  add("chunk-vocab", "ROWS", Stepping | Grad,
      "cross entropy of a large head some rows at a time, so that its logits "
      "never exist whole: auto (default: by their size), off, or the rows",
      flag::text("chunk-vocab", o.compile.step.chunkVocab));
  add("attention", "FORM", all,
      "auto (default): on the CPU scores of 128 keys or more are made block by "
      "block, forward and backward, and never kept (docs/attention.md); on: "
      "of any number of keys; off: products and a softmax",
      flag::oneOf("attention", step.attention, {"auto", "on", "off"}));
  add("cpu", "NAME", all, "CPU to compile for (default native)",
      flag::text("cpu", o.compile.target.cpu));
  add("O", "LEVEL", all, "LLVM's optimization, 0 to 3 (default 2)",
      flag::number<unsigned>("O", o.compile.target.optLevel, 0, 3));
  add("library-table", "FILE", all,
      "which library runs which product or convolution, and how: rules before "
      "the built-in ones, as bench --tune writes them (docs/library-table.md)",
      flag::text("library-table", step.libraryTable));
  add("kernel-cache", "FOLDER", all,
      "where compiled kernels are kept for later runs, or off (default: "
      "$CKOPT_CACHE_DIR, else ckopt/ in $XDG_CACHE_HOME or ~/.cache)",
      flag::text("kernel-cache", o.compile.target.kernelCache));
  add("compile-from", "PHASE", Plan | Compile | Import,
      "the input is IR dumped before this phase",
      flag::text("compile-from", o.compile.phases.from));
  add("compile-to", "PHASE", Plan | Compile | Import,
      "stop after this phase and write IR to -o",
      flag::text("compile-to", o.compile.phases.to));
  add("dump-phases", "DIR", Models, "write the IR after each phase",
      flag::text("dump-phases", o.compile.phases.dumpDirectory));
  addDeviceFlags();
}

void DriverFlags::addLossScaleFlags() {
  LossScaling &scaling = o.compile.step.lossScaling;
  add("loss-scale", "N", Stepping | Grad,
      "with --precision=f16: what the loss is multiplied by for the backward "
      "pass, a power of two, or dynamic (default): halved after an overflow, "
      "whose update is skipped, and doubled after a while without one",
      [&scaling](StringRef text) -> llvm::Error {
        scaling.dynamic = text == "dynamic";
        if (!scaling.dynamic && text.getAsDouble(scaling.initial))
          return usageError("--loss-scale: '" + text +
                            "' is not dynamic or a number");
        return llvm::Error::success();
      });
  add("loss-scale-init", "N", Stepping | Grad,
      "where a dynamic scale starts (default 65536)",
      flag::number<double>("loss-scale-init", scaling.initial));
  add("loss-scale-growth-interval", "N", Stepping,
      "updates without overflow after which it doubles (default 2000)",
      flag::number<int64_t>("loss-scale-growth-interval",
                            scaling.growthInterval, 1));
}

void DriverFlags::addDeviceFlags() {
  table.beginSection("Devices");
  DeviceOptions &device = o.compile.device;
  unsigned all = Stepping | Grad | Run;
  unsigned running = all & ~(Plan | Compile);
  std::vector<std::string> targets;
  for (const TargetInfo *target : allTargets())
    targets.push_back(target->name());
  add("target", "NAME", all,
      "what the step runs on: " + llvm::join(targets, ", ") + " (default " +
          o.compile.step.target + ")",
      flag::oneOf("target", o.compile.step.target, targets));
  for (const TargetInfo *target : allTargets()) {
    std::shared_ptr<TargetOptions> own = target->makeOptions();
    if (!own)
      continue;
    OwnSettings &settings = ownSettings.emplace_back();
    settings.target = target;
    settings.options = own;
    for (TargetFlag &flag : target->ownFlags(*own)) {
      add(flag.name, flag.value, all, flag.help, std::move(flag.store));
      settings.flags.push_back(flag.name);
    }
  }
  add("matmul-precision", "TYPE", all,
      "class of products of f32: highest (default: f32), high (GPUs: tf32, "
      "CPUs with AMX: bf16x3), medium (bf16), or one by its name: f32, tf32, "
      "bf16, f16, bf16x3, bf16x6; sums and tensors stay f32",
      [this](StringRef text) -> llvm::Error {
        if (!runtime::parseProductPrecision(text) && text != "highest" &&
            text != "high" && text != "medium")
          return usageError("--matmul-precision: '" + text +
                            "' is not one of highest, high, medium, f32, tf32, "
                            "bf16, f16, bf16x3, bf16x6");
        o.compile.step.matmulPrecision = text.str();
        return llvm::Error::success();
      });
  add("device", "cuda:N", running, "compile for CUDA and run on this device",
      [&device](StringRef text) -> llvm::Error {
        auto [name, number] = text.split(':');
        bool known = llvm::any_of(allTargets(), [&](const TargetInfo *target) {
          return target->traits.hasDevices && target->name() == name;
        });
        if (!known || number.getAsInteger(10, device.ordinal) ||
            device.ordinal < 0)
          return usageError("--device: '" + text +
                            "' is no device; give cuda:0 or the like");
        device.target = name.str();
        return llvm::Error::success();
      });
}

void DriverFlags::addToolFlags() {
  table.beginSection("What is printed and written");
  unsigned files = Stepping & ~Program;
  add("o", "FILE", Models & ~(Bench | Inspect | Check | Program),
      "the result: a step (compile), trained weights (train, compare: .onnx or "
      ".safetensors), arrays (run, grad: .npz), IR (import, plan)",
      flag::text("o", o.output));
  add("report", "FILE", files, "everything that was printed, and more, as JSON",
      flag::text("report", o.report));
  add("timeline", "FILE", files,
      "memory over the step: a picture (.svg) or a trace for ui.perfetto.dev "
      "(.json); once each",
      flag::bySuffix("timeline", {{".svg", &o.timeline}, {".json", &o.trace}}));
  table.addOldFlag("trace", "FILE", files & ~Compare, "--timeline=FILE.json",
                   flag::text("trace", o.trace));
  table.addOldFlag("svg", "FILE", Plan,
                   "--timeline=FILE.svg, and --curve=FILE with --pareto",
                   flag::text("svg", o.svg));
  add("depth", "N", Bench | Inspect,
      "modules in the table of times and bytes by module: of how many levels "
      "(default 2; 0: no table)",
      flag::number<int>("depth", o.depth, 0));
  add("allow-inference-export", "", Models & ~Check,
      "train what is left of a model that was exported for inference",
      flag::turnOn(o.allowInferenceExport));
  add("summary", "", Import, "counts instead of IR", flag::turnOn(o.summary));
  add("list-ops", "", Import, "the operators that import knows",
      flag::turnOn(o.listOps));
  add("quiet", "", Models & ~Program,
      "print nothing but errors; files are written as ever",
      flag::turnOn(o.quiet));
  add("verbose", "", Models, "a line for each phase",
      flag::turnOn(o.compile.phases.verbose));
}
