//===- BlockChain.cpp - a training step as a chain of blocks --------------===//
//
// Problem: deep networks repeat a block, and what is best for one is best for
// its copies; find the copies, exactly. Method: each block is cut out of the
// graph into a small graph of its own, its values numbered as its nodes meet
// them; two blocks are copies if these graphs are equal, number by number,
// costs, sizes, wiring, order edges and what others read included. The order of
// nodes gives the renaming, so no search for one is needed; copies that run in
// another order are missed, never wrongly merged. O(graph log graph).
//
//===----------------------------------------------------------------------===//
#include "BlockChain.h"
#include "Blocks.h"

#include <algorithm>
#include <bit>
#include <map>

using namespace ckopt::planner;

BlockChain::BlockChain(const Problem &problem, const std::vector<NodeId> &order,
                       int32_t turn, const std::vector<int32_t> &cuts)
    : problem(problem), order(order), turn(turn), place(problem.numNodes) {
  int32_t first = 0;
  for (int32_t cut : cuts) {
    blocks.push_back({first, cut, 0, 0, -1, {}});
    first = cut;
  }
  blocks.push_back({first, turn + 1, 0, 0, -1, {}});
  spans = storageSpans(problem, order, turn);
  for (int32_t p = 0; p < problem.numNodes; ++p)
    place[order[p]] = p;
  findStarts();
  classify();
  weighRest();
}

int32_t BlockChain::blockAt(int32_t position) const {
  if (position <= turn)
    return int32_t(std::partition_point(blocks.begin(), blocks.end(),
                                        [&](const ChainBlock &block) {
                                          return block.end <= position;
                                        }) -
                   blocks.begin());
  // Backward parts come in the opposite order.
  return int32_t(std::partition_point(blocks.begin(), blocks.end(),
                                      [&](const ChainBlock &block) {
                                        return block.start > position;
                                      }) -
                 blocks.begin());
}

/// A block's backward part begins where a twentieth of what it alone saved has
/// been used, since a few bytes may be used early.
void BlockChain::findStarts() {
  std::vector<std::vector<std::pair<int32_t, int64_t>>> uses(blocks.size()),
      shared(blocks.size());
  for (ValueId v = 0; v < problem.numValues; ++v) {
    const StorageSpan &span = spans[v];
    if (span.made < 0 || span.made > turn || span.firstAfter < 0)
      continue;
    int32_t block = blockAt(span.made);
    auto &list = span.lastBefore < blocks[block].end ? uses : shared;
    list[block].push_back({span.firstAfter, problem.bytes[v]});
  }
  int32_t latest = turn + 1;
  for (size_t i = blocks.size(); i-- > 0;) {
    auto &list = uses[i].empty() ? shared[i] : uses[i];
    std::sort(list.begin(), list.end());
    double sum = 0, seen = 0;
    for (auto [position, bytes] : list)
      sum += double(bytes);
    if (i + 1 < blocks.size())
      for (auto [position, bytes] : list)
        if ((seen += double(bytes)) * 20 >= sum) {
          latest = std::max(latest, position);
          break;
        }
    blocks[i].start = latest;
    blocks[i].stop = problem.numNodes;
    if (i + 1 < blocks.size())
      blocks[i + 1].stop = latest;
  }
}

namespace {

/// Cuts one block out.
class Extractor {
public:
  Extractor(const BlockChain &chain, int32_t index,
            std::vector<ValueId> &localOf)
      : chain(chain), problem(chain.problem), index(index),
        block(chain.blocks[index]), localOf(localOf) {}
  void run();
  std::vector<int64_t> word() const;

  BlockKind kind;
  std::vector<ValueId> values;

private:
  bool inside(int32_t p) const {
    return (p >= block.first && p < block.end) ||
           (p >= block.start && p < block.stop);
  }
  ValueId local(ValueId v);
  Value describe(ValueId v, bool own);
  void addNode(NodeId n);

