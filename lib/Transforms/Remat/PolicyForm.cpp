//===- PolicyForm.cpp - policies as text and as attributes ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: parse the policies that users write, and refuse malformed ones
// before planning. Method: regular expressions are LLVM's (POSIX extended,
// matched against the whole name); modes are a fixed list. Guarantee: a policy
// that passed checkPolicyForm() has only rules that can be matched. Complexity:
// O(text).
//
//===----------------------------------------------------------------------===//
#include "PolicyRules.h"
#include "ckopt/Support/Error.h"

using namespace mlir;
using namespace ckopt;

StringRef ckopt::wishName(Wish wish) {
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

/// Returns whether the text is "per-block", or "sequential:K" with K of at
/// least 2.
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

std::string ckopt::printRematMode(const RematPolicy &policy) {
  if (policy.regions.empty())
    return policy.saveable.empty() ? "auto" : policy.saveable;
  return policy.regions +
         (policy.saveable.empty() ? "" : "+" + policy.saveable);
}

std::vector<WishRule> ckopt::rulesOf(const RematPolicy &policy) {
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
      return usageError("the checkpointed region '" + text +
                        "' must name modules: REGEX, scope:REGEX or "
                        "class:REGEX");
    if (llvm::Error error = check("checkpointed regions", rule))
      return error;
  }
  Saveable saveable(policy.saveable);
  if (saveable.named())
    return check("remat", *saveable.named());
  return llvm::Error::success();
}
