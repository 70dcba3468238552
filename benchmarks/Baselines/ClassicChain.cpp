//===- ClassicChain.cpp - sqrt, revolve and rotor -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: the cheapest plan of a chain of stages within the budget. Methods:
//   sqrt: segments of about sqrt(n) stages, whose starts are kept, each run
//     again as a whole (Chen et al., Training Deep Nets with Sublinear Memory
//     Cost, 2016). The number of segments is then varied until the budget is
//     met, as the paper varies its segments' bytes.
//   revolve: a fixed number of checkpoints, placed so that the fewest stages
//     run again (Griewank and Walther, Algorithm 799: Revolve, 2000); equal
//     stages are assumed. The largest number that the budget allows.
//   rotor: dynamic programming over parts of the chain and memory in 128 units,
//     stages of any cost and size, keeping either what crosses into a stage or
//     all that it makes (Beaumont et al., Optimal Checkpointing for
//     Heterogeneous Chains, 2019). Optimal for persistent schedules on true
//     chains up to the units' rounding.
// Guarantee: valid plans; the budget is met only where a report says so. Gives
// up: where the graph is no chain of stages, or after the last setting. The
// tables take O(stages^2 * slots) and O(stages^3 * units).
//
//===----------------------------------------------------------------------===//
#include "Baselines/Classic.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace ckopt::planner;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int32_t mostStages = 96;
constexpr int32_t memoryUnits = 128;

struct SqrtPolicy : StagePolicy {
  explicit SqrtPolicy(int32_t length) : length(length) { firstLevel = 1; }
  Decision decide(int32_t from, int32_t to, int32_t level) const override {
    if (level == 1 && to - from + 1 > length)
      return {from + length, 1, 0};
    return {from, 0, 0};
  }
  int32_t length;
};

struct RevolvePolicy : StagePolicy {
  RevolvePolicy(const RevolveTable &table, int32_t slots) : table(table) {
    firstLevel = slots;
  }
  Decision decide(int32_t from, int32_t to, int32_t slots) const override {
    int32_t length = to - from + 1;
    if (length == 1)
      return {from, slots, 0};
    if (slots == 0) // once up to the last stage, then again for each other one
      return {to, 0, 0};
    return {from + table.split(length, slots), slots - 1, slots};
  }
  const RevolveTable &table;
};

struct RotorPolicy : StagePolicy {
  RotorPolicy(const RotorTable &table, int32_t memory) : table(table) {
    firstLevel = memory;
  }
  Decision decide(int32_t from, int32_t to, int32_t memory) const override {
    int32_t split = table.split(from, to, memory);
    if (split <= from)
      return {from, memory - table.wanted(from), 0};
    return {split, memory - table.crossing(split), memory};
  }
  const RotorTable &table;
};

} // namespace

RevolveTable::RevolveTable(int32_t length, int32_t slots) : most(slots) {
  least.assign(size_t(slots) + 1, std::vector<int64_t>(size_t(length) + 1, 0));
  best.assign(size_t(slots) + 1, std::vector<int32_t>(size_t(length) + 1, 0));
  for (int32_t c = 0; c <= slots; ++c)
    for (int32_t l = 2; l <= length; ++l) {
      if (c == 0) {
        least[c][l] = int64_t(l) * (l - 1) / 2;
        best[c][l] = l - 1;
        continue;
      }
      least[c][l] = std::numeric_limits<int64_t>::max();
      for (int32_t m = 1; m < l; ++m) {
        int64_t runs = m + least[c - 1][l - m] + least[c][m];
        if (runs < least[c][l]) {
          least[c][l] = runs;
          best[c][l] = m;
        }
      }
    }
}

int64_t RevolveTable::advances(int32_t length, int32_t slots) const {
  return least[std::min(slots, most)][length];
}

int32_t RevolveTable::split(int32_t length, int32_t slots) const {
  return best[std::min(slots, most)][length];
}

RotorTable::RotorTable(std::vector<double> cost, std::vector<int32_t> crossing,
                       std::vector<int32_t> wanted, int32_t memory)
    : stages(int32_t(cost.size())), units(memory), work(std::move(cost)),
      enters(std::move(crossing)), keeps(std::move(wanted)) {
  table.assign(size_t(stages) * stages * (units + 1), infinity);
  choice.assign(table.size(), -1);
  for (int32_t length = 1; length <= stages; ++length)
    for (int32_t from = 0; from + length <= stages; ++from) {
      int32_t to = from + length - 1;
      for (int32_t m = 0; m <= units; ++m) {
        double &least = table[at(from, to, m)];
        int16_t &chosen = choice[at(from, to, m)];
        if (keeps[from] <= m) {
          least = work[from];
          if (length > 1)
            least += table[at(from + 1, to, m - keeps[from])];
          chosen = int16_t(from);
        }
        double run = 0;
        for (int32_t s = from + 1; s <= to; ++s) {
          run += work[s - 1];
          if (enters[s] > m || run >= least)
            continue;
          double whole =
              run + table[at(s, to, m - enters[s])] + table[at(from, s - 1, m)];
          if (whole < least) {
            least = whole;
            chosen = int16_t(s);
          }
        }
      }
    }
}

