//===- LocalSearch.cpp - simulated annealing on the sequence --------------===//
//
// Improves what the constructive strategies found. Method: simulated annealing
// on the sequence of steps as in FastSA (Imanishi et al., NeurIPS 2023): put a
// run in, take one out, move one; here seeded with a good plan instead of the
// program order, with moves that take whole replays (a run together with the
// runs that it alone needs) and with a penalty for bytes over the budget
// instead of a product of peak and cost. Guarantee: reports valid sequences
// only. The number of moves depends on the graph's size and the effort alone,
// so the result is reproducible; a move costs O(log n) for each operand.
//
//===----------------------------------------------------------------------===//
#include "Sequence.h"
#include "Strategy.h"

#include <algorithm>
#include <cmath>

using namespace ckopt::planner;

namespace {

/// SplitMix64: small, fast, the same everywhere.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  int32_t below(int32_t n) {
    return int32_t((__uint128_t(next()) * uint64_t(n)) >> 64);
  }
  double unit() { return double(next() >> 11) * 0x1p-53; }

private:
  uint64_t state;
};

class Annealer {
public:
  Annealer(StrategyContext &context, const std::vector<NodeId> &start,
           uint64_t seed)
      : context(context), problem(context.problem), sequence(problem, start),
        random(seed), budget(context.budget), multiIndex(problem.numNodes, -1),
        best(start) {
    for (NodeId n = 0; n < problem.numNodes; ++n)
      updateMulti(n);
    penalty = 4 * problem.baseCost / std::max<double>(1, double(budget));
    bestEnergy = energy();
  }
  void run(int64_t moves, double hot, double cold);
  std::vector<NodeId> result() const { return best; }

private:
  struct Edit {
    bool inserted;
    NodeId node;
    int32_t slot;
  };
  double energy() const {
    int64_t over = sequence.peak() - budget;
    return sequence.cost() + (over > 0 ? penalty * double(over) : 0);
  }
  void updateMulti(NodeId n);
  void insert(NodeId n, int32_t slot);
  void remove(int32_t slot);
  void undo();
  int32_t randomStep();
  bool proposeRemove();
  bool proposeInsert();
  bool proposeShift();
  bool proposeMove();
  bool insertBefore(ValueId value, int32_t slot, int depth);
  void removeDead(NodeId of, int32_t slot, int depth);
  bool isDeadRun(int32_t slot) const;
  void keepBest();

  StrategyContext &context;
  const Problem &problem;
  Sequence sequence;
  Random random;
  int64_t budget;
  double penalty;
  std::vector<Edit> log;
  std::vector<NodeId> multi; ///< nodes that run more than once
  std::vector<int32_t> multiIndex;
  bool crowded = false; ///< no empty slot where one was wanted
  std::vector<NodeId> best;
  double bestEnergy;
};

void Annealer::updateMulti(NodeId n) {
  bool in = sequence.runs(n).size() > 1;
  int32_t &index = multiIndex[n];
  if (in && index < 0) {
    index = int32_t(multi.size());
    multi.push_back(n);
  } else if (!in && index >= 0) {
    multi[index] = multi.back();
    multiIndex[multi.back()] = index;
    multi.pop_back();
    index = -1;
  }
}

void Annealer::insert(NodeId n, int32_t slot) {
  sequence.insert(n, slot);
  log.push_back({true, n, slot});
  updateMulti(n);
}

void Annealer::remove(int32_t slot) {
  NodeId n = sequence.at(slot);
  sequence.remove(slot);
  log.push_back({false, n, slot});
  updateMulti(n);
}

void Annealer::undo() {
  while (!log.empty()) {
    Edit edit = log.back();
    log.pop_back();
    if (edit.inserted)
      sequence.remove(edit.slot);
    else
      sequence.insert(edit.node, edit.slot);
    updateMulti(edit.node);
  }
}

int32_t Annealer::randomStep() {
  int32_t slot = sequence.nextStep(random.below(sequence.numSlots()) - 1);
  return slot >= 0 ? slot : sequence.nextStep(-1);
}

/// True if nothing needs what the run in the slot makes.
bool Annealer::isDeadRun(int32_t slot) const {
  for (ValueId v : problem.outputs[sequence.at(slot)]) {
    int32_t copy = sequence.copyAt(v, slot + 1);
    if (sequence.lastOf(v, copy) > slot)
      return false;
  }
  return true;
}

/// After a run of `of` left `slot`: takes out the runs that only it needed.
void Annealer::removeDead(NodeId of, int32_t slot, int depth) {
  if (depth > 64)
    return;
  for (ValueId v : problem.reads[of]) {
    int32_t copy = sequence.copyAt(v, slot);
    if (copy < 0)
      continue;
    int32_t made = sequence.makes(v)[copy];
    if (made < 0 || sequence.runs(problem.producer[v]).size() < 2 ||
        !isDeadRun(made) || !sequence.mayRemove(made) ||
        (context.fixedOrder &&
         made == sequence.runs(problem.producer[v]).front()))
      continue;
    NodeId maker = sequence.at(made);
    remove(made);
    removeDead(maker, made, depth + 1);
  }
}

