//===- CommandLine.cpp - flags of the ckopt tool --------------------------===//
//
// A table of flags: name, which subcommands take it, what it means, and a
// function that stores its value. LLVM's own command line library would bring
// the fifteen hundred options of the back ends along, and exits with codes of
// its own; a table gives each subcommand a help text of one screen.
//
//===----------------------------------------------------------------------===//
#include "CommandLine.h"
#include "ckopt/Planner/Solve.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <thread>

using namespace ckopt;
using llvm::StringRef;

namespace {

enum Commands : unsigned {
  Import = 1u << unsigned(Command::Import),
  Plan = 1u << unsigned(Command::Plan),
  Compile = 1u << unsigned(Command::Compile),
  Train = 1u << unsigned(Command::Train),
  Run = 1u << unsigned(Command::Run),
  Grad = 1u << unsigned(Command::Grad),
  Bench = 1u << unsigned(Command::Bench),
  Inspect = 1u << unsigned(Command::Inspect),
  Compare = 1u << unsigned(Command::Compare),
  Stepping = Plan | Compile | Train | Bench | Inspect | Compare,
  Models = Import | Stepping | Run | Grad,
};

struct CommandInfo {
  StringRef name, summary;
  bool takesModel;
};
constexpr CommandInfo commands[] = {
    {"import", "ONNX to IR that ckopt-opt reads", true},
    {"plan", "plan a training step and print its table, without compiling",
     true},
    {"compile", "write a step as a shared library for ckopt-run", true},
    {"train", "train a model on data from an .npz file", true},
    {"run", "run the model forward on data and write its outputs", true},
    {"grad", "write the loss and every parameter's gradient", true},
    {"bench", "time the training step", true},
    {"inspect", "what a step holds in memory, where, and what lies outside",
     true},
    {"compare", "train at several budgets and print them side by side", true},
};

struct Flag {
  StringRef name;    ///< without dashes
  StringRef value;   ///< "BYTES"; empty: a switch
  unsigned commands; ///< who takes it
  StringRef help;
  std::function<llvm::Error(StringRef)> store;
};

/// Parses a number completely or gives a usage error.
template <typename T>
std::function<llvm::Error(StringRef)> number(T &slot, T least, StringRef flag) {
  return [&slot, least, flag](StringRef text) -> llvm::Error {
    if constexpr (std::is_floating_point_v<T>) {
      double value;
      if (text.getAsDouble(value) || !(value >= double(least)))
        return usageError("--" + flag + ": '" + text +
                          "' is not a number of at least " +
                          llvm::Twine(std::to_string(least)));
      slot = T(value);
    } else {
      T value;
      if (text.getAsInteger(10, value) || value < least)
        return usageError("--" + flag + ": '" + text +
                          "' is not an integer of at least " +
                          llvm::Twine(least));
      slot = value;
    }
    return llvm::Error::success();
  };
}

/// The same for a slot whose value must also not be above `most`, or, if
/// `open`, must lie below it.
template <typename T>
std::function<llvm::Error(StringRef)> limited(T &slot, T least, T most,
                                              bool open, StringRef flag) {
  return [&slot, least, most, open, flag](StringRef text) -> llvm::Error {
    if (llvm::Error error = number<T>(slot, least, flag)(text))
      return error;
    if (slot > most || (open && slot == most))
      return usageError("--" + flag + ": '" + text + "' is not " +
                        (open ? "below " : "at most ") +
                        llvm::Twine(int64_t(most)));
    return llvm::Error::success();
  };
}

std::function<llvm::Error(StringRef)> text(std::string &slot) {
  return [&slot](StringRef value) -> llvm::Error {
    if (value.empty())
      return usageError("a flag has an empty value; leave it out instead");
    slot = value.str();
    return llvm::Error::success();
  };
}

std::function<llvm::Error(StringRef)> turnOn(bool &slot) {
  return [&slot](StringRef) -> llvm::Error {
    slot = true;
    return llvm::Error::success();
  };
}

std::function<llvm::Error(StringRef)> oneOf(std::string &slot, StringRef flag,
                                            std::vector<StringRef> values) {
  return [&slot, flag, values](StringRef value) -> llvm::Error {
    if (!llvm::is_contained(values, value))
      return usageError("--" + flag + ": '" + value + "' is not one of " +
                        llvm::join(values, ", "));
    slot = value.str();
    return llvm::Error::success();
  };
}

/// The flags of one run of the tool.
class FlagTable {
public:
  explicit FlagTable(DriverOptions &options) : o(options) {
    addModelFlags();
    addArithmeticFlags();
    addBudgetFlags();
    addDataFlags();
    addCompilerFlags();
    addToolFlags();
  }
  const Flag *find(StringRef name, unsigned command) const {
    for (const Flag &flag : flags)
      if (flag.name == name && (flag.commands & command))
        return &flag;
    return nullptr;
  }
  void printHelp(Command command) const;
  StringRef nearest(StringRef name, unsigned command) const;

private:
  void add(StringRef name, StringRef value, unsigned commands, StringRef help,
           std::function<llvm::Error(StringRef)> store) {
    flags.push_back({name, value, commands, help, std::move(store)});
  }
  void addModelFlags();
  void addArithmeticFlags();
  void addBudgetFlags();
  void addPolicyFlags();
  void addDataFlags();
  void addCompilerFlags();
  void addToolFlags();

