//===- CommandLine.cpp - flags of ckopt-plan ------------------------------===//
//
// A table of flags: name, value, the modes that know it, help, and a function
// that stores it. Contradictions are errors: a flag that would be ignored is
// one that its user misunderstood.
//
//===----------------------------------------------------------------------===//
#include "CommandLine.h"

#include "ckopt/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <functional>

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

struct Flag {
  StringRef name;  ///< with dashes
  StringRef value; ///< "BYTES"; "[=N]" may be left out; empty: a switch
  unsigned modes;
  StringRef help;
  std::function<llvm::Error(StringRef)> store;
};

template <typename T>
std::function<llvm::Error(StringRef)> number(T &slot, T low, T high,
                                             StringRef flag) {
  return [&slot, low, high, flag](StringRef text) -> llvm::Error {
    T value{};
    bool bad = true;
    if constexpr (std::is_same_v<T, double>) {
      // Digits and a point only: no "nan", "inf" or hexadecimal.
      bad = text.empty() ||
            text.find_first_not_of("0123456789.eE-+") != StringRef::npos ||
            text.getAsDouble(value) || !(value >= low && value <= high);
    } else {
      bad = text.getAsInteger(10, value) || value < low || value > high;
    }
    if (bad)
      return usageError(flag + ": '" + text + "' is no number from " +
                        llvm::Twine(std::to_string(low)) + " to " +
                        llvm::Twine(std::to_string(high)));
    slot = value;
    return llvm::Error::success();
  };
}

std::function<llvm::Error(StringRef)> file(std::string &slot, StringRef flag) {
  return [&slot, flag](StringRef text) -> llvm::Error {
    if (text.empty())
      return usageError(flag + " needs a file name");
    slot = text.str();
    return llvm::Error::success();
  };
}

