//===- PolicyNodes.h - what rules can say of a node -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_REMAT_POLICYNODES_H
#define CKOPT_LIB_TRANSFORMS_REMAT_POLICYNODES_H

#include "ckopt/Analysis/SourceModules.h"
#include "ckopt/Remat/Policy.h"
#include "llvm/Support/Regex.h"

namespace ckopt {

/// Names by which users know one op.
struct NodeNames {
  /// Names of source nodes, that of the first stored value first; for
  /// gradients, the name of the node whose gradient it is.
  llvm::SmallVector<llvm::StringRef> names;
  /// Kinds: ONNX operators and op names, including those inside of kernels.
  llvm::SmallVector<llvm::StringRef> kinds;
  /// Modules of the first source node, outermost first.
  std::vector<ModuleScope> modules;
  /// Set if the op comes from an ONNX node.
  bool imported = false;
  bool gradient = false, update = false;
  /// Set for contractions, and for contractions with batch dimensions.
  bool dot = false, batchDot = false;
};

NodeNames getNodeNames(mlir::Operation *op);

/// A parsed rule.
class NodeRule {
public:
  enum Target { Name, Kind, Scope, Class, Module };
  /// `plain` is the kind of name that a rule without prefix refers to.
  NodeRule(llvm::StringRef text, Target plain);

  /// Whether the regular expression is well-formed.
  bool isValid(std::string &error) const { return regex.isValid(error); }
  bool matches(llvm::StringRef text) const { return regex.match(text); }
  bool matches(const ModuleScope &module) const;
  bool matches(const NodeNames &node) const;

  std::string text; ///< the rule as the user wrote it
  Target target;
  llvm::StringRef pattern() const { return body; }

private:
  std::string body;
  llvm::Regex regex;
};

/// The inputs from which a function's policy is built.
struct PolicyNodes {
  PolicyNodes(mlir::FunctionOpInterface function,
              const PlanningProblem &problem);

  mlir::FunctionOpInterface function;
  const PlanningProblem &problem;
  std::vector<NodeNames> nodes;
  std::vector<char> backward;
  /// Forward nodes in program order.
  std::vector<planner::NodeId> forward;
  /// By node: bytes of its results that are stored in the arena.
  std::vector<int64_t> bytes;
  bool hasBackward = false;
};

/// Region paths of all nodes (Policy::regions and regionsKnown).
mlir::LogicalResult buildRegions(const PolicyNodes &nodes,
                                 const RematPolicy &policy,
                                 planner::Policy &result,
                                 PolicyOutcome &outcome);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_REMAT_POLICYNODES_H
