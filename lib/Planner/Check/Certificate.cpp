//===- Certificate.cpp - derives a bound from prices of bytes -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shares no code with the solvers; scripts/check_certificate.py says the same
// in Python. Why it is a bound, by weak duality:
//
// Rows are first runs that follow each other in every plan in question: all
// nodes, or a path of the dependence graph; then the end. A node's first run
// lies after or at row `low`, before or at row `high`. As loads are within the
// budget, with any prices each plan costs at least
//   sum of all costs + costs of what runs again + sum_r p_r (load_r - budget).
// Of that are counted:
// Own. At a row, what its node touches and needs for scratch is there, less
// results that may be written over an input.
// Gaps. Between two accesses of a storage that follow each other in every plan
// it stays, at all rows between (and at the first one, where taking its bytes
// over would end it), or its maker runs again, at a share of its cost by size.
// Gaps of one storage are disjoint, so are these runs.
// Claims. Such a run reads inputs. One whose other accesses are all over before
// the gap, and that no other storage claims, is kept or made again, too. How
// much that costs at least is concave in where the run lies (GapArcs.cpp).
// Tree. Plans keep a gap or drop it; in each case the prices are others, and
// the least case counts.
// Rounding: costs are rounded down to units, and the sum up to a multiple of
// their common divisor where none lost anything.
//
// Linear in the graph for each case. Everything stays below 2^126: prices add
// up to 2^62, sizes to 2^61, and sums stop once they pass what room costs.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Certificate.h"
#include "Check/CertificateGraph.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

using namespace ckopt::planner;

namespace {

using Wide = __int128;
constexpr int64_t most = int64_t(1) << 62;
/// Sums stop here: two such sums do not overflow, and no budget needs more.
constexpr Wide enough = Wide(1) << 124;
constexpr int maxClaims = 32, maxDepth = 1000;

class Derivation {
public:
  Derivation(const Graph &source, const Certificate &given)
      : graph(source), nodes(graph.nodes), given(given) {}
  std::optional<double> run(std::string &error);

private:
  enum Side : char { Kept, Dropped };
  std::string scaleCosts();
  std::string placeRows();
  std::string readClaims();
  void sortAccesses();
  void loadRow(int32_t row);
  std::string readPrices(const Certificate::Prices &prices);
  Wide extraOf(const Certificate::Prices &prices);
  Wide leastCase(size_t depth);
  Wide storageLoad(ValueId v) const;
  Wide gap(ValueId v, NodeId from, NodeId to) const;
  Wide drop(ValueId v, Wide length, int32_t start, int depth) const;
  bool isRow(NodeId n) const { return low[n] == high[n]; }
  Wide total(int32_t first, int32_t last) const {
    return first <= last ? prefix[last + 1] - prefix[first] : 0;
  }
  Wide at(NodeId n) const { return isRow(n) ? total(low[n], low[n]) : 0; }

