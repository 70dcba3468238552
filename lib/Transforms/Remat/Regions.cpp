//===- Regions.cpp - checkpointed regions of a function -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: find which nodes belong to which checkpointed region; regions may
// nest. Method: a node's regions are its modules that a --checkpoint rule
// matches, or that are of the block class; if no location names modules, blocks
// are found as repeated sequences of equal kernels, or of kernels of equal
// kinds. Regions that attributes name lie inside of these. The block class of
// `per-block` is the deepest one that has several instances, holds modules of
// its own and covers nearly as many bytes of results as the class that covers
// most: GPT2Block rather than GPT2Attention (covers less) or a stage of a
// convolutional network (less deep). Gradients lie in the regions of the nodes
// whose gradients they are. Complexity: O(nodes * modules), plus findRepeats().
//
//===----------------------------------------------------------------------===//
#include "PolicyNodes.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <numeric>

using namespace mlir;
using namespace ckopt;

/// A block class must cover at least this share of the bytes that the largest
/// class covers.
static constexpr double enoughCoverage = 0.75;

namespace {

class RegionBuilder {
public:
  RegionBuilder(const PolicyNodes &nodes, const RematPolicy &policy,
                planner::Policy &result, PolicyOutcome &outcome)
      : nodes(nodes), function(nodes.function), policy(policy), result(result),
        outcome(outcome), blocks(nodes.nodes.size(), -1),
        paths(nodes.nodes.size()) {}
  LogicalResult run();

private:
  LogicalResult findBlocks();
  void findBlocksByClass();
  void findBlocksByStructure(bool withShapes);
  std::vector<int64_t> cutBytes() const;
  LogicalResult makeSegments(int64_t count);
  LogicalResult splitNodes(int64_t count);
  std::vector<std::string> openModules(const NodeNames &node) const;
  void addAttribute(planner::NodeId node);
  void intern();
  void assignGradients();

  const PolicyNodes &nodes;
  FunctionOpInterface function;
  const RematPolicy &policy;
  planner::Policy &result;
  PolicyOutcome &outcome;
  std::vector<NodeRule> rules;
  /// Modules of this class are blocks; may be empty.
  std::string blockClass;
  std::vector<int32_t> blocks;                 ///< by node; -1: in none
  std::vector<std::string> blockNames;         ///< by block
  std::vector<std::vector<std::string>> paths; ///< by node
  llvm::StringMap<int32_t> ids;                ///< by whole path
};

/// Statistics of one class of modules.
struct ClassUse {
  llvm::StringSet<> instances;
  double bytes = 0, depths = 0;
  int64_t nodes = 0;
  bool composite = false;
};

} // namespace

/// Chooses `blockClass`; leaves it empty where no class repeats.
void RegionBuilder::findBlocksByClass() {
  llvm::MapVector<StringRef, ClassUse> uses;
  for (planner::NodeId n : nodes.forward) {
    llvm::StringSet<> counted;
    const std::vector<ModuleScope> &modules = nodes.nodes[size_t(n)].modules;
    for (auto [depth, module] : llvm::enumerate(modules)) {
      StringRef name = module.className;
      if (name.starts_with("torch.nn.modules.container.") ||
          !counted.insert(name).second)
        continue;
      ClassUse &use = uses[name];
      use.instances.insert(module.name);
      use.bytes += double(nodes.bytes[size_t(n)]);
      use.depths += double(depth);
      ++use.nodes;
      use.composite |= depth + 1 < modules.size();
    }
  }
  auto usable = [](const ClassUse &use) {
    return use.composite && use.instances.size() >= 2 && use.bytes > 0;
  };
  double most = 0, deepest = -1;
  for (const auto &entry : uses)
    if (usable(entry.second))
      most = std::max(most, entry.second.bytes);
  for (const auto &[name, use] : uses) {
    double depth = use.depths / double(use.nodes);
    if (!usable(use) || use.bytes < enoughCoverage * most || depth <= deepest)
      continue;
    deepest = depth;
    blockClass = name.str();
  }
  if (blockClass.empty())
    return;
  llvm::StringMap<int32_t> known;
  for (planner::NodeId n : nodes.forward)
    for (const ModuleScope &module : nodes.nodes[size_t(n)].modules)
      if (module.className == blockClass) {
        auto [it, fresh] =
            known.try_emplace(module.name, int32_t(blockNames.size()));
        if (fresh)
          blockNames.push_back(module.name);
        blocks[size_t(n)] = it->second;
        break;
      }
}

