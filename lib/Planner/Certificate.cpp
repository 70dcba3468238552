//===- Certificate.cpp - derives a bound from prices of bytes -------------===//
//
// Shares no code with the solvers; scripts/check_certificate.py says the same
// in Python. Why it is a bound:
//
// Rows. Row i is the first run of a node; rows follow each other in every plan
// in question. A node's first run lies in [low, high]: after or at row low,
// before or at row high.
// Gaps. Take accesses of a storage that follow each other in every such plan.
// Between two of them the storage is resident, at each row in between, or its
// maker runs again; the intervals are disjoint, so are the runs. A maker's cost
// is shared among its results by size, so each run is charged once.
// Need. At a row, what its node reads, makes and needs for scratch is resident,
// less what may be written over inputs. With p the prices, each plan costs at
// least  sum of all costs + sum_r p_r (load_r with all gaps kept - budget)
//        - sum over gaps max(0, L bytes - phi),   L the sum of p in the gap,
// where phi, a lower bound on what dropping the gap costs at these prices, is
// the maker's cost plus, for each claimed input u of the maker that nothing
// else charges for in this gap, min(L bytes_u, phi_u): it is kept or made again
// (GapArcs.cpp has the proof).
// Rounding: costs are rounded down to units, and the sum up to a multiple of
// their common divisor where none lost anything.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Certificate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

using namespace ckopt::planner;

namespace {

using Wide = __int128;
constexpr int64_t most = int64_t(1) << 62;
/// Sums stop here: two of it do not overflow, and no budget needs more.
constexpr Wide enough = Wide(1) << 124;

class Derivation {
public:
  Derivation(Graph least, const Certificate &given)
      : graph(std::move(least)), given(given),
        nodes(int32_t(graph.nodes.size())),
        values(int32_t(graph.values.size())) {}
  std::optional<double> run(std::string &error);

private:
  std::string scaleCosts();
  void readGraph();
  std::string placeRows();
  std::string readPrices();
  std::string readClaims();
  void spread();
  void sortAccesses();
  Wide loadOfRows() const;
  Wide takenOver(NodeId node) const;
  Wide loadOfStorage(ValueId v) const;
  Wide gap(ValueId v, NodeId from, int32_t last) const;
  Wide dropping(ValueId v, Wide length, int32_t from, int depth) const;
  bool isRow(NodeId n) const { return low[n] == high[n]; }
  int64_t sum(int32_t first, int32_t last) const {
    return first <= last ? prefix[last + 1] - prefix[first] : 0;
  }
  int64_t at(NodeId n) const { return sum(low[n], low[n]); }
  bool there(ValueId v) const {
    return graph.values[v].kind == ValueKind::Input ||
           graph.values[v].kind == ValueKind::Persistent;
  }

