//===- Policy.cpp - rules and regions as the planner's policy -------------===//
//
// Problem: make one decision a node from rules on names, rules on kinds,
// attributes, regions and what regions may keep.
// Method: precedence, the most specific first: a rule on names, modules or
// classes; a rule on kinds (`op:`); an attribute `ckopt.remat` on the op; what
// the policy lets regions keep; regions. Rules of one level that disagree about
// a node are an error. What is decided for a node holds for all its results.
// Guarantee: nothing is decided by the order in which rules are given.
// Complexity: O(nodes * rules).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Remat/Policy.h"
#include "PolicyNodes.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Support/Error.h"

using namespace mlir;
using namespace ckopt;

namespace {

enum class Wish { None, Save, Recompute, Auto };

/// A rule with what it asks for, and what it matched.
struct WishRule {
  NodeRule rule;
  Wish wish;
  int64_t nodes = 0, bytes = 0;
  std::string describe() const;
};

/// What regions may keep.
class Saveable {
public:
  explicit Saveable(StringRef text);
  bool keeps(const NodeNames &node) const;
  const NodeRule *named() const { return rule ? &*rule : nullptr; }

private:
  enum Kind { Nothing, Everything, Dots, PlainDots, Only, Except };
  Kind kind = Nothing;
  std::optional<NodeRule> rule;
};

} // namespace

static StringRef wishName(Wish wish) {
  switch (wish) {
  case Wish::None:
    return "";
  case Wish::Save:
    return "save";
  case Wish::Recompute:
    return "recompute";
  case Wish::Auto:
    return "auto";
  }
  llvm_unreachable("all wishes are handled");
}

std::string WishRule::describe() const {
  return (wishName(wish) + " '" + rule.text + "'").str();
}

static constexpr StringLiteral onlyNames = "save_only_these_names=";
static constexpr StringLiteral exceptNames =
    "save_anything_except_these_names=";

Saveable::Saveable(StringRef text) {
  if (text == "everything_saveable")
    kind = Everything;
  else if (text == "dots_saveable")
    kind = Dots;
  else if (text == "dots_with_no_batch_dims_saveable")
    kind = PlainDots;
  else if (text.consume_front(onlyNames))
    kind = Only;
  else if (text.consume_front(exceptNames))
    kind = Except;
  if (kind == Only || kind == Except)
    rule.emplace(text, NodeRule::Name);
}

bool Saveable::keeps(const NodeNames &node) const {
  switch (kind) {
  case Nothing:
    return false;
  case Everything:
    return true;
  case Dots:
    return node.dot;
  case PlainDots:
    return node.dot && !node.batchDot;
  case Only:
    return rule->matches(node);
  case Except:
    return !rule->matches(node);
  }
  llvm_unreachable("all kinds are handled");
}

//===----------------------------------------------------------------------===//
// Form
//===----------------------------------------------------------------------===//

bool RematPolicy::empty() const {
  return save.empty() && recompute.empty() && automatic.empty() &&
         checkpoint.empty() && regions.empty() && saveable.empty();
}

static bool isSaveablePolicy(StringRef text) {
  return llvm::is_contained({"nothing_saveable", "everything_saveable",
                             "dots_saveable",
                             "dots_with_no_batch_dims_saveable"},
                            text) ||
         text.starts_with(onlyNames) || text.starts_with(exceptNames);
}

/// "per-block", or "sequential:K" with K of at least 2.
static bool isRegionMode(StringRef text) {
  int64_t count = 0;
  return text == "per-block" ||
         (text.consume_front("sequential:") && !text.getAsInteger(10, count) &&
          count >= 2 && count <= 1000000);
}

