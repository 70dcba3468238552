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
#include "CertificateRows.h"

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

class Derivation : CertificateRows {
public:
  Derivation(const Graph &graph, const Certificate &given)
      : CertificateRows(graph), given(given) {}
  std::optional<double> run(std::string &error);

private:
  std::string scaleCosts();
  std::string readPrices();
  std::string readClaims();
  void sortAccesses();
  Wide loadOfRows() const;
  std::vector<std::pair<ValueId, ValueId>> usablePairs(NodeId node) const;
  Wide takenOver(NodeId node) const;
  Wide loadOfStorage(ValueId v) const;
  Wide gap(ValueId v, NodeId from, int32_t last) const;
  Wide dropping(ValueId v, Wide length, int32_t from, int depth) const;
  int64_t sum(int32_t first, int32_t last) const {
    return first <= last ? prefix[last + 1] - prefix[first] : 0;
  }
  int64_t at(NodeId n) const { return sum(low[n], low[n]); }

  const Certificate &given;
  std::vector<int64_t> cost, prefix;
  int64_t base = 0, divisor = 0;
  std::vector<std::vector<NodeId>> accesses; ///< storage -> nodes by high
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

/// The pairs (input, result) that may ever share bytes. A view of the input
/// that the node makes, or reads of the only copy there is, forbids it.
std::vector<std::pair<ValueId, ValueId>>
Derivation::usablePairs(NodeId n) const {
  const Node &node = graph.nodes[n];
  std::vector<std::pair<ValueId, ValueId>> pairs;
  auto has = [](const std::vector<ValueId> &list, ValueId v) {
    return std::find(list.begin(), list.end(), v) != list.end();
  };
  for (auto [i, o] : node.reuse) {
    bool usable = has(node.inputs, i) && has(node.outputs, o) && root[i] == i &&
                  root[o] == o && graph.values[i].kind != ValueKind::Input &&
                  graph.values[i].kind != ValueKind::Persistent &&
                  graph.values[o].bytes <= graph.values[i].bytes;
    if (!usable)
      continue;
    for (ValueId v : node.inputs)
      usable &= graph.values[v].aliasOf != i || !once[maker[i]];
    for (ValueId v : node.outputs)
      usable &= graph.values[v].aliasOf != i;
    if (usable)
      pairs.push_back({i, o});
  }
  return pairs;
}

/// Price of what a row's node may write over its inputs, where keeping a gap
/// open does not forbid it.
Wide Derivation::takenOver(NodeId node) const {
  auto pairs = usablePairs(node);
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
    auto pairs = usablePairs(from);
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
  if (error.empty())
    error = place(given);
  if (error.empty())
    error = readPrices();
  if (error.empty())
    error = readClaims();
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