  /// Takes a budget from one flag; a second kind beside it is an error.
  llvm::Error setBudget(StringRef flag, const MemoryBudget &budget);

  DriverOptions &o;
  std::string budgetFlag;
  std::vector<Flag> flags;
};

void FlagTable::addModelFlags() {
  auto &import = o.compile.import;
  add("batch", "N", Models,
      "batch size (fixes a symbolic one, changes a baked-in one)",
      [&import](StringRef text) -> llvm::Error {
        int64_t value = 0;
        if (llvm::Error error = number<int64_t>(value, 1, "batch")(text))
          return error;
        import.batch = value;
        return llvm::Error::success();
      });
  add("dim", "NAME=N", Models,
      "value of another symbolic dimension (repeatable)",
      [&import](StringRef text) -> llvm::Error {
        auto [name, value] = text.split('=');
        int64_t size = 0;
        if (llvm::Error error = number<int64_t>(size, 1, "dim")(value))
          return error;
        import.dims[name.str()] = size;
        return llvm::Error::success();
      });
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
  add("freeze", "REGEX", Models & ~Run, "weights that are not trained",
      text(import.freezeRegex));
  add("init", "RULE", Models,
      "weights without values: auto (default, by role), kaiming, xavier, "
      "normal",
      oneOf(o.compile.init, "init", {"auto", "kaiming", "xavier", "normal"}));
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
  add("weights", "FILE", Models & ~(Import | Plan),
      "initial weights (.safetensors), in place of the model's own",
      text(o.weights));
  add("seed", "N", Models & ~Import,
      "seed of initialization, sample order and dropout (default 0)",
      number<uint64_t>(o.seed, 0, "seed"));
}

void FlagTable::addArithmeticFlags() {
  StepOptions &step = o.compile.step;
  OptimizerSettings &opt = step.optimizer;
  unsigned updating = Stepping;
  add("loss", "KIND", Stepping | Grad | Run,
      "cross_entropy or mse; without it the model must end in a loss",
      oneOf(step.loss, "loss", {"cross_entropy", "mse"}));
  add("ignore-index", "N", Stepping | Grad,
      "target that does not count (default -100)",
      [this, &step](StringRef text) -> llvm::Error {
        o.ignoreIndexGiven = true;
        return number<int64_t>(step.ignoreIndex, INT64_MIN,
                               "ignore-index")(text);
      });
  add("optimizer", "KIND", updating, "sgd (default), adam or adamw",
      oneOf(opt.kind, "optimizer", {"sgd", "adam", "adamw"}));
  add("lr", "RATE", updating, "learning rate (default 1e-3)",
      number<double>(o.train.schedule.base, 0, "lr"));
  add("lr-schedule", "KIND", updating, "constant (default), linear or cosine",
      [this](StringRef text) -> llvm::Error {
        auto kind = parseScheduleKind(text);
        if (!kind)
          return kind.takeError();
        o.train.schedule.kind = *kind;
        return llvm::Error::success();
      });
  add("warmup-steps", "N", updating, "steps of linear warm-up",
      number<int64_t>(o.train.schedule.warmupSteps, 0, "warmup-steps"));
  add("min-lr-ratio", "R", updating,
      "where a schedule ends, as a share of --lr",
      number<double>(o.train.schedule.minRatio, 0, "min-lr-ratio"));
  add("momentum", "X", updating, "sgd",
      number<double>(opt.momentum, 0, "momentum"));
  add("dampening", "X", updating, "sgd",
      number<double>(opt.dampening, 0, "dampening"));
  add("nesterov", "", updating, "sgd", turnOn(opt.nesterov));
  add("beta1", "X", updating, "adam (default 0.9)",
      limited<double>(opt.beta1, 0, 1, /*open=*/true, "beta1"));
  add("beta2", "X", updating, "adam (default 0.999)",
      limited<double>(opt.beta2, 0, 1, /*open=*/true, "beta2"));
  add("epsilon", "X", updating, "adam (default 1e-8)",
      number<double>(opt.epsilon, 0, "epsilon"));
  add("weight-decay", "X", updating, "as in PyTorch (adamw: decoupled)",
      number<double>(opt.weightDecay, 0, "weight-decay"));
  add("clip-norm", "X", updating, "clip gradients by their global norm",
      number<double>(opt.clipNorm, 0, "clip-norm"));
  add("accumulate", "K", updating,
      "micro-batches whose gradients make one update",
      number<int64_t>(opt.accumulate, 1, "accumulate"));
}

llvm::Error FlagTable::setBudget(StringRef flag, const MemoryBudget &budget) {
  if (!budgetFlag.empty() && budgetFlag != flag)
    return usageError("give one of " + budgetFlag + " and " + flag.str());
  budgetFlag = flag.str();
  o.compile.step.budget = budget;
  return llvm::Error::success();
}

void FlagTable::addBudgetFlags() {
  static const std::vector<std::string> names = planner::strategyNames();
  std::vector<StringRef> strategies(names.begin(), names.end());
  StepOptions &step = o.compile.step;
  unsigned one = Stepping & ~Compare;
  add("memory-budget", "BYTES", one,
      "real peak: 512MiB, 2GB, plain bytes, or min",
      [this](StringRef text) -> llvm::Error {
        auto budget = parseMemoryBudget(text);
        if (!budget)
          return budget.takeError();
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
        return text.empty() ? llvm::Error::success()
                            : limited<int>(o.paretoPoints, 2, 1000,
                                           /*open=*/false, "pareto")(text);
      });
  add("svg", "FILE", Plan, "with --pareto: time against memory, as a picture",
      text(o.svg));
  add("graph-out", "FILE", Plan,
      "write the planning graph (ckopt-graph/1) for ckopt-plan",
      text(o.graphOut));
  add("chart", "[=WIDTH]", Plan, "memory over the step as text, before, after",
      [this](StringRef text) -> llvm::Error {
        o.chart = true;
        return text.empty() ? llvm::Error::success()
                            : limited<unsigned>(o.chartWidth, 40, 400,
                                                /*open=*/false, "chart")(text);
      });
  add("remat-strategy", "NAME", Stepping, "planner strategy (default auto)",
      oneOf(step.strategy, "remat-strategy", strategies));
  add("remat-time-limit", "S", Stepping,
      "seconds the planner may take (default 60)",
      number<double>(step.timeLimit, 0, "remat-time-limit"));
  add("cost-model", "MODEL", Stepping,
      "times of kernels: analytic (default) or profile=FILE, as bench "
      "--profile-out writes it",
      text(step.costModel));
}

void FlagTable::addPolicyFlags() {
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
      [&step](StringRef text) { return parseRematMode(text, step.policy); });
  add("save", "RULE", Stepping,
      "values that stay: a regular expression on node names, or op:, scope:, "
      "class: and one (repeatable)",
      rules(step.policy.save));
  add("recompute", "RULE", Stepping,
      "values to compute again for the backward pass (repeatable)",
      rules(step.policy.recompute));
  add("auto", "RULE", Stepping,
      "values that the planner decides about (repeatable)",
      rules(step.policy.automatic));
  add("checkpoint-region", "RULE", Stepping,
      "modules, by name or class, that keep only their inputs (repeatable)",
      rules(step.policy.checkpoint));
  add("plan", "FILE", one, "take the plan from a file of --plan-out",
      text(step.planFile));
  add("plan-out", "FILE", one, "write the plan; it may be edited",
      text(step.planOut));
  add("plan-report", "FILE", one,
      "each value that is kept or computed again, and why (JSON)",
      text(step.planReport));
}

