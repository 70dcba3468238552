//===- Check.cpp - what a plan file states of itself ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks a plan file against its graph. Each claim is derived again,
// contradicted, or listed as not checked. The verifier replays steps, figures
// and offsets. Bounds on cost follow from the sum of all costs, from
// certificates or, on graphs small enough for a search to end at once, from a
// new search; smallest budgets from bounds on memory or such a search. Results
// of longer searches are not checked, unless they left case certificates, which
// must then prove them. Plans made under rules may claim what holds for plans
// that obey them: that cannot be checked, since the file does not have them.
//
//===----------------------------------------------------------------------===//
#include "Check.h"

#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Certificate.h"
#include "ckopt/Planner/Packing.h"
#include "ckopt/Planner/Report.h"
#include "ckopt/Planner/Request.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace ckopt;
using namespace ckopt::planner;

namespace {

/// The exact search ends at once up to this size.
constexpr size_t smallGraph = 12;
constexpr double rounding = 1 + 1e-9;

const char *const withRules =
    "; the plan was made under rules, and a graph that was written under rules "
    "has nodes of its own for their copies: write the graph without them";

class Checker {
public:
  Checker(const Graph &graph, PlanFile &file, int64_t budget)
      : graph(graph), file(file), plan(file.plan), budget(budget) {}
  CheckedClaims run();

private:
  bool fail(const std::string &why) {
    claims.wrong = why;
    return false;
  }
  void skip(const std::string &claim, const std::string &why) {
    claims.notChecked.push_back(claim + ": " + why);
  }
  /// Returns whether claims hold only for plans that obey rules.
  bool underRules() const { return plan.restrictedTo == "policy"; }
  /// Returns whether a search that ends at once may answer the file's question.
  bool searchable() const {
    return graph.nodes.size() <= smallGraph && file.budget > 0 && !underRules();
  }
  Result ask(bool fixedOrder, bool orderOnly) const;
  bool checkGraph();
  bool checkNames();
  bool checkSteps();
  bool checkNothing();
  bool readCertificates(double &any, double &order);
  bool checkBound(const char *key, double stated, double shown,
                  bool fixedOrder);
  bool checkBounds();
  bool checkProvenMinimum();
  bool checkMinimumBudget();
  bool checkPacking();

