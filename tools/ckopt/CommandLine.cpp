//===- CommandLine.cpp - command lines of the ckopt tool ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Settings/CommandLine.h"
#include "Commands.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Base/Version.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Planner/SearchFlags.h"
#include "ckopt/Settings/Flags.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
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
    {"merge", "put adapters (LoRA, DoRA) into a model's weights", true},
    {"quantize", "write a copy with frozen weights in 8 or 4 bits", true},
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
      {"inputs", Models | Merge},
      {"targets", Train | Grad | Compare},
      {"dim", Import | Check | Run | Merge},
      {"shape", Import | Check},
      {"loss", Stepping | Grad},
      {"optimizer", Train | Plan | Compile | Bench | Inspect | Compare},
      {"lr", Train | Compare},
      {"batch", Models | Merge},
      {"epochs", Train | Compare},
      {"weights", Run | Grad | Merge},
      {"type", Quantize},
      {"group-size", Quantize},
      {"train", Quantize},
      {"freeze", Import | Grad | Check | Quantize},
      {"seed", Grad | Run},
      {"memory-budget", Stepping},
      {"budgets", Compare},
      {"pareto", Plan},
      {"plan-out", Plan},
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
      {"o", (Models & ~(Plan | Compare)) | Merge | Quantize},
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
    else if (options.command == Command::Train && isWeightFolder(output.path))
      for (const char *name :
           {"/model.safetensors", "/model.safetensors.index.json",
            "/adapter_model.safetensors", "/adapter_config.json"})
        all.push_back(
            {output.flag, StringRef(output.path).rtrim('/').str() + name});
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
  llvm::Error error = flags.table.parse(rest, command, takeModel);
  bool timesRanks = !options.collectives.empty();
  if (!error && timesRanks && !options.compile.model.empty())
    error = usageError(Setting("collectives") +
                       " times messages alone; it takes no model");
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
  code = ExitOk;
  return true;
}