/// Returns the bytes of forward values that are alive just before each forward
/// node.
std::vector<int64_t> RegionBuilder::cutBytes() const {
  const planner::Graph &graph = nodes.problem.graph;
  std::vector<int64_t> change(nodes.forward.size() + 2);
  std::vector<int64_t> made(graph.values.size(), -1), last(made);
  for (auto [position, n] : llvm::enumerate(nodes.forward)) {
    for (planner::ValueId v : graph.nodes[size_t(n)].outputs)
      made[size_t(v)] = last[size_t(v)] = int64_t(position);
    for (planner::ValueId v : graph.nodes[size_t(n)].inputs)
      last[size_t(v)] = int64_t(position);
  }
  for (size_t v = 0; v < made.size(); ++v)
    if (made[v] >= 0 && last[v] > made[v]) {
      change[size_t(made[v]) + 1] += graph.values[v].bytes;
      change[size_t(last[v]) + 1] -= graph.values[v].bytes;
    }
  change.pop_back();
  for (size_t i = 1; i < change.size(); ++i)
    change[i] += change[i - 1];
  return change;
}

/// Returns an attribute that is equal for two ops of equal code.
static Attribute structureOf(Operation *op) {
  Builder builder(op->getContext());
  if (auto call = dyn_cast<KernelCallOp>(op))
    return call.getCalleeAttr();
  NamedAttrList attrs(op->getAttrDictionary());
  for (StringRef wish : {attrs::kRemat, attrs::kCheckpoint, attrs::kNode})
    attrs.erase(wish);
  SmallVector<Attribute> parts{op->getName().getIdentifier(),
                               attrs.getDictionary(op->getContext())};
  for (Type type : op->getOperandTypes())
    parts.push_back(TypeAttr::get(type));
  for (Type type : op->getResultTypes())
    parts.push_back(TypeAttr::get(type));
  return builder.getArrayAttr(parts);
}

/// Returns the same without shapes, which finds blocks in a network whose
/// widths change.
static Attribute kindsOf(const NodeNames &node, MLIRContext *context) {
  return Builder(context).getStrArrayAttr(node.kinds);
}

void RegionBuilder::findBlocksByStructure(bool withShapes) {
  DenseMap<Attribute, int32_t> known;
  std::vector<int32_t> labels;
  std::vector<double> weights;
  for (planner::NodeId n : nodes.forward) {
    Attribute key =
        withShapes ? structureOf(nodes.problem.ops[size_t(n)])
                   : kindsOf(nodes.nodes[size_t(n)], function.getContext());
    labels.push_back(
        known.try_emplace(key, int32_t(known.size())).first->second);
    weights.push_back(double(nodes.bytes[size_t(n)]));
  }
  for (planner::Repeat repeat :
       planner::findRepeats(labels, weights, cutBytes()))
    for (int32_t k = 0; k < repeat.count; ++k) {
      for (int32_t i = 0; i < repeat.period; ++i)
        blocks[size_t(
            nodes.forward[size_t(repeat.first + k * repeat.period + i)])] =
            int32_t(blockNames.size());
      blockNames.push_back("block " + std::to_string(blockNames.size()));
    }
}

LogicalResult RegionBuilder::findBlocks() {
  findBlocksByClass();
  if (blockNames.empty())
    findBlocksByStructure(/*withShapes=*/true);
  if (blockNames.empty())
    findBlocksByStructure(/*withShapes=*/false);
  return success(!blockNames.empty());
}

/// Splits the forward pass at places where few bytes are alive, into parts of
/// about equal bytes.
LogicalResult RegionBuilder::splitNodes(int64_t count) {
  size_t size = nodes.forward.size();
  if (size < size_t(count))
    return failure();
  std::vector<int64_t> across = cutBytes();
  std::vector<double> sums(size + 1);
  for (size_t i = 0; i < size; ++i)
    sums[i + 1] = sums[i] + double(nodes.bytes[size_t(nodes.forward[i])]);
  double part = sums.back() / double(count);
  size_t start = 0;
  for (int64_t k = 0; k + 1 < count; ++k) {
    size_t best = 0;
    for (size_t i = start + 1; i < size; ++i)
      if (std::abs(sums[i] - part * double(k + 1)) <= part / 3 &&
          (best == 0 || across[i] < across[best]))
        best = i;
    if (best == 0)
      best = start + 1;
    for (size_t i = start; i < best; ++i)
      blocks[size_t(nodes.forward[i])] = int32_t(k);
    blockNames.push_back("segment " + std::to_string(k));
    start = best;
    if (start + 1 >= size)
      break;
  }
  return success();
}

