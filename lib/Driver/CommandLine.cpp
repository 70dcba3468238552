//===- CommandLine.cpp - command lines of the ckopt tool ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CommandLine.h"
#include "Commands.h"
#include "Flags.h"
#include "LossChoice.h"
#include "Parallel.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Base/Version.h"
#include "ckopt/Planner/SearchFlags.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Target/TargetRegistry.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <thread>
#include <utility>

using namespace ckopt;
using llvm::StringRef;

namespace {
struct CommandInfo {
  StringRef name, summary;
  bool takesModel;
};
constexpr CommandInfo commands[] = {
    {"import", "ONNX to IR that ckopt-opt reads", true},
    {"plan", "plan a training step and print its table, without compiling",
     true},
    {"compile", "write a step as a shared library for ckopt-run", true},
    {"train", "train a model on samples from files", true},
    {"run", "run the model forward on data and write its outputs", true},
    {"grad", "write the loss and every parameter's gradient", true},
    {"bench", "time the training step", true},
    {"inspect", "what a step holds in memory, where, and what lies outside",
     true},
    {"compare", "train at several budgets and print them side by side", true},
    {"check", "what exporting did to a model, and what ckopt would train",
     true},
};
} // namespace

static void printUsage(llvm::raw_ostream &os) {
  os << "usage: ckopt COMMAND MODEL.onnx [flags]\n\n"
        "Trains ONNX models inside a byte budget. Commands:\n\n";
  for (const CommandInfo &info : commands)
    os << llvm::format("  %-10s ", info.name.str().c_str()) << info.summary
       << "\n";
  os << "\nckopt COMMAND --help shows the flags of a command that most runs "
        "need, --help-all\nall of them.\n"
        "Exit codes: 0 ok, 1 bad input, 2 no plan fits the budget, 3 no plan "
        "found in\n"
        "time, 4 unsupported operator, 5 value not finite, 10 to 17 devices "
        "(docs/cuda.md),\n"
        "20 ranks (docs/parallel.md), 64 usage, 70 defect of ckopt, 74 cannot "
        "write.\n";
}

/// The flags that most runs need, in the order of help: ten at most for each
/// command.
static std::vector<StringRef> commonFlags(unsigned command) {
  using namespace takers;
  static const std::pair<StringRef, unsigned> flags[] = {
      {"list-ops", Import},
      {"data", Train | Run | Grad | Compare},
      {"inputs", Models},
      {"targets", Train | Grad | Compare},
      {"dim", Import | Check | Run},
      {"shape", Import | Check},
      {"loss", Stepping | Grad},
      {"optimizer", Train | Plan | Compile | Bench | Inspect | Compare},
      {"lr", Train | Compare},
      {"batch", Models},
      {"epochs", Train | Compare},
      {"weights", Run | Grad},
      {"freeze", Import | Grad | Check},
      {"seed", Grad | Run},
      {"memory-budget", Stepping},
      {"budgets", Compare},
      {"pareto", Plan},
      {"plan-out", Plan},
      {"chart", Plan},
      {"target", Compile | Inspect},
      {"threads", Compile | Run | Bench | Grad},
      {"device", Run},
      {"steps", Bench},
      {"profile", Bench},
      {"depth", Bench | Inspect},
      {"summary", Import},
      {"timeline", Plan | Inspect},
      {"report", Compile | Plan | Bench | Inspect | Compare},
      {"as-written", Run},
      {"o", Models & ~(Plan | Compare)},
  };
  std::vector<StringRef> names;
  for (auto [name, takers] : flags)
    if (takers & command)
      names.push_back(name);
  return names;
}

static void printHelp(const CommandInfo &info, const FlagTable &table,
                      unsigned command, bool all) {
  llvm::outs() << "usage: ckopt " << info.name << " MODEL.onnx [flags]\n\n"
               << info.summary << "\n\n";
  if (all) {
    table.printHelp(llvm::outs(), command);
    return;
  }
  table.printHelp(llvm::outs(), command, commonFlags(command));
  llvm::outs() << "\nckopt " << info.name << " --help-all lists all "
               << table.count(command) << " flags.\n";
}

llvm::raw_ostream &DriverOptions::out() const {
  static PrintableStream terminal(llvm::outs());
  return quiet ? llvm::nulls() : terminal;
}

