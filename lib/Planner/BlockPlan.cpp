//===- BlockPlan.cpp - repeated blocks solved once ------------------------===//
//
// Strategy `blocks`, for deep networks: the training step becomes a chain of
// blocks (BlockChain), each kind of block is solved once into a few options
// (BlockOptions), dynamic programming chooses among them under the budget
// (BlockCombine), and the executor turns the choice into steps, which memory
// that is left fills (ReplayFill). What blocks do not tell, such as gradients
// that stay to the end, shows in the load of the steps, and the chain is
// combined again for a budget that much smaller or larger. Time goes with
// kinds of blocks, not with blocks, but for what is linear.
//
//===----------------------------------------------------------------------===//
#include "BlockCombine.h"
#include "Executor.h"
#include "Order.h"
#include "ReplayFill.h"
#include "ckopt/Planner/Report.h"

#include <algorithm>
#include <limits>

using namespace ckopt::planner;

namespace {

/// Parts into which a network is cut that repeats nothing.
constexpr int32_t chainParts = 64;

/// Where the forward part ends: behind the position across which most bytes
/// wait.
int32_t findTurn(const Problem &problem, const std::vector<NodeId> &order) {
  std::vector<int32_t> made(problem.numValues, -1), last(problem.numValues, -1);
  for (int32_t p = 0; p < problem.numNodes; ++p) {
    for (ValueId v : problem.outputs[order[p]])
      if (problem.root[v] == v)
        made[v] = last[v] = p;
    for (ValueId v : problem.reads[order[p]])
      last[problem.root[v]] = p;
  }
  std::vector<int64_t> across(problem.numNodes + 1, 0);
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (made[v] >= 0) {
      across[made[v]] += problem.bytes[v];
      across[problem.endLive[v] ? problem.numNodes : last[v]] -=
          problem.bytes[v];
    }
  int32_t turn = 0;
  int64_t most = across[0];
  for (int32_t p = 1; p < problem.numNodes; ++p) {
    across[p] += across[p - 1];
    if (across[p] > most) {
      most = across[p];
      turn = p;
    }
  }
  return turn;
}

class BlockPlanner {
public:
  BlockPlanner(StrategyContext &context, const std::vector<NodeId> &order)
      : context(context), problem(context.problem), order(order) {}
  void run(int32_t parts);
  bool found = false; ///< a plan within the budget

private:
  void attempt(const BlockChain &chain);
  ExecutorOptions decide(const BlockChain &chain, const ChainPlan &plan) const;
  void keep(ExecutorOptions &options, const BlockChain &chain, int32_t block,
            ValueId storage, int32_t from) const;