/// Groups blocks like checkpoint_sequential: equal numbers of blocks; the last
/// group is not a region.
LogicalResult RegionBuilder::makeSegments(int64_t count) {
  if (failed(findBlocks()) || blockNames.size() < size_t(count)) {
    blockNames.clear();
    blocks.assign(blocks.size(), -1);
    if (succeeded(splitNodes(count)))
      return success();
    return emitError(function.getLoc())
           << "remat: 'sequential:" << count << "' needs as many ops; @"
           << function.getName() << " has " << nodes.forward.size()
           << " in its forward pass";
  }
  blockClass.clear();
  int64_t each = int64_t(blockNames.size()) / count;
  for (int32_t &block : blocks)
    if (block >= 0)
      block = block / each < count - 1 ? int32_t(block / each) : -1;
  blockNames.clear();
  for (int64_t k = 0; k + 1 < count; ++k)
    blockNames.push_back("segment " + std::to_string(k));
  return success();
}

/// Returns the modules of the node that are regions, outermost first.
std::vector<std::string>
RegionBuilder::openModules(const NodeNames &node) const {
  std::vector<std::string> open;
  bool inBlock = false;
  for (const ModuleScope &module : node.modules) {
    bool block =
        !inBlock && !blockClass.empty() && module.className == blockClass;
    inBlock |= block;
    if (block || llvm::any_of(rules, [&](const NodeRule &rule) {
          return rule.matches(module);
        }))
      open.push_back(module.name);
  }
  return open;
}

/// Adds regions that attributes name: "outer/inner".
void RegionBuilder::addAttribute(planner::NodeId node) {
  Operation *op = nodes.problem.ops[size_t(node)];
  auto text = op->getAttrOfType<StringAttr>(attrs::kCheckpoint);
  if (!text)
    return;
  SmallVector<StringRef> parts;
  text.getValue().split(parts, '/', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    paths[size_t(node)].push_back(part.str());
}

/// Numbers the regions by their whole path.
void RegionBuilder::intern() {
  for (planner::NodeId n : nodes.forward) {
    std::string whole;
    for (const std::string &part : paths[size_t(n)]) {
      whole += '\n' + part;
      auto [it, fresh] = ids.try_emplace(whole, int32_t(ids.size()));
      if (fresh)
        outcome.regions.push_back(part);
      result.regions[size_t(n)].push_back(it->second);
    }
  }
}

/// A gradient belongs to the region of the node whose gradient it is.
void RegionBuilder::assignGradients() {
  constexpr planner::NodeId ambiguous = -1;
  llvm::StringMap<planner::NodeId> byName;
  for (planner::NodeId n : nodes.forward)
    for (StringRef name : nodes.nodes[size_t(n)].names) {
      auto [it, fresh] = byName.try_emplace(name, n);
      if (!fresh && it->second != ambiguous &&
          result.regions[size_t(it->second)] != result.regions[size_t(n)])
        it->second = ambiguous;
    }
  for (size_t n = 0; n < nodes.nodes.size(); ++n) {
    if (!nodes.nodes[n].gradient)
      continue;
    auto found = byName.find(nodes.nodes[n].names.front());
    if (found == byName.end() || found->second == ambiguous)
      continue;
    result.regions[n] = result.regions[size_t(found->second)];
    result.regionsKnown[n] = 1;
  }
}

LogicalResult RegionBuilder::run() {
  for (const std::string &text : policy.checkpoint)
    rules.emplace_back(text, NodeRule::Module);
  StringRef mode = policy.regions;
  int64_t segments = 0;
  if (mode == "per-block" && failed(findBlocks()))
    return emitError(function.getLoc())
           << "remat: 'per-block' finds no repeated blocks in @"
           << function.getName()
           << ": no class of modules and no run of kernels occurs twice; "
              "name the checkpointed regions";
  if (mode.consume_front("sequential:") && !mode.getAsInteger(10, segments) &&
      failed(makeSegments(segments)))
    return failure();
  bool everything = !policy.saveable.empty() && policy.regions.empty() &&
                    policy.checkpoint.empty() &&
                    llvm::none_of(nodes.problem.ops, [](Operation *op) {
                      return op->hasAttr(attrs::kCheckpoint);
                    });
  for (planner::NodeId n : nodes.forward) {
    std::vector<std::string> &path = paths[size_t(n)];
    if (everything)
      path.push_back("forward pass");
    if (blockClass.empty() && blocks[size_t(n)] >= 0)
      path.push_back(blockNames[size_t(blocks[size_t(n)])]);
    for (std::string &module : openModules(nodes.nodes[size_t(n)]))
      path.push_back(std::move(module));
    addAttribute(n);
  }
  intern();
  assignGradients();
  return success();
}

LogicalResult ckopt::buildRegions(const PolicyNodes &nodes,
                                  const RematPolicy &policy,
                                  planner::Policy &result,
                                  PolicyOutcome &outcome) {
  return RegionBuilder(nodes, policy, result, outcome).run();
}