llvm::Error DriverFlags::settleTarget() {
  CompileOptions &compile = o.compile;
  if (!compile.device.target.empty())
    compile.step.target = compile.device.target;
  auto target = findTarget(compile.step.target);
  if (!target)
    return target.takeError();
  o.target = *target;
  Command command = o.command;
  bool runsHere = command != Command::Compile && command != Command::Plan &&
                  command != Command::Inspect;
  if (compile.step.ranks > 1 && o.target->traits.hasDevices) {
    if (!compile.device.target.empty())
      return usageError("--device is for one process: ranks take the devices "
                        "of their machine in turn, by LOCAL_RANK where it is "
                        "set; give --target=" +
                        o.target->name());
    if (runsHere)
      compile.device.target = o.target->name();
    compile.device.ordinal = -1;
  }
  for (const OwnSettings &own : ownSettings) {
    if (own.target == o.target)
      compile.device.own = own.options;
    else if (auto flag = llvm::find_if(
                 own.flags,
                 [&](const std::string &name) { return given.count(name); });
             flag != own.flags.end())
      return usageError("--" + *flag + " is for " +
                        own.target->traits.machines +
                        ": give --target=" + own.target->name());
  }
  TargetRequest request{compile.step, compile.target, compile.device,
                        compile.import.computeType, given};
  request.runsHere = runsHere;
  return o.target->settle(request);
}

llvm::Error ckopt::checkDataFlags(const DataOptions &data) {
  if (!data.path.empty() + !data.tokens.empty() + !data.images.empty() > 1)
    return usageError("give one of --data, --tokens and --images");
  if (data.images.empty() &&
      (data.imageOptions.resize || data.imageOptions.augment.any() ||
       !data.imageOptions.mean.empty()))
    return usageError("--resize, --augment and --normalize are for --images");
  if (!data.tokens.empty() && !data.sequence)
    return usageError("--tokens needs --sequence=N, the tokens of a sample");
  return llvm::Error::success();
}

/// Refuses combinations of flags that contradict each other.
static llvm::Error checkFlags(const DriverOptions &options) {
  const OptimizerSettings &opt = options.compile.step.optimizer;
  bool updates =
      options.command == Command::Train || options.command == Command::Compare;
  if (updates) // said before anything is compiled
    if (llvm::Error error = checkUpdates(opt))
      return error;
  if (llvm::Error error = checkDataFlags(options.data))
    return error;
  if (options.paretoPoints > 0 &&
      options.compile.step.remat.budget.kind != MemoryBudget::Kind::Unlimited)
    return usageError("--pareto plans many budgets: leave out the one given");
  if (!options.curve.empty() && options.paretoPoints == 0)
    return usageError("--curve is for --pareto; memory over the step is "
                      "--timeline=FILE.svg");
  bool printsIR =
      options.command == Command::Import || !options.compile.phases.to.empty();
  if (options.quiet && ((printsIR && options.output.empty()) ||
                        options.summary || options.listOps))
    return usageError("--quiet leaves nothing to print: give -o FILE (or -o -) "
                      "for the IR, or leave out --quiet");
  // A step for another machine may have any number of threads.
  if (options.command == Command::Compile || options.command == Command::Plan)
    return llvm::Error::success();
  return checkThreadsHere(options.compile.step.threads);
}

/// Gives a rank its share of the batch, and of the machine's cores.
llvm::Error DriverFlags::settleParallel() {
  StepOptions &step = o.compile.step;
  if (given.count("rank-timeout") && step.ranks == 1)
    return usageError("--rank-timeout is for --parallel with several ranks");
  if (!o.ncclId.empty()) {
    auto target = findTarget(step.target);
    if (!target)
      return target.takeError();
    if (step.ranks == 1 || !(*target)->traits.hasDevices)
      return usageError("--nccl-id is for --parallel with several ranks on "
                        "GPUs: --target=cuda");
  }
  if (given.count("cluster")) {
    if (step.ranks == 1)
      return usageError("--cluster is for --parallel with several ranks");
    if (o.paretoPoints || !o.compile.phases.to.empty())
      return usageError("--cluster predicts the step of one plan, which "
                        "--pareto and --compile-to do not make");
  }
  if (!step.overlap && !given.count("parallel"))
    return usageError("--no-overlap is for --parallel with several ranks");
  if (step.syncNorms && !given.count("parallel"))
    return usageError("--sync-batchnorm is for --parallel with several ranks: "
                      "one process sees the whole batch");
  if (step.ranks == 1)
    return llvm::Error::success();
  std::optional<int64_t> &batch = o.compile.import.batch;
  std::string flag = "--parallel=" + parallelText(step);
  if (!batch)
    return usageError(flag + " needs --batch=N, the samples of all ranks "
                             "together in a step");
  if (*batch % step.ranks)
    return usageError("--batch=" + llvm::Twine(*batch) +
                      " is the batch of all ranks, and " + flag +
                      " does not divide it");
  if (o.data.isStream())
    return usageError("--data=-: only one of the ranks has standard input; "
                      "give a file");
  *batch /= step.ranks;
  if (!given.count("threads"))
    step.threads = int32_t(
        std::max<int64_t>(1, step.threads / ranksOfMachine(step.ranks)));
  return llvm::Error::success();
}

