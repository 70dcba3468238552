//===- CommandLine.cpp - flags of ckopt-plan ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parses the command line. Contradictions are errors: if a flag would be
// ignored, its user misunderstood it.
//
//===----------------------------------------------------------------------===//
#include "CommandLine.h"

#include "ckopt/Planner/SearchFlags.h"
#include "ckopt/Planner/SearchOptions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#ifdef CKOPT_PLAN_BASELINES
#include "Baselines/Baselines.h"
#endif

using namespace ckopt;
using llvm::StringRef;

namespace {

constexpr unsigned bit(Mode mode) { return 1u << unsigned(mode); }
constexpr unsigned planning =
    bit(Mode::Plan) | bit(Mode::Minimum) | bit(Mode::Pareto);
constexpr unsigned single = bit(Mode::Plan) | bit(Mode::Minimum);
constexpr unsigned reporting = single | bit(Mode::Check);
constexpr unsigned any = ~0u;

const char *modeName(Mode mode) {
  switch (mode) {
  case Mode::Minimum:
    return "--minimum";
  case Mode::Pareto:
    return "--pareto";
  case Mode::PackOnly:
    return "--pack-only";
  case Mode::Check:
    return "--check";
  default:
    return "planning for a budget";
  }
}

llvm::Expected<int64_t> positiveBytes(StringRef text, StringRef flag,
                                      StringRef more) {
  llvm::Expected<int64_t> bytes = parseByteSize(text);
  if (!bytes)
    return usageError(flag + ": " + takeErrorText(bytes.takeError()).text +
                      more);
  if (*bytes == 0)
    return usageError(flag + " must be positive");
  return *bytes;
}

/// Parses the flags of one run, and records which were given.
class PlanFlags {
public:
  explicit PlanFlags(CommandLine &line) : line(line) {
#ifdef CKOPT_PLAN_BASELINES // benchmarks/Baselines/CMakeLists.txt
    line.options.more = &planner::baselines();
#endif
    addModes();
    addSearch();
    addOutputs();
  }
  llvm::Error parse(int argc, char **argv);
  void printHelp(llvm::raw_ostream &os) const;

private:
  void addModes();
  void addSearch();
  void addOutputs();
  llvm::Error setMode(Mode mode, StringRef flag);
  llvm::Error setInput(StringRef path);
  llvm::Error checkTogether();

