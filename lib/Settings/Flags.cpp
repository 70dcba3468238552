//===- Flags.cpp - the flags of the ckopt tool ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Defines which subcommands take which flag, its meaning, and the field that it
// sets.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Settings/Flags.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Target/TargetRegistry.h"
#include "llvm/ADT/StringExtras.h"

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
  addRunFlags();
  addTimeFlags();
  addCompilerFlags();
  addToolFlags();
}

/// Reads a size, or a range of sizes (whose largest it returns).
llvm::Expected<int64_t> DriverFlags::readSize(StringRef flag, StringRef name,
                                              StringRef text) {
  int64_t first = 0, last = 0;
  if (!text.contains("..")) {
    if (llvm::Error error = flag::number<int64_t>(flag, first, 1)(text))
      return std::move(error);
    return first;
  }
  auto [low, high] = text.split("..");
  if (low.getAsInteger(10, first) || high.getAsInteger(10, last) || first < 1 ||
      last <= first)
    return usageError((name.empty()
                           ? Setting("batch", text)
                           : Setting("dim", (name + "=" + text).str())) +
                      ": a range of sizes is LOW..HIGH, with 1 <= LOW < HIGH");
  std::optional<SizeRange> &sizes = o.compile.sizes;
  if (sizes)
    return usageError("one range of sizes is left open, and there are two: '" +
                      (sizes->name.empty() ? "batch" : sizes->name) +
                      "' and '" + (name.empty() ? "batch" : name) + "'");
  sizes = SizeRange{name.str(), first, last};
  return last;
}

void DriverFlags::addModelFlags() {
  table.beginSection("The model");
  readBy("import");
  auto &import = o.compile.import;
  add("batch", "N", Models | Merge,
      "batch size (fixes a symbolic one, changes a baked-in one); LOW..HIGH: "
      "all of these",
      [this, &import](StringRef text) {
        return readSize("batch", "", text).moveInto(import.batch);
      });
  add("dim", "NAME=N", Models | Merge,
      "value of another symbolic dimension (repeatable); LOW..HIGH: all of "
      "these",
      [this, &import](StringRef text) {
        auto [name, value] = text.split('=');
        return readSize("dim", name, value).moveInto(import.dims[name.str()]);
      });
  add("shape", "NAME=2x3", Models | Merge,
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
        auto mappings = parseArrayMappings(text, Setting("constant"));
        if (!mappings)
          return mappings.takeError();
        o.constants = std::move(*mappings);
        return llvm::Error::success();
      });
  add("as-written", "", Run,
      "dropouts and batch norms do what the file says (default: evaluation)",
      flag::turnOn(o.compile.step.asWritten));
  add("inputs", "A=ARRAY,...", Models | Merge,
      "data inputs, and the arrays they are read from",
      [this, &import](StringRef text) -> llvm::Error {
        auto mappings = parseArrayMappings(text, Setting("inputs"));
        if (!mappings)
          return mappings.takeError();
        o.data.inputs = text.str();
        for (const ArrayMapping &mapping : *mappings)
          import.inputs.push_back(mapping.name);
        return llvm::Error::success();
      });
  add("unused-inputs", "NAME,...", (Models & ~Run) | Merge,
      "data inputs that may have no effect; others that nothing reads are an "
      "error",
      [&import](StringRef text) {
        llvm::SmallVector<StringRef> names;
        text.split(names, ',', -1, /*KeepEmpty=*/false);
        for (StringRef name : names)
          import.unusedInputs.push_back(name.trim().str());
        return llvm::Error::success();
      });
  add("params-from-constants", "", Models,
      "weights that a file makes by ConstantOfShape are parameters without "
      "values (" +
          Setting("init") + ")",
      flag::turnOn(import.paramsFromConstants));
  add("type", "NAME", Quantize, "int4 (default), int8, nf4: what is stored",
      flag::text("type", o.quantizedType));
  add("group-size", "N", Quantize,
      "numbers that share a scale: 32, 64 (default) or 128",
      flag::number<int64_t>("group-size", o.quantizedGroup, 1));
  add("freeze", "REGEX", (Models & ~Run) | Quantize,
      "weights that are not trained (a whole name has to match)",
      flag::pattern("freeze", import.freezeRegex));
  add("train", "REGEX", (Models & ~Run) | Quantize,
      "weights that are trained, no others; " + Setting("freeze") +
          " wins where both match",
      flag::pattern("train", import.trainRegex));
  addAdapterFlags();
  readBy("autodiff");
  add("freeze-norms", "", Stepping | Grad,
      "batch norms without trained weights use and keep their running "
      "statistics",
      flag::turnOn(o.compile.step.freezeNorms));
  readBy("import");
  add("init", "RULE", Models,
      "weights without values: auto (default, by role), kaiming, xavier, "
      "normal",
      [this](StringRef text) {
        o.asksForInit = true;
        return flag::oneOf("init", o.compile.init)(text);
      });
  add("compute-type", "TYPE", Models,
      "f32 (default) or f64 (slow, for checking)",
      [this, &import](StringRef value) -> llvm::Error {
        if (value != "f32" && value != "f64")
          return usageError(Setting("compute-type") + ": '" + value +
                            "' is not one of f32, f64");
        import.f64 = value == "f64";
        o.compile.keepDenormals = value == "f64";
        return llvm::Error::success();
      });
  readBy("");
  add("weights", "FILE", (Models & ~(Import | Plan | Check)) | Merge,
      "initial weights, in place of the model's own: a .safetensors, an index "
      "of several (.json), or the folder that has them",
      flag::inputFile("weights", o.weights));
  add("seed", "N", Models & ~(Import | Check),
      "seed of initialization, sample order and dropout (default 0)",
      flag::number<uint64_t>("seed", o.seed, 0));
}

