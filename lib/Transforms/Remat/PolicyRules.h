//===- PolicyRules.h - the rules of a policy --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_REMAT_POLICYRULES_H
#define CKOPT_LIB_TRANSFORMS_REMAT_POLICYRULES_H

#include "PolicyNodes.h"

namespace ckopt {

enum class Wish { None, Save, Recompute, Auto };

/// A rule, its decision, and the nodes that it matched.
struct WishRule {
  NodeRule rule;
  Wish wish;
  int64_t nodes = 0, bytes = 0;
  std::string describe() const;
};

/// The kinds of values that regions may keep.
class Saveable {
public:
  explicit Saveable(llvm::StringRef text);
  bool keeps(const NodeNames &node) const;
  const NodeRule *named() const { return rule ? &*rule : nullptr; }

private:
  enum Kind { Nothing, Everything, Dots, PlainDots, Only, Except };
  Kind kind = Nothing;
  std::optional<NodeRule> rule;
};

llvm::StringRef wishName(Wish wish);

/// Returns all rules of a policy with their decisions.
std::vector<WishRule> rulesOf(const RematPolicy &policy);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_REMAT_POLICYRULES_H
