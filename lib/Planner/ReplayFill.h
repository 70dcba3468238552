//===- ReplayFill.h - takes replays out while memory allows -----*- C++ -*-===//
#ifndef CKOPT_LIB_PLANNER_REPLAYFILL_H
#define CKOPT_LIB_PLANNER_REPLAYFILL_H

#include "Strategy.h"

namespace ckopt::planner {

/// Takes out of valid steps those replays that the budget does not need, the
/// best saving for the price of the bytes first. Steps whose load passes the
/// budget (bytes, aligned) come back with no more load than they had.
/// `price`: by node, the price of a byte while the node first runs; empty: all
/// the same. First runs stay where they are.
std::vector<NodeId> fillReplays(const Problem &problem,
                                const std::vector<NodeId> &steps,
                                int64_t budget,
                                const std::vector<double> &price,
                                Deadline &deadline);

/// Reports steps, and where they are within the budget, what fillReplays()
/// makes of them too. True if they are.
bool reportFilled(StrategyContext &context, std::vector<NodeId> steps,
                  const std::vector<double> &price);

/// By node: the price of a byte at its place in the program order, as the
/// relaxation for the context's budget has it.
std::vector<double> pricesByNode(const StrategyContext &context);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_REPLAYFILL_H
