//===- PolicyNodes.cpp - what rules can say of a node ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: users know nodes of their ONNX file and modules of their PyTorch
// program, the planner sees kernels.
// Method: locations survive every phase: a node's name, its operator, and, as
// metadata, the modules that PyTorch's exporter wrote beside it; a kernel has
// those of all ops in it, the stored ones first. Files of the older exporter
// spell modules into node names ("/layer1/layer1.0/conv1/Conv"). Gradients are
// called "grad/NAME"; where a function has no such names (other dialects), ops
// after the peak of the program order count as its backward pass. Complexity:
// O(ops and their locations).
//
//===----------------------------------------------------------------------===//
#include "PolicyNodes.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "ckopt/Planner/Simulator.h"
#include "llvm/ADT/StringSet.h"

#include <numeric>

using namespace mlir;
using namespace ckopt;

/// Returns whether the op is a contraction of another dialect.
static bool isDot(StringRef kind) {
  static const llvm::StringSet<> dots = {
      "ckopt.matmul",        "linalg.matmul", "linalg.batch_matmul",
      "linalg.matvec",       "linalg.vecmat", "linalg.dot",
      "linalg.batch_matvec", "tosa.matmul",   "linalg.contract"};
  return dots.contains(kind);
}

/// Returns whether both operands have more dimensions than a matrix.
static bool hasBatchDims(Operation *op) {
  auto batched = [](Value operand) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || type.getRank() <= 2)
      return false;
    return llvm::any_of(type.getShape().drop_back(2),
                        [](int64_t size) { return size != 1; });
  };
  return op->getNumOperands() >= 2 && batched(op->getOperand(0)) &&
         batched(op->getOperand(1));
}

static void addKind(Operation *op, NodeNames &result) {
  StringRef kind = op->getName().getStringRef();
  if (!llvm::is_contained(result.kinds, kind))
    result.kinds.push_back(kind);
  if (isDot(kind)) {
    result.dot = true;
    result.batchDot |= hasBatchDims(op);
  }
}

NodeNames ckopt::getNodeNames(Operation *op) {
  NodeNames result;
  SmallVector<NameLoc> locations;
  collectNames(op->getLoc(), locations);
  for (NameLoc location : locations) {
    StringRef name = location.getName().getValue();
    bool gradient = name.consume_front("grad/");
    bool update = name.starts_with("update/");
    if (result.names.empty()) {
      result.gradient = gradient;
      result.update = update;
      result.modules = getModules(location, location.getName());
    }
    // A gradient that computes part of the forward pass again inside of itself
    // is not a node of the forward pass.
    if (gradient == result.gradient && !llvm::is_contained(result.names, name))
      result.names.push_back(name);
    if (auto kind = dyn_cast<NameLoc>(location.getChildLoc())) {
      result.imported = true;
      StringRef text = kind.getName().getValue();
      if (gradient == result.gradient &&
          !llvm::is_contained(result.kinds, text))
        result.kinds.push_back(text);
    }
  }
  auto call = dyn_cast<KernelCallOp>(op);
  auto kernel = call ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
                           op, call.getCalleeAttr())
                     : func::FuncOp();
  if (!kernel || kernel.isDeclaration())
    addKind(op, result);
  else
    for (Operation &inner : kernel.front().without_terminator())
      if (!inner.hasTrait<OpTrait::ConstantLike>())
        addKind(&inner, result);
  return result;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

static std::string bodyOf(StringRef text, NodeRule::Target &target) {
  static const std::pair<StringRef, NodeRule::Target> prefixes[] = {
      {"op:", NodeRule::Kind},
      {"scope:", NodeRule::Scope},
      {"class:", NodeRule::Class},
      {"name:", NodeRule::Name}};
  for (auto [prefix, meant] : prefixes)
    if (text.consume_front(prefix)) {
      target = meant;
      break;
    }
  return text.str();
}

NodeRule::NodeRule(StringRef text, Target plain)
    : text(text), target(plain), body(bodyOf(text, target)),
      regex("^(" + body + ")$") {}

/// Returns "GPT2Block" of "transformers.models.gpt2.modeling_gpt2.GPT2Block",
/// and a module's own name of its path ("attn" of "net.transformer.h.0.attn").
static StringRef lastPart(StringRef text, char separator) {
  return text.substr(text.rfind(separator) + 1);
}

bool NodeRule::matches(const ModuleScope &module) const {
  StringRef own = lastPart(module.name, '/');
  bool scope = regex.match(module.name) || regex.match(own) ||
               regex.match(lastPart(own, '.'));
  bool kind = regex.match(module.className) ||
              regex.match(lastPart(module.className, '.'));
  return (target != Class && scope) || (target != Scope && kind);
}

bool NodeRule::matches(const NodeNames &node) const {
  auto any = [&](ArrayRef<StringRef> texts) {
    return llvm::any_of(texts,
                        [&](StringRef text) { return regex.match(text); });
  };
  if (node.gradient || node.update)
    return target == Name && !node.names.empty() &&
           regex.match(
               ((node.gradient ? "grad/" : "") + node.names.front()).str());
  switch (target) {
  case Name:
    return any(node.names);
  case Kind:
    return any(node.kinds) || llvm::any_of(node.kinds, [&](StringRef kind) {
             return regex.match(kind.substr(kind.find('.') + 1));
           });
  case Scope:
  case Class:
  case Module:
    return llvm::any_of(node.modules, [&](const ModuleScope &module) {
      return matches(module);
    });
  }
  llvm_unreachable("all targets are handled");
}

//===----------------------------------------------------------------------===//
// A function's nodes
//===----------------------------------------------------------------------===//

PolicyNodes::PolicyNodes(FunctionOpInterface function,
                         const PlanningProblem &problem)
    : function(function), problem(problem) {
  const planner::Graph &graph = problem.graph;
  backward.assign(graph.nodes.size(), 0);
  bytes.assign(graph.nodes.size(), 0);
  bool imported = false;
  for (auto [i, op] : llvm::enumerate(problem.ops)) {
    nodes.push_back(getNodeNames(op));
    backward[i] = nodes[i].gradient || nodes[i].update;
    hasBackward |= nodes[i].gradient;
    imported |= nodes[i].imported;
    for (planner::ValueId value : graph.nodes[i].outputs)
      if (graph.values[size_t(value)].kind == planner::ValueKind::Temp)
        bytes[i] += graph.values[size_t(value)].bytes;
  }
  if (!hasBackward && !imported && !nodes.empty()) {
    std::vector<planner::NodeId> order(nodes.size());
    std::iota(order.begin(), order.end(), 0);
    int32_t turn = planner::simulate(graph, order).peakStep;
    for (size_t i = size_t(turn) + 1; i < nodes.size(); ++i)
      backward[i] = 1;
    hasBackward = true;
  }
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!backward[i])
      forward.push_back(planner::NodeId(i));
}