  StrategyContext &context;
  const Problem &problem;
  const std::vector<NodeId> &order;
  std::vector<double> price;
  std::vector<std::vector<BlockOption>> kinds;
};

void BlockPlanner::keep(ExecutorOptions &options, const BlockChain &chain,
                        int32_t block, ValueId storage, int32_t from) const {
  options.keepFrom[storage] = std::min(options.keepFrom[storage], from);
  options.anchor[storage] =
      std::max(options.anchor[storage],
               std::min(chain.blocks[block].stop, problem.numNodes - 1));
}

ExecutorOptions BlockPlanner::decide(const BlockChain &chain,
                                     const ChainPlan &plan) const {
  ExecutorOptions options;
  options.deadline = &context.deadline;
  options.turn = chain.turn;
  options.costLimit = 6 * problem.baseCost;
  options.keepFrom.assign(problem.numValues, 0);
  options.anchor.assign(problem.numValues, -1);
  for (ValueId v = 0; v < problem.numValues; ++v) {
    const StorageSpan &span = chain.spans[v];
    if (span.made < 0 || span.made > chain.turn)
      continue;
    int32_t start = chain.blocks[chain.blockAt(span.made)].start;
    options.keepFrom[v] =
        span.firstAfter >= 0 ? std::min(start, span.firstAfter) : start;
  }
  for (int32_t b = 0; b < int32_t(chain.blocks.size()); ++b) {
    const ChainBlock &block = chain.blocks[b];
    ChainPlan::Choice choice = plan.choices[b];
    const BlockKind &kind = chain.kinds[block.kind];
    for (ValueId v : kinds[block.kind][choice.option].keep)
      keep(options, chain, b, block.values[v], choice.from);
    for (size_t v = 0; v < block.values.size(); ++v)
      if (kind.leaves[v] || kind.stays[v])
        keep(options, chain, b, block.values[v],
             kind.stays[v] ? 0 : choice.handedFrom);
  }
  for (const ChainPlan::Again &again : plan.again) {
    int32_t end = chain.blocks[again.end - 1].end;
    for (int32_t p = chain.blocks[again.first].first; p < end; ++p)
      for (ValueId v : problem.outputs[order[p]])
        if (problem.root[v] == v &&
            (chain.spans[v].lastBefore >= end ||
             (chain.spans[v].firstAfter >= 0 &&
              chain.blockAt(chain.spans[v].firstAfter) >= again.end)))
          keep(options, chain, chain.blockAt(p), v, again.from);
  }
  return options;
}

void BlockPlanner::attempt(const BlockChain &chain) {
  kinds.clear();
  int64_t subsets = std::clamp<int64_t>(
      (int64_t(1) << 19) / int64_t(chain.kinds.size()), 64, 1 << 15);
  for (const BlockKind &kind : chain.kinds) {
    if (context.deadline.passed())
      return;
    kinds.push_back(blockOptions(kind, subsets, context.deadline));
  }
  int64_t base = problem.persistentBytes;
  int64_t budget = context.budget;
  for (int round = 0; round < 6 && !context.deadline.passed(); ++round) {
    auto plan = combineBlocks(chain, kinds, base, budget, context.deadline);
    if (!plan)
      return;
    ExecutorOptions options = decide(chain, *plan);
    options.budget = std::numeric_limits<int64_t>::max() / 4;
    auto steps = execute(problem, order, options);
    if (!steps)
      return;
    int64_t peak = simulate(problem, *steps, true).peak;
    // The first plan should not wait for prices.
    if (price.empty()) {
      context.report(*steps);
      price = pricesByNode(context);
    }
    bool fits = reportFilled(context, std::move(*steps), price);
    if (!fits) {
      options.budget = context.budget;
      if (auto evicted = execute(problem, order, options))
        reportFilled(context, std::move(*evicted), price);
    }
    found |= fits;
    int64_t off = context.budget - peak;
    if (fits && off < context.budget / 500)
      return;
    // A little more than is missing, since loads move in steps.
    budget += fits ? off / 2 : off + off / 2 - context.budget / 500;
  }
}

void BlockPlanner::run(int32_t parts) {
  int32_t turn = findTurn(problem, order);
  if (turn < 2)
    return;
  std::vector<int32_t> cuts = chainCuts(problem, order, turn, parts);
  if (cuts.empty())
    return;
  attempt(BlockChain(problem, order, turn, cuts));
}

} // namespace

void ckopt::planner::runBlocks(StrategyContext &context) {
  if (context.problem.numNodes < 4)
    return;
  size_t orders = std::min<size_t>(context.orders.size(), 3);
  for (size_t k = 0; k < orders; ++k) {
    BlockPlanner planner(context, context.orders[k]);
    planner.run(chainParts);
    if (planner.found && context.problem.numNodes > 40000)
      return;
  }
}

BlockCounts ckopt::planner::countBlocks(const Graph &graph) {
  BlockCounts counts;
  Problem problem(graph);
  if (problem.numNodes < 4)
    return counts;
  std::vector<NodeId> order = programOrder(problem);
  int32_t turn = findTurn(problem, order);
  BlockChain chain(problem, order, turn,
                   chainCuts(problem, order, turn, chainParts));
  counts.blocks = int32_t(chain.blocks.size());
  for (const BlockKind &kind : chain.kinds)
    if (kind.members > 1) {
      ++counts.kinds;
      counts.copies += kind.members;
    }
  return counts;
}