  const BlockChain &chain;
  const Problem &problem;
  int32_t index;
  const ChainBlock &block;
  std::vector<ValueId> &localOf; ///< by value of the problem; -1
  std::vector<NodeId> localNode; ///< by position in the block
};

/// The number of a value in the block; what others made stands for its storage.
ValueId Extractor::local(ValueId v) {
  NodeId maker = problem.producer[v];
  bool own = maker >= 0 && inside(chain.place[maker]);
  if (!own)
    v = problem.root[v];
  if (localOf[v] >= 0)
    return localOf[v];
  maker = problem.producer[v];
  own = maker >= 0 && inside(chain.place[maker]);
  Value value = describe(v, own);
  // describe() may have numbered others.
  localOf[v] = ValueId(values.size());
  values.push_back(v);
  kind.graph.values.push_back(std::move(value));
  const StorageSpan &span = chain.spans[problem.root[v]];
  bool forward = own && span.made <= chain.turn && problem.root[v] == v;
  bool leaves = forward && span.lastBefore >= block.end;
  // Some later block's backward part may want it first.
  if (forward && span.firstAfter >= 0 && span.firstAfter < block.start)
    leaves = true;
  kind.leaves.push_back(leaves);
  kind.stays.push_back(forward && span.lastUse >= block.stop);
  return localOf[v];
}

Value Extractor::describe(ValueId v, bool own) {
  Value value;
  const StorageSpan &span = chain.spans[problem.root[v]];
  if (own) {
    if (problem.base[v] >= 0)
      value.aliasOf = local(problem.base[v]);
    value.bytes = problem.bytes[v];
    if (problem.endLive[v] || (value.aliasOf < 0 && span.lastUse >= block.stop))
      value.kind = ValueKind::Output;
    return value;
  }
  bool handed = span.made > chain.turn && span.lastUse < block.stop &&
                chain.blockAt(span.made) == index + 1;
  if (!handed) {
    value.kind = ValueKind::Persistent;
    return value;
  }
  value.bytes = problem.bytes[v];
  kind.incoming += value.bytes;
  return value;
}

void Extractor::addNode(NodeId n) {
  const Node &node = problem.graph.nodes[n];
  Node copy = renamedNode(problem, n, [&](ValueId v) { return local(v); });
  for (ValueId v : node.mutates)
    copy.mutates.push_back(local(v));
  for (NodeId other : node.after) {
    int32_t p = chain.place[other];
    if (!inside(p))
      continue;
    copy.after.push_back(p < block.end ? p - block.first
                                       : p - block.start + kind.turn + 1);
  }
  kind.graph.nodes.push_back(std::move(copy));
}

void Extractor::run() {
  kind.turn = block.end - block.first;
  for (int32_t p = block.first; p < block.end; ++p)
    addNode(chain.order[p]);
  Node middle;
  middle.recompute = false;
  kind.graph.nodes.push_back(middle);
  for (ValueId v = 0; v < ValueId(values.size()); ++v)
    if (kind.leaves[v])
      kind.graph.nodes[kind.turn].inputs.push_back(v);
  for (int32_t p = block.start; p < block.stop; ++p)
    addNode(chain.order[p]);
  std::vector<ValueId> &handed = kind.graph.nodes[kind.turn].outputs;
  handed.clear();
  for (ValueId v = 0; v < ValueId(values.size()); ++v) {
    NodeId maker = problem.producer[values[v]];
    if (kind.graph.values[v].kind != ValueKind::Persistent && maker >= 0 &&
        !inside(chain.place[maker]))
      handed.push_back(v);
  }
  for (ValueId v : values)
    localOf[v] = -1;
}

/// All that the block is, in numbers.
std::vector<int64_t> Extractor::word() const {
  std::vector<int64_t> word{kind.turn, kind.incoming};
  auto list = [&](const std::vector<int32_t> &items) {
    word.push_back(int64_t(items.size()));
    word.insert(word.end(), items.begin(), items.end());
  };
  for (size_t v = 0; v < values.size(); ++v) {
    const Value &value = kind.graph.values[v];
    word.insert(word.end(), {value.bytes, int64_t(value.kind), value.aliasOf,
                             kind.leaves[v], kind.stays[v]});
  }
  for (const Node &node : kind.graph.nodes) {
    word.insert(word.end(), {std::bit_cast<int64_t>(node.cost), node.workspace,
                             node.recompute});
    list(node.inputs);
    list(node.outputs);
    list(node.mutates);
    list(node.after);
    word.push_back(int64_t(node.reuse.size()));
    for (auto [input, output] : node.reuse)
      word.insert(word.end(), {input, output});
  }
  return word;
}

} // namespace

