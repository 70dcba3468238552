//===- PlanTool.cpp - the planner alone, on files -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads a ckopt-graph/1 file, plans it, writes a ckopt-plan/1 file and prints
// what it found: for other compilers' graphs and for measuring the planner.
// docs/planner.md describes modes and files; exit codes: Base/ExitCodes.h.
//
//===----------------------------------------------------------------------===//
#include "Output.h"

#include "ckopt/Base/Version.h"
#include "ckopt/Planner/Packing.h"
#include "ckopt/Planner/PlanCheck.h"
#include "ckopt/Planner/Request.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Debug.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/GuardedOutput.h"
#include "ckopt/Support/InputBuffer.h"
#include "ckopt/Support/OutputFiles.h"
#include "ckopt/Tool/Main.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"

#include <chrono>

using namespace ckopt;
using namespace ckopt::planner;
using llvm::StringRef;

namespace {

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> readFile(StringRef path) {
  auto buffer = openInputBuffer(path == "-" ? "/dev/stdin" : path,
                                /*endsWithZero=*/true);
  if (!buffer)
    return withContext(buffer.takeError(), path);
  return buffer;
}

/// Returns an error for each line of `text`, each with the file's name.
llvm::Error fileErrors(StringRef path, StringRef text) {
  llvm::Error all = llvm::Error::success();
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    all = llvm::joinErrors(std::move(all), inputError(path + ": " + line));
    text = rest;
  }
  return all;
}

llvm::Expected<Graph> readGraph(StringRef path) {
  auto buffer = readFile(path);
  if (!buffer)
    return buffer.takeError();
  std::string error;
  std::optional<Graph> graph = parseGraph((*buffer)->getBuffer(), error);
  if (!graph)
    return fileErrors(path, error);
  return std::move(*graph);
}

llvm::Expected<PlanFile> readPlan(StringRef path, const Graph &graph) {
  auto buffer = readFile(path);
  if (!buffer)
    return buffer.takeError();
  std::string error;
  auto plan = parsePlan((*buffer)->getBuffer(), graph, error);
  if (!plan)
    return fileErrors(path, error);
  return std::move(*plan);
}

int runPackOnly(const CommandLine &line, llvm::Error &failure) {
  auto fail = [&](llvm::Error error) {
    failure = std::move(error);
    return int(ExitInputError);
  };
  auto buffer = readFile(line.input);
  if (!buffer)
    return fail(buffer.takeError());
  std::string error;
  auto file = parsePackingCsv((*buffer)->getBuffer(), error);
  if (!file)
    return fail(fileErrors(line.input, error));
  PackProblem packing{file->buffers, /*alignment=*/1, line.capacity};
  PackOptions options;
  if (line.options.workLimit > 0)
    options.workLimit = line.options.workLimit;
  options.timeLimitSeconds = line.options.timeLimitSeconds;
  options.seed = line.options.seed;
  auto start = std::chrono::steady_clock::now();
  PackResult result = pack(packing, options);
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  if (result.status == PackStatus::Error)
    return fail(fileErrors(line.input, result.message));
  llvm::raw_ostream &os = line.log();
  os << "buffers         " << file->buffers.size() << "\n"
     << "proven minimum  " << formatBytesExact(result.facts.lowerBound) << "\n";
  if (line.capacity > 0)
    os << "capacity        " << formatBytesExact(line.capacity) << "\n";
  if (!result.offsets.empty() || file->buffers.empty())
    os << "arena           " << formatBytesExact(result.height) << "\n";
  os << "seconds         " << llvm::format("%.2f", seconds.count()) << "\n";
  if (result.status == PackStatus::Fits) {
    if (!line.output.empty())
      failure =
          writeOutput(line.output, printPackingCsv(*file, result.offsets));
    return ExitOk;
  }
  os.flush();
  bool proven = result.status == PackStatus::TooMuch;
  failure = makeError(
      proven ? ExitInfeasible : ExitNoPlanFound,
      line.input + ": " +
          (proven ? "nothing fits a capacity of " : "nothing found within ") +
          std::to_string(line.capacity) + " bytes" +
          (result.message.empty() ? "" : ": " + result.message));
  return ExitInternal; // The error says better.
}

