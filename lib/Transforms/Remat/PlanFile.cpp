//===- PlanFile.cpp - plans that are written, edited and fed back ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: let users inspect a plan, edit it and use it again, but never run a
// wrong plan or one that was made for another step. Method: the file is
// ckopt-plan/1 with two more members: a hash of the planning problem (sizes,
// operands and order edges, not costs) and the names of the nodes that the
// steps number. Only steps are taken from a file: the verifier replays them,
// then cost, load and offsets are computed anew (offsets of the file are kept
// if they are still valid). Guarantee: a plan that is used was verified against
// the function and fits the budget. Complexity: O(steps and operands), and
// packing.
//
//===----------------------------------------------------------------------===//
#include "Planning.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/Packing.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Planner/Verifier.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"

#include <limits>

using namespace mlir;
using namespace ckopt;

/// Returns a hash of the problem; two problems with the same hash accept the
/// same plans.
static std::string graphHash(const planner::Graph &graph) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto list = [&](const auto &items) {
    for (auto item : items)
      os << ' ' << item;
    os << ';';
  };
  os << graph.alignment;
  for (const planner::Value &value : graph.values)
    os << 'v' << value.bytes << ' ' << int(value.kind) << ' ' << value.aliasOf;
  for (const planner::Node &node : graph.nodes) {
    os << 'n' << node.workspace << ' ' << node.recompute;
    list(node.inputs);
    list(node.outputs);
    list(node.mutates);
    list(node.after);
    for (auto [input, output] : node.reuse)
      os << ' ' << input << ':' << output;
  }
  return llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true);
}

/// Returns the budget in bytes of the planning problem, which has neither other
/// functions' arguments nor arenas that end within a unit of alignment; 0:
/// none.
static int64_t budgetOfProblem(const RematPlan &plan) {
  if (plan.budgetBytes == unlimited)
    return 0;
  int64_t bytes =
      plan.budgetBytes - (plan.fixedBytes - plan.problem.argumentBytes);
  if (plan.result.hasPlan())
    bytes =
        std::max(bytes, plan.problem.argumentBytes + plan.result.plan.arena);
  return std::max<int64_t>(bytes, 1);
}

std::string ckopt::printStoredPlan(const RematPlan &plan) {
  const planner::Graph &graph = plan.problem.graph;
  int64_t budget = budgetOfProblem(plan);
  // The file is the planner's own text with members added.
  llvm::json::Value file = llvm::cantFail(
      llvm::json::parse(planner::printPlan(graph, plan.result, budget)));
  llvm::json::Array names;
  for (const planner::Node &node : graph.nodes)
    names.push_back(llvm::json::fixUTF8(node.name));
  llvm::json::Object &object = *file.getAsObject();
  object["graph_hash"] = graphHash(graph);
  object["nodes"] = std::move(names);
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream(os).value(file);
  os << "\n";
  return text;
}

llvm::Expected<StoredPlan> StoredPlan::parse(StringRef text,
                                             std::string source) {
  StoredPlan result;
  result.source = std::move(source);
  auto wrong = [&](const Twine &what) {
    return inputError("plan file '" + result.source + "': " + what);
  };
  std::string error;
  std::optional<planner::Plan> plan = planner::parsePlan(text, error);
  if (!plan)
    return wrong(error);
  if (plan->steps.empty())
    return wrong("it holds no steps");
  result.plan = std::move(*plan);
  llvm::Expected<llvm::json::Value> file = llvm::json::parse(text);
  if (!file)
    return wrong(llvm::toString(file.takeError()));
  const llvm::json::Object *object = file->getAsObject();
  result.function = object->getString("graph").value_or("").str();
  result.hash = object->getString("graph_hash").value_or("").str();
  result.budget = object->getInteger("budget").value_or(0);
  if (const llvm::json::Array *names = object->getArray("nodes"))
    result.nodes = int64_t(names->size());
  return result;
}

llvm::Expected<StoredPlan> StoredPlan::read(const std::string &path) {
  auto buffer = openInputBuffer(path, /*endsWithZero=*/true);
  if (!buffer)
    return withContext(buffer.takeError(), "plan file '" + path + "'");
  return parse((*buffer)->getBuffer(), path);
}

/// Returns a message if the file was written for another problem than `graph`,
/// else "".
static std::string differs(const StoredPlan &file,
                           const planner::Graph &graph) {
  std::string hash = graphHash(graph);
  if (file.hash.empty() || file.hash == hash)
    return "";
  std::string text = "it is for another @" + file.function + " (problem " +
                     file.hash + ", this one is " + hash;
  if (file.nodes >= 0 && file.nodes != int64_t(graph.nodes.size()))
    text += "; it has " + std::to_string(file.nodes) + " nodes, this one " +
            std::to_string(graph.nodes.size());
  return text + "): the model, its batch, the optimizer or ckopt changed since "
                "it was written; write it anew";
}

static InFlightDiagnostic emitPlanError(FunctionOpInterface function,
                                        const StoredPlan &plan) {
  return emitError(function.getLoc()) << "plan file '" << plan.source << "': ";
}

bool ckopt::isPlanFor(FunctionOpInterface function, const StoredPlan &plan) {
  return plan.function == getFunctionPath(function);
}

