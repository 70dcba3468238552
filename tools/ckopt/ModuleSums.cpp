//===- ModuleSums.cpp - time and bytes by module --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: people think in modules of their program, a plan has kernel calls.
// Method: each call counts for the modules of its first source node (for a
// gradient: of the node whose gradient it is) and for all modules around these.
// What lies in a module with others, but in none of these, has a row of its
// own, so that the rows below each module add up to it. Complexity: O(calls *
// depth).
//
//===----------------------------------------------------------------------===//
#include "ModuleSums.h"
#include "ckopt/Analysis/MemoryTimeline.h"
#include "ckopt/Analysis/SourceModules.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Report.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace ckopt;

namespace {

/// Where one call belongs.
struct Origin {
  std::vector<std::string> path; ///< of modules, outermost first
  bool backward = false;
};

/// Modules with their sums, in the order in which they were met.
class ModuleTree {
public:
  explicit ModuleTree(int depth) : depth(depth) { nodes.emplace_back(); }

  /// Applies `count` to the sums of all modules on the path.
  void add(const Origin &origin, llvm::function_ref<void(ModuleSum &)> count) {
    size_t at = 0;
    count(nodes[0].sum);
    for (size_t i = 0; i < origin.path.size() && int(i) < depth; ++i) {
      at = child(at, origin.path[i]);
      count(nodes[at].sum);
    }
    count(nodes[at].itself);
  }
  std::vector<ModuleSum> take() {
    std::vector<ModuleSum> sums;
    collect(0, sums);
    return sums;
  }

private:
  struct Node {
    ModuleSum sum, itself; ///< itself: outside of the modules in it
    std::vector<size_t> children;
    llvm::StringMap<size_t> byName;
  };
  size_t child(size_t parent, const std::string &name) {
    auto [entry, isNew] = nodes[parent].byName.try_emplace(name, nodes.size());
    size_t index = entry->second;
    if (!isNew)
      return index;
    nodes[parent].children.push_back(index);
    int level = nodes[parent].sum.depth + 1;
    nodes.emplace_back();
    nodes.back().sum.name = name;
    nodes.back().sum.depth = level;
    return index;
  }
  void collect(size_t index, std::vector<ModuleSum> &sums) {
    const Node &node = nodes[index];
    sums.push_back(node.sum);
    const ModuleSum &rest = node.itself;
    if (!node.children.empty() &&
        (rest.calls || rest.weightBytes || rest.peakBytes)) {
      sums.push_back(rest);
      sums.back().name = node.sum.name + "/(itself)";
      sums.back().depth = node.sum.depth + 1;
    }
    for (size_t next : node.children)
      collect(next, sums);
  }

  int depth;
  std::vector<Node> nodes;
};

} // namespace

static Origin originOf(Operation *op) {
  Origin origin;
  SmallVector<NameLoc> locations;
  collectNames(op->getLoc(), locations);
  if (locations.empty())
    return origin;
  StringRef name = locations.front().getName();
  origin.backward = name.consume_front("grad/");
  if (name.starts_with("update/")) {
    origin.path = {"(optimizer)"};
    return origin;
  }
  for (ModuleScope &module : getModules(locations.front(), name))
    if (!module.name.empty())
      origin.path.push_back(std::move(module.name));
  return origin;
}

/// Returns the first call of the forward pass that reads a value or a view of
/// it.
static Operation *firstReader(Value value) {
  Operation *first = nullptr;
  for (Operation *user : value.getUsers()) {
    Operation *reader = isView(user) ? firstReader(user->getResult(0)) : user;
    if (reader && (!first || reader->isBeforeInBlock(first)) &&
        !reader->hasTrait<OpTrait::IsTerminator>())
      first = reader;
  }
  return first;
}