llvm::Expected<int> runCheck(const CommandLine &line, const Graph &graph,
                             int64_t baseline) {
  auto file = readPlan(line.check, graph);
  if (!file)
    return file.takeError();
  int64_t asked = budgetBytes(graph, line.budget);
  int64_t budget = asked > 0 ? asked : file->budget;
  CheckedClaims claims = checkPlanFile(graph, *file, budget);
  if (!claims.wrong.empty())
    return inputError(line.check + ": not a valid plan: " + claims.wrong);
  Result result;
  result.plan = std::move(file->plan);
  result.strategy = "given";
  ReportOptions options;
  options.budget = budget;
  printSummary(line.log(), graph, result, options, baseline);
  for (const std::string &claim : claims.derived)
    line.log() << "checked         " << claim << "\n";
  for (const std::string &claim : claims.notChecked)
    line.log() << "not checked     " << claim << "\n";
  line.log() << (claims.notChecked.empty() ? "valid\n"
                                           : "valid as far as checked\n");
  if (llvm::Error error = writeReports(line, graph, result, options))
    return std::move(error);
  return ExitOk;
}

llvm::Expected<int> runPareto(const CommandLine &line, const Graph &graph) {
  ParetoCurve curve = paretoCurve(graph, line.options, line.paretoPoints);
  if (curve.points.empty())
    return planError(curve.error);
  printCurve(line.log(), graph, curve);
  if (!line.output.empty())
    if (llvm::Error error = writeOutput(line.output, printPareto(graph, curve)))
      return std::move(error);
  return ExitOk;
}

llvm::Expected<int> runPlan(const CommandLine &line, const Graph &graph,
                            int64_t baseline) {
  Request request{line.options, line.budget};
  std::optional<PlanFile> hint;
  if (!line.hint.empty()) {
    auto file = readPlan(line.hint, graph);
    if (!file)
      return file.takeError();
    hint = std::move(*file);
    request.search.hint = &hint->plan;
  }
  auto start = std::chrono::steady_clock::now();
  Result result = planRequest(graph, request);
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  if (result.status() == Status::Error)
    return planError(result);
  ReportOptions options;
  options.budget = result.budget;
  options.planSeconds = seconds.count();
  llvm::raw_ostream &os = line.log();
  printSummary(os, graph, result, options, baseline);
  if (!result.hasPlan())
    printAlive(os, result);
  if (!line.output.empty())
    if (llvm::Error error = writeOutput(
            line.output, printPlan(graph, result, options.budget) + "\n"))
      return std::move(error);
  if (llvm::Error error = writeReports(line, graph, result, options))
    return std::move(error);
  if (result.hasPlan())
    return ExitOk;
  os.flush();
  return planError(result);
}

llvm::Expected<int> run(int argc, char **argv) {
  auto line = parseArguments(argc, argv);
  if (!line)
    return line.takeError();
  if (line->mode == Mode::Help) {
    printHelp(llvm::outs(), line->helpAll);
    return ExitOk;
  }
  if (line->mode == Mode::Version) {
    llvm::outs() << versionLine("ckopt-plan") << "\n";
    return ExitOk;
  }
  struct PrintAtEnd {
    bool counters;
    ~PrintAtEnd() {
      if (counters)
        debug::printCounters(llvm::errs());
    }
  } printAtEnd{line->counters};
  if (llvm::Error error = checkDistinct(line->outputs, line->inputs))
    return std::move(error);
  OutputLocks locks;
  if (llvm::Error error = locks.lock(line->outputs))
    return std::move(error);
  if (llvm::Error error =
          checkWritable({line->output, line->report, line->trace, line->svg}))
    return std::move(error);
  if (line->mode == Mode::PackOnly) {
    llvm::Error failure = llvm::Error::success();
    int code = runPackOnly(*line, failure);
    if (failure)
      return std::move(failure);
    return code;
  }
  auto graph = readGraph(line->input);
  if (!graph)
    return graph.takeError();
  int64_t baseline = programLoad(*graph);
  if (line->mode == Mode::Check)
    return runCheck(*line, *graph, baseline);
  if (line->mode == Mode::Pareto)
    return runPareto(*line, *graph);
  return runPlan(*line, *graph, baseline);
}

} // namespace

int ckopt::planMain(int argc, char **argv) {
  guardOutput("ckopt-plan");
  llvm::Expected<int> code = run(argc, argv);
  if (!code)
    return reportError(code.takeError(), "ckopt-plan", llvm::errs());
  return *code;
}