void FlagTable::addDataFlags() {
  unsigned data = Train | Compare | Grad | Run;
  add("data", "FILE", data, "arrays of samples, .npz", text(o.data.path));
  add("targets", "ARRAY", data, "array of targets (default y)",
      text(o.data.targets));
  add("epochs", "N", Train | Compare, "passes over the data (default 1)",
      number<int64_t>(o.train.epochs, 0, "epochs"));
  add("max-steps", "N", Train | Compare, "stop after so many steps",
      number<int64_t>(o.train.maxSteps, 0, "max-steps"));
  add("holdout", "F", Train | Compare,
      "share of the samples kept for evaluation (seeded)",
      number<double>(o.train.holdout, 0, "holdout"));
  add("checkpoint", "FILE", Train,
      "write a checkpoint (.safetensors) after each epoch",
      text(o.train.checkpoint));
  add("checkpoint-every", "N", Train, "steps between checkpoints",
      number<int64_t>(o.train.checkpointEvery, 1, "checkpoint-every"));
  add("resume", "FILE", Train, "go on from a checkpoint, with the same bits",
      text(o.train.resume));
  add("check-finite", "", Train | Compare | Bench,
      "name the first op that makes a NaN or infinity", turnOn(o.checkFinite));
  add("verify-remat", "[=keep]", Train | Compare,
      "compare each recomputed value with the first one",
      [this](StringRef value) -> llvm::Error {
        if (!value.empty() && value != "keep")
          return usageError("--verify-remat takes no value or 'keep'");
        o.verifyRemat = true;
        o.keepValues = value == "keep";
        return llvm::Error::success();
      });
  add("steps", "N", Bench, "steps to time (default 10)",
      number<int64_t>(o.steps, 1, "steps"));
  add("profile", "", Bench, "time each kernel; print the table by time",
      turnOn(o.profile));
  add("profile-out", "FILE", Bench,
      "time each kernel; write the times for --cost-model=profile=FILE",
      text(o.profileOut));
  add("warmup", "N", Bench, "steps before timing (default 2)",
      number<int64_t>(o.warmup, 0, "warmup"));
}