llvm::Error ckopt::parseRematMode(StringRef text, RematPolicy &policy) {
  if (text == "auto")
    return llvm::Error::success();
  StringRef regions = text, saveable;
  if (size_t plus = text.find('+');
      plus != StringRef::npos && isRegionMode(text.take_front(plus))) {
    regions = text.take_front(plus);
    saveable = text.drop_front(plus + 1);
  } else if (isSaveablePolicy(text)) {
    regions = "";
    saveable = text;
  }
  if ((regions.empty() || isRegionMode(regions)) &&
      (saveable.empty() ? !text.contains('+') : isSaveablePolicy(saveable))) {
    policy.regions = regions.str();
    policy.saveable = saveable.str();
    return llvm::Error::success();
  }
  return usageError(
      "remat: '" + text +
      "' is none of auto, per-block, sequential:K (K of at least 2), "
      "nothing_saveable, everything_saveable, dots_saveable, "
      "dots_with_no_batch_dims_saveable, save_only_these_names=RULE, "
      "save_anything_except_these_names=RULE, or regions and policy joined "
      "by '+'");
}

/// All rules with what they ask for.
static std::vector<WishRule> rulesOf(const RematPolicy &policy) {
  std::vector<WishRule> rules;
  auto add = [&](const std::vector<std::string> &texts, Wish wish) {
    for (const std::string &text : texts)
      rules.push_back({NodeRule(text, NodeRule::Name), wish});
  };
  add(policy.save, Wish::Save);
  add(policy.recompute, Wish::Recompute);
  add(policy.automatic, Wish::Auto);
  return rules;
}

llvm::Error ckopt::checkPolicyForm(const RematPolicy &policy) {
  auto check = [](StringRef what, const NodeRule &rule) -> llvm::Error {
    std::string error;
    if (rule.pattern().empty())
      return usageError(what + ": the rule '" + rule.text +
                        "' has no regular expression");
    if (!rule.isValid(error))
      return usageError(what + ": '" + rule.text +
                        "' is no regular expression: " + error);
    return llvm::Error::success();
  };
  for (const WishRule &rule : rulesOf(policy))
    if (llvm::Error error = check(wishName(rule.wish), rule.rule))
      return error;
  for (const std::string &text : policy.checkpoint) {
    NodeRule rule(text, NodeRule::Module);
    if (rule.target == NodeRule::Name || rule.target == NodeRule::Kind)
      return usageError("checkpoint: '" + text +
                        "' must name modules: REGEX, scope:REGEX or "
                        "class:REGEX");
    if (llvm::Error error = check("checkpoint", rule))
      return error;
  }
  Saveable saveable(policy.saveable);
  if (saveable.named())
    return check("remat", *saveable.named());
  return llvm::Error::success();
}

DictionaryAttr ckopt::toAttribute(const RematPolicy &policy,
                                  MLIRContext *context) {
  Builder builder(context);
  NamedAttrList list;
  auto add = [&](StringRef name, const std::vector<std::string> &texts) {
    SmallVector<StringRef> refs(texts.begin(), texts.end());
    if (!refs.empty())
      list.set(name, builder.getStrArrayAttr(refs));
  };
  add("save", policy.save);
  add("recompute", policy.recompute);
  add("auto", policy.automatic);
  add("checkpoint", policy.checkpoint);
  if (!policy.regions.empty())
    list.set("regions", builder.getStringAttr(policy.regions));
  if (!policy.saveable.empty())
    list.set("saveable", builder.getStringAttr(policy.saveable));
  return list.getDictionary(context);
}

RematPolicy ckopt::policyFromAttribute(DictionaryAttr attr) {
  RematPolicy policy;
  auto read = [&](StringRef name, std::vector<std::string> &texts) {
    if (auto array = attr.getAs<ArrayAttr>(name))
      for (Attribute item : array)
        if (auto text = dyn_cast<StringAttr>(item))
          texts.push_back(text.str());
  };
  read("save", policy.save);
  read("recompute", policy.recompute);
  read("auto", policy.automatic);
  read("checkpoint", policy.checkpoint);
  if (auto text = attr.getAs<StringAttr>("regions"))
    policy.regions = text.str();
  if (auto text = attr.getAs<StringAttr>("saveable"))
    policy.saveable = text.str();
  return policy;
}

//===----------------------------------------------------------------------===//
// One decision a node
//===----------------------------------------------------------------------===//

