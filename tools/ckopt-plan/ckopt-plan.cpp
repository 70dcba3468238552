//===- ckopt-plan.cpp - the planner alone, on graph files -----------------===//
//
// Reads a ckopt-graph/1 file, plans it under a budget, writes a ckopt-plan/1
// file and prints what it found: for other compilers' graphs and for measuring
// the planner. Exit codes: Support/ExitCodes.h.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Error.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace ckopt;
using namespace ckopt::planner;
using llvm::StringRef;

namespace {

const char *const usageText = R"(usage: ckopt-plan GRAPH.json [options]

Plans a graph (ckopt-graph/1): order, recomputation and offsets under a budget.

  --budget=BYTES       budget: 4096, 512MiB, 2GB, or min (default: none)
  --budget-ratio=R     budget: R times what the program order needs, 0 < R <= 1
  --minimum            the smallest budget that can be found
  --strategy=NAME      one of those listed below (default auto: all of them)
  --fixed-order        first runs keep the program order
  --pack               give offsets too; the arena then counts, not the load
  --time-limit=S       seconds after which the best plan so far is taken
                       (default 60; a safety net: limits are counts)
  --effort=X           work factor of the local search (default 1)
  --seed=N             seed of the local search (default 1)
  -o FILE              write the plan (ckopt-plan/1) to FILE
  -h, --help           this text

Exit codes: 0 a plan; 1 bad file; 2 no plan fits the budget (proven); 3 none
found; 64 wrong command line; 70 internal error; 74 cannot write.
)";

struct CommandLine {
  std::string graph, output;
  Options options;
  MemoryBudget budget;
  /// The flags that say how many bytes, in the order given.
  std::vector<std::string> askedFor;
  bool minimum = false;
  bool help = false;
};

template <typename T>
llvm::Error number(StringRef flag, StringRef text, T low, T &result) {
  bool bad;
  if constexpr (std::is_same_v<T, double>)
    bad = text.getAsDouble(result) || !(result >= low) || result > 1e18;
  else
    bad = text.getAsInteger(10, result);
  if (bad)
    return usageError(flag + "=" + text + ": not a number this flag takes");
  return llvm::Error::success();
}

/// A byte size, "min" or an error that names this tool's flag.
llvm::Error parseBudget(StringRef text, MemoryBudget &budget) {
  if (text.trim() == "min") {
    budget.kind = MemoryBudget::Kind::Minimum;
    return llvm::Error::success();
  }
  llvm::Expected<int64_t> bytes = parseByteSize(text);
  if (!bytes)
    return usageError("--budget: " + takeErrorText(bytes.takeError()).text +
                      ", or 'min' for the smallest possible");
  if (*bytes == 0)
    return usageError("--budget must be positive");
  budget.kind = MemoryBudget::Kind::Bytes;
  budget.bytes = *bytes;
  return llvm::Error::success();
}

llvm::Error parseFlag(StringRef flag, StringRef value, CommandLine &line) {
  if (flag == "--budget") {
    if (llvm::Error error = parseBudget(value, line.budget))
      return error;
    line.askedFor.push_back("--budget");
  } else if (flag == "--budget-ratio") {
    auto budget = parseBudgetRatio(value, MemoryBudget::Kind::Ratio, flag);
    if (!budget)
      return budget.takeError();
    line.budget = *budget;
    line.askedFor.push_back("--budget-ratio");
  } else if (flag == "--time-limit") {
    return number(flag, value, 0.0, line.options.timeLimitSeconds);
  } else if (flag == "--effort") {
    return number(flag, value, 0.0, line.options.effort);
  } else if (flag == "--seed") {
    return number<uint64_t>(flag, value, 0, line.options.seed);
  } else if (flag == "--strategy") {
    line.options.strategy = value.str();
    std::vector<std::string> names = strategyNames();
    if (std::find(names.begin(), names.end(), value) == names.end())
      return usageError("--strategy: unknown strategy '" + value +
                        "' (see --help)");
  } else if (flag == "-o" || flag == "--output") {
    line.output = value.str();
  } else {
    return usageError("unknown flag " + flag + " (see --help)");
  }
  return llvm::Error::success();
}

llvm::Expected<CommandLine> parseArguments(int argc, char **argv) {
  CommandLine line;
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument == "-h" || argument == "--help") {
      line.help = true;
    } else if (argument == "--minimum") {
      line.minimum = true;
      line.askedFor.push_back("--minimum");
    } else if (argument == "--fixed-order") {
      line.options.fixedOrder = true;
    } else if (argument == "--pack") {
      line.options.pack = true;
    } else if (argument.starts_with("-") && argument.size() > 1) {
      auto [flag, value] = argument.split('=');
      if (!argument.contains('=')) {
        if (flag.starts_with("--") && flag != "--output" && i + 1 >= argc)
          return usageError(flag + " needs a value (see --help)");
        if (i + 1 >= argc)
          return usageError(flag + " needs a value (see --help)");
        value = argv[++i];
      }
      if (llvm::Error error = parseFlag(flag, value, line))
        return std::move(error);
    } else if (line.graph.empty()) {
      line.graph = argument.str();
    } else {
      return usageError("more than one graph: " + line.graph + " and " +
                        argument);
    }
  }
  for (const std::string &flag : line.askedFor)
    if (flag != line.askedFor.front())
      return usageError(line.askedFor.front() + " and " + flag +
                        " exclude each other: give one of --budget, "
                        "--budget-ratio and --minimum");
  if (line.budget.kind == MemoryBudget::Kind::Minimum)
    line.minimum = true;
  if (line.graph.empty() && !line.help)
    return usageError("no graph given (see --help)");
  return line;
}