std::vector<ModuleSum> ckopt::sumByModule(const Compilation &compilation,
                                          int depth,
                                          const std::vector<double> *measured) {
  auto step = compilation.module().lookupSymbol<func::FuncOp>("step");
  if (!step || depth == 0)
    return {};
  SmallVector<KernelCallOp> calls(step.getOps<KernelCallOp>());
  DenseMap<Operation *, Origin> origins;
  bool named = false;
  for (KernelCallOp call : calls) {
    Origin origin = originOf(call);
    named |= !origin.path.empty() && origin.path.front() != "(optimizer)";
    origins[call] = std::move(origin);
  }
  if (!named)
    return {};
  const Origin none{{"(no module)"}};
  for (auto &[op, origin] : origins)
    if (origin.path.empty())
      origin.path = none.path;
  auto placeOf = [&](Operation *op) -> const Origin & {
    auto known = origins.find(op);
    return known == origins.end() ? none : known->second;
  };
  ModuleTree tree(depth);
  CostModel costs(compilation.options().step.remat.costs,
                  compilation.target()->traits.rates);
  for (auto [i, call] : llvm::enumerate(calls)) {
    const Origin &origin = origins[call];
    double seconds = !measured              ? costs.seconds(call)
                     : i < measured->size() ? (*measured)[i]
                                            : 0;
    bool again = call.getClone().has_value();
    int64_t bytes = 0;
    for (OpResult result : call->getResults())
      if (!again && llvm::none_of(getUpdatePairs(call), [&](auto pair) {
            return pair.second == result.getResultNumber();
          }))
        bytes += getByteSize(cast<RankedTensorType>(result.getType()));
    tree.add(origin, [&](ModuleSum &sum) {
      ++sum.calls;
      sum.seconds += seconds;
      sum.backwardSeconds += origin.backward ? seconds : 0;
      sum.recomputedSeconds += again ? seconds : 0;
      sum.resultBytes += bytes;
    });
  }
  for (auto [i, argument] : llvm::enumerate(step.getArguments())) {
    auto role = step.getArgAttrOfType<StringAttr>(i, attrs::kRole);
    if (!role || (role.getValue() != roles::kParameter &&
                  role.getValue() != roles::kFrozen))
      continue;
    if (Operation *reader = firstReader(argument))
      tree.add(placeOf(reader), [&](ModuleSum &sum) {
        sum.weightBytes +=
            getByteSize(cast<RankedTensorType>(argument.getType()));
      });
  }
  for (const LiveBytes &live : getLiveAtPeak(step))
    if (live.maker)
      tree.add(placeOf(live.maker),
               [&](ModuleSum &sum) { sum.peakBytes += live.bytes; });
  return tree.take();
}

void ckopt::printModules(llvm::ArrayRef<ModuleSum> sums, StringRef time,
                         llvm::raw_ostream &os) {
  if (sums.empty())
    return;
  TextTable table;
  table.addColumn("module");
  for (StringRef header :
       {StringRef("calls"), time, StringRef("share"), StringRef("backward"),
        StringRef("recomputed"), StringRef("weights"), StringRef("results"),
        StringRef("at the peak")})
    table.addColumn(header, TextTable::Right);
  double all = sums.front().seconds;
  std::vector<StringRef> around; // paths of the modules around a row
  for (const ModuleSum &sum : sums) {
    StringRef name = sum.depth ? StringRef(sum.name) : "whole step";
    around.resize(size_t(sum.depth));
    if (sum.depth > 1 && name.consume_front(around.back()))
      name = name.ltrim("./");
    around.push_back(sum.name);
    auto seconds = [](double value) {
      return value > 0 ? formatSeconds(value) : std::string();
    };
    auto bytes = [](int64_t value) {
      return value ? formatBytes(value) : std::string();
    };
    table.addRow({std::string(size_t(sum.depth) * 2, ' ') + name.str(),
                  std::to_string(sum.calls), formatSeconds(sum.seconds),
                  formatPercent(all > 0 ? sum.seconds / all : 0),
                  seconds(sum.backwardSeconds), seconds(sum.recomputedSeconds),
                  bytes(sum.weightBytes), bytes(sum.resultBytes),
                  bytes(sum.peakBytes)});
  }
  os << "\n";
  table.print(os);
}

void ckopt::writeModules(llvm::ArrayRef<ModuleSum> sums,
                         llvm::json::OStream &json) {
  json.attributeArray("modules", [&] {
    for (const ModuleSum &sum : sums)
      json.object([&] {
        json.attribute("module", jsonString(sum.name));
        json.attribute("depth", sum.depth);
        json.attribute("calls", sum.calls);
        json.attribute("seconds", jsonNumber(sum.seconds));
        json.attribute("backward_seconds", jsonNumber(sum.backwardSeconds));
        json.attribute("recomputed_seconds", jsonNumber(sum.recomputedSeconds));
        json.attribute("weight_bytes", sum.weightBytes);
        json.attribute("result_bytes", sum.resultBytes);
        json.attribute("peak_bytes", sum.peakBytes);
      });
  });
}