std::function<llvm::Error(StringRef)> turnOn(bool &slot) {
  return [&slot](StringRef) -> llvm::Error {
    slot = true;
    return llvm::Error::success();
  };
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

/// The flags of one run, and what of them was given.
class FlagTable {
public:
  explicit FlagTable(CommandLine &line) : line(line) {
    addModes();
    addSearch();
    addOutputs();
  }
  llvm::Error parse(int argc, char **argv);
  void printHelp(llvm::raw_ostream &os) const;

private:
  void add(StringRef name, StringRef value, unsigned modes, StringRef help,
           std::function<llvm::Error(StringRef)> store) {
    flags.push_back({name, value, modes, help, std::move(store)});
  }
  void addModes();
  void addSearch();
  void addOutputs();
  llvm::Error setMode(Mode mode, StringRef flag);
  llvm::Error setInput(StringRef path);
  llvm::Error unknown(StringRef name) const;
  llvm::Error checkTogether();

  CommandLine &line;
  std::vector<Flag> flags;
  std::vector<const Flag *> given;
  /// The flags that chose mode or budget, in the order given.
  std::vector<std::string> choices;
};

llvm::Error FlagTable::setMode(Mode mode, StringRef flag) {
  line.mode = mode;
  choices.push_back(flag.str());
  return llvm::Error::success();
}

llvm::Error FlagTable::setInput(StringRef path) {
  if (!line.input.empty())
    return usageError("more than one input: " + line.input + " and " + path);
  line.input = path.str();
  return llvm::Error::success();
}

void FlagTable::addModes() {
  add("--budget", "BYTES", bit(Mode::Plan) | bit(Mode::Check),
      "4096, 512MiB, 2GB, or min (default: none)",
      [this](StringRef text) -> llvm::Error {
        if (text.trim() == "min")
          return setMode(Mode::Minimum, "--budget=min");
        auto bytes = positiveBytes(text, "--budget",
                                   ", or 'min' for the smallest possible");
        if (!bytes)
          return bytes.takeError();
        line.budget.kind = MemoryBudget::Kind::Bytes;
        line.budget.bytes = *bytes;
        choices.push_back("--budget");
        return llvm::Error::success();
      });
  add("--budget-ratio", "R", bit(Mode::Plan) | bit(Mode::Check),
      "R times what the program order needs, rounded up; 0 < R <= 1",
      [this](StringRef text) -> llvm::Error {
        auto budget =
            parseBudgetRatio(text, MemoryBudget::Kind::Ratio, "--budget-ratio");
        if (!budget)
          return budget.takeError();
        if (budget->kind == MemoryBudget::Kind::Minimum)
          return setMode(Mode::Minimum, "--budget-ratio=min");
        line.budget = *budget;
        choices.push_back("--budget-ratio");
        return llvm::Error::success();
      });
  add("--minimum", "", any, "the smallest budget that can be found",
      [this](StringRef) { return setMode(Mode::Minimum, "--minimum"); });
  add("--pareto", "[=N]", any,
      "N budgets from the smallest to no recomputation (default 11)",
      [this](StringRef text) -> llvm::Error {
        if (!text.empty())
          if (llvm::Error error =
                  number<int>(line.paretoPoints, 2, 1000, "--pareto")(text))
            return error;
        return setMode(Mode::Pareto, "--pareto");
      });
  add("--check", "PLAN.json", any,
      "verify a plan (ckopt-plan/1) for the graph; nothing is planned",
      [this](StringRef text) -> llvm::Error {
        if (llvm::Error error = file(line.check, "--check")(text))
          return error;
        return setMode(Mode::Check, "--check");
      });
  add("--pack-only", "FILE.csv", any,
      "give offsets to buffers (columns lower, upper, size); no graph",
      [this](StringRef text) -> llvm::Error {
        if (llvm::Error error = setInput(text))
          return error;
        return setMode(Mode::PackOnly, "--pack-only");
      });
  add("--capacity", "BYTES", bit(Mode::PackOnly),
      "fit the buffers into it, and then stop",
      [this](StringRef text) -> llvm::Error {
        auto bytes = positiveBytes(text, "--capacity", "");
        if (!bytes)
          return bytes.takeError();
        line.capacity = *bytes;
        return llvm::Error::success();
      });
}

void FlagTable::addSearch() {
  planner::Options &o = line.options;
  add("--strategy", "NAME", planning,
      "one of those listed below (default auto: what fits the graph)",
      [&o](StringRef text) -> llvm::Error {
        std::vector<std::string> names = planner::strategyNames();
        if (!llvm::is_contained(names, text))
          return usageError("--strategy: unknown strategy '" + text +
                            "'; known: " + llvm::join(names, " "));
        o.strategy = text.str();
        return llvm::Error::success();
      });
  add("--fixed-order", "", planning, "first runs keep the program order",
      turnOn(o.fixedOrder));
  add("--order-only", "", planning, "recompute nothing: search the order alone",
      turnOn(o.orderOnly));
  add("--pack", "", planning,
      "give offsets too; the arena then counts, not the load", turnOn(o.pack));
  add("--plan-hint", "PLAN.json", single,
      "start from this plan; the answer is never worse",
      file(line.hint, "--plan-hint"));
  add("--time-limit", "S", planning | bit(Mode::PackOnly),
      "search for S seconds, unless nothing better can exist (without it: as "
      "long as seems worth while, at most 60 s; 0: no limit)",
      number<double>(o.timeLimitSeconds, 0, 1e7, "--time-limit"));
  add("--work-limit", "N", planning | bit(Mode::PackOnly),
      "the same in units of work (about 50 ns): the same plan anywhere",
      number<int64_t>(o.workLimit, 1, INT64_MAX, "--work-limit"));
  add("--effort", "X", planning, "work factor of the search (default 1)",
      number<double>(o.effort, 0, 1e6, "--effort"));
  add("--seed", "N", planning | bit(Mode::PackOnly),
      "seed of the search (default 1)",
      number<uint64_t>(o.seed, 0, UINT64_MAX, "--seed"));
  add("--threads", "N", planning | bit(Mode::PackOnly),
      "threads to use; the answer does not depend on it (default: all cores)",
      number<int>(o.threads, 1, 256, "--threads"));
}

void FlagTable::addOutputs() {
  add("-o", "FILE", planning | bit(Mode::PackOnly),
      "write the plan (ckopt-plan/1), curve (ckopt-pareto/1) or CSV; '-': "
      "standard output",
      file(line.output, "-o"));
  add("--report", "FILE", reporting,
      "what is kept, what is made again, and why (ckopt-report/1)",
      file(line.report, "--report"));
  add("--trace", "FILE", reporting,
      "memory and steps as a Chrome trace, for ui.perfetto.dev",
      file(line.trace, "--trace"));
  add("--svg", "FILE", planning | bit(Mode::Check),
      "a picture of memory over the step, or of the curve",
      file(line.svg, "--svg"));
  add("--chart", "[=WIDTH]", reporting | bit(Mode::Pareto),
      "memory as text, before and after (default where output is a "
      "terminal); 0: none",
      [this](StringRef text) -> llvm::Error {
        line.chartWidth = -2;
        return text.empty()
                   ? llvm::Error::success()
                   : number<int>(line.chartWidth, 0, 400, "--chart")(text);
      });
  add("--ascii", "", reporting | bit(Mode::Pareto),
      "no block characters in the chart", turnOn(line.asciiChart));
  add("--help", "", any, "this text", [this](StringRef) -> llvm::Error {
    line.mode = Mode::Help;
    return llvm::Error::success();
  });
  add("--version", "", any, "the version", [this](StringRef) -> llvm::Error {
    line.mode = Mode::Version;
    return llvm::Error::success();
  });
}

llvm::Error FlagTable::unknown(StringRef name) const {
  const Flag *nearest = nullptr;
  unsigned best = 4;
  for (const Flag &flag : flags)
    if (unsigned far = name.edit_distance(flag.name, true, best); far < best) {
      best = far;
      nearest = &flag;
    }
  return usageError("unknown flag " + name +
                    (nearest ? "; did you mean " + nearest->name.str() + "?"
                             : " (see --help)"));
}

llvm::Error FlagTable::parse(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument == "-" || !argument.starts_with("-")) {
      if (llvm::Error error = setInput(argument))
        return error;
      continue;
    }
    auto [name, value] = argument.split('=');
    bool hasValue = argument.contains('=');
    if (name == "-h")
      name = "--help";
    if (name == "--output")
      name = "-o";
    auto flag =
        llvm::find_if(flags, [&](const Flag &f) { return f.name == name; });
    if (flag == flags.end())
      return unknown(name);
    if (flag->value.empty() && hasValue)
      return usageError(name + " takes no value");
    if (!flag->value.empty() && !flag->value.starts_with("[") && !hasValue) {
      if (i + 1 >= argc)
        return usageError(name + " needs a value (see --help)");
      value = argv[++i];
    }
    given.push_back(&*flag);
    if (llvm::Error error = flag->store(value))
      return error;
    if (line.mode == Mode::Help || line.mode == Mode::Version)
      return llvm::Error::success();
  }
  return checkTogether();
}