void FlagTable::addCompilerFlags() {
  StepOptions &step = o.compile.step;
  unsigned all = Stepping | Grad | Run;
  add("threads", "N", all, "threads of the step (default: the cores)",
      number<int32_t>(step.threads, 1, "threads"));
  add("layout", "NAME", all, "channels-last (default) or none",
      oneOf(step.layout, "layout", {"channels-last", "none"}));
  add("cpu", "NAME", all, "CPU to compile for (default native)",
      text(o.compile.target.cpu));
  add("O", "LEVEL", all, "LLVM's optimization, 0 to 3 (default 2)",
      limited<unsigned>(o.compile.target.optLevel, 0, 3, /*open=*/false, "O"));
  add("compile-from", "PHASE", Plan | Compile | Import,
      "the input is IR dumped before this phase", text(o.compile.phases.from));
  add("compile-to", "PHASE", Plan | Compile | Import,
      "stop after this phase and write IR to -o", text(o.compile.phases.to));
  add("dump-phases", "DIR", Models, "write the IR after each phase",
      text(o.compile.phases.dumpDirectory));
}

void FlagTable::addToolFlags() {
  add("o", "FILE", Models & ~(Bench | Inspect), "output", text(o.output));
  add("report", "FILE", Stepping,
      "everything that was printed, and more, as JSON", text(o.report));
  add("timeline", "FILE", Stepping,
      "memory over the step, .svg or .json (Perfetto)", text(o.timeline));
  add("list-ops", "", Import, "the operators that import knows",
      turnOn(o.listOps));
  add("quiet", "", Models, "no progress, no remarks", turnOn(o.quiet));
  add("verbose", "", Models, "a line for each phase",
      turnOn(o.compile.phases.verbose));
}