void DriverFlags::addAdapterFlags() {
  AdapterOptions &lora = o.compile.lora;
  add("lora", "RANK[:ALPHA][:REGEX]", Models,
      "low-rank adapters for products, and nothing else is trained: of which "
      "rank, and " +
          Setting("lora-alpha") + " and " + Setting("lora-targets") +
          " (docs/fine-tune.md)",
      [&lora](StringRef text) -> llvm::Error {
        auto [rank, rest] = text.split(':');
        if (llvm::Error error =
                flag::number<int64_t>("lora", lora.rank, 1)(rank))
          return error;
        // A regular expression may contain colons.
        auto [alpha, regex] = rest.split(':');
        double number = 0;
        if (!alpha.empty() && alpha.getAsDouble(number))
          regex = rest;
        else if (!alpha.empty())
          lora.alpha = number;
        return regex.empty() ? llvm::Error::success()
                             : flag::pattern("lora", lora.targets)(regex);
      });
  add("lora-alpha", "X", Models | Merge,
      "adapters are multiplied by X / rank (default 8)",
      flag::number<double>("lora-alpha", lora.alpha));
  add("lora-targets", "REGEX", Models,
      "products that get adapters: a whole name has to match, or its end "
      "behind a dot (default: all but output heads)",
      flag::pattern("lora-targets", lora.targets));
  add("lora-dropout", "P", Models,
      "dropout of the adapters' inputs (default 0)",
      [&lora](StringRef text) -> llvm::Error {
        if (text.getAsDouble(lora.dropout) ||
            !(lora.dropout >= 0 && lora.dropout < 1))
          return usageError(Setting("lora-dropout") + ": '" + text +
                            "' does not lie in [0, 1)");
        return llvm::Error::success();
      });
  add("dora", "", Models,
      "with " + Setting("lora") +
          ": a trained magnitude of each output, too (DoRA)",
      flag::turnOn(lora.dora));
}

