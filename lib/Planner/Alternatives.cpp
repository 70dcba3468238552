//===- Alternatives.cpp - choosing among equal ways -----------------------===//
//
// Problem: a gradient may read one of several sets of values that give the same
// bits (a ReLU's its input or its output); which one is best depends on what
// else is kept. Method: one choice holds for all runs of a node, so a choice
// gives a plain graph. Where choices are few, all of them are planned, which
// keeps proofs; else the prices of bytes of the gap relaxation choose (cost
// plus the price of what the read keeps alive), and equal nodes are then
// flipped together by trial. Guarantee: bounds hold over all choices: they are
// the least over all, or those of a relaxed graph whose nodes read only what
// all alternatives read and cost the least of them; a plan for any choice is
// one for that graph, no dearer and with no more resident.
//
//===----------------------------------------------------------------------===//
#include "Alternatives.h"
#include "Order.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Verifier.h"

#include <algorithm>
#include <limits>

using namespace ckopt::planner;

/// All choices are planned where there are at most so many, by nodes.
static double enumerable(int32_t nodes) {
  return nodes <= 12 ? 4096 : nodes <= 200 ? 16 : 4;
}

static void dropUnreadPairs(Node &node) {
  std::erase_if(node.reuse, [&](const std::pair<ValueId, ValueId> &pair) {
    return std::find(node.inputs.begin(), node.inputs.end(), pair.first) ==
           node.inputs.end();
  });
}

Graph ckopt::planner::choose(const Graph &graph, const Choices &choices) {
  Graph result = graph;
  for (auto [n, index] : choices) {
    Node &node = result.nodes[n];
    const Alternative &alternative = graph.nodes[n].alternatives[index];
    node.inputs = alternative.inputs;
    node.cost = alternative.cost;
  }
  for (Node &node : result.nodes)
    if (!node.alternatives.empty()) {
      node.alternatives.clear();
      dropUnreadPairs(node);
    }
  return result;
}

Graph ckopt::planner::relaxAlternatives(const Graph &graph) {
  Graph result = graph;
  for (Node &node : result.nodes) {
    if (node.alternatives.empty())
      continue;
    std::vector<Alternative> list = std::move(node.alternatives);
    node.alternatives.clear();
    node.inputs = list.front().inputs;
    node.cost = list.front().cost;
    for (const Alternative &other : list) {
      node.cost = std::min(node.cost, other.cost);
      std::erase_if(node.inputs, [&](ValueId v) {
        return std::find(other.inputs.begin(), other.inputs.end(), v) ==
               other.inputs.end();
      });
    }
    // A pair whose input only some read: as if no bytes were made there.
    for (auto [input, output] : node.reuse)
      if (std::find(node.inputs.begin(), node.inputs.end(), input) ==
          node.inputs.end())
        result.values[output].bytes = 0;
    dropUnreadPairs(node);
  }
  return result;
}

AlternativesPlanner::AlternativesPlanner(const Graph &graph)
    : graph(graph), relaxed(relaxAlternatives(graph)) {
  for (NodeId n = 0; n < NodeId(graph.nodes.size()); ++n)
    if (size_t count = graph.nodes[n].alternatives.size()) {
      nodes.push_back(n);
      combinations = std::min(1e18, combinations * double(count));
    }
}

AlternativesPlanner::Chosen &
AlternativesPlanner::chosen(const Choices &choices) {
  Chosen &entry = planners[choices];
  if (!entry.graph) {
    entry.choices = choices;
    entry.graph = std::make_unique<Graph>(choose(graph, choices));
    entry.planner = std::make_unique<GraphPlanner>(*entry.graph);
  }
  return entry;
}

std::vector<Choices> AlternativesPlanner::all() const {
  std::vector<Choices> result{{}};
  for (NodeId n : nodes) {
    std::vector<Choices> longer;
    for (const Choices &choices : result)
      for (size_t i = 0; i < graph.nodes[n].alternatives.size(); ++i) {
        longer.push_back(choices);
        longer.back().push_back({n, int32_t(i)});
      }
    result = std::move(longer);
  }
  return result;
}

/// For each node the alternative of the least cost plus price of the bytes that
/// reading it keeps alive, at the prices of the graph chosen by `from`.
Choices AlternativesPlanner::byPrice(const Choices &from, int64_t budget) {
  const Graph &base = *chosen(from).graph;
  Problem problem(base);
  std::vector<double> price;
  orderBound(base, programOrder(problem), budget, &price);
  price.resize(problem.numNodes + 1, 0);
  std::vector<double> sums{0};
  for (double p : price)
    sums.push_back(sums.back() + p);
  std::vector<std::vector<NodeId>> touched(problem.numValues);
  for (NodeId n = 0; n < problem.numNodes; ++n) {
    for (ValueId v : problem.reads[n])
      touched[problem.root[v]].push_back(n);
    for (ValueId v : problem.outputs[n])
      touched[problem.root[v]].push_back(n);
  }
  Choices result = from;
  for (auto &[n, index] : result) {
    double least = std::numeric_limits<double>::infinity();
    const std::vector<Alternative> &list = graph.nodes[n].alternatives;
    for (size_t i = 0; i < list.size(); ++i) {
      double total = list[i].cost;
      for (ValueId v : list[i].inputs) {
        ValueId root = problem.root[v];
        NodeId last = -1;
        for (NodeId other : touched[root])
          if (other != n)
            last = std::max(last, other);
        if (!problem.initial[root] && !problem.endLive[root] && last < n)
          total += double(problem.bytes[root]) * (sums[n] - sums[last + 1]);
      }
      if (total < least) {
        least = total;
        index = int32_t(i);
      }
    }
  }
  return result;
}