llvm::Error DriverFlags::settle() {
  if (given.count("best-by") && o.train.keepBest.empty() && !o.train.earlyStop)
    return usageError("--best-by judges evaluations for --keep-best and "
                      "--early-stop: give one of them");
  if (llvm::Error error = settleParallel())
    return error;
  if (llvm::Error error = settleTarget())
    return error;
  if (!o.svg.empty())
    (o.paretoPoints > 0 ? o.curve : o.timeline) = std::exchange(o.svg, "");
  if (llvm::Error error = checkFlags(o))
    return error;
  auto isGiven = [&](StringRef flag) { return given.count(flag.str()) > 0; };
  if (llvm::Error error = checkLossSettings(o.compile.step, isGiven))
    return error;
  o.train.seed = o.seed;
  return settleOptimizer();
}

/// Prints errors and the notes that belong to them.
static MessageHandler printErrorsAlone() {
  bool isError = false;
  return [isError](const Message &message) mutable {
    if (message.severity != Message::Severity::Note)
      isError = message.severity == Message::Severity::Error;
    if (isError)
      printMessage(message);
  };
}

void ckopt::silence(DriverOptions &options) {
  options.quiet = true;
  options.train.progress = false;
  options.compile.phases.verbose = false;
  options.compile.messages = printErrorsAlone();
}

/// Lists the files that are named, and refuses results in place of one of them.
static llvm::Error checkFiles(const FlagTable &table, unsigned command,
                              DriverOptions &options) {
  options.inputs = table.files(FileUse::Reads, command);
  options.inputs.push_back({"the model", options.compile.model});
  options.outputs = table.files(FileUse::Writes, command);
  std::vector<NamedFile> &all = options.compile.outputs = options.outputs;
  // Where a model of more than 2 GiB has its weights.
  for (const NamedFile &output : options.outputs)
    if (StringRef(output.path).ends_with(".onnx"))
      all.push_back({output.flag, output.path + ".data"});
  return checkDistinct(all, options.inputs);
}

bool ckopt::parseCommandLine(int argc, char **argv, DriverOptions &options,
                             int &code) {
  code = ExitUsage;
  StringRef name = argc > 1 ? argv[1] : "";
  if (name == "--version") {
    llvm::outs() << versionLine("ckopt", LLVM_VERSION_STRING) << "\n";
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
    StringRef near;
    unsigned distance = 3;
    for (const CommandInfo &info : commands)
      if (unsigned d = name.edit_distance(info.name, true, distance);
          d < distance) {
        distance = d;
        near = info.name;
      }
    llvm::errs() << "ckopt: error: unknown command '" << name << "'; "
                 << (near.empty() ? "ckopt --help lists them"
                                  : "did you mean '" + near.str() + "'?")
                 << "\n";
    return false;
  }
  options.command = Command(found - std::begin(commands));
  options.compile.step.threads =
      int32_t(std::max(1u, std::thread::hardware_concurrency()));
  DriverFlags flags(options);
  std::vector<std::string> names;
  for (const CommandInfo &info : commands)
    names.push_back(info.name.str());
  flags.table.nameGroups(std::move(names));
  unsigned command = 1u << unsigned(options.command);
  llvm::ArrayRef<char *> rest(argv + 2, size_t(argc - 2));
  for (StringRef argument : rest)
    if (argument == "--help" || argument == "-h" || argument == "--help-all") {
      printHelp(*found, flags.table, command, argument == "--help-all");
      code = ExitOk;
      return false;
    }
  auto takeModel = [&](StringRef argument) -> llvm::Error {
    if (!options.compile.model.empty())
      return usageError("two models: '" + options.compile.model + "' and '" +
                        argument + "'");
    options.compile.model = argument.str();
    return llvm::Error::success();
  };
  FlagTable::Given given;
  llvm::Error error = flags.table.parse(rest, command, takeModel, &given);
  bool timesRanks = !options.collectives.empty();
  if (!error && timesRanks && !options.compile.model.empty())
    error = usageError("--collectives times messages alone; it takes no model");
  if (!error && options.compile.model.empty() && !options.listOps &&
      !timesRanks)
    error = usageError("no model given; usage: ckopt " + name +
                       " MODEL.onnx [flags]");
  if (!error)
    error = flags.settle();
  if (!error)
    error = checkFiles(flags.table, command, options);
  if (error) {
    code = reportError(std::move(error), "ckopt", llvm::errs());
    return false;
  }
  if (options.quiet)
    silence(options);
  else
    for (const std::string &remark : given.remarks)
      llvm::errs() << "ckopt: " + printable(remark) + "\n";
  code = ExitOk;
  return true;
}