  const Graph &graph;
  PlanFile &file;
  Plan &plan;
  int64_t budget;
  CheckedClaims claims;
};

std::string text(double number) {
  std::string digits = std::to_string(number);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.')
    digits.pop_back();
  return digits;
}

/// Plans for the file's budget.
Result Checker::ask(bool fixedOrder, bool orderOnly) const {
  Options options;
  options.budget = file.budget;
  options.fixedOrder = fixedOrder;
  options.orderOnly = orderOnly;
  options.timeLimitSeconds = 0;
  return solve(graph, options);
}

/// Checks that the plan is for this graph, as far as the two say what they are.
bool Checker::checkGraph() {
  if (file.nodes.empty()) {
    if (!file.graph.empty() && !graph.name.empty() && file.graph != graph.name)
      return fail("it is for graph '" + file.graph + "', and this one is '" +
                  graph.name + "'");
    return true;
  }
  if (file.nodes.size() != graph.nodes.size())
    return fail("it is for " + std::to_string(file.nodes.size()) +
                " nodes, and this graph has " +
                std::to_string(graph.nodes.size()) +
                (underRules() ? withRules : ""));
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (file.nodes[n] != graph.nodes[n].name)
      return fail("it calls node " +
                  std::to_string(graph.nodeFileId(NodeId(n))) + " '" +
                  file.nodes[n] + "', and this graph '" + graph.nodes[n].name +
                  "'");
  return true;
}

bool Checker::checkNames() {
  if (!checkGraph())
    return false;
  static const char *const known[] = {"",         "optimal",    "order_optimal",
                                      "feasible", "infeasible", "unknown"};
  if (std::find(std::begin(known), std::end(known), plan.status) ==
      std::end(known))
    return fail("unknown status '" + plan.status + "'");
  if (!plan.proof.empty() && plan.proof != "search")
    return fail("unknown proof '" + plan.proof + "'");
  static const char *const restrictions[] = {"", "fixed_order", "order_only",
                                             "policy"};
  if (std::find(std::begin(restrictions), std::end(restrictions),
                plan.restrictedTo) == std::end(restrictions))
    return fail("restricted to '" + plan.restrictedTo + "', which is unknown");
  return true;
}

/// Checks the plan itself, and that its bounds agree with its status.
bool Checker::checkSteps() {
  if (std::string wrong = verifyFile(graph, file, budget); !wrong.empty())
    return fail(wrong);
  claims.derived.push_back(plan.offsets.empty() ? "steps, cost, peak"
                                                : "steps, cost, peak, offsets");
  if (plan.status == "order_optimal" &&
      plan.orderLowerBound < plan.cost * (1 - 1e-6))
    return fail("called optimal for the program order, but no bound says so");
  std::vector<NodeId> first;
  std::vector<char> ran(graph.nodes.size(), 0);
  for (NodeId n : plan.steps)
    if (!std::exchange(ran[n], 1))
      first.push_back(n);
  if (plan.orderLowerBound > plan.cost * rounding &&
      std::is_sorted(first.begin(), first.end()))
    return fail("order_lower_bound " + text(plan.orderLowerBound) +
                " above the cost " + text(plan.cost) +
                " of a plan in program order");
  return true;
}

/// Checks a file that says that there is no plan.
bool Checker::checkNothing() {
  if (plan.status != "infeasible" && plan.status != "unknown")
    return fail("it has no steps, and does not say that there are none");
  if (plan.status == "unknown")
    return true;
  if (file.budget <= 0)
    return fail("called infeasible, but no budget is stated");
  if (plan.provenMinimum <= file.budget)
    return fail("called infeasible at " + std::to_string(file.budget) +
                ", but the proven minimum it states is " +
                std::to_string(plan.provenMinimum));
  return true;
}

bool Checker::readCertificates(double &any, double &order) {
  any = order = baseCost(graph);
  for (const Certificate &certificate : plan.certificates) {
    bool prices = !certificate.prices.empty() || !certificate.tree.empty();
    if (certificate.budget < file.budget)
      return fail("a certificate for " + std::to_string(certificate.budget) +
                  " bytes says nothing about " + std::to_string(file.budget));
    if (file.budget <= 0 && prices)
      return fail("a certificate for " + std::to_string(certificate.budget) +
                  " bytes says nothing about plans without a budget");
    std::string error;
    auto bound = checkCertificate(graph, certificate, error);
    if (!bound)
      return fail("a certificate is malformed: " + error);
    double &best = certificate.anyOrder ? any : order;
    best = std::max(best, *bound);
  }
  order = std::max(any, order);
  return true;
}

bool Checker::checkBound(const char *key, double stated, double shown,
                         bool fixedOrder) {
  std::string claim = std::string(key) + " " + text(stated);
  if (stated <= shown * rounding) {
    if (stated > 0)
      claims.derived.push_back(claim);
    return true;
  }
  if (underRules()) {
    skip(claim, "holds under rules, which are not here; without them " +
                    text(shown) + " is certain");
    return true;
  }
  // Case certificates prove everything that the search found.
  bool cases = std::any_of(plan.certificates.begin(), plan.certificates.end(),
                           [&](const Certificate &certificate) {
                             return !certificate.tree.empty() &&
                                    certificate.anyOrder == !fixedOrder;
                           });
  bool searched = plan.proof == "search" && !cases;
  if (!searched && !plan.certificates.empty())
    return fail(claim + " does not follow: the certificates show " +
                text(shown));
  bool decides = plan.status == (fixedOrder ? "order_optimal" : "optimal");
  if (!searched && decides)
    return fail("called " + plan.status + ", but nothing shows its " + claim);
  if (searchable()) {
    Result truth = ask(fixedOrder, false);
    if (truth.hasPlan() && stated > truth.plan.cost * rounding)
      return fail(claim + " is wrong: a plan within the budget costs " +
                  text(truth.plan.cost));
    double again =
        fixedOrder ? truth.plan.orderLowerBound : truth.plan.lowerBound;
    if (!truth.hasPlan() || stated <= again * rounding) {
      claims.derived.push_back(claim + " (searched again)");
      return true;
    }
  }
  skip(claim,
       searched
           ? "rests on a search; without it " + text(shown) + " is certain"
           : "stated without a certificate; " + text(shown) + " is certain");
  return true;
}

bool Checker::checkBounds() {
  double any = 0, order = 0;
  if (!readCertificates(any, order))
    return false;
  if (!checkBound("lower_bound", plan.lowerBound, any, false))
    return false;
  if (!underRules())
    order = std::max(order, std::min(plan.lowerBound, plan.cost));
  return checkBound("order_lower_bound", plan.orderLowerBound, order, true);
}

bool Checker::checkProvenMinimum() {
  int64_t stated = plan.provenMinimum;
  if (stated <= 0)
    return true;
  std::string claim = "proven_minimum " + std::to_string(stated);
  // The least load of known plans; the program order may break rules.
  int64_t known = std::numeric_limits<int64_t>::max();
  if (!underRules())
    known = programLoad(graph);
  if (!plan.steps.empty())
    known = std::min(known, planPeak(graph, plan, /*aligned=*/true));
  if (stated > known)
    return fail(claim + " is wrong: " + std::to_string(known) +
                " bytes are enough");
  std::vector<NodeId> program(graph.nodes.size());
  std::iota(program.begin(), program.end(), 0);
  struct Kind {
    int64_t bound;
    const char *restrictedTo;
  } kinds[] = {
      {memoryBound(graph), ""},
      {memoryBoundInOrder(graph, program), "fixed_order"},
      {orderOnlyBound(graph), "order_only"},
  };
  // A bound that holds for all plans also holds for restricted ones.
  auto applies = [&](const Kind &kind) {
    return !*kind.restrictedTo || plan.restrictedTo == kind.restrictedTo;
  };
  for (const Kind &kind : kinds)
    if (applies(kind) && stated <= kind.bound) {
      claims.derived.push_back(claim);
      return true;
    }
  if (searchable() && plan.status == "infeasible") {
    Result truth = ask(plan.restrictedTo == "fixed_order",
                       plan.restrictedTo == "order_only");
    if (truth.hasPlan() || truth.plan.provenMinimum < stated)
      return fail(claim + " is wrong: a search finds no such proof");
    claims.derived.push_back(claim + " (searched again)");
    return true;
  }
  skip(claim, (underRules() ? "holds under rules, which are not here; without "
                              "them "
                            : "rests on a search; without it ") +
                  std::to_string(kinds[0].bound) + " is certain");
  return true;
}

bool Checker::checkMinimumBudget() {
  int64_t stated = plan.minimumBudget;
  if (stated <= 0)
    return true;
  std::string claim = "minimum_budget " + std::to_string(stated);
  int64_t least = std::max(plan.provenMinimum, memoryBound(graph));
  if (stated < least)
    return fail(claim + " is wrong: no plan needs less than " +
                std::to_string(least));
  if (!plan.steps.empty()) {
    // Memory outside of the arena counts in addition to it.
    int64_t size = plan.arena;
    for (size_t v = 0; v < graph.values.size(); ++v) {
      ValueKind kind = graph.values[v].kind;
      bool placed = std::any_of(
          plan.initial.begin(), plan.initial.end(),
          [&](const auto &entry) { return entry.first == ValueId(v); });
      if ((kind == ValueKind::Input || kind == ValueKind::Persistent) &&
          !placed)
        size += alignTo(graph.values[v].bytes, graph.alignment);
    }
    if (plan.offsets.empty())
      size = planPeak(graph, plan, /*aligned=*/true);
    if (size <= stated) {
      claims.derived.push_back(claim);
      return true;
    }
  }
  skip(claim, "no plan for it is here");
  return true;
}

/// Checks the proof that offsets for the steps need the stated bytes. Searches
/// again if a search proved it; verify() has checked the load.
bool Checker::checkPacking() {
  const PackingFacts &stated = plan.packing;
  if (plan.offsets.empty() || stated.lowerBound == 0)
    return true;
  std::string claim =
      "packing: lower bound " + std::to_string(stated.lowerBound) +
      (plan.arena > stated.lowerBound ? ", perhaps less than the arena"
                                      : ", no arena is smaller");
  if (!stated.searched) {
    claims.derived.push_back(claim);
    return true;
  }
  int64_t arena = -1;
  PackingFacts found = packingFacts(graph, plan, /*effort=*/1, &arena);
  if (arena < stated.lowerBound)
    return fail("packing: lower bound " + std::to_string(stated.lowerBound) +
                " is wrong: an arena of " + std::to_string(arena) +
                " bytes holds these steps");
  if (found.lowerBound >= stated.lowerBound)
    claims.derived.push_back(claim + " (searched again)");
  else
    skip(claim, "rests on a search; without it " + std::to_string(stated.load) +
                    " is certain");
  return true;
}

CheckedClaims Checker::run() {
  bool steps = !plan.steps.empty() || graph.nodes.empty();
  if (checkNames() && (steps ? checkSteps() : checkNothing()) &&
      (!steps || checkBounds()) && checkProvenMinimum() && checkMinimumBudget())
    checkPacking();
  return std::move(claims);
}

} // namespace

CheckedClaims ckopt::planner::checkPlanFile(const Graph &graph, PlanFile &file,
                                            int64_t budget) {
  return Checker(graph, file, budget).run();
}