  const CertificateGraph graph;
  const std::vector<CertificateGraph::Node> &nodes; ///< the last one is the end
  const Certificate &given;
  std::string wrong;
  std::vector<int64_t> cost, prefix;
  int64_t base = 0, unit = 0;
  std::vector<NodeId> rows;
  std::vector<int32_t> low, high;
  std::vector<std::vector<NodeId>> accesses; ///< storage -> nodes by high
  std::vector<int32_t> last;  ///< storage -> largest low of an access
  std::vector<int32_t> later; ///< storage -> last row before an access
  std::vector<std::vector<ValueId>> claims;
  std::vector<int32_t> over; ///< claimed storage -> row after which it counts
  std::vector<Wide> own;     ///< row -> bytes
  std::vector<std::pair<ValueId, NodeId>> first; ///< gaps that start at a row
  std::map<std::pair<ValueId, NodeId>, Side> decided;
  size_t next = 0; ///< case of the tree
};

std::string Derivation::scaleCosts() {
  if (given.scaleBits < -1000 || given.scaleBits > 1000)
    return "scale out of range";
  bool exact = true;
  for (const CertificateGraph::Node &node : nodes) {
    double scaled = std::ldexp(node.cost, given.scaleBits);
    if (!(scaled < double(most)) || int64_t(scaled) > most - base)
      return "the scale is too fine: the sum of all costs passes 2^62";
    cost.push_back(int64_t(scaled));
    base += cost.back();
    exact &= double(cost.back()) == scaled;
    unit = std::gcd(unit, cost.back());
  }
  if (!exact || unit == 0)
    unit = 1;
  return "";
}

std::string Derivation::placeRows() {
  NodeId end = NodeId(nodes.size()) - 1;
  rows = given.rows;
  if (rows.empty() && !given.anyOrder)
    for (NodeId n = 0; n < end; ++n)
      rows.push_back(n);
  rows.push_back(end);
  low.assign(nodes.size(), -1);
  high.assign(nodes.size(), int32_t(rows.size()) - 1);
  for (int32_t r = 0; r < int32_t(rows.size()); ++r) {
    NodeId n = rows[r];
    if (n < 0 || n > end || low[n] >= 0)
      return "rows name an unknown node, or one twice";
    low[n] = high[n] = r;
  }
  if (!given.anyOrder)
    return rows.size() == nodes.size() ? "" : "rows do not name all nodes";
  for (size_t r = 1; r + 1 < rows.size(); ++r)
    if (!std::binary_search(nodes[rows[r]].before.begin(),
                            nodes[rows[r]].before.end(), rows[r - 1]))
      return "rows are not a path of the dependence graph";
  for (NodeId n = 0; n <= end; ++n)
    if (!isRow(n))
      for (NodeId p : nodes[n].before)
        low[n] = std::max(low[n], low[p]);
  for (NodeId n = end; n >= 0; --n)
    for (NodeId p : nodes[n].before)
      high[p] = std::min(high[p], high[n]);
  return "";
}

void Derivation::sortAccesses() {
  size_t values = graph.root.size();
  accesses.resize(values);
  last.assign(values, -1);
  later.assign(values, -1);
  for (NodeId n = 0; n < NodeId(nodes.size()); ++n)
    for (ValueId v : nodes[n].touches) {
      accesses[v].push_back(n);
      last[v] = std::max(last[v], low[n]);
      later[v] = std::max(later[v], low[n] - isRow(n));
    }
  for (std::vector<NodeId> &list : accesses)
    std::sort(list.begin(), list.end(), [&](NodeId a, NodeId b) {
      return std::tie(high[a], low[a], a) < std::tie(high[b], low[b], b);
    });
}

std::string Derivation::readClaims() {
  int32_t values = int32_t(graph.root.size());
  claims.resize(values);
  over.assign(values, -1);
  ValueId previous = -1;
  for (auto [input, by] : given.claims) {
    bool known = input > previous && input < values && by >= 0 && by < values &&
                 input != by && graph.maker[by] >= 0;
    if (!known ||
        !std::binary_search(nodes[graph.maker[by]].reads.begin(),
                            nodes[graph.maker[by]].reads.end(), input))
      return "claims must name each storage once, ascending, with one whose "
             "maker reads it";
    previous = input;
    claims[by].push_back(input);
    for (NodeId n : accesses[input])
      if (n != graph.maker[input] && n != graph.maker[by])
        over[input] = std::max(over[input], high[n]);
  }
  return "";
}

/// Computes the bytes at a row that are there under every plan, and the gaps
/// that start at the row itself: those of an input that is the only one which a
/// result of the same size may overwrite.
void Derivation::loadRow(int32_t row) {
  const CertificateGraph::Node &node = nodes[rows[row]];
  Wide sum = node.workspace;
  for (ValueId v : node.touches)
    sum += graph.stays[v] ? 0 : graph.bytes[v];
  std::map<ValueId, std::vector<ValueId>> sources;
  for (auto [v, o] : node.pairs)
    if (!(graph.stays[v] && later[v] >= row))
      sources[o].push_back(v);
  for (auto &[o, list] : sources) {
    sum -= graph.bytes[o];
    auto uses = std::count_if(node.pairs.begin(), node.pairs.end(),
                              [&](auto pair) { return pair.first == list[0]; });
    if (list.size() == 1 && uses == 1 && graph.bytes[list[0]] == graph.bytes[o])
      first.push_back({list[0], rows[row]});
  }
  own.push_back(sum);
}

std::string Derivation::readPrices(const Certificate::Prices &prices) {
  prefix.assign(rows.size() + 1, 0);
  int32_t previous = -1;
  int64_t sum = 0;
  for (auto [row, price] : prices) {
    if (row <= previous || row >= int32_t(rows.size()) || price < 0 ||
        price > most - sum)
      return "prices must name ascending rows, not be negative, and add up to "
             "at most 2^62";
    previous = row;
    sum += price;
    prefix[row + 1] = price;
  }
  for (size_t r = 0; r < rows.size(); ++r)
    prefix[r + 1] += prefix[r];
  return "";
}

/// Returns the least cost, at these prices, of making v again in a gap over
/// which prices add up to `length`.
Wide Derivation::drop(ValueId v, Wide length, int32_t start, int depth) const {
  if (graph.stays[v])
    return enough;
  NodeId maker = graph.maker[v];
  Wide sum = Wide(cost[maker]) * graph.bytes[v] /
             std::max<int64_t>(1, nodes[maker].bytes);
  for (ValueId u : claims[v])
    if (depth < maxClaims && over[u] <= start && sum < enough)
      sum +=
          std::min(length * graph.bytes[u], drop(u, length, start, depth + 1));
  return std::min(sum, enough);
}

Wide Derivation::gap(ValueId v, NodeId from, NodeId to) const {
  Wide length = total(high[from] + isRow(from), low[to] - isRow(to));
  Wide keep = length * graph.bytes[v];
  if (std::binary_search(first.begin(), first.end(), std::pair(v, from)))
    keep += at(from) * graph.bytes[v];
  auto side = decided.empty() ? decided.end() : decided.find({v, from});
  if (side != decided.end() && side->second == Kept)
    return keep;
  Wide dropped = drop(v, length, low[from], 0);
  return side != decided.end() ? dropped : std::min(keep, dropped);
}

/// Returns the cost of the storage's bytes at rows that do not touch it.
Wide Derivation::storageLoad(ValueId v) const {
  if (accesses[v].empty())
    return 0;
  NodeId from = graph.maker[v];
  if (graph.stays[v])
    return total(from < 0 ? 0 : high[from], last[v]) * graph.bytes[v];
  Wide load = 0;
  for (NodeId to : accesses[v])
    if (to != graph.maker[v] && low[to] >= high[from] && load < enough) {
      load += gap(v, from, to);
      from = to;
    }
  return std::min(load, enough);
}

Wide Derivation::extraOf(const Certificate::Prices &prices) {
  wrong = readPrices(prices);
  if (!wrong.empty())
    return 0;
  Wide load = 0;
  for (size_t r = 0; r < rows.size(); ++r)
    load += Wide(prefix[r + 1] - prefix[r]) * own[r];
  for (ValueId v = 0; v < ValueId(accesses.size()) && load < enough; ++v)
    load += storageLoad(v);
  Wide extra = std::max<Wide>(0, load - Wide(prefix.back()) * given.budget);
  return (extra + unit - 1) / unit * unit;
}

Wide Derivation::leastCase(size_t depth) {
  if (next >= given.tree.size() || depth > maxDepth) {
    wrong = depth > maxDepth
                ? "the tree is too deep"
                : "the tree has fewer cases than its branches need";
    return 0;
  }
  const Certificate::Case &now = given.tree[next++];
  if (now.storage < 0)
    return extraOf(now.prices);
  auto [gap, fresh] = decided.insert({{now.storage, now.from}, Kept});
  if (!fresh) {
    wrong = "the tree asks twice about one gap";
    return 0;
  }
  Wide least = leastCase(depth + 1);
  gap->second = Dropped;
  if (wrong.empty())
    least = std::min(least, leastCase(depth + 1));
  decided.erase(gap);
  return least;
}

std::optional<double> Derivation::run(std::string &error) {
  error = scaleCosts();
  if (error.empty())
    error = placeRows();
  if (!error.empty())
    return std::nullopt;
  sortAccesses();
  error = readClaims();
  if (!error.empty())
    return std::nullopt;
  for (int32_t r = 0; r < int32_t(rows.size()); ++r)
    loadRow(r);
  std::sort(first.begin(), first.end());
  Wide extra = given.tree.empty() ? extraOf(given.prices) : leastCase(0);
  if (wrong.empty() && next < given.tree.size())
    wrong = "the tree has more cases than its branches need";
  error = wrong;
  if (!error.empty())
    return std::nullopt;
  Wide bound = base + extra;
  double result = double(bound);
  if (Wide(result) > bound)
    result = std::nextafter(result, 0.0);
  return std::ldexp(result, -given.scaleBits);
}

} // namespace

std::optional<double> ckopt::planner::checkCertificate(
    const Graph &graph, const Certificate &certificate, std::string &error) {
  error = validate(graph);
  if (error.empty() && certificate.budget < 0)
    error = "negative budget";
  if (!error.empty())
    return std::nullopt;
  return Derivation(graph, certificate).run(error);
}