void BlockChain::classify() {
  std::vector<ValueId> localOf(problem.numValues, -1);
  std::map<std::vector<int64_t>, int32_t> known;
  for (int32_t i = 0; i < int32_t(blocks.size()); ++i) {
    Extractor extractor(*this, i, localOf);
    extractor.run();
    auto [it, fresh] = known.insert({extractor.word(), int32_t(kinds.size())});
    if (fresh)
      kinds.push_back(std::move(extractor.kind));
    blocks[i].kind = it->second;
    blocks[i].values = std::move(extractor.values);
    ++kinds[it->second].members;
  }
}

void BlockChain::weighRest() {
  std::vector<int64_t> change(blocks.size() + 1, 0);
  for (ValueId v = 0; v < problem.numValues; ++v) {
    const StorageSpan &span = spans[v];
    if (problem.root[v] != v || span.lastUse < 0 ||
        (problem.initial[v] && problem.endLive[v]))
      continue;
    // There from the block's own backward part on to that of its last use.
    int32_t last = span.lastUse <= turn
                       ? int32_t(blocks.size())
                       : blockAt(std::min(span.lastUse, problem.numNodes - 1));
    int32_t own = span.made < 0 ? int32_t(blocks.size()) : blockAt(span.made);
    if (last >= own)
      continue;
    change[last] += problem.bytes[v];
    change[own] -= problem.bytes[v];
  }
  int64_t sum = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    sum += change[i];
    beside.push_back(sum - kinds[blocks[i].kind].incoming);
  }
}

std::vector<int32_t> ckopt::planner::chainCuts(const Problem &problem,
                                               const std::vector<NodeId> &order,
                                               int32_t turn, int32_t parts) {
  std::vector<int32_t> place(problem.numNodes), made(problem.numValues, -1),
      last(problem.numValues, -1);
  std::vector<char> wanted(problem.numValues, 0);
  for (int32_t p = 0; p < problem.numNodes; ++p) {
    place[order[p]] = p;
    for (ValueId v : problem.outputs[order[p]])
      if (problem.root[v] == v && p <= turn)
        made[v] = p;
    for (ValueId v : problem.reads[order[p]])
      if (p <= turn)
        last[problem.root[v]] = p;
      else
        wanted[problem.root[v]] = 1;
  }
  // Bytes across each position, and bytes saved up to it.
  std::vector<int64_t> across(turn + 2, 0), saved(turn + 2, 0);
  for (ValueId v = 0; v < problem.numValues; ++v) {
    if (made[v] < 0)
      continue;
    if (last[v] > made[v]) {
      across[made[v] + 1] += problem.bytes[v];
      across[last[v] + 1] -= problem.bytes[v];
    }
    saved[made[v] + 1] += wanted[v] ? problem.bytes[v] : 0;
  }
  for (int32_t p = 1; p <= turn + 1; ++p) {
    across[p] += across[p - 1];
    saved[p] += saved[p - 1];
  }
  std::vector<int32_t> begins{0, turn + 1};
  std::vector<std::pair<int32_t, int32_t>> repeated;
  for (const BlockGroup &group : findRepeatedBlocks(problem, order, turn))
    for (const BlockGroup::Block &block : group.blocks) {
      auto [first, end] = std::minmax_element(
          block.forward.begin(), block.forward.end(),
          [&](NodeId a, NodeId b) { return place[a] < place[b]; });
      begins.push_back(place[*first]);
      begins.push_back(place[*end] + 1);
      repeated.push_back({place[*first], place[*end] + 1});
    }
  std::sort(begins.begin(), begins.end());
  std::sort(repeated.begin(), repeated.end());
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  int64_t share = std::max<int64_t>(1, saved[turn + 1] / std::max(1, parts));
  // No finer than the blocks that repeat.
  for (auto [from, to] : repeated)
    share = std::max(share, saved[to] - saved[from]);
  std::vector<int32_t> cuts;
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    int32_t from = begins[i], to = begins[i + 1];
    if (from > 0)
      cuts.push_back(from);
    if (std::binary_search(repeated.begin(), repeated.end(),
                           std::pair{from, to}))
      continue;
    // The narrowest place in the second half of each share.
    int32_t narrowest = -1;
    for (int32_t p = from + 1; p < to; ++p) {
      if (saved[p] - saved[from] < share / 2)
        continue;
      if (narrowest < 0 || across[p] <= across[narrowest])
        narrowest = p;
      if (saved[p] - saved[from] >= share) {
        cuts.push_back(narrowest);
        p = from = narrowest;
        narrowest = -1;
      }
    }
  }
  return cuts;
}