  CommandLine &line;
  FlagTable table;
  FlagTable::Given given;
  /// The flags that chose mode or budget, in the order given.
  std::vector<std::string> choices;
};

llvm::Error PlanFlags::setMode(Mode mode, StringRef flag) {
  line.mode = mode;
  if (mode == Mode::Minimum)
    line.budget.kind = MemoryBudget::Kind::Minimum;
  choices.push_back(flag.str());
  return llvm::Error::success();
}

llvm::Error PlanFlags::setInput(StringRef path) {
  if (!line.input.empty())
    return usageError("more than one input: " + line.input + " and " + path);
  line.input = path.str();
  return llvm::Error::success();
}

void PlanFlags::addModes() {
  table.beginSection("What is asked");
  table.add("memory-budget", "BYTES", bit(Mode::Plan) | bit(Mode::Check),
            "4096, 512MiB, 2GB, or min (default: none)",
            [this](StringRef text) -> llvm::Error {
              if (text.trim() == "min")
                return setMode(Mode::Minimum, "--memory-budget=min");
              auto bytes =
                  positiveBytes(text, "--memory-budget",
                                ", or 'min' for the smallest possible");
              if (!bytes)
                return bytes.takeError();
              line.budget.kind = MemoryBudget::Kind::Bytes;
              line.budget.bytes = *bytes;
              choices.push_back("--memory-budget");
              return llvm::Error::success();
            });
  table.add("budget-ratio", "R", bit(Mode::Plan) | bit(Mode::Check),
            "R times what the program order needs, rounded up; 0 < R <= 1",
            [this](StringRef text) -> llvm::Error {
              auto budget = parseBudgetRatio(text, MemoryBudget::Kind::Ratio,
                                             "--budget-ratio");
              if (!budget)
                return budget.takeError();
              if (budget->kind == MemoryBudget::Kind::Minimum)
                return setMode(Mode::Minimum, "--budget-ratio=min");
              line.budget = *budget;
              choices.push_back("--budget-ratio");
              return llvm::Error::success();
            });
  table.add("minimum", "", any, "the smallest budget that can be found",
            [this](StringRef) { return setMode(Mode::Minimum, "--minimum"); });
  table.add("pareto", "[=N]", any,
            "N budgets from the smallest to no recomputation (default 11)",
            [this](StringRef text) -> llvm::Error {
              if (!text.empty())
                if (llvm::Error error = flag::number<int>(
                        "pareto", line.paretoPoints, 2, 1000)(text))
                  return error;
              return setMode(Mode::Pareto, "--pareto");
            });
  table.add("check", "PLAN.json", any,
            "verify a plan (ckopt-plan/1) for the graph; nothing is planned",
            flag::reads(
                [this, check = flag::text("check", line.check)](
                    StringRef text) -> llvm::Error {
                  if (llvm::Error error = check(text))
                    return error;
                  return setMode(Mode::Check, "--check");
                },
                line.check));
  table.add("pack-only", "FILE.csv", any,
            "give offsets to buffers (columns lower, upper, size); no graph",
            [this](StringRef text) -> llvm::Error {
              if (llvm::Error error = setInput(text))
                return error;
              return setMode(Mode::PackOnly, "--pack-only");
            });
  table.add("capacity", "BYTES", bit(Mode::PackOnly),
            "fit the buffers into it, and then stop",
            [this](StringRef text) -> llvm::Error {
              auto bytes = positiveBytes(text, "--capacity", "");
              if (!bytes)
                return bytes.takeError();
              line.capacity = *bytes;
              return llvm::Error::success();
            });
}

void PlanFlags::addSearch() {
  table.beginSection("How to search");
  table.add("pack", "", planning,
            "give offsets too; the arena then counts, not the load",
            flag::turnOn(line.options.pack));
  table.add("plan-hint", "PLAN.json", single,
            "start from this plan; the answer is never worse",
            flag::inputFile("plan-hint", line.hint));
  planner::addSearchFlags(
      line.options, [&](const planner::SearchOption &row, Flag::Store store) {
        unsigned packing = row.packs ? bit(Mode::PackOnly) : 0;
        table.add(row.flag, row.value, planning | packing, row.help,
                  std::move(store));
      });
}

void PlanFlags::addOutputs() {
  table.beginSection("Results");
  table.add(
      "o", "FILE", planning | bit(Mode::PackOnly),
      "write the plan (ckopt-plan/1), curve (ckopt-pareto/1) or CSV; '-': "
      "standard output",
      flag::outputFile("o", line.output, Setting("plan-hint")));
  table.add("plan-report", "FILE", reporting,
            "what is kept, what is made again, and why (ckopt-report/1)",
            flag::outputFile("plan-report", line.report));
  table.add("timeline", "FILE", reporting,
            "memory over the step: a picture (.svg) or a trace for "
            "ui.perfetto.dev (.json); once each",
            flag::bySuffix("timeline",
                           {{".svg", &line.svg}, {".json", &line.trace}}));
  table.add("quiet", "", any, "print nothing but errors",
            flag::turnOn(line.quiet));
  table.add("ckopt-stats", "", any, "print how often the planner did what",
            flag::turnOn(line.counters));
  auto enter = [this](Mode mode, bool all = false) {
    return [this, mode, all](StringRef) -> llvm::Error {
      line.mode = mode;
      line.helpAll |= all;
      return llvm::Error::success();
    };
  };
  table.add("help", "", any, "the flags that most runs need",
            enter(Mode::Help));
  table.add("help-all", "", any, "this text", enter(Mode::Help, true));
  table.add("version", "", any, "the version", enter(Mode::Version));
}

llvm::Error PlanFlags::parse(int argc, char **argv) {
  llvm::ArrayRef<char *> arguments(argv + 1, size_t(argc - 1));
  // --help works even if other flags are wrong.
  for (StringRef argument : arguments)
    if (argument == "--help" || argument == "-h" || argument == "--help-all" ||
        argument == "--version") {
      line.mode = argument == "--version" ? Mode::Version : Mode::Help;
      line.helpAll = argument == "--help-all";
      return llvm::Error::success();
    }
  if (llvm::Error error = table.parse(
          arguments, any, [this](StringRef text) { return setInput(text); },
          &given))
    return error;
  return checkTogether();
}

llvm::Error PlanFlags::checkTogether() {
  auto ofCheck = [&](const std::string &flag) {
    return line.mode == Mode::Check &&
           (flag == "--memory-budget" || flag == "--budget-ratio");
  };
  std::string first;
  for (const std::string &flag : choices) {
    if (ofCheck(flag))
      continue;
    if (!first.empty() && flag != first)
      return usageError(first + " and " + flag +
                        " exclude each other: give one of --memory-budget, "
                        "--budget-ratio, --minimum, --pareto, --check and "
                        "--pack-only");
    first = flag;
  }
  for (const Flag *flag : given)
    if (!(flag->groups & bit(line.mode)) &&
        !(line.mode == Mode::Minimum &&
          StringRef(first).starts_with("--" + flag->name + "=min")))
      return usageError((flag->name.size() == 1 ? "-" : "--") + flag->name +
                        " does not go with " + modeName(line.mode));
  if (llvm::Error error = planner::checkSearch(line.options))
    return error;
  if (line.input.empty())
    return usageError("no graph given (see --help)");
  line.inputs = table.files(FileUse::Reads, bit(line.mode));
  line.inputs.push_back(
      {line.mode == Mode::PackOnly ? "the buffers" : "the graph", line.input});
  line.outputs = table.files(FileUse::Writes, bit(line.mode));
  return llvm::Error::success();
}

void PlanFlags::printHelp(llvm::raw_ostream &os) const {
  os << "usage: ckopt-plan GRAPH.json [options]      plan a graph "
        "(ckopt-graph/1)\n"
        "       ckopt-plan GRAPH.json --check=PLAN.json\n"
        "       ckopt-plan --pack-only=FILE.csv [--capacity=BYTES] -o FILE\n\n"
        "Finds order, recomputation and offsets of a training step under a "
        "budget.\nA file named '-' is standard input or output.\n\n";
  if (!line.helpAll) {
    table.printHelp(os, any,
                    {"memory-budget", "minimum", "pareto", "check", "pack",
                     "plan-hint", "time-limit", "o", "plan-report",
                     "timeline"});
    os << "\nckopt-plan --help-all lists all " << table.count(any)
       << " flags, exit codes and strategies.\n";
    return;
  }
  table.printHelp(os, any);
  os << "\nExit codes: 0 a plan (a valid one, with --check); 1 bad file or "
        "invalid plan;\n2 no plan fits the budget (proven); 3 none found; 64 "
        "wrong command line;\n70 internal error; 74 cannot write.\n\n"
        "strategies:";
  for (const std::string &name : planner::strategyNames(line.options.more))
    os << ' ' << name;
  os << '\n';
}

} // namespace

llvm::Expected<CommandLine> ckopt::parseArguments(int argc, char **argv) {
  CommandLine line;
  // The table's functions store pointers to this very object.
  if (llvm::Error error = PlanFlags(line).parse(argc, argv))
    return std::move(error);
  return line;
}

void ckopt::printHelp(llvm::raw_ostream &os, bool all) {
  CommandLine line;
  line.helpAll = all;
  PlanFlags(line).printHelp(os);
}
