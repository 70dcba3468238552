//===- Executor.cpp - runs an order, recomputing what is gone -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: turn an order of first runs into a sequence that stays within a
// budget. Method: dynamic tensor rematerialization (Kirisame et al., ICLR 2021)
// run offline: since the future is known, the staleness of DTR's score becomes
// the distance to the next use, as in Belady's rule; a value that is missing
// when a step needs it is made again from the nearest values that are there,
// and what a replay makes on its way stays for its own next use, so that
// neighbouring replays are shared. Values can also be let go of by plan
// (`drop`) and be kept as starting points of replays (`hold`), which is how
// segment plans are built. Guarantee: the steps are valid. Gives up: on a value
// that cannot be made again, at a limit on cost, with the deadline. Complexity:
// O(steps * residents) at worst, when every step evicts.
//
//===----------------------------------------------------------------------===//
#include "Construct/Executor.h"

#include <algorithm>
#include <cmath>

using namespace ckopt::planner;

namespace {

constexpr int32_t never = 0x7fffffff;

class Executor {
public:
  Executor(const Problem &problem, const std::vector<NodeId> &order,
           const ExecutorOptions &options);
  std::optional<std::vector<NodeId>> run();
  /// The value that the last run failed to make again, or -1.
  ValueId blockedValue = -1;
  /// By storage: whether it must never be evicted.
  std::vector<char> keep;
  ExecutorReport seen;
  bool reporting = false; ///< `seen` is wanted

private:
  void findUntil();
  void reset();
  int32_t nextUse(ValueId storage) const;
  bool collect(NodeId reader);
  bool materialize(NodeId reader);
  bool mayRun(NodeId node) const;
  int32_t nextReplayUse(ValueId storage) const;
  double priceUntil(ValueId storage, int32_t until) const;
  bool worthKeeping(ValueId storage, int32_t until);
  void expire();
  void expireAt(ValueId storage, int32_t position);
  void emit(NodeId node, bool first);
  void makeRoom(int64_t bytes);
  void rank();
  bool evictable(ValueId storage) const;
  double score(ValueId storage);
  double chainCost(ValueId storage);
  void setResident(ValueId storage);
  void release(ValueId storage);
  void releaseIfDone(ValueId storage);
  void dropIfPlanned(ValueId storage);
  void pinReads(NodeId node, int32_t by);
  int64_t takenOver(NodeId node) const;

  const Problem &problem;
  const std::vector<NodeId> &order;
  const ExecutorOptions &options;
  Csr uses; ///< storage -> positions in the order
  /// By value: the last position at which it can certainly be made again, from
  /// whatever is left.
  std::vector<int32_t> until;
  std::vector<int32_t> place;

