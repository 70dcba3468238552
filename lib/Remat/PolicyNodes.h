//===- PolicyNodes.h - what rules can say of a node -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_REMAT_POLICYNODES_H
#define CKOPT_LIB_REMAT_POLICYNODES_H

#include "ckopt/Remat/Policy.h"
#include "llvm/Support/Regex.h"

namespace ckopt {

/// A module that holds an op: "net.h.0" of class "package.GPT2Block". Where no
/// class is known, the scope's own name with its numbers left out stands in.
struct ModuleScope {
  std::string name, className;
};

/// One op as its users know it.
struct NodeNames {
  /// Source nodes, that of the first stored value first; for gradients the name
  /// of the node whose gradient it is.
  llvm::SmallVector<llvm::StringRef> names;
  /// Kinds: ONNX operators and op names, those inside of kernels too.
  llvm::SmallVector<llvm::StringRef> kinds;
  /// Modules of the first source node, outermost first.
  std::vector<ModuleScope> modules;
  /// Comes from an ONNX node.
  bool imported = false;
  bool gradient = false, update = false;
  /// A contraction; one that has batch dimensions.
  bool dot = false, batchDot = false;
};

NodeNames getNodeNames(mlir::Operation *op);

/// A rule in its parts.
class NodeRule {
public:
  enum Target { Name, Kind, Scope, Class, Module };
  /// `plain`: what a rule without prefix is about.
  NodeRule(llvm::StringRef text, Target plain);

  /// Whether the regular expression is well-formed.
  bool isValid(std::string &error) const { return regex.isValid(error); }
  bool matches(llvm::StringRef text) const { return regex.match(text); }
  bool matches(const ModuleScope &module) const;
  bool matches(const NodeNames &node) const;

  std::string text; ///< as it was written
  Target target;
  llvm::StringRef pattern() const { return body; }

private:
  std::string body;
  llvm::Regex regex;
};

/// Everything that a function's policy is made from.
struct PolicyNodes {
  PolicyNodes(mlir::FunctionOpInterface function,
              const PlanningProblem &problem);

  mlir::FunctionOpInterface function;
  const PlanningProblem &problem;
  std::vector<NodeNames> nodes;
  std::vector<char> backward;
  /// Forward nodes in program order.
  std::vector<planner::NodeId> forward;
  /// By node: bytes of its results that live in the arena for a time.
  std::vector<int64_t> bytes;
  bool hasBackward = false;
};

/// Region paths of all nodes (Policy::regions and regionsKnown).
mlir::LogicalResult buildRegions(const PolicyNodes &nodes,
                                 const RematPolicy &policy,
                                 planner::Policy &result,
                                 PolicyOutcome &outcome);

} // namespace ckopt

#endif // CKOPT_LIB_REMAT_POLICYNODES_H