  const Graph graph;
  const Certificate &given;
  int32_t nodes, values, rows = 0;
  std::vector<int64_t> cost, bytes, prefix;
  int64_t base = 0, divisor = 0;
  std::vector<ValueId> root;
  std::vector<NodeId> maker;
  std::vector<char> once, atEnd, overwritten;
  std::vector<std::vector<ValueId>> touches; ///< node -> storages, makes too
  std::vector<std::vector<ValueId>> reads;   ///< node -> storages
  std::vector<std::vector<ValueId>> inputs;  ///< the same, given ones only
  std::vector<std::vector<NodeId>> accesses; ///< storage -> nodes by high
  std::vector<NodeId> order;
  std::vector<int32_t> low, high;
  std::vector<int32_t> lastRead;  ///< storage -> largest low, rows: the end
  std::vector<int32_t> readAfter; ///< storage -> last row before a reader
  std::vector<std::vector<ValueId>> claims;
  std::vector<int32_t> claimFrom; ///< storage -> row
};

std::string Derivation::scaleCosts() {
  if (given.scaleBits < -1000 || given.scaleBits > 1000)
    return "scale out of range";
  bool exact = true;
  for (const Node &node : graph.nodes) {
    double scaled = std::ldexp(node.cost, given.scaleBits);
    if (!(scaled < double(most)) || int64_t(scaled) > most - base)
      return "the scale is too fine: the sum of all costs passes 2^62";
    cost.push_back(int64_t(scaled));
    base += cost.back();
    exact &= double(cost.back()) == scaled;
    divisor = std::gcd(divisor, cost.back());
  }
  if (!exact || divisor == 0)
    divisor = 1;
  return "";
}

void Derivation::readGraph() {
  root.resize(values);
  bytes.assign(values, 0);
  atEnd.assign(values, 0);
  overwritten.assign(values, 0);
  maker.assign(values, -1);
  once.assign(nodes, 0);
  touches.resize(nodes);
  reads.resize(nodes);
  inputs.resize(nodes);
  std::vector<char> viewed(values, 0);
  for (ValueId v = 0; v < values; ++v) {
    if (graph.values[v].aliasOf >= 0)
      viewed[graph.values[v].aliasOf] = 1;
    for (root[v] = v; graph.values[root[v]].aliasOf >= 0;)
      root[v] = graph.values[root[v]].aliasOf;
    if (root[v] == v)
      bytes[v] = alignTo(graph.values[v].bytes, graph.alignment);
    if (graph.values[v].kind == ValueKind::Output ||
        graph.values[v].kind == ValueKind::Persistent)
      atEnd[root[v]] = 1;
  }
  for (NodeId n = 0; n < nodes; ++n) {
    const Node &node = graph.nodes[n];
    for (ValueId v : node.outputs)
      maker[v] = n;
    for (ValueId v : node.mutates)
      overwritten[root[v]] = 1;
    once[n] = !node.recompute || !node.mutates.empty();
  }
  for (NodeId n = 0; n < nodes; ++n) {
    const Node &node = graph.nodes[n];
    for (ValueId v : node.inputs)
      inputs[n].push_back(root[v]);
    reads[n] = inputs[n];
    for (ValueId v : node.outputs) {
      once[n] |= overwritten[v] && viewed[v];
      touches[n].push_back(root[v]);
      if (maker[root[v]] != n)
        reads[n].push_back(root[v]);
    }
    touches[n].insert(touches[n].end(), reads[n].begin(), reads[n].end());
    for (std::vector<ValueId> *list : {&touches[n], &reads[n], &inputs[n]}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
  }
}

/// The furthest row known before each node, along dependences, and back. A
/// node that overwrites a storage comes after all that touch it before, in
/// program order, and before all that touch it after.
void Derivation::spread() {
  std::vector<int32_t> own = low;
  std::vector<int32_t> touched(values, -1), written(values, -1);
  for (NodeId n = 0; n < nodes; ++n) {
    const Node &node = graph.nodes[n];
    int32_t &here = low[n];
    auto follow = [&](ValueId v) {
      if (maker[v] >= 0 && maker[v] != n)
        here = std::max(here, low[maker[v]]);
    };
    for (ValueId v : node.inputs)
      follow(v);
    for (ValueId v : node.outputs)
      if (graph.values[v].aliasOf >= 0)
        follow(graph.values[v].aliasOf);
    for (NodeId p : node.after)
      here = std::max(here, low[p]);
    for (ValueId v : inputs[n])
      here = std::max(here, written[v]);
    for (ValueId v : node.mutates)
      here = std::max({here, written[root[v]], touched[root[v]]});
    for (ValueId v : inputs[n])
      touched[v] = std::max(touched[v], here);
    for (ValueId v : node.mutates)
      written[root[v]] = std::max(written[root[v]], here);
  }
  std::fill(touched.begin(), touched.end(), rows);
  std::fill(written.begin(), written.end(), rows);
  for (NodeId n = nodes - 1; n >= 0; --n) {
    const Node &node = graph.nodes[n];
    int32_t here = own[n] >= 0 ? own[n] : high[n];
    for (ValueId v : inputs[n])
      here = std::min(here, written[v]);
    for (ValueId v : node.mutates)
      here = std::min({here, written[root[v]], touched[root[v]]});
    high[n] = here;
    auto follow = [&](ValueId v) {
      if (maker[v] >= 0 && maker[v] != n)
        high[maker[v]] = std::min(high[maker[v]], here);
    };
    for (ValueId v : node.inputs)
      follow(v);
    for (ValueId v : node.outputs)
      if (graph.values[v].aliasOf >= 0)
        follow(graph.values[v].aliasOf);
    for (NodeId p : node.after)
      high[p] = std::min(high[p], here);
    for (ValueId v : inputs[n])
      touched[v] = std::min(touched[v], here);
    for (ValueId v : node.mutates)
      written[root[v]] = std::min(written[root[v]], here);
  }
}

std::string Derivation::placeRows() {
  order = given.rows;
  if (order.empty() && !given.anyOrder)
    for (NodeId n = 0; n < nodes; ++n)
      order.push_back(n);
  rows = int32_t(order.size());
  low.assign(nodes, -1);
  high.assign(nodes, rows);
  for (int32_t r = 0; r < rows; ++r) {
    NodeId n = order[r];
    if (n < 0 || n >= nodes || low[n] >= 0)
      return "rows name an unknown node, or one twice";
    low[n] = high[n] = r;
  }
  if (!given.anyOrder)
    return rows == nodes ? "" : "rows do not name all nodes";
  std::vector<int32_t> own = low;
  spread();
  for (NodeId n = 0; n < nodes; ++n)
    if (own[n] >= 0 && (low[n] != own[n] || high[n] != own[n]))
      return "rows are not a path of the dependence graph";
  // Each row's node must come after the one before it: with its own row not
  // counted, it must be past that one.
  for (int32_t r = 1; r < rows; ++r) {
    NodeId n = order[r], p = order[r - 1];
    const Node &node = graph.nodes[n];
    bool linked =
        std::find(node.after.begin(), node.after.end(), p) != node.after.end();
    for (ValueId v : node.inputs)
      linked |= maker[v] == p;
    for (ValueId v : node.outputs)
      linked |=
          graph.values[v].aliasOf >= 0 && maker[graph.values[v].aliasOf] == p;
    auto inOrder = [&](NodeId writer, NodeId other) {
      for (ValueId v : graph.nodes[writer].mutates) {
        linked |= std::binary_search(inputs[other].begin(), inputs[other].end(),
                                     root[v]);
        for (ValueId w : graph.nodes[other].mutates)
          linked |= root[v] == root[w];
      }
    };
    inOrder(p, n);
    inOrder(n, p);
    if (!linked || p >= n)
      return "rows are not a path of the dependence graph";
  }
  return "";
}

std::string Derivation::readPrices() {
  prefix.assign(rows + 2, 0);
  int32_t previous = -1;
  int64_t total = 0;
  for (auto [row, price] : given.prices) {
    if (row <= previous || row > rows || price < 0 || price > most - total)
      return "prices must name ascending rows, not be negative, and add up to "
             "at most 2^62";
    previous = row;
    total += price;
    prefix[row + 1] = price;
  }
  for (int32_t r = 0; r <= rows; ++r)
    prefix[r + 1] += prefix[r];
  return "";
}

std::string Derivation::readClaims() {
  claims.resize(values);
  claimFrom.assign(values, -1);
  ValueId previous = -1;
  for (auto [input, by] : given.claims) {
    bool known = input > previous && input < values && by >= 0 && by < values &&
                 input != by && root[input] == input && root[by] == by &&
                 maker[by] >= 0;
    if (!known || !std::binary_search(reads[maker[by]].begin(),
                                      reads[maker[by]].end(), input))
      return "claims must name each storage once, ascending, with one whose "
             "maker reads it";
    previous = input;
    claims[by].push_back(input);
  }
  return "";
}

void Derivation::sortAccesses() {
  accesses.resize(values);
  lastRead.assign(values, -1);
  readAfter.assign(values, -1);
  for (NodeId n = 0; n < nodes; ++n)
    for (ValueId v : touches[n]) {
      accesses[v].push_back(n);
      lastRead[v] = std::max(lastRead[v], low[n]);
      readAfter[v] = std::max(readAfter[v], low[n] - isRow(n));
    }
  for (ValueId v = 0; v < values; ++v) {
    if (atEnd[v]) {
      lastRead[v] = rows;
      readAfter[v] = rows - 1;
    }
    std::sort(accesses[v].begin(), accesses[v].end(), [&](NodeId a, NodeId b) {
      return high[a] != high[b] ? high[a] < high[b]
             : low[a] != low[b] ? low[a] < low[b]
                                : a < b;
    });
  }
  for (auto [input, by] : given.claims)
    for (NodeId n : accesses[input])
      if (n != maker[input] && n != maker[by])
        claimFrom[input] = std::max(claimFrom[input], high[n]);
}

/// The pairs (input, result) that may ever share bytes.
static std::vector<std::pair<ValueId, ValueId>>
usablePairs(const Graph &graph, const Node &node,
            const std::vector<ValueId> &root) {
  std::vector<std::pair<ValueId, ValueId>> pairs;
  auto has = [](const std::vector<ValueId> &list, ValueId v) {
    return std::find(list.begin(), list.end(), v) != list.end();
  };
  for (auto [i, o] : node.reuse) {
    bool usable = has(node.inputs, i) && has(node.outputs, o) && root[i] == i &&
                  root[o] == o && graph.values[i].kind != ValueKind::Input &&
                  graph.values[i].kind != ValueKind::Persistent &&
                  graph.values[o].bytes <= graph.values[i].bytes;
    for (ValueId v : node.inputs)
      usable &= v == i || root[v] != i;
    for (ValueId v : node.outputs)
      usable &= root[v] != i;
    if (usable)
      pairs.push_back({i, o});
  }
  return pairs;
}

/// Price of what a row's node may write over its inputs, where keeping a gap
/// open does not forbid it.
Wide Derivation::takenOver(NodeId node) const {
  auto pairs = usablePairs(graph, graph.nodes[node], root);
  std::map<ValueId, std::set<ValueId>> sources;
  for (auto [i, o] : pairs)
    if (!(once[maker[i]] && readAfter[i] >= low[node]))
      sources[o].insert(i);
  Wide price = 0;
  for (auto &[o, list] : sources)
    price += Wide(at(node)) * bytes[o];
  return price;
}

Wide Derivation::loadOfRows() const {
  Wide load = 0;
  for (NodeId n : order) {
    if (at(n) == 0)
      continue;
    load += Wide(at(n)) * alignTo(graph.nodes[n].workspace, graph.alignment);
    load -= takenOver(n);
  }
  return load;
}

/// What it costs at least, at these prices, not to keep v: `length` is the sum
/// of prices over the gap.
Wide Derivation::dropping(ValueId v, Wide length, int32_t from,
                          int depth) const {
  Wide keep = length * bytes[v];
  if (maker[v] < 0 || once[maker[v]])
    return keep;
  Wide total = 0;
  for (ValueId u : graph.nodes[maker[v]].outputs)
    total += bytes[u];
  Wide drop = Wide(cost[maker[v]]) * bytes[v] / std::max<Wide>(1, total);
  for (ValueId u : claims[v]) {
    if (drop >= enough || depth >= 32)
      break;
    if (!atEnd[u] && claimFrom[u] <= from)
      drop += dropping(u, length, from, depth + 1);
  }
  return depth == 0 ? drop : std::min(keep, drop);
}

/// Price of keeping a gap, less what dropping it saves at best.
Wide Derivation::gap(ValueId v, NodeId from, int32_t last) const {
  int32_t after = high[from] + isRow(from);
  Wide keep = Wide(sum(after, last)) * bytes[v];
  if (keep == 0 && !isRow(from))
    return 0;
  // A result written over v at the row itself, if v is not kept.
  if (isRow(from) && at(from) > 0) {
    auto pairs = usablePairs(graph, graph.nodes[from], root);
    std::set<ValueId> results, sources;
    for (auto [i, o] : pairs)
      if (i == v)
        results.insert(o);
    for (auto [i, o] : pairs)
      if (results.count(o) && !(once[maker[i]] && readAfter[i] >= low[from]))
        sources.insert(i);
    if (results.size() == 1 && sources.size() == 1 &&
        bytes[*results.begin()] == bytes[v])
      keep += Wide(at(from)) * bytes[v];
  }
  Wide drop = dropping(v, sum(after, last), low[from], 0);
  return std::min(keep, drop);
}

Wide Derivation::loadOfStorage(ValueId v) const {
  if (bytes[v] == 0 || lastRead[v] < 0)
    return 0;
  if (maker[v] < 0 || once[maker[v]])
    return Wide(sum(maker[v] < 0 ? 0 : high[maker[v]], lastRead[v])) * bytes[v];
  NodeId previous = maker[v];
  Wide load = isRow(previous) ? Wide(at(previous)) * bytes[v] : 0;
  for (NodeId next : accesses[v]) {
    if (next == maker[v] || low[next] < high[previous])
      continue;
    load += gap(v, previous, low[next] - isRow(next));
    if (isRow(next))
      load += Wide(at(next)) * bytes[v];
    previous = next;
  }
  if (atEnd[v])
    load += gap(v, previous, rows - 1) + Wide(sum(rows, rows)) * bytes[v];
  return load;
}

std::optional<double> Derivation::run(std::string &error) {
  error = scaleCosts();
  readGraph();
  for (auto step : {&Derivation::placeRows, &Derivation::readPrices,
                    &Derivation::readClaims})
    if (error.empty())
      error = (this->*step)();
  if (!error.empty())
    return std::nullopt;
  sortAccesses();
  // Everything stays below 2^126: prices add up to 2^62, sizes to 2^61, and
  // what the storages add stops counting once it passes what room costs.
  Wide room = Wide(prefix.back()) * given.budget, load = loadOfRows();
  for (ValueId v = 0; v < values && load < enough; ++v)
    if (root[v] == v)
      load += loadOfStorage(v);
  Wide extra = std::max<Wide>(0, load - room);
  Wide bound = base + (extra + divisor - 1) / divisor * divisor;
  double result = double(bound);
  if (Wide(result) > bound)
    result = std::nextafter(result, 0.0);
  return std::ldexp(result, -given.scaleBits);
}

/// Of a node's alternatives: what all of them read, at the least cost.
Graph leastDemands(Graph graph) {
  for (Node &node : graph.nodes) {
    for (const Alternative &way : node.alternatives) {
      node.cost = std::min(node.cost, way.cost);
      std::erase_if(node.inputs, [&](ValueId v) {
        return std::find(way.inputs.begin(), way.inputs.end(), v) ==
               way.inputs.end();
      });
    }
    node.alternatives.clear();
  }
  return graph;
}

} // namespace

std::optional<double> ckopt::planner::checkCertificate(
    const Graph &graph, const Certificate &certificate, std::string &error) {
  error = validate(graph);
  if (error.empty() && certificate.budget < 0)
    error = "negative budget";
  if (!error.empty())
    return std::nullopt;
  return Derivation(leastDemands(graph), certificate).run(error);
}
