//===- PlannerFuzz.cpp - what random bytes must not break -----------------===//
#include "PlannerFuzz.h"

#include "PebbleGame.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/Packing.h"
#include "ckopt/Planner/Report.h"
#include "ckopt/Planner/Verifier.h"

using namespace ckopt::planner;

static std::string fuzzGraphText(std::string_view text) {
  std::string error;
  std::optional<Graph> graph = parseGraph(text, error);
  if (!graph)
    return error.empty() ? "a graph is refused without a reason" : "";
  if (std::string wrong = validate(*graph); !wrong.empty())
    return "a graph was read that is not well formed: " + wrong;
  std::string written = printGraph(*graph);
  std::optional<Graph> again = parseGraph(written, error);
  if (!again)
    return "a graph that was written is refused: " + error;
  if (printGraph(*again) != written)
    return "writing and reading changes a graph";
  return "";
}

std::string ckopt::planner::fuzzJson(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  if (std::string wrong = fuzzGraphText(text); !wrong.empty())
    return wrong;
  std::string error;
  if (!parsePlan(text, error) && error.empty())
    return "a plan is refused without a reason";
  // A plan for a given graph may be invalid in any way.
  const uint8_t seed[] = {5, 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9};
  Graph graph = decodeGraph(seed, sizeof(seed));
  if (auto plan = parsePlan(text, graph, error))
    (void)verify(graph, plan->plan, plan->budget);
  else if (error.empty())
    return "a plan is refused without a reason";
  if (!parsePackingCsv(text, error) && error.empty())
    return "a packing problem is refused without a reason";
  return "";
}

namespace {

/// Bytes as small numbers; zeros behind the end.
class Bytes {
public:
  Bytes(const uint8_t *data, size_t size) : data(data), size(size) {}
  int64_t below(int64_t n) {
    uint8_t byte = at < size ? data[at] : 0;
    ++at;
    return byte % n;
  }

private:
  const uint8_t *data;
  size_t size, at = 0;
};

Graph decode(Bytes &bytes) {
  Graph graph;
  auto add = [&](int64_t size, ValueKind kind) {
    graph.values.push_back({size, kind, -1, ""});
    return ValueId(graph.values.size()) - 1;
  };
  std::vector<ValueId> values{add(bytes.below(4), ValueKind::Input)};
  ValueId state = add(1 + bytes.below(3), ValueKind::Persistent);
  int64_t nodes = 2 + bytes.below(6);
  for (int64_t i = 0; i < nodes; ++i) {
    Node node;
    node.cost = double(bytes.below(6));
    node.workspace = bytes.below(8) == 0 ? bytes.below(5) : 0;
    node.recompute = bytes.below(6) != 0;
    for (int64_t k = bytes.below(3); k >= 0; --k) {
      ValueId v = values[bytes.below(int64_t(values.size()))];
      if (std::find(node.inputs.begin(), node.inputs.end(), v) ==
          node.inputs.end())
        node.inputs.push_back(v);
    }
    int64_t flags = bytes.below(16);
    if (flags & 1)
      node.inputs.push_back(state);
    if (i > 0 && (flags & 6) == 6)
      node.after = {NodeId(bytes.below(i))};
    if ((flags & 12) == 12) {
      node.mutates = {state};
    } else {
      ValueId v = add(1 + bytes.below(6),
                      bytes.below(7) ? ValueKind::Temp : ValueKind::Output);
      node.outputs = {v};
      values.push_back(v);
      if (flags & 8)
        for (ValueId input : node.inputs)
          node.reuse.push_back({input, v});
    }
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

} // namespace

Graph ckopt::planner::decodeGraph(const uint8_t *data, size_t size) {
  Bytes bytes(data, size);
  return decode(bytes);
}

std::string ckopt::planner::fuzzPlanner(const uint8_t *data, size_t size) {
  Bytes bytes(data, size);
  Graph graph = decode(bytes);
  if (std::string wrong = validate(graph); !wrong.empty())
    return "the decoder made a bad graph: " + wrong;
  Options options;
  options.budget = 1 + bytes.below(40);
  options.pack = bytes.below(3) == 0;
  options.fixedOrder = bytes.below(4) == 0;
  options.seed = uint64_t(bytes.below(5));
  options.effort = 0.1;
  options.workLimit = 2000000;
  options.timeLimitSeconds = 0;
  options.threads = 1;
  Result result = solve(graph, options);
  if (result.status == Status::Error)
    return "planning failed: " + result.message;
  if (!result.hasPlan() &&
      result.plan.provenMinimum > result.plan.minimumBudget)
    return "the proven minimum is above a budget that was found feasible";
  // A packed arena may need more than the load that the game knows.
  double best =
      test::PebbleGame(graph, options.fixedOrder).solve(options.budget);
  if (result.hasPlan()) {
    std::string wrong = verify(graph, result.plan, options.budget);
    if (!wrong.empty())
      return "a plan is not valid: " + wrong;
    if (best < 0)
      return "a plan for a budget that exhaustive search calls infeasible";
    if (result.plan.cost < best - 1e-9)
      return "a plan is cheaper than the optimum";
    double any = options.fixedOrder
                     ? test::PebbleGame(graph, false).solve(options.budget)
                     : best;
    if (result.plan.lowerBound > any + 1e-9)
      return "the bound on cost is above the optimum";
    if (printReport(graph, result, {}).empty())
      return "there is no report";
  } else if (result.status == Status::Infeasible && best >= 0 &&
             !options.pack) {
    return "a feasible budget is called infeasible";
  }
  if (best >= 0 && memoryBound(graph) > options.budget)
    return "the bound on memory is above a feasible budget";
  return "";
}