void DriverFlags::addCompilerFlags() {
  table.beginSection("The compiler");
  StepOptions &step = o.compile.step;
  unsigned all = Stepping | Grad | Run;
  add("threads", "N", all, "threads of the step (default: the cores)",
      flag::number<int32_t>("threads", step.threads, 1));
  readBy("fuse");
  add("layout", "NAME", all, "channels-last (default) or none",
      flag::oneOf("layout", step.layout));
  readBy("");
  add("precision", "TYPE", all,
      "f32 (default), bf16, f16: products and convolutions read that type, "
      "which "
      "activations are stored in; parameters, their gradients, sums and losses "
      "stay f32 (docs/precision.md)",
      flag::oneOf("precision", step.precision));
  addLossScaleFlags();
  readBy("fuse");
  add("keep-f32", "REGEX", all,
      "with " + Setting("precision", "bf16") +
          " or f16: nodes that stay as they are in f32 (a whole name has to "
          "match)",
      flag::text("keep-f32", o.compile.step.keepF32));
  readBy("autodiff");
  auto rowsInto = [](Setting name, int64_t &into) {
    return [name, &into](StringRef text) -> llvm::Error {
      auto rows = parseChunkRows(text);
      if (!rows)
        return usageError(name + ": '" + text +
                          "' is not auto, off, or a positive number");
      into = *rows;
      return llvm::Error::success();
    };
  };
  add("chunk-vocab", "ROWS", Stepping | Grad,
      "cross entropy of a large head some rows at a time, so that its logits "
      "never exist whole: auto (default: by their size), off, or the rows",
      rowsInto(Setting("chunk-vocab"), step.chunkRows));
  add("tile-rows", "ROWS", Stepping | Grad,
      "regions that work row by row (a transformer's MLP) some rows at a time: "
      "auto (default: by their size), off, or the rows",
      rowsInto(Setting("tile-rows"), step.tileRows));
  readBy("normalize");
  add("attention", "FORM", all,
      "auto (default): scores of 128 keys or more are made block by block, "
      "forward and backward, and never kept (docs/attention.md); on: of any "
      "number of keys; off: products and a softmax",
      flag::oneOf("attention", step.attention));
  readBy("");
  add("cpu", "NAME", all, "CPU to compile for (default native)",
      flag::text("cpu", o.compile.target.cpu));
  add("O", "LEVEL", all, "LLVM's optimization, 0 to 3 (default 2)",
      flag::number<unsigned>("O", o.compile.target.optLevel, 0, 3));
  add("library-table", "FILE", all,
      "which library runs which product or convolution, and how: rules before "
      "the built-in ones (docs/library-table.md)",
      flag::inputFile("library-table", step.libraryTable));
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
  readBy("autodiff");
  add("loss-scale", "N", Stepping | Grad,
      "with " + Setting("precision", "f16") +
          ": what the loss is multiplied by for the backward pass, a power of "
          "two, or dynamic (default): halved after an overflow, whose update "
          "is skipped, and doubled after a while without one",
      [&scaling](StringRef text) -> llvm::Error {
        scaling.dynamic = text == "dynamic";
        if (!scaling.dynamic && text.getAsDouble(scaling.initial))
          return usageError(Setting("loss-scale") + ": '" + text +
                            "' is not dynamic or a number");
        return llvm::Error::success();
      });
  add("loss-scale-init", "N", Stepping | Grad,
      "where a dynamic scale starts (default 65536)",
      flag::number<double>("loss-scale-init", scaling.initial));
  readBy("optimizer");
  add("loss-scale-growth-interval", "N", Stepping,
      "updates without overflow after which it doubles (default 2000)",
      flag::number<int64_t>("loss-scale-growth-interval",
                            scaling.growthInterval, 1));
  readBy("");
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
      Flag::Store store = std::move(flag.store);
      if (flag.file)
        store = flag.isWritten ? flag::writes(std::move(store), *flag.file)
                               : flag::reads(std::move(store), *flag.file);
      add(flag.name, flag.value, all, flag.help, std::move(store));
      settings.flags.push_back(flag.name);
    }
  }
  add("matmul-precision", "TYPE", all,
      "class of products of f32: highest (default: f32), high (GPUs: tf32, "
      "CPUs: f32), medium (bf16), or one by its name: f32, tf32, "
      "bf16, f16; sums and tensors stay f32",
      flag::oneOf("matmul-precision", o.compile.step.matmulPrecision));
  add("device", "cuda:N", running, "compile for CUDA and run on this device",
      [&device](StringRef text) -> llvm::Error {
        auto [name, number] = text.split(':');
        bool known = llvm::any_of(allTargets(), [&](const TargetInfo *target) {
          return target->traits.hasDevices && target->name() == name;
        });
        if (!known || number.getAsInteger(10, device.ordinal) ||
            device.ordinal < 0)
          return usageError(Setting("device") + ": '" + text +
                            "' is no device; give cuda:0 or the like");
        device.target = name.str();
        return llvm::Error::success();
      });
  add("nccl-id", "FILE", running,
      "ranks on GPUs without mpirun: RANK and WORLD_SIZE number them, and they "
      "meet by this file",
      flag::outputFile("nccl-id", o.ncclId));
}

void DriverFlags::addToolFlags() {
  table.beginSection("What is printed and written");
  unsigned files = Stepping & ~Program;
  add("o", "FILE",
      (Models & ~(Bench | Inspect | Check | Program)) | Merge | Quantize,
      "the result: a step (compile), trained weights (train, compare: .onnx, "
      ".safetensors, or a folder for Transformers), a model (merge, quantize: "
      ".onnx), arrays (run, grad: "
      ".npz), IR (import, plan)",
      flag::outputFile("o", o.output));
  add("report", "FILE", files, "everything that was printed, and more, as JSON",
      flag::outputFile("report", o.report));
  add("timeline", "FILE", files,
      "memory over the step: a picture (.svg) or a trace for ui.perfetto.dev "
      "(.json); once each",
      flag::bySuffix("timeline", {{".svg", &o.timeline}, {".json", &o.trace}}));
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
  add("quiet", "", (Models & ~Program) | Merge | Quantize,
      "print nothing but errors; files are written as ever",
      flag::turnOn(o.quiet));
  add("verbose", "", Models | Merge,
      "a line for each phase; lists have all names",
      [&o = o](StringRef) -> llvm::Error {
        o.compile.phases.verbose = true;
        o.compile.import.namesInRemarks = SIZE_MAX;
        return llvm::Error::success();
      });
}