  int32_t now = 0;
  std::vector<NodeId> steps;
  std::vector<char> valid, resident, ran;
  std::vector<int32_t> pins, pointer, slot;
  std::vector<ValueId> residents; ///< storages in any order
  int64_t load = 0;
  double spent = 0;
  /// Set if there are too many steps, or they cost too much.
  bool hopeless = false;
  int64_t highest = 0; ///< load since the last step of the order
  int64_t work = 0;
  /// Storages that may be evicted, the best first, and the first one not yet
  /// considered.
  std::vector<std::pair<double, ValueId>> ranking;
  size_t nextRanked = 0, rankedAt = 0;
  /// Storages to reconsider when the order comes to a position: a list for each
  /// position, as (storage, next entry).
  std::vector<int32_t> expiring;
  std::vector<std::pair<ValueId, int32_t>> expiries;
  std::vector<int32_t> mark, nodeMark;
  std::vector<NodeId> replay;
  int32_t stamp = 0;
};

Executor::Executor(const Problem &problem, const std::vector<NodeId> &order,
                   const ExecutorOptions &options)
    : keep(problem.numValues, 0), problem(problem), order(order),
      options(options), place(problem.numNodes), mark(problem.numValues, 0),
      nodeMark(problem.numNodes, 0) {
  std::vector<std::vector<int32_t>> lists(problem.numValues);
  for (int32_t p = 0; p < problem.numNodes; ++p) {
    place[order[p]] = p;
    for (ValueId v : problem.reads[order[p]]) {
      std::vector<int32_t> &list = lists[problem.root[v]];
      if (list.empty() || list.back() != p)
        list.push_back(p);
    }
  }
  uses = Csr::from(lists);
  findUntil();
}

/// Computes how long values can be made again: until a node overwrites an
/// operand of their maker, and as long as all these operands can be made.
/// Results of nodes that run once are there until their last use.
void Executor::findUntil() {
  until.assign(problem.numValues, never);
  for (NodeId node : order) {
    int32_t limit = never;
    for (NodeId blocker : problem.blockers[node])
      limit = std::min(limit, place[blocker]);
    for (ValueId v : problem.reads[node])
      limit = std::min(limit, until[v]);
    for (ValueId v : problem.outputs[node]) {
      auto list = uses[problem.root[v]];
      int32_t last = list.empty() ? place[node] : list.back();
      if (problem.endLive[problem.root[v]])
        last = never;
      until[v] = problem.recompute[node] ? limit : last;
    }
  }
}

void Executor::reset() {
  now = 0;
  steps.clear();
  valid.assign(problem.numValues, 0);
  resident.assign(problem.numValues, 0);
  ran.assign(problem.numNodes, 0);
  pins.assign(problem.numValues, 0);
  pointer.assign(problem.numValues, 0);
  slot.assign(problem.numValues, -1);
  residents.clear();
  load = 0;
  spent = 0;
  hopeless = false;
  highest = 0;
  seen.load.assign(problem.numNodes, 0);
  if (reporting)
    seen.replayUses.assign(problem.numValues, {});
  expiring.assign(problem.numNodes + 1, -1);
  expiries.clear();
  ranking.clear();
  nextRanked = rankedAt = 0;
  work = 0;
  for (ValueId v = 0; v < problem.numValues; ++v) {
    if (!problem.initial[v])
      continue;
    valid[v] = 1;
    if (problem.endLive[v] || !uses[v].empty())
      setResident(v);
  }
}

/// Returns the next position at which the order itself reads the storage; the
/// read of the current step counts until the step has run.
int32_t Executor::nextUse(ValueId storage) const {
  auto list = uses[storage];
  int32_t i = pointer[storage];
  return i < int32_t(list.size()) ? list[i] : never;
}

void Executor::setResident(ValueId storage) {
  if (resident[storage])
    return;
  resident[storage] = 1;
  slot[storage] = int32_t(residents.size());
  residents.push_back(storage);
  load += problem.bytes[storage];
}

void Executor::release(ValueId storage) {
  if (!resident[storage])
    return;
  resident[storage] = 0;
  residents[slot[storage]] = residents.back();
  slot[residents.back()] = slot[storage];
  residents.pop_back();
  load -= problem.bytes[storage];
  if (problem.initial[storage])
    return; // still there for replays; the simulator computes its true lifetime
  problem.forget(storage, valid);
}

void Executor::releaseIfDone(ValueId storage) {
  if (pins[storage] || problem.endLive[storage] || nextUse(storage) != never)
    return;
  if (!options.keepFrom.empty() && now >= options.keepFrom[storage] &&
      now < options.anchor[storage]) {
    expireAt(storage, options.anchor[storage]);
    return;
  }
  int32_t again = nextReplayUse(storage);
  if (again != never && worthKeeping(storage, again)) {
    expireAt(storage, again);
    return;
  }
  release(storage);
}

int32_t Executor::nextReplayUse(ValueId storage) const {
  if (options.replayUses.empty())
    return never;
  const std::vector<int32_t> &list = options.replayUses[storage];
  auto it = std::upper_bound(list.begin(), list.end(), now);
  return it == list.end() ? never : *it;
}

double Executor::priceUntil(ValueId storage, int32_t until) const {
  return double(problem.bytes[storage]) *
         (options.priceSums[until] -
          options.priceSums[std::min(now + 1, until)]);
}

/// Compares the price of the bytes up to position `until` with the cost of
/// making the storage again there. Inputs that the order itself needs later are
/// resident or made again anyway; others count with the cheaper of keeping and
/// making them.
bool Executor::worthKeeping(ValueId storage, int32_t until) {
  if (options.priceSums.empty())
    return true;
  double price = priceUntil(storage, until), sum = 0;
  int budget = 24;
  ++stamp;
  std::vector<ValueId> stack{storage};
  mark[storage] = stamp;
  while (!stack.empty() && sum < price && budget-- > 0) {
    ValueId v = stack.back();
    stack.pop_back();
    NodeId node = problem.producer[v];
    if (node < 0)
      continue;
    sum += problem.cost[node];
    for (ValueId read : problem.reads[node]) {
      ValueId r = problem.root[read];
      if (problem.initial[r] || mark[r] == stamp || nextUse(r) != never)
        continue;
      mark[r] = stamp;
      double kept = valid[r] ? priceUntil(r, until) : 1e300;
      if (kept < problem.cost[problem.producer[r]])
        sum += kept;
      else
        stack.push_back(r);
    }
  }
  return sum >= price;
}

/// Evicts storages that were kept for replays that did not happen.
void Executor::expire() {
  for (int32_t i = expiring[now]; i >= 0; i = expiries[i].second) {
    ValueId r = expiries[i].first;
    if (resident[r] && nextUse(r) == never && nextReplayUse(r) == never)
      releaseIfDone(r);
  }
}

void Executor::expireAt(ValueId storage, int32_t position) {
  expiries.push_back({storage, expiring[position]});
  expiring[position] = int32_t(expiries.size()) - 1;
}

void Executor::dropIfPlanned(ValueId storage) {
  if (!options.priceSums.empty() && resident[storage]) {
    int32_t next = nextUse(storage);
    if (next != never && next > now + 1 && evictable(storage) &&
        !worthKeeping(storage, next))
      release(storage);
    return;
  }
  if (options.keepFrom.empty() || !resident[storage])
    return;
  int32_t next = nextUse(storage);
  if (next == never || next <= options.turn || next <= now + options.near ||
      now >= options.keepFrom[storage] || !evictable(storage))
    return;
  release(storage);
}

void Executor::pinReads(NodeId node, int32_t by) {
  for (ValueId v : problem.reads[node])
    pins[problem.root[v]] += by;
}

bool Executor::mayRun(NodeId node) const {
  if (ran[node] && !problem.recompute[node])
    return false;
  for (NodeId blocker : problem.blockers[node])
    if (ran[blocker])
      return false;
  return true;
}

/// Lists in `replay` the runs that make the missing operands of the node, in
/// the order of first runs, each once: an operand that several of them read is
/// made once, however deep they nest.
bool Executor::collect(NodeId reader) {
  replay.clear();
  ++stamp;
  auto addMissing = [&](NodeId node) {
    for (ValueId v : problem.reads[node]) {
      NodeId maker = problem.producer[v];
      if (valid[v] || (maker >= 0 && nodeMark[maker] == stamp))
        continue;
      if (maker < 0 || !ran[maker] || !mayRun(maker)) {
        blockedValue = v;
        return false;
      }
      nodeMark[maker] = stamp;
      replay.push_back(maker);
    }
    return true;
  };
  if (!addMissing(reader))
    return false;
  for (size_t i = 0; i < replay.size(); ++i)
    if (!addMissing(replay[i]))
      return false;
  std::sort(replay.begin(), replay.end(),
            [&](NodeId a, NodeId b) { return place[a] < place[b]; });
  return true;
}

/// Makes the missing operands of the node again, and pins all its operands.
bool Executor::materialize(NodeId reader) {
  pinReads(reader, 1);
  if (!collect(reader))
    return false;
  for (NodeId node : replay)
    pinReads(node, 1);
  for (NodeId node : replay) {
    emit(node, false);
    if (hopeless)
      return false;
    pinReads(node, -1);
    for (ValueId v : problem.reads[node]) {
      ValueId r = problem.root[v];
      if (reporting) {
        std::vector<int32_t> &list = seen.replayUses[r];
        if (list.empty() || list.back() != now)
          list.push_back(now);
      }
      releaseIfDone(r);
      dropIfPlanned(r);
    }
    for (ValueId v : problem.outputs[node])
      releaseIfDone(problem.root[v]);
  }
  return true;
}

int64_t Executor::takenOver(NodeId node) const {
  int64_t sum = 0;
  for (auto [i, o] : problem.pairs[node]) {
    bool ends =
        !problem.endLive[i] && pins[i] <= 1 && nextUse(i) <= now &&
        (pointer[i] + 1 >= int32_t(uses[i].size()) || nextUse(i) == never) &&
        resident[i];
    if (ends)
      return problem.bytes[o];
  }
  return sum;
}

void Executor::emit(NodeId node, bool first) {
  int64_t need = problem.workspace[node];
  for (ValueId v : problem.outputs[node])
    if (problem.base[v] < 0 && !resident[v])
      need += problem.bytes[v];
  makeRoom(need - (first ? takenOver(node) : 0));
  steps.push_back(node);
  spent += problem.cost[node];
  hopeless = hopeless || steps.size() > size_t(problem.numNodes) * 8 + 200 ||
             (options.costLimit > 0 && spent > options.costLimit);
  ran[node] = 1;
  for (ValueId v : problem.outputs[node]) {
    valid[v] = 1;
    if (problem.base[v] < 0)
      setResident(v);
  }
  highest = std::max(highest, load + problem.workspace[node] -
                                  (first ? takenOver(node) : 0));
}

bool Executor::evictable(ValueId storage) const {
  if (pins[storage] || keep[storage] || problem.initial[storage] ||
      problem.endLive[storage] || problem.bytes[storage] == 0)
    return false;
  NodeId node = problem.producer[storage];
  if (!problem.recompute[node])
    return false;
  int32_t next = nextUse(storage);
  if (next == never)
    return true;
  if (until[storage] < next)
    return false;
  std::vector<ValueId> stack{storage};
  while (!stack.empty()) {
    ValueId v = stack.back();
    stack.pop_back();
    for (ValueId view : problem.views[v]) {
      NodeId maker = problem.producer[view];
      if (!valid[view])
        continue;
      if (problem.endLive[view] || !problem.recompute[maker] ||
          until[view] < next)
        return false;
      stack.push_back(view);
    }
  }
  return true;
}

/// Returns the cost of making the storage again from resident ones, estimated
/// over a bounded number of nodes.
double Executor::chainCost(ValueId storage) {
  double sum = 0;
  int budget = 32;
  ++stamp;
  std::vector<ValueId> stack{storage};
  mark[storage] = stamp;
  while (!stack.empty() && budget-- > 0) {
    ValueId v = stack.back();
    stack.pop_back();
    NodeId node = problem.producer[v];
    if (node < 0)
      continue;
    sum += problem.cost[node];
    for (ValueId r : problem.reads[node])
      if (!valid[r] && mark[r] != stamp) {
        mark[r] = stamp;
        stack.push_back(r);
      }
  }
  return sum;
}

/// std::pow, faster for the exponents in use.
double power(double x, double exponent) {
  return exponent == 1     ? x
         : exponent == 0   ? 1
         : exponent == 0.5 ? std::sqrt(x)
                           : std::pow(x, exponent);
}

double Executor::score(ValueId storage) {
  int32_t next = nextUse(storage);
  double distance =
      next == never ? 4.0 * problem.numNodes : std::max(1, next - now);
  return power(chainCost(storage) + 1e-12, options.costPower) /
         (power(double(problem.bytes[storage]), options.bytesPower) *
          power(distance, options.distancePower));
}

void Executor::rank() {
  ranking.clear();
  rankedAt = steps.size();
  nextRanked = 0;
  for (ValueId r : residents)
    if (evictable(r))
      ranking.push_back({score(r), r});
  std::sort(ranking.begin(), ranking.end());
  // Most of the time goes into scores and the sort. Where a budget is so tight
  // that hardly anything may go, looking is nearly free.
  work += int64_t(4 * ranking.size() + residents.size() / 8);
}

/// Evicts by rank. Scores change slowly, so a ranking is used for a number of
/// steps in proportion to its length, which makes the cost of an eviction
/// constant.
void Executor::makeRoom(int64_t bytes) {
  if (load + bytes <= options.budget)
    return;
  bool fresh = steps.size() - rankedAt >= residents.size() / 64;
  if (fresh)
    rank();
  for (;;) {
    for (; nextRanked < ranking.size(); ++nextRanked) {
      if (load + bytes <= options.budget)
        return;
      ValueId r = ranking[nextRanked].second;
      if (resident[r] && evictable(r))
        release(r);
    }
    if (fresh || load + bytes <= options.budget)
      return;
    fresh = true;
    rank();
  }
}

std::optional<std::vector<NodeId>> Executor::run() {
  reset();
  for (now = 0; now < problem.numNodes; ++now) {
    NodeId node = order[now];
    if (!materialize(node) || !mayRun(node))
      return std::nullopt;
    emit(node, true);
    if (hopeless)
      return std::nullopt;
    for (ValueId v : problem.reads[node]) {
      ValueId r = problem.root[v];
      --pins[r];
      if (nextUse(r) == now)
        ++pointer[r];
    }
    work += 4 + int64_t(problem.reads[node].size() + replay.size() * 4);
    if (options.deadline && work > 20000) {
      if (!options.deadline->spend(work))
        return std::nullopt;
      work = 0;
    }
    seen.load[now] = highest;
    highest = 0;
    for (ValueId v : problem.reads[node]) {
      releaseIfDone(problem.root[v]);
      dropIfPlanned(problem.root[v]);
    }
    for (ValueId v : problem.outputs[node]) {
      releaseIfDone(problem.root[v]);
      dropIfPlanned(problem.root[v]);
    }
    expire();
  }
  return steps;
}

} // namespace

std::optional<std::vector<NodeId>> ckopt::planner::execute(
    const Problem &problem, const std::vector<NodeId> &order,
    const ExecutorOptions &options, ExecutorReport *report) {
  Executor executor(problem, order, options);
  executor.reporting = report != nullptr;
  // A value that cannot be made again when it is needed must be kept: note it
  // and run again.
  for (int attempt = 0; attempt < 64; ++attempt) {
    std::optional<std::vector<NodeId>> steps = executor.run();
    if (steps || executor.blockedValue < 0) {
      if (report)
        *report = std::move(executor.seen);
      return steps;
    }
    ValueId storage = problem.root[executor.blockedValue];
    if (executor.keep[storage])
      return std::nullopt;
    executor.keep[storage] = 1;
    executor.blockedValue = -1;
  }
  return std::nullopt;
}