bool Annealer::proposeRemove() {
  if (multi.empty())
    return false;
  NodeId n = multi[random.below(int32_t(multi.size()))];
  const std::vector<int32_t> &runs = sequence.runs(n);
  int32_t slot = runs[random.below(int32_t(runs.size()))];
  if (!sequence.mayRemove(slot) || (context.fixedOrder && slot == runs.front()))
    return false;
  remove(slot);
  removeDead(n, slot, 0);
  return true;
}

/// Puts a run that makes `value` just before the step in `slot`, and now and
/// then runs that make what this one would keep alive for long.
bool Annealer::insertBefore(ValueId value, int32_t slot, int depth) {
  NodeId n = problem.producer[value];
  if (n < 0 || !problem.recompute[n])
    return false;
  int32_t at = sequence.emptyBefore(slot);
  if (at < 0) {
    crowded = true;
    return false;
  }
  if (!sequence.mayInsert(n, at))
    return false;
  // What each input's copy was last needed for before.
  std::vector<ValueId> stretched;
  for (ValueId v : problem.reads[n]) {
    int32_t copy = sequence.copyAt(v, at);
    if (!problem.initial[problem.root[v]] &&
        sequence.lastOf(v, copy) < sequence.previousStep(at))
      stretched.push_back(v);
  }
  insert(n, at);
  for (ValueId v : stretched)
    if (depth < 24 && random.unit() < 0.6)
      insertBefore(v, at, depth + 1);
  return true;
}

bool Annealer::proposeInsert() {
  bool over = sequence.peak() > budget;
  int32_t target = over ? sequence.peakSlot() : -1;
  for (int attempt = 0; attempt < (over ? 24 : 6); ++attempt) {
    int32_t slot = randomStep();
    auto reads = problem.reads[sequence.at(slot)];
    if (reads.empty())
      continue;
    ValueId v = reads[random.below(int32_t(reads.size()))];
    NodeId maker = problem.producer[v];
    if (maker < 0 || !problem.recompute[maker])
      continue;
    int32_t made = sequence.makes(v)[sequence.copyAt(v, slot)];
    const std::vector<int32_t> &uses = sequence.uses(v);
    auto it = std::lower_bound(uses.begin(), uses.end(), slot);
    int32_t before = made;
    if (it != uses.begin())
      before = std::max(before, *(it - 1));
    if (over ? before >= target || slot <= target
             : sequence.nextStep(before) >= slot)
      continue;
    return insertBefore(v, slot, 0);
  }
  return false;
}

/// Moves a repeated run to another place.
bool Annealer::proposeShift() {
  if (multi.empty())
    return false;
  NodeId n = multi[random.below(int32_t(multi.size()))];
  const std::vector<int32_t> runs = sequence.runs(n);
  size_t k = 1 + random.below(int32_t(runs.size()) - 1);
  int32_t slot = runs[k];
  // From the run before to the first reader, or to the end.
  int32_t low = runs[k - 1], high = sequence.numSlots();
  int32_t firstUse = high;
  for (ValueId v : problem.outputs[n]) {
    auto it = std::upper_bound(sequence.uses(v).begin(), sequence.uses(v).end(),
                               slot);
    if (it != sequence.uses(v).end())
      firstUse = std::min(firstUse, *it);
  }
  high = std::min(high, firstUse);
  int32_t target;
  switch (random.below(3)) {
  case 0:
    target = high;
    break;
  case 1: { // A few steps around.
    target = slot;
    int32_t hops = random.below(8) + 1;
    bool back = random.below(2);
    for (int32_t h = 0; h < hops && target > low; ++h) {
      int32_t next =
          back ? sequence.previousStep(target) : sequence.nextStep(target);
      if (next < 0 || next <= low || next > high)
        break;
      target = next;
    }
    break;
  }
  default:
    target = sequence.nextStep(low + random.below(std::max(1, high - low)));
  }
  if (target < 0 || target > high || target <= low || target == slot ||
      target >= sequence.numSlots())
    return false;
  int32_t at = sequence.emptyBefore(target);
  if (at < 0) {
    crowded = true;
    return false;
  }
  if (!sequence.mayInsert(n, at))
    return false;
  remove(slot);
  insert(n, at);
  return true;
}