double RotorTable::cost(int32_t from, int32_t to, int32_t memory) const {
  if (memory < 0)
    return infinity;
  return table[at(from, to, std::min(memory, units))];
}

int32_t RotorTable::split(int32_t from, int32_t to, int32_t memory) const {
  if (memory < 0)
    return from;
  int32_t split = choice[at(from, to, std::min(memory, units))];
  return split < 0 ? from : split;
}

void ckopt::planner::runSqrt(StrategyContext &context) {
  for (size_t k = 0; k < ordersOf(context); ++k) {
    ForwardPart forward(context.problem, context.orders[k], 1000);
    int32_t stages = forward.stages();
    if (stages < 1)
      return;
    int32_t first = std::max(1, int32_t(std::lround(std::sqrt(stages))));
    bool met = context.report(runStages(forward, SqrtPolicy(first)));
    // Longer segments keep fewer checkpoints and hold more while they run.
    for (double factor = 1.4; !met && factor < stages; factor *= 1.4)
      for (double length : {first * factor, first / factor})
        if (!met && length >= 1 && length < stages) {
          if (!context.deadline.spend(context.problem.numNodes))
            return;
          met = context.report(runStages(forward, SqrtPolicy(int(length))));
        }
  }
}

void ckopt::planner::runRevolve(StrategyContext &context) {
  for (size_t k = 0; k < ordersOf(context); ++k) {
    ForwardPart forward(context.problem, context.orders[k], 2 * mostStages);
    int32_t stages = forward.stages();
    if (stages < 1)
      return;
    RevolveTable table(stages, stages);
    // The number of runs rises as slots fall; so, mostly, do the bytes that are
    // freed.
    int32_t last = -1;
    for (double slots = stages - 1; slots >= 0.5; slots *= 0.85) {
      if (int32_t(slots) == last)
        continue;
      last = int32_t(slots);
      if (!context.deadline.spend(context.problem.numNodes))
        return;
      if (context.report(runStages(forward, RevolvePolicy(table, last))))
        break;
    }
  }
}

void ckopt::planner::runRotor(StrategyContext &context) {
  for (size_t k = 0; k < ordersOf(context); ++k) {
    ForwardPart forward(context.problem, context.orders[k], mostStages);
    int32_t stages = forward.stages();
    if (stages < 1)
      return;
    std::vector<int64_t> enters = forward.crossingBytes();
    std::vector<int64_t> keeps = forward.wantedBytes();
    int64_t whole = 1;
    for (int64_t bytes : keeps)
      whole += bytes;
    double unit = double(whole) / memoryUnits;
    auto rounded = [&](const std::vector<int64_t> &bytes) {
      std::vector<int32_t> result;
      for (int64_t b : bytes)
        result.push_back(int32_t(std::ceil(double(b) / unit)));
      return result;
    };
    // Rounding up may need more than the sum, so add some units.
    RotorTable table(forward.stageCost(), rounded(enters), rounded(keeps),
                     memoryUnits + stages);
    context.deadline.spend(int64_t(stages) * stages * stages * 8);
    int32_t high = memoryUnits + stages, low = 0;
    while (low < high && table.cost(0, stages - 1, low) == infinity)
      ++low;
    auto meets = [&](int32_t memory) {
      context.deadline.spend(context.problem.numNodes);
      return context.report(runStages(forward, RotorPolicy(table, memory)));
    };
    if (table.cost(0, stages - 1, high) == infinity || meets(high))
      continue;
    // More memory in the model mostly gives a cheaper schedule with a higher
    // load: bisect, then look at larger memories.
    int32_t fits = low;
    while (high - fits > 1 && !context.deadline.passed()) {
      int32_t middle = (fits + high) / 2;
      (meets(middle) ? fits : high) = middle;
    }
    if (fits == low)
      meets(low);
    double last = table.cost(0, stages - 1, fits);
    int32_t more = context.problem.numNodes > 2000 ? 0 : 16;
    for (int32_t m = high; more > 0 && m <= memoryUnits + stages; ++m) {
      double cost = table.cost(0, stages - 1, m);
      if (context.deadline.passed() || cost >= last)
        continue;
      last = cost;
      --more;
      meets(m);
    }
  }
}