void FlagTable::printHelp(Command command) const {
  const CommandInfo &info = commands[unsigned(command)];
  llvm::outs() << "usage: ckopt " << info.name << " MODEL.onnx [flags]\n\n"
               << info.summary << "\n\n";
  for (const Flag &flag : flags) {
    if (!(flag.commands & (1u << unsigned(command))))
      continue;
    std::string shown = (flag.name.size() == 1 ? "-" : "--") + flag.name.str();
    if (!flag.value.empty())
      shown += (flag.name.size() == 1         ? " "
                : flag.value.starts_with("[") ? ""
                                              : "=") +
               flag.value.str();
    llvm::outs() << llvm::format("  %-26s ", shown.c_str()) << flag.help
                 << "\n";
  }
}

StringRef FlagTable::nearest(StringRef name, unsigned command) const {
  StringRef best;
  unsigned distance = 4;
  for (const Flag &flag : flags)
    if (flag.commands & command)
      if (unsigned d = name.edit_distance(flag.name); d < distance) {
        distance = d;
        best = flag.name;
      }
  return best;
}

} // namespace

static void printUsage(llvm::raw_ostream &os) {
  os << "usage: ckopt COMMAND MODEL.onnx [flags]\n\n"
        "Trains ONNX models inside a byte budget. Commands:\n\n";
  for (const CommandInfo &info : commands)
    os << llvm::format("  %-10s ", info.name.str().c_str()) << info.summary
       << "\n";
  os << "\nckopt COMMAND --help lists the flags of a command.\n"
        "Exit codes: 0 ok, 1 bad input, 2 no plan fits the budget, 3 no plan "
        "found in\n"
        "time, 4 unsupported operator, 5 value not finite, 64 usage, 70 defect "
        "of ckopt,\n"
        "74 cannot write.\n";
}

/// Parses the arguments after the command's name.
static llvm::Error parseFlags(llvm::ArrayRef<char *> arguments,
                              const FlagTable &table, DriverOptions &options) {
  unsigned command = 1u << unsigned(options.command);
  llvm::Error errors = llvm::Error::success();
  auto wrong = [&](llvm::Error error) {
    errors = joinErrors(std::move(errors), std::move(error));
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    StringRef argument = arguments[i];
    if (!argument.starts_with("-") || argument == "-") {
      if (!options.compile.model.empty())
        wrong(usageError("two models: '" + options.compile.model + "' and '" +
                         argument + "'"));
      options.compile.model = argument.str();
      continue;
    }
    auto [name, value] = argument.ltrim('-').split('=');
    const Flag *flag = table.find(name, command);
    if (!flag) {
      StringRef near = table.nearest(name, command);
      wrong(usageError(
          "unknown flag '" + argument + "'" +
          (near.empty() ? llvm::Twine("") : "; did you mean --" + near + "?")));
      continue;
    }
    bool hasValue = argument.contains('=');
    if (flag->value.empty() && hasValue) {
      wrong(usageError("--" + name + " takes no value"));
      continue;
    }
    if (!flag->value.empty() && !flag->value.starts_with("[") && !hasValue) {
      if (i + 1 == arguments.size()) {
        wrong(usageError("--" + name + " needs a value (" + flag->value + ")"));
        break;
      }
      value = arguments[++i];
    }
    wrong(flag->store(value));
  }
  return errors;
}