std::vector<Choices> AlternativesPlanner::promising(int64_t budget) {
  Choices first, cheapest;
  for (NodeId n : nodes) {
    const std::vector<Alternative> &list = graph.nodes[n].alternatives;
    auto it = std::min_element(list.begin(), list.end(),
                               [](const Alternative &a, const Alternative &b) {
                                 return a.cost < b.cost;
                               });
    first.push_back({n, 0});
    cheapest.push_back({n, int32_t(it - list.begin())});
  }
  std::vector<Choices> result{cheapest};
  auto add = [&](const Choices &choices) {
    if (std::find(result.begin(), result.end(), choices) != result.end())
      return false;
    result.push_back(choices);
    return true;
  };
  Choices current = cheapest;
  for (int round = 0; budget > 0 && round < 3; ++round) {
    current = byPrice(current, budget);
    if (!add(current))
      break;
  }
  add(first);
  return result;
}

Options AlternativesPlanner::withHint(const Options &options,
                                      const Choices &choices) const {
  Options result = options;
  if (options.hint && options.hint->choices != choices)
    result.hint = nullptr;
  return result;
}

/// The best of the results; what is proven over all choices if all are there.
Result AlternativesPlanner::best(std::vector<Result> results, bool complete,
                                 int64_t budget) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  double bound = infinite, orderly = infinite;
  int64_t proven = std::numeric_limits<int64_t>::max(), least = proven;
  bool impossible = complete;
  Result *winner = nullptr;
  for (Result &result : results) {
    if (result.status == Status::Error)
      return std::move(result);
    proven = std::min(proven, result.plan.provenMinimum);
    if (result.plan.minimumBudget > 0)
      least = std::min(least, result.plan.minimumBudget);
    if (result.status == Status::Infeasible)
      continue;
    impossible = false;
    bound = std::min(bound, result.plan.lowerBound);
    orderly = std::min(orderly, result.plan.orderLowerBound);
    if (result.hasPlan() && (!winner || result.plan.cost < winner->plan.cost))
      winner = &result;
  }
  Certificate certificate;
  double relaxedBound = costBound(relaxed, budget, &certificate);
  Result answer = std::move(winner ? *winner : results.front());
  Plan &plan = answer.plan;
  plan.certificates.assign(1, std::move(certificate));
  plan.lowerBound = complete ? std::max(bound, relaxedBound) : relaxedBound;
  plan.orderLowerBound = std::max(plan.lowerBound, complete ? orderly : 0);
  plan.provenMinimum =
      std::max(memoryBound(relaxed), complete ? proven : int64_t(0));
  if (least != std::numeric_limits<int64_t>::max())
    plan.minimumBudget = least;
  if (!answer.hasPlan()) {
    impossible |= budget > 0 && plan.provenMinimum > budget;
    answer.status = impossible ? Status::Infeasible : Status::Unknown;
    plan.status = impossible ? "infeasible" : "unknown";
    plan.lowerBound = relaxedBound;
    plan.orderLowerBound = relaxedBound;
    plan.proof = plan.provenMinimum > memoryBound(relaxed) ? "search" : "";
    return answer;
  }
  plan.lowerBound = std::min(plan.lowerBound, plan.cost);
  // Going over the choices is a search: the certificate knows none of it.
  plan.proof = plan.lowerBound > relaxedBound * (1 + 1e-9) ||
                       plan.orderLowerBound > relaxedBound * (1 + 1e-9)
                   ? "search"
                   : "";
  bool optimal = plan.cost <= plan.lowerBound * (1 + 1e-9);
  answer.status = optimal ? Status::Optimal : Status::Feasible;
  plan.status = optimal ? "optimal"
                : complete && plan.status != "feasible" &&
                        plan.cost <= plan.orderLowerBound * (1 + 1e-9)
                    ? "order_optimal"
                    : "feasible";
  std::string wrong = verify(graph, plan, budget);
  if (!wrong.empty()) {
    answer = Result();
    answer.internalError = true;
    answer.message =
        "internal error: a plan with alternatives failed verification: " +
        wrong;
  }
  return answer;
}

