//===- PlanCommand.cpp - the planner's modes on a model -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes and prints the planning graph of an ONNX model as ckopt-plan does for
// a graph file: the graph as a file, the curve of time against memory. The
// graph is that of the step before recomputation; under rules it is the larger
// graph whose every plan obeys them.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/Pareto.h"
#include "ckopt/Planner/Request.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;

static llvm::Error writeCurve(const DriverOptions &options,
                              const RematGraph &step) {
  planner::Options request = options.compile.step.remat.search;
  request.pack = true;
  request.arenaHoldsAll = false;
  const planner::Graph &graph = step.graph;
  planner::ParetoCurve curve = planner::paretoCurve(
      graph, request, options.paretoPoints,
      step.constrained ? &*step.constrained : nullptr, step.clock.get());
  if (curve.points.empty())
    return planner::planError(curve.error);
  planner::printCurve(options.output == "-" && !options.quiet ? llvm::errs()
                                                              : options.out(),
                      graph, curve);
  if (!options.output.empty()) {
    std::string text = planner::printPareto(graph, curve);
    if (options.output == "-")
      llvm::outs() << text;
    else if (llvm::Error error = writeFileAtomically(options.output, text))
      return error;
  }
  return llvm::Error::success();
}

bool ckopt::wantsPlanningGraph(const DriverOptions &options) {
  return !options.graphOut.empty() || options.paretoPoints > 0;
}

llvm::Error ckopt::runPlanModes(const DriverOptions &options,
                                const Compilation &compilation) {
  const std::optional<RematGraph> &graph = compilation.graph();
  if (!graph)
    return inputError("the model has no training step to plan");
  if (!options.graphOut.empty())
    if (llvm::Error error = writeFileAtomically(
            options.graphOut, planner::printGraph(graph->searched()) + "\n"))
      return error;
  if (options.paretoPoints > 0)
    return writeCurve(options, *graph);
  return llvm::Error::success();
}