/// Flags that do not fit together.
static llvm::Error checkFlags(const DriverOptions &options) {
  const OptimizerSettings &opt = options.compile.step.optimizer;
  if (opt.nesterov && (opt.momentum <= 0 || opt.dampening != 0))
    return usageError("--nesterov needs --momentum above 0 and no --dampening");
  if (llvm::Error error = checkPolicyForm(options.compile.step.policy))
    return error;
  if (!options.svg.empty() && options.paretoPoints == 0)
    return usageError("--svg goes with --pareto (--timeline draws one plan)");
  if (options.paretoPoints > 0 &&
      options.compile.step.budget.kind != MemoryBudget::Kind::Unlimited)
    return usageError("--pareto plans many budgets: leave out the one given");
  // A step that is compiled for another machine may have any number.
  int64_t most = 4 * int64_t(std::max(1u, std::thread::hardware_concurrency()));
  if (options.command != Command::Compile && options.command != Command::Plan &&
      options.compile.step.threads > most)
    return usageError("--threads=" + llvm::Twine(options.compile.step.threads) +
                      " is more than four for each of this machine's cores (" +
                      llvm::Twine(most / 4) + ")");
  return llvm::Error::success();
}

bool ckopt::parseCommandLine(int argc, char **argv, DriverOptions &options,
                             int &code) {
  code = ExitUsage;
  StringRef name = argc > 1 ? argv[1] : "";
  if (name == "--version") {
    llvm::outs() << "ckopt " << CKOPT_VERSION << " (LLVM "
                 << LLVM_VERSION_STRING << ")\n";
    code = ExitOk;
    return false;
  }
  if (name.empty() || name == "--help" || name == "-h" || name == "help") {
    printUsage(name.empty() ? llvm::errs() : llvm::outs());
    code = name.empty() ? ExitUsage : ExitOk;
    return false;
  }
  const CommandInfo *found = llvm::find_if(
      commands, [&](const CommandInfo &info) { return info.name == name; });
  if (found == std::end(commands)) {
    llvm::errs() << "ckopt: error: unknown command '" << name
                 << "'; ckopt --help lists them\n";
    return false;
  }
  options.command = Command(found - std::begin(commands));
  options.compile.step.threads =
      int32_t(std::max(1u, std::thread::hardware_concurrency()));
  options.train.schedule.base = 1e-3;
  FlagTable table(options);
  llvm::ArrayRef<char *> rest(argv + 2, size_t(argc - 2));
  for (StringRef argument : rest)
    if (argument == "--help" || argument == "-h") {
      table.printHelp(options.command);
      code = ExitOk;
      return false;
    }
  llvm::Error error = parseFlags(rest, table, options);
  if (!error && options.compile.model.empty() && !options.listOps)
    error = usageError("no model given; usage: ckopt " + name +
                       " MODEL.onnx [flags]");
  if (!error)
    error = checkFlags(options);
  if (error) {
    code = reportError(std::move(error), "ckopt", llvm::errs());
    return false;
  }
  options.data.loss = options.compile.step.loss;
  options.data.ignoreIndex = options.compile.step.ignoreIndex;
  options.train.seed = options.seed;
  options.train.progress = !options.quiet;
  code = ExitOk;
  return true;
}