void printAlive(const Result &result) {
  if (result.aliveAtPeak.empty())
    return;
  llvm::outs() << "alive at the peak:\n";
  size_t shown = 0;
  int64_t rest = 0;
  for (const PeakEntry &entry : result.aliveAtPeak) {
    if (shown++ >= 12) {
      rest += entry.bytes;
      continue;
    }
    llvm::outs() << "  " << llvm::right_justify(formatBytes(entry.bytes), 10)
                 << "  " << entry.name << "\n";
  }
  if (rest > 0)
    llvm::outs() << "  " << llvm::right_justify(formatBytes(rest), 10) << "  "
                 << shown - 12 << " more\n";
}

void printSummary(const Graph &graph, const Result &result, int64_t budget,
                  int64_t baseline, double seconds) {
  const Plan &plan = result.plan;
  double base = baseCost(graph);
  llvm::outs() << "graph           " << graph.name << ", " << graph.nodes.size()
               << " nodes, " << graph.values.size() << " values\n"
               << "program order   " << formatBytesExact(baseline) << "\n";
  if (budget > 0)
    llvm::outs() << "budget          " << formatBytesExact(budget) << "\n";
  if (result.hasPlan()) {
    llvm::outs() << "peak            "
                 << formatBytesExact(simulate(graph, plan.steps, true).peak)
                 << "\n";
    if (!plan.offsets.empty())
      llvm::outs() << "arena           " << formatBytesExact(plan.arena)
                   << "\n";
    double over = base > 0 ? 100 * (plan.cost / base - 1) : 0;
    double bound = base > 0 ? 100 * (plan.lowerBound / base - 1) : 0;
    double order = base > 0 ? 100 * (plan.orderLowerBound / base - 1) : 0;
    llvm::outs() << "recomputed      " << plan.steps.size() - graph.nodes.size()
                 << " steps, " << llvm::format("%.3f %%", over)
                 << " more cost (proven: at least "
                 << llvm::format("%.3f %%; in program order %.3f %%", bound,
                                 order)
                 << ")\n"
                 << "strategy        " << result.strategy << ", " << plan.status
                 << "\n";
  }
  if (plan.minimumBudget > 0)
    llvm::outs() << "smallest found  " << formatBytesExact(plan.minimumBudget)
                 << "\n";
  llvm::outs() << "proven minimum  " << formatBytesExact(plan.provenMinimum)
               << "\n"
               << "seconds         " << llvm::format("%.2f", seconds) << "\n";
}

llvm::Expected<int> run(int argc, char **argv) {
  auto line = parseArguments(argc, argv);
  if (!line)
    return line.takeError();
  if (line->help) {
    llvm::outs() << usageText << "\nstrategies:";
    for (const std::string &name : strategyNames())
      llvm::outs() << " " << name;
    llvm::outs() << "\n";
    return ExitOk;
  }
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(line->graph);
  if (!buffer)
    return inputError(line->graph + ": " + buffer.getError().message());
  std::string error;
  std::optional<Graph> graph = parseGraph((*buffer)->getBuffer(), error);
  if (!graph)
    return inputError(line->graph + ": " + error);
  std::vector<NodeId> program;
  for (size_t i = 0; i < graph->nodes.size(); ++i)
    program.push_back(NodeId(i));
  int64_t baseline = simulate(*graph, program, true).peak;
  int64_t budget = 0;
  if (!line->minimum && line->budget.kind != MemoryBudget::Kind::Unlimited)
    budget = std::max<int64_t>(1, line->budget.resolve(baseline, 0));
  line->options.budget = budget;
  auto start = std::chrono::steady_clock::now();
  Result result = line->minimum ? minimize(*graph, line->options)
                                : solve(*graph, line->options);
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  if (result.status == Status::Error)
    return makeError(result.internalError ? ExitInternal : ExitInputError,
                     result.message);
  printSummary(*graph, result, budget, baseline, seconds.count());
  if (result.hasPlan() && result.cut)
    llvm::outs() << "note            " << result.message << "\n";
  if (!result.hasPlan())
    printAlive(result);
  bool statement = result.hasPlan() || result.status == Status::Infeasible;
  if (!line->output.empty() && statement) {
    int64_t stated = line->minimum ? result.plan.minimumBudget : budget;
    if (llvm::Error failure = writeFileAtomically(
            line->output, printPlan(*graph, result, stated) + "\n"))
      return std::move(failure);
  }
  if (result.hasPlan())
    return ExitOk;
  llvm::outs().flush();
  return makeError(result.status == Status::Infeasible ? ExitInfeasible
                                                       : ExitNoPlanFound,
                   result.message);
}

} // namespace

int main(int argc, char **argv) {
  llvm::Expected<int> code = run(argc, argv);
  if (!code)
    return reportError(code.takeError(), "ckopt-plan", llvm::errs());
  return *code;
}
