//===- Policy.cpp - rules and regions as the planner's policy -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: make one decision for each node from rules on names, rules on kinds,
// attributes, regions, and the rules of what regions may keep. Method: the most
// specific source decides, in this order: a rule on names, modules or classes;
// a rule on kinds (`op:`); an attribute `ckopt.remat` on the op; what the
// policy lets regions keep; regions. Rules of one level that disagree about a
// node are an error. A decision for a node holds for all its results.
// Guarantee: the order in which rules are given does not matter. Complexity:
// O(nodes * rules).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Remat/Policy.h"
#include "PolicyRules.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"

using namespace mlir;
using namespace ckopt;

//===----------------------------------------------------------------------===//
// Decision for a node
//===----------------------------------------------------------------------===//

/// Reads the attribute `ckopt.remat`; fails if its value is unknown.
static FailureOr<Wish> attributeWish(Operation *op) {
  Attribute attr = op->getAttr(attrs::kRemat);
  if (!attr)
    return Wish::None;
  auto text = dyn_cast<StringAttr>(attr);
  for (Wish wish : {Wish::Save, Wish::Recompute, Wish::Auto})
    if (text && text.getValue() == wishName(wish))
      return wish;
  return op->emitError() << attrs::kRemat << " is " << attr
                         << "; it must be \"save\", \"recompute\" or \"auto\"";
}

/// `ckopt.checkpoint` must name at least one region.
static LogicalResult checkRegionAttribute(Operation *op) {
  Attribute attr = op->getAttr(attrs::kCheckpoint);
  auto text = dyn_cast_or_null<StringAttr>(attr);
  if (!attr ||
      (text && text.getValue().find_first_not_of('/') != StringRef::npos))
    return success();
  return emitError(op->getLoc())
         << attrs::kCheckpoint << " is " << attr
         << "; it must name regions, outermost first: \"outer/inner\"";
}

/// Returns the decision of rules, or else of the attribute; `asker` receives
/// which one it was.
static FailureOr<Wish> decide(Operation *op, const NodeNames &node,
                              int64_t bytes, MutableArrayRef<WishRule> rules,
                              std::string &asker) {
  const WishRule *winner = nullptr;
  auto isKind = [](const WishRule &rule) {
    return rule.rule.target == NodeRule::Kind;
  };
  for (WishRule &rule : rules) {
    if (!rule.rule.matches(node))
      continue;
    ++rule.nodes;
    rule.bytes += bytes;
    if (winner && isKind(*winner) == isKind(rule) && winner->wish != rule.wish)
      return emitError(op->getLoc())
             << "remat: " << winner->describe() << " and " << rule.describe()
             << " disagree about '"
             << (node.names.empty() ? op->getName().getStringRef()
                                    : node.names.front())
             << "'; make one of them narrower";
    if (!winner || (isKind(*winner) && !isKind(rule)))
      winner = &rule;
  }
  asker = winner ? winner->describe() : attrs::kRemat.str();
  if (winner)
    return winner->wish;
  return attributeWish(op);
}

static bool hasAttributes(const PlanningProblem &problem) {
  return llvm::any_of(problem.ops, [](Operation *op) {
    return op->hasAttr(attrs::kRemat) || op->hasAttr(attrs::kCheckpoint);
  });
}

FailureOr<std::optional<planner::Policy>>
ckopt::resolvePolicy(FunctionOpInterface function,
                     const PlanningProblem &problem, const RematPolicy &policy,
                     PolicyOutcome &outcome) {
  using Nothing = std::optional<planner::Policy>;
  if (policy.empty() && !hasAttributes(problem))
    return Nothing();
  PolicyNodes nodes(function, problem);
  if (!nodes.hasBackward)
    return Nothing();
  planner::Policy result(nodes.nodes.size());
  result.backward = nodes.backward;
  if (failed(buildRegions(nodes, policy, result, outcome)))
    return failure();
  std::vector<WishRule> rules = rulesOf(policy);
  Saveable saveable(policy.saveable);
  bool wrong = false;
  outcome.whyKept.resize(nodes.nodes.size());
  outcome.whyAgain.resize(nodes.nodes.size());
  for (size_t n = 0; n < nodes.nodes.size(); ++n) {
    std::string asker;
    FailureOr<Wish> wish =
        decide(problem.ops[n], nodes.nodes[n], nodes.bytes[n], rules, asker);
    if (failed(wish) || failed(checkRegionAttribute(problem.ops[n]))) {
      wrong = true;
      continue;
    }
    bool inRegion = !nodes.backward[n] && !result.regions[n].empty();
    switch (*wish) {
    case Wish::None:
      result.save[n] = inRegion && saveable.keeps(nodes.nodes[n]);
      if (result.save[n])
        outcome.whyKept[n] = policy.saveable + " lets regions keep it";
      else if (inRegion)
        outcome.whyAgain[n] = "its region keeps only its inputs";
      break;
    case Wish::Save:
      result.save[n] = true;
      outcome.whyKept[n] = asker + " asks for it";
      break;
    case Wish::Recompute:
      result.recompute[n] = !nodes.backward[n];
      if (result.recompute[n])
        outcome.whyAgain[n] = asker + " asks for it";
      break;
    case Wish::Auto:
      if (!nodes.backward[n])
        result.regions[n].clear();
      break;
    }
  }
  if (wrong)
    return failure();
  for (const WishRule &rule : rules)
    outcome.rules.push_back({rule.describe(), rule.nodes, rule.bytes});
  return Nothing(std::move(result));
}

