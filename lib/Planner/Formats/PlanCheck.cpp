//===- PlanCheck.cpp - what a plan file states of itself ------------------===//
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
#include "ckopt/Planner/PlanCheck.h"

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
constexpr size_t searchedAgain = 12;
constexpr double roundingOfClaims = 1 + 1e-9;

const char *const withRules =
    "; the plan was made under rules, and a graph that was written under rules "
    "has nodes of its own for their copies: write the graph without them";

class ClaimChecker {
public:
  ClaimChecker(const Graph &graph, PlanFile &file, int64_t budget)
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
  bool underRules() const { return plan.scope.has(Restriction::Policy); }
  /// Returns whether claims hold only for plans that the file does not show:
  /// its graph has neither rules nor callees.
  bool underMore() const { return !plan.scope.ofCost().empty(); }
  std::string elsewhere() const {
    return std::string("holds ") +
           (underRules() ? "under rules, which" : "beside callees, which") +
           " are not here; without them ";
  }
  /// Returns whether a search that ends at once may answer the file's question.
  bool searchable() const {
    return graph.nodes.size() <= searchedAgain && file.budget > 0 &&
           !underMore();
  }
  Result ask(Scope scope) const;
  bool checkGraph();
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

/// Plans for the file's budget, in this scope.
Result ClaimChecker::ask(Scope scope) const {
  Options options;
  options.budget = file.budget;
  options.fixedOrder = scope.has(Restriction::FixedOrder);
  options.orderOnly = scope.has(Restriction::OrderOnly);
  options.timeLimitSeconds = 0;
  return BudgetPlanner(graph).solve(options);
}

/// Checks that the plan is for this graph, as far as the two say what they are.
bool ClaimChecker::checkGraph() {
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

/// Checks the plan itself, and that its bounds agree with its status.
bool ClaimChecker::checkSteps() {
  if (std::string wrong = verifyFile(graph, file, budget); !wrong.empty())
    return fail(wrong);
  claims.derived.push_back(plan.offsets.empty() ? "steps, cost, peak"
                                                : "steps, cost, peak, offsets");
  if (plan.status == Status::OrderOptimal &&
      plan.orderLowerBound < plan.cost * (1 - 1e-6))
    return fail("called optimal for the program order, but no bound says so");
  std::vector<NodeId> first;
  std::vector<char> ran(graph.nodes.size(), 0);
  for (NodeId n : plan.steps)
    if (!std::exchange(ran[n], 1))
      first.push_back(n);
  if (plan.orderLowerBound > plan.cost * roundingOfClaims &&
      std::is_sorted(first.begin(), first.end()))
    return fail("order_lower_bound " + text(plan.orderLowerBound) +
                " above the cost " + text(plan.cost) +
                " of a plan in program order");
  return true;
}

/// Checks a file that says that there is no plan.
bool ClaimChecker::checkNothing() {
  if (isPlan(plan.status))
    return fail("it has no steps, and does not say that there are none");
  if (plan.status == Status::Unknown)
    return true;
  if (file.budget <= 0)
    return fail("called infeasible, but no budget is stated");
  if (plan.provenMinimum <= file.budget)
    return fail("called infeasible at " + std::to_string(file.budget) +
                ", but the proven minimum it states is " +
                std::to_string(plan.provenMinimum));
  return true;
}

bool ClaimChecker::readCertificates(double &any, double &order) {
  any = order = baseCost(graph);
  for (const Certificate &certificate : plan.certificates) {
    bool prices = !certificate.prices.empty() || !certificate.tree.empty();
    if (prices && certificate.budget < file.budget)
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

bool ClaimChecker::checkBound(const char *key, double stated, double shown,
                              bool fixedOrder) {
  std::string claim = std::string(key) + " " + text(stated);
  if (stated <= shown * roundingOfClaims) {
    if (stated > 0)
      claims.derived.push_back(claim);
    return true;
  }
  if (underMore()) {
    skip(claim, elsewhere() + text(shown) + " is certain");
    return true;
  }
  // Case certificates prove everything that the search found.
  bool cases = std::any_of(plan.certificates.begin(), plan.certificates.end(),
                           [&](const Certificate &certificate) {
                             return !certificate.tree.empty() &&
                                    certificate.anyOrder == !fixedOrder;
                           });
  bool searched = plan.proof == Proof::Search && !cases;
  if (!searched && !plan.certificates.empty())
    return fail(claim + " does not follow: the certificates show " +
                text(shown));
  Status decided = fixedOrder ? Status::OrderOptimal : Status::Optimal;
  if (!searched && plan.status == decided)
    return fail(std::string("called ") + statusName(decided) +
                ", but nothing shows its " + claim);
  if (searchable()) {
    Result truth = ask(fixedOrder ? Scope{Restriction::FixedOrder} : Scope());
    if (truth.hasPlan() && stated > truth.plan.cost * roundingOfClaims)
      return fail(claim + " is wrong: a plan within the budget costs " +
                  text(truth.plan.cost));
    double again =
        fixedOrder ? truth.plan.orderLowerBound : truth.plan.lowerBound;
    if (!truth.hasPlan() || stated <= again * roundingOfClaims) {
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

bool ClaimChecker::checkBounds() {
  double any = 0, order = 0;
  if (!readCertificates(any, order))
    return false;
  if (!checkBound("lower_bound", plan.lowerBound, any, false))
    return false;
  if (!underMore())
    order = std::max(order, std::min(plan.lowerBound, plan.cost));
  return checkBound("order_lower_bound", plan.orderLowerBound, order, true);
}

bool ClaimChecker::checkProvenMinimum() {
  int64_t stated = plan.provenMinimum;
  if (stated <= 0)
    return true;
  std::string claim = "proven_minimum " + std::to_string(stated);
  // The least load of known plans; the program order may break rules.
  int64_t known = std::numeric_limits<int64_t>::max();
  if (!underMore())
    known = programLoad(graph);
  if (!plan.steps.empty())
    known = std::min(known, planPeak(graph, plan, /*aligned=*/true));
  if (stated > known)
    return fail(claim + " is wrong: " + std::to_string(known) +
                " bytes are enough");
  std::vector<NodeId> program(graph.nodes.size());
  std::iota(program.begin(), program.end(), 0);
  // A bound that holds for all plans also holds for restricted ones. Under
  // rules, what is recomputed and in which order is that of another graph.
  int64_t bound = memoryBound(graph);
  if (plan.scope.has(Restriction::FixedOrder) && !underRules())
    bound = std::max(bound, memoryBoundInOrder(graph, program));
  if (plan.scope.has(Restriction::OrderOnly) && !underRules())
    bound = std::max(bound, orderOnlyBound(graph));
  if (stated <= bound) {
    claims.derived.push_back(claim);
    return true;
  }
  if (searchable() && plan.status == Status::Infeasible) {
    Result truth = ask(plan.scope);
    if (truth.hasPlan() || truth.plan.provenMinimum < stated)
      return fail(claim + " is wrong: a search finds no such proof");
    claims.derived.push_back(claim + " (searched again)");
    return true;
  }
  skip(claim, (underMore() ? elsewhere() : "rests on a search; without it ") +
                  std::to_string(bound) + " is certain");
  return true;
}

bool ClaimChecker::checkMinimumBudget() {
  int64_t stated = plan.minimumBudget;
  if (stated <= 0)
    return true;
  std::string claim = "minimum_budget " + std::to_string(stated);
  // An arena may end with its last used byte, while bounds are whole units.
  int64_t least = std::max(plan.provenMinimum, memoryBound(graph));
  if (alignTo(stated, graph.alignment) < least)
    return fail(claim + " is wrong: no plan" + plan.scope.words() +
                " needs less than " + std::to_string(least));
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
bool ClaimChecker::checkPacking() {
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
  PackProblem problem = packingOf(graph, plan);
  PackResult found = pack(problem, planPacking(problem));
  if (found.height < stated.lowerBound)
    return fail("packing: lower bound " + std::to_string(stated.lowerBound) +
                " is wrong: an arena of " + std::to_string(found.height) +
                " bytes holds these steps");
  if (found.facts.lowerBound >= stated.lowerBound)
    claims.derived.push_back(claim + " (searched again)");
  else
    skip(claim, "rests on a search; without it " + std::to_string(stated.load) +
                    " is certain");
  return true;
}

CheckedClaims ClaimChecker::run() {
  bool steps = !plan.steps.empty() || graph.nodes.empty();
  if (checkGraph() && (steps ? checkSteps() : checkNothing()) &&
      (!steps || checkBounds()) && checkProvenMinimum() && checkMinimumBudget())
    checkPacking();
  return std::move(claims);
}

} // namespace

CheckedClaims ckopt::planner::checkPlanFile(const Graph &graph, PlanFile &file,
                                            int64_t budget) {
  return ClaimChecker(graph, file, budget).run();
}
