//===- PlannerFuzz.cpp - what random bytes must not break -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "PlannerFuzz.h"

#include "PlanReference.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/Packing.h"
#include "ckopt/Planner/Report.h"
#include "ckopt/Planner/Verifier.h"

#include <algorithm>

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
  // A plan from a file may be invalid in any way.
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

/// Reads bytes as small numbers; after the end, zeros.
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

/// The most nodes and values that the exhaustive search can handle.
constexpr int64_t maxNodes = 8, maxValues = 16;

class Decoder {
public:
  explicit Decoder(Bytes &bytes) : bytes(bytes) {}
  Graph run();

private:
  ValueId add(int64_t size, ValueKind kind, ValueId base = -1) {
    graph.values.push_back({size, kind, base, ""});
    return ValueId(graph.values.size()) - 1;
  }
  bool full() const { return int64_t(graph.values.size()) >= maxValues; }
  std::vector<ValueId> readList();
  void addOutput(Node &node, const std::vector<ValueId> &bases);
  void addFlags(Node &node);

  Bytes &bytes;
  Graph graph;
  std::vector<ValueId> values; ///< values that the next node can read
  ValueId state = -1;
};

std::vector<ValueId> Decoder::readList() {
  std::vector<ValueId> list;
  for (int64_t k = bytes.below(4); k > 0; --k) {
    ValueId v = values[bytes.below(int64_t(values.size()))];
    if (std::find(list.begin(), list.end(), v) == list.end())
      list.push_back(v);
  }
  return list;
}

/// Adds a result: a view of one of `bases`, or a value of its own.
void Decoder::addOutput(Node &node, const std::vector<ValueId> &bases) {
  int64_t what = bytes.below(12);
  ValueKind kind = what % 6 == 5 ? ValueKind::Output : ValueKind::Temp;
  ValueId base = what < 4 && !bases.empty()
                     ? bases[bytes.below(int64_t(bases.size()))]
                     : -1;
  node.outputs.push_back(add(bytes.below(7), kind, base));
}

void Decoder::addFlags(Node &node) {
  NodeId n = NodeId(graph.nodes.size());
  int64_t flags = bytes.below(256);
  if (flags & 1)
    node.recompute = false;
  if (flags & 2)
    node.workspace = bytes.below(5);
  if ((flags & 12) == 12 && n > 0)
    node.after = {NodeId(bytes.below(n))};
  if ((flags & 48) == 48)
    node.mutates = {
        node.inputs.empty()
            ? state
            : node.inputs[bytes.below(int64_t(node.inputs.size()))]};
  if (flags & 64)
    for (ValueId o : node.outputs)
      for (ValueId i : node.inputs)
        node.reuse.push_back({i, o});
}

Graph Decoder::run() {
  graph.alignment = bytes.below(4) == 3 ? 4 : 1;
  values = {add(bytes.below(4), ValueKind::Input)};
  state = add(1 + bytes.below(3), ValueKind::Persistent);
  values.push_back(state);
  for (int64_t i = 1 + bytes.below(maxNodes); i > 0; --i) {
    Node node;
    node.cost = double(bytes.below(6));
    node.inputs = readList();
    if (!full())
      addOutput(node, values);
    if (!full() && bytes.below(3) == 2)
      addOutput(node, node.outputs);
    addFlags(node);
    values.insert(values.end(), node.outputs.begin(), node.outputs.end());
    graph.nodes.push_back(std::move(node));
  }
  return std::move(graph);
}

} // namespace

Graph ckopt::planner::decodeGraph(const uint8_t *data, size_t size) {
  Bytes bytes(data, size);
  return Decoder(bytes).run();
}

std::string ckopt::planner::fuzzPlanner(const uint8_t *data, size_t size) {
  Bytes bytes(data, size);
  Graph graph = Decoder(bytes).run();
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
  Result result = BudgetPlanner(graph).solve(options);
  if (result.status() == Status::Error)
    return "planning failed: " + result.message;
  if (!result.hasPlan() &&
      result.plan.provenMinimum > result.plan.minimumBudget)
    return "the proven minimum is above a budget that was found feasible";
  // A packed arena may need more bytes than the load that the exhaustive search
  // minimizes.
  double best =
      test::PlanReference(graph, options.fixedOrder).leastCost(options.budget);
  if (result.hasPlan()) {
    std::string wrong = verify(graph, result.plan, options.budget);
    if (!wrong.empty())
      return "a plan is not valid: " + wrong;
    if (best < 0)
      return "a plan for a budget that exhaustive search calls infeasible";
    if (result.plan.cost < best - 1e-9)
      return "a plan is cheaper than the optimum";
    double any =
        options.fixedOrder
            ? test::PlanReference(graph, false).leastCost(options.budget)
            : best;
    if (result.plan.lowerBound > any + 1e-9)
      return "the bound on cost is above the optimum";
    if (printReport(graph, result, {}).empty())
      return "there is no report";
  } else if (result.status() == Status::Infeasible && best >= 0 &&
             !options.pack) {
    return "a feasible budget is called infeasible";
  }
  if (best >= 0 && memoryBound(graph) > options.budget)
    return "the bound on memory is above a feasible budget";
  return "";
}