//===----------------------------------------------------------------------===//
// Rules that match nothing
//===----------------------------------------------------------------------===//

/// Returns names that a rule could have meant: those that its expression
/// matches in part, else the most similar ones.
static std::string nearMatches(const NodeRule &rule,
                               ArrayRef<NodeNames> nodes) {
  constexpr size_t shown = 4;
  llvm::MapVector<StringRef, unsigned> candidates;
  llvm::Regex anywhere(rule.pattern());
  auto offer = [&](StringRef text) {
    if (text.empty())
      return;
    unsigned distance = 0;
    if (!anywhere.match(text)) {
      StringRef last = text.substr(text.find_last_of("./") + 1);
      distance = 1 + std::min(rule.pattern().edit_distance_insensitive(text),
                              rule.pattern().edit_distance_insensitive(last));
    }
    candidates.insert({text, distance});
  };
  for (const NodeNames &node : nodes) {
    if (node.gradient || node.update)
      continue;
    if (rule.target == NodeRule::Name)
      llvm::for_each(node.names, offer);
    if (rule.target == NodeRule::Kind)
      llvm::for_each(node.kinds, offer);
    for (const ModuleScope &module : node.modules) {
      if (rule.target == NodeRule::Scope || rule.target == NodeRule::Module)
        offer(module.name);
      if (rule.target == NodeRule::Class || rule.target == NodeRule::Module)
        offer(module.className);
    }
  }
  if (candidates.empty())
    return rule.target == NodeRule::Name
               ? "; no op here has a name (a location with a name): rules on "
                 "kinds start with 'op:'"
               : "; nothing here has such a name";
  SmallVector<std::tuple<unsigned, size_t, StringRef>> ranked;
  for (auto [text, distance] : candidates)
    ranked.push_back({distance, ranked.size(), text});
  llvm::sort(ranked);
  std::string text = "; near it: ";
  for (size_t i = 0; i < std::min(shown, ranked.size()); ++i)
    text += (i ? ", '" : "'") + std::get<2>(ranked[i]).str() + "'";
  return text + " (the whole name has to match)";
}

LogicalResult ckopt::checkPolicyMatches(ArrayRef<FunctionOpInterface> functions,
                                        const RematPolicy &policy) {
  std::vector<NodeNames> nodes;
  for (FunctionOpInterface function : functions)
    function.walk([&](Operation *op) {
      if (op != function && !isView(op) && !isFree(op) &&
          op->getParentOp() == function &&
          !op->hasTrait<OpTrait::IsTerminator>())
        nodes.push_back(getNodeNames(op));
    });
  LogicalResult result = success();
  auto check = [&](const Twine &what, const NodeRule &rule) {
    if (llvm::any_of(nodes,
                     [&](const NodeNames &node) { return rule.matches(node); }))
      return;
    FunctionOpInterface first = functions.front();
    result = emitError(first.getLoc())
             << "remat: " << what << " '" << rule.text << "' matches nothing"
             << nearMatches(rule, nodes);
  };
  if (functions.empty())
    return success();
  for (const WishRule &rule : rulesOf(policy))
    check(wishName(rule.wish), rule.rule);
  for (const std::string &text : policy.checkpoint)
    check("the checkpointed region", NodeRule(text, NodeRule::Module));
  Saveable saveable(policy.saveable);
  if (saveable.named())
    check("policy " + policy.saveable.substr(0, policy.saveable.find('=')),
          *saveable.named());
  return result;
}

void ckopt::writePolicyFigures(llvm::json::OStream &json,
                               const PolicyOutcome &outcome, double cost,
                               int64_t arena) {
  json.attributeArray("rules", [&] {
    for (const PolicyOutcome::Rule &rule : outcome.rules)
      json.object([&] {
        json.attribute("rule", llvm::json::fixUTF8(rule.text));
        json.attribute("nodes", rule.nodes);
        json.attribute("bytes", rule.bytes);
      });
  });
  json.attributeArray("regions", [&] {
    for (const std::string &region : outcome.regions)
      json.value(llvm::json::fixUTF8(region));
  });
  json.attribute("recomputed_nodes", outcome.recomputed);
  json.attribute("nodes_that_cannot_run_again", outcome.unable);
  if (!outcome.compared)
    return;
  json.attributeObject("auto", [&] {
    json.attribute("feasible", outcome.autoFits);
    if (!outcome.autoFits)
      return;
    json.attribute("seconds", outcome.autoCost);
    json.attribute("planned_peak_bytes", outcome.autoArena);
    if (arena > 0) {
      json.attribute("policy_costs_seconds", cost - outcome.autoCost);
      json.attribute("policy_costs_bytes", arena - outcome.autoArena);
    }
    if (outcome.sameBytesCost > 0)
      json.attribute("seconds_in_the_policys_bytes", outcome.sameBytesCost);
  });
}