/// Moves a run within what must come before and after it.
bool Annealer::proposeMove() {
  int32_t slot = randomStep();
  NodeId n = sequence.at(slot);
  bool first = sequence.runs(n).front() == slot;
  int32_t low = -1, high = sequence.numSlots();
  for (ValueId v : problem.reads[n]) {
    int32_t copy = sequence.copyAt(v, slot);
    low = std::max(low, sequence.makes(v)[copy]);
    if (copy + 1 < int32_t(sequence.makes(v).size()))
      high = std::min(high, sequence.makes(v)[copy + 1]);
  }
  for (ValueId v : problem.outputs[n]) {
    auto it = std::upper_bound(sequence.uses(v).begin(), sequence.uses(v).end(),
                               slot);
    if (it != sequence.uses(v).end())
      high = std::min(high, *it);
    int32_t copy = sequence.copyAt(v, slot);
    // Not before a reader of the copy before.
    if (copy >= 0)
      low = std::max({low, sequence.makes(v)[copy], sequence.lastOf(v, copy)});
  }
  if (first) {
    // What overwrites a value follows all runs that read it.
    bool writes = !problem.graph.nodes[n].mutates.empty();
    for (NodeId p : problem.preds[n])
      low = std::max(low, writes ? sequence.runs(p).back()
                                 : sequence.runs(p).front());
    for (NodeId s : problem.succs[n])
      high = std::min(high, sequence.runs(s).front());
  }
  for (NodeId b : problem.blockers[n])
    high = std::min(high, sequence.runs(b).front());
  if (high - low < 3)
    return false;
  int32_t target;
  switch (random.below(3)) {
  case 0:
    target = sequence.nextStep(low);
    break;
  case 1:
    target = high;
    break;
  default:
    target = sequence.nextStep(low + random.below(high - low));
  }
  if (target < 0 || target > high || target == slot)
    return false;
  int32_t at = sequence.emptyBefore(target);
  if (at <= low || at >= high) {
    crowded = crowded || at < 0;
    return false;
  }
  remove(slot);
  insert(n, at);
  return true;
}

void Annealer::keepBest() {
  double now = energy();
  if (now < bestEnergy * (1 - 1e-12)) {
    bestEnergy = now;
    best = sequence.steps();
  }
}

void Annealer::run(int64_t moves, double hot, double cold) {
  double temperature = hot;
  const int64_t block = 256;
  double cooling = std::pow(cold / hot, double(block) / double(moves));
  int64_t snapshot = std::max<int64_t>(problem.numNodes / 2, 64), since = 0;
  double current = energy();
  int64_t quiet = 0; // Moves since the last spread.
  for (int64_t m = 0; m < moves; ++m) {
    if (m % block == 0) {
      temperature *= cooling;
      if (context.deadline.passed())
        break;
    }
    log.clear();
    int kind = random.below(100);
    bool proposed = kind < 30                         ? proposeRemove()
                    : kind < 60                       ? proposeInsert()
                    : kind < 80 || context.fixedOrder ? proposeShift()
                                                      : proposeMove();
    ++quiet;
    if (!proposed && !log.empty())
      undo();
    if (proposed) {
      double next = energy();
      double rise = next - current;
      if (rise <= 0 || random.unit() < std::exp(-rise / temperature))
        current = next;
      else
        undo();
    }
    if (crowded && quiet > problem.numNodes / 4) {
      sequence.respread();
      quiet = 0;
    }
    crowded = false;
    if (++since >= snapshot && current < bestEnergy) {
      keepBest();
      since = 0;
    }
  }
  keepBest();
}

} // namespace

void ckopt::planner::runLocalSearch(StrategyContext &context) {
  const Problem &problem = context.problem;
  if (context.effort <= 0 || problem.numNodes == 0)
    return;
  // Starts: the cheapest within the budget, else those nearest to it.
  std::vector<const Candidate *> starts;
  for (const Candidate &candidate : context.known)
    starts.push_back(&candidate);
  auto rank = [&](const Candidate *c) {
    bool fits = c->peak <= context.budget;
    return std::make_pair(fits ? 0 : 1, fits ? c->cost : double(c->peak));
  };
  std::sort(starts.begin(), starts.end(),
            [&](const Candidate *a, const Candidate *b) {
              return rank(a) < rank(b);
            });
  if (starts.empty())
    return;
  bool fits = starts.front()->peak <= context.budget;
  if (fits && starts.front()->cost <= problem.baseCost)
    return;
  // The best one cool and hot (structured graphs want the one, irregular ones
  // the other), then one with a little less load or more cost: another basin.
  double costly =
      problem.baseCost + (starts.front()->cost - problem.baseCost) * 1.3;
  std::vector<NodeId> first = starts.front()->steps, second = first;
  for (size_t i = starts.size() - 1; i > 0; --i)
    if (!fits ||
        (starts[i]->peak <= context.budget && starts[i]->cost <= costly))
      second = starts[i]->steps;
  struct Chain {
    const std::vector<NodeId> &start;
    double hot; ///< in mean costs of a node
  };
  double size = problem.numNodes;
  int64_t moves = int64_t(
      context.effort * (std::min(250000.0, 80000 + 1500 * size) + 100 * size));
  double mean = problem.baseCost / problem.numNodes;
  uint64_t salt = 17;
  for (Chain chain : {Chain{first, 0.15}, Chain{first, 2}, Chain{second, 1}}) {
    Annealer annealer(context, chain.start, context.seed * 7919 + salt++);
    annealer.run(moves, mean * chain.hot, mean * 0.0005);
    context.report(annealer.result());
  }
}