/// What `ckopt.remat` says; failure: it says nothing that is known.
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

/// What rules, else the attribute, ask of a node.
static FailureOr<Wish> decide(Operation *op, const NodeNames &node,
                              int64_t bytes, MutableArrayRef<WishRule> rules) {
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
ckopt::resolvePolicy(func::FuncOp function, const PlanningProblem &problem,
                     const RematPolicy &policy, PolicyOutcome &outcome) {
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
  for (size_t n = 0; n < nodes.nodes.size(); ++n) {
    FailureOr<Wish> wish =
        decide(problem.ops[n], nodes.nodes[n], nodes.bytes[n], rules);
    if (failed(wish))
      return failure();
    bool inRegion = !nodes.backward[n] && !result.regions[n].empty();
    switch (*wish) {
    case Wish::None:
      result.save[n] = inRegion && saveable.keeps(nodes.nodes[n]);
      break;
    case Wish::Save:
      result.save[n] = true;
      break;
    case Wish::Recompute:
      result.recompute[n] = !nodes.backward[n];
      break;
    case Wish::Auto:
      if (!nodes.backward[n])
        result.regions[n].clear();
      break;
    }
  }
  for (const WishRule &rule : rules)
    outcome.rules.push_back({rule.describe(), rule.nodes, rule.bytes});
  return Nothing(std::move(result));
}

//===----------------------------------------------------------------------===//
// Rules that match nothing
//===----------------------------------------------------------------------===//

/// Names that a rule could have meant: those that its expression matches in
/// part, else the nearest ones.
static std::string nearMatches(const NodeRule &rule,
                               ArrayRef<NodeNames> nodes) {
  constexpr size_t shown = 4;
  llvm::MapVector<StringRef, unsigned> candidates;
  llvm::Regex anywhere(rule.pattern());
  auto offer = [&](StringRef text) {
    if (text.empty())
      return;
    unsigned distance =
        anywhere.match(text)
            ? 0
            : 1 + rule.pattern().edit_distance_insensitive(text);
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
    return "; nothing here has such a name";
  SmallVector<std::tuple<unsigned, size_t, StringRef>> ranked;
  for (auto [text, distance] : candidates)
    ranked.push_back({distance, ranked.size(), text});
  llvm::sort(ranked);
  std::string text = "; near it: ";
  for (size_t i = 0; i < std::min(shown, ranked.size()); ++i)
    text += (i ? ", '" : "'") + std::get<2>(ranked[i]).str() + "'";
  return text + " (the whole name has to match)";
}

LogicalResult ckopt::checkPolicyMatches(ArrayRef<func::FuncOp> functions,
                                        const RematPolicy &policy) {
  std::vector<NodeNames> nodes;
  for (func::FuncOp function : functions)
    function.walk([&](Operation *op) {
      if (op != function && !isView(op) && !isFree(op) &&
          op->getParentOp() == function &&
          !op->hasTrait<OpTrait::IsTerminator>())
        nodes.push_back(getNodeNames(op));
    });
  LogicalResult result = success();
  auto check = [&](StringRef what, const NodeRule &rule) {
    if (llvm::any_of(nodes,
                     [&](const NodeNames &node) { return rule.matches(node); }))
      return;
    func::FuncOp first = functions.front();
    result = emitError(first.getLoc())
             << "remat: " << what << " '" << rule.text << "' matches nothing"
             << nearMatches(rule, nodes);
  };
  if (functions.empty())
    return success();
  for (const WishRule &rule : rulesOf(policy))
    check(wishName(rule.wish), rule.rule);
  for (const std::string &text : policy.checkpoint)
    check("checkpoint", NodeRule(text, NodeRule::Module));
  Saveable saveable(policy.saveable);
  if (saveable.named())
    check("policy", *saveable.named());
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
    json.attribute("policy_costs_seconds", cost - outcome.autoCost);
    json.attribute("policy_costs_bytes", arena - outcome.autoArena);
  });
}