FailureOr<const planner::Plan *> ckopt::findHint(FunctionOpInterface function,
                                                 const RematPlan &plan,
                                                 const RematOptions &options) {
  if (!options.hint || !isPlanFor(function, *options.hint))
    return static_cast<const planner::Plan *>(nullptr);
  const planner::Graph &graph = plan.problem.graph;
  std::string wrong = differs(*options.hint, graph);
  if (wrong.empty())
    wrong = planner::verifySteps(graph, options.hint->plan);
  if (!wrong.empty())
    return emitPlanError(function, *options.hint) << wrong;
  return &options.hint->plan;
}

LogicalResult ckopt::checkStoredPlan(ArrayRef<FunctionOpInterface> functions,
                                     const RematOptions &options) {
  const std::optional<StoredPlan> &stored =
      options.plan ? options.plan : options.hint;
  if (!stored || functions.empty())
    return success();
  FunctionOpInterface first = functions.front();
  if (options.plan && options.hint)
    return emitPlanError(first, *stored)
           << "a plan that is given leaves nothing to search from a hint; give "
              "one or the other";
  if (llvm::any_of(functions, [&](FunctionOpInterface function) {
        return hasPolicy(function, options);
      }))
    return emitPlanError(first, *stored)
           << (options.plan ? "a plan that is given leaves nothing for rules "
                              "and policies to decide"
                            : "a plan to start from may break rules and "
                              "policies")
           << "; give one or the other";
  auto isMeant = [&](FunctionOpInterface function) {
    return isPlanFor(function, *stored);
  };
  // If functions are planned one by one, the file may be for another function.
  Operation *top = first;
  while (top->getParentOp())
    top = top->getParentOp();
  bool isThere = llvm::any_of(functions, isMeant) ||
                 top->walk<WalkOrder::PreOrder>([&](Operation *op) {
                      // Other threads may change the bodies of functions, so do
                      // not look inside.
                      if (auto function = dyn_cast<FunctionOpInterface>(op))
                        return isMeant(function) ? WalkResult::interrupt()
                                                 : WalkResult::skip();
                      return WalkResult::advance();
                    })
                     .wasInterrupted();
  if (isThere)
    return success();
  return emitPlanError(first, *stored)
         << "it is for '" << stored->function << "', which is no function here";
}

/// Computes cost, load and offsets of the file's steps in this function.
static LogicalResult takeSteps(FunctionOpInterface function,
                               const StoredPlan &file, RematPlan &plan) {
  const planner::Graph &graph = plan.problem.graph;
  auto wrong = [&]() { return emitPlanError(function, file); };
  if (std::string other = differs(file, graph); !other.empty())
    return wrong() << other;
  // Nothing stays of the baseline's answer: it may be restricted otherwise.
  plan.result = planner::Result();
  planner::Plan &found = plan.result.plan;
  found.steps = file.plan.steps;
  if (std::string error = planner::verifySteps(graph, found); !error.empty())
    return wrong() << "it is no valid plan: " << error;
  planner::Simulation simulation = planner::simulate(graph, found.steps);
  found.cost = simulation.cost;
  found.peak = simulation.peak;
  found.status = planner::Status::Feasible;
  found.lowerBound = found.orderLowerBound = planner::costBound(graph, 0);
  found.provenMinimum = planner::memoryBound(graph);
  found.arena = file.plan.arena;
  found.offsets = file.plan.offsets;
  found.initial = file.plan.initial;
  if (found.offsets.empty() || !planner::verify(graph, found, 0).empty()) {
    found.offsets.clear();
    found.initial.clear();
    planner::packPlan(graph, found, /*holdsAll=*/false);
  }
  if (std::string error = planner::verify(graph, found, 0); !error.empty())
    return wrong() << "internal error: " << error;
  plan.result.strategy = "file";
  return success();
}

FailureOr<RematPlan> ckopt::planFromFile(FunctionOpInterface function,
                                         const RematOptions &options,
                                         CostModel &costs) {
  const StoredPlan &file = *options.plan;
  FailureOr<RematPlan> plan = planBaseline(function, options, costs);
  if (failed(plan) || failed(takeSteps(function, file, *plan)))
    return failure();
  plan->arena =
      plan->fixedBytes + lastByte(plan->problem.graph, plan->result.plan);
  plan->load = plan->result.plan.peak + options.reservedBytes;
  plan->memoryBound = plan->result.plan.provenMinimum + options.reservedBytes;
  boundArena(*plan);
  using Kind = MemoryBudget::Kind;
  if (options.budget.kind == Kind::Minimum)
    return emitPlanError(function, file)
           << "a plan that is given leaves no smallest budget to find; leave "
              "'min' out";
  bool asked = options.budget.kind != Kind::Unlimited;
  if (asked)
    plan->budgetBytes =
        options.budget.resolve(plan->fullArena, plan->fixedBytes);
  else if (file.budget > 0)
    plan->budgetBytes = file.budget + options.reservedBytes;
  if (plan->arena > plan->budgetBytes)
    return emitPlanError(function, file)
           << "it takes " << formatBytesExact(plan->arena) << "; the budget "
           << (asked ? "is " : "that it states is ")
           << formatBytesExact(plan->budgetBytes);
  return plan;
}