llvm::Error FlagTable::checkTogether() {
  auto ofCheck = [&](const std::string &flag) {
    return line.mode == Mode::Check &&
           (flag == "--budget" || flag == "--budget-ratio");
  };
  std::string first;
  for (const std::string &flag : choices) {
    if (ofCheck(flag))
      continue;
    if (!first.empty() && flag != first)
      return usageError(first + " and " + flag +
                        " exclude each other: give one of --budget, "
                        "--budget-ratio, --minimum, --pareto, --check and "
                        "--pack-only");
    first = flag;
  }
  for (const Flag *flag : given)
    if (!(flag->modes & bit(line.mode)) &&
        !(line.mode == Mode::Minimum &&
          StringRef(first).starts_with(flag->name.str() + "=min")))
      return usageError(flag->name + " does not go with " +
                        modeName(line.mode));
  // Who sets a limit wants the best that there is time for.
  for (const Flag *flag : given)
    line.options.searchToLimit |=
        flag->name == "--time-limit" || flag->name == "--work-limit";
  if (line.options.orderOnly && line.options.fixedOrder)
    return usageError("--order-only and --fixed-order leave nothing to search");
  if (line.input.empty())
    return usageError("no graph given (see --help)");
  return llvm::Error::success();
}

void FlagTable::printHelp(llvm::raw_ostream &os) const {
  os << "usage: ckopt-plan GRAPH.json [options]      plan a graph "
        "(ckopt-graph/1)\n"
        "       ckopt-plan GRAPH.json --check=PLAN.json\n"
        "       ckopt-plan --pack-only=FILE.csv [--capacity=BYTES] -o FILE\n\n"
        "Finds order, recomputation and offsets of a training step under a "
        "budget.\nA file named '-' is standard input or output.\n\n";
  for (const Flag &flag : flags) {
    std::string head = flag.name.str();
    if (flag.value.starts_with("["))
      head += flag.value;
    else if (!flag.value.empty())
      head += (flag.name == "-o" ? " " : "=") + flag.value.str();
    os << "  " << llvm::left_justify(head, 23) << ' ';
    // Lines of 79 characters.
    std::string rest = flag.help.str();
    while (rest.size() > 52) {
      size_t at = rest.rfind(' ', 52);
      os << rest.substr(0, at) << '\n' << std::string(26, ' ');
      rest = rest.substr(at + 1);
    }
    os << rest << '\n';
  }
  os << "\nExit codes: 0 a plan (a valid one, with --check); 1 bad file or "
        "invalid plan;\n2 no plan fits the budget (proven); 3 none found; 64 "
        "wrong command line;\n70 internal error; 74 cannot write.\n\n"
        "strategies:";
  for (const std::string &name : planner::strategyNames())
    os << ' ' << name;
  os << '\n';
}

} // namespace

llvm::Expected<CommandLine> ckopt::parseArguments(int argc, char **argv) {
  CommandLine line;
  // The table's functions store into this very object.
  if (llvm::Error error = FlagTable(line).parse(argc, argv))
    return std::move(error);
  return line;
}

void ckopt::printHelp(llvm::raw_ostream &os) {
  CommandLine line;
  FlagTable(line).printHelp(os);
}