Result AlternativesPlanner::search(const std::vector<Choices> &list,
                                   bool complete, const Options &options,
                                   Deadline &deadline, bool least) {
  std::vector<Result> results;
  for (size_t i = 0; i < list.size(); ++i) {
    Options own = withHint(options, list[i]);
    GraphPlanner &planner = *chosen(list[i]).planner;
    Deadline part =
        deadline.part(deadline.unitsLeft() / int64_t(list.size() - i),
                      1.0 / double(list.size() - i));
    Result result =
        least ? planner.minimize(own, part) : planner.solve(own, part);
    deadline.spend(part.spent());
    result.plan.choices = list[i];
    results.push_back(std::move(result));
  }
  if (least) // Only the smallest one counts.
    std::iter_swap(results.begin(),
                   std::min_element(results.begin(), results.end(),
                                    [](const Result &a, const Result &b) {
                                      return a.plan.minimumBudget <
                                             b.plan.minimumBudget;
                                    }));
  if (least && results.front().hasPlan()) {
    int64_t proven = results.front().plan.provenMinimum;
    for (const Result &result : results)
      proven = std::min(proven, result.plan.provenMinimum);
    results.front().plan.provenMinimum = proven;
    int64_t budget = results.front().plan.minimumBudget;
    return best({results.front()}, complete && results.size() == 1, budget);
  }
  return best(std::move(results), complete, options.budget);
}

/// Flips nodes that look alike together, keeping what helps.
Result AlternativesPlanner::improve(Result start, const Options &options,
                                    Deadline &deadline, bool least) {
  using Shape = std::vector<double>;
  std::map<Shape, std::vector<size_t>> alike;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Shape shape;
    for (const Alternative &a : graph.nodes[nodes[i]].alternatives) {
      shape.push_back(a.cost);
      for (ValueId v : a.inputs)
        shape.push_back(double(graph.values[v].bytes));
    }
    alike[shape].push_back(i);
  }
  Options quick = options;
  quick.effort = options.effort * 0.1;
  quick.searchToLimit = false;
  int trials = 12;
  for (const auto &[shape, members] : alike) {
    size_t count = graph.nodes[nodes[members.front()]].alternatives.size();
    for (size_t i = 0; i < count; ++i) {
      Choices trial = start.plan.choices;
      for (size_t m : members)
        trial[m].second = int32_t(i);
      if (trial == start.plan.choices)
        continue;
      if (trials-- == 0 || deadline.passed())
        return start;
      Result result = search({trial}, false, quick, deadline, least);
      bool better =
          result.hasPlan() &&
          (!start.hasPlan() ||
           (least ? result.plan.minimumBudget < start.plan.minimumBudget
                  : result.plan.cost < start.plan.cost));
      if (better)
        start = std::move(result);
    }
  }
  return start;
}

Result AlternativesPlanner::solve(const Options &options, Deadline &deadline) {
  int32_t size = int32_t(graph.nodes.size());
  if (combinations <= enumerable(size))
    return search(all(), true, options, deadline, false);
  std::vector<Choices> list = promising(options.budget);
  if (options.hint && !options.hint->choices.empty() &&
      std::find(list.begin(), list.end(), options.hint->choices) == list.end())
    list.push_back(options.hint->choices);
  if (options.budget == 0) // Nothing costs less than the cheapest of each.
    return search({list.front()}, false, options, deadline, false);
  Options quick = options;
  quick.effort = options.effort * 0.1;
  quick.searchToLimit = false;
  Deadline part = deadline.part(deadline.unitsLeft() / 2, 0.5);
  Result start = search(list, false, quick, part, false);
  if (start.status != Status::Error)
    start = improve(std::move(start), options, part, false);
  deadline.spend(part.spent());
  if (start.status == Status::Error || start.status == Status::Infeasible)
    return start;
  Result full = search({start.plan.choices}, false, options, deadline, false);
  return full.hasPlan() || !start.hasPlan() ? full : start;
}

Result AlternativesPlanner::minimize(const Options &options,
                                     Deadline &deadline) {
  if (combinations <= enumerable(int32_t(graph.nodes.size())))
    return search(all(), true, options, deadline, true);
  Options quick = options;
  quick.effort = options.effort * 0.1;
  int64_t low = std::max<int64_t>(1, memoryBound(relaxed));
  Result start = search(promising(low), false, quick, deadline, true);
  if (start.status == Status::Error)
    return start;
  start = improve(std::move(start), options, deadline, true);
  return search({start.plan.choices}, false, options, deadline, true);
}

Result AlternativesPlanner::recall(const Options &options) {
  std::vector<Result> results;
  for (auto &[choices, entry] : planners) {
    Result result = entry.planner->recall(withHint(options, choices));
    result.plan.choices = choices;
    if (result.hasPlan())
      results.push_back(std::move(result));
  }
  if (results.empty())
    return Result();
  return best(std::move(results), false, options.budget);
}
