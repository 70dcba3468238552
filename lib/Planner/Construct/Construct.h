//===- Construct.h - first plans, fast --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interface of this folder: each strategy reports the sequences it constructs
// and ends with the context's deadline. Executor.h is public to other folders
// too.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_CONSTRUCT_CONSTRUCT_H
#define CKOPT_LIB_PLANNER_CONSTRUCT_CONSTRUCT_H

#include "Model/Strategy.h"

#include <limits>

namespace ckopt::planner {

/// From these numbers of nodes on constructions try fewer settings, and only
/// one or two: a run of 10,000 nodes takes about 0.05 s, of 100,000 a second.
inline constexpr int32_t largeGraph = 4000, hugeGraph = 40000;
/// A run that costs more than so many times the graph is not worth its end.
inline constexpr double mostReplays = 4;
/// A budget that nothing exceeds.
inline constexpr int64_t noBudget = std::numeric_limits<int64_t>::max() / 4;

/// Strategy "dtr". Objective: the cheapest steps within the budget. Method:
/// runs each of a few orders and evicts by cost, bytes and distance (offline
/// DTR), at a few weights. Gives up on an order that cannot be run within it.
void runEviction(StrategyContext &context);

/// Strategy "prices". Objective: as above. Method: keeps or recomputes by the
/// price of a byte at each position (the relaxation's dual prices, corrected by
/// the loads that follow). Gives up where the relaxation saves nothing.
void runPrices(StrategyContext &context);

/// Strategy "segments". Objective: as above. Method: checkpoints at narrow cuts
/// and between repeated blocks, in levels. Gives up on graphs without a turn.
void runSegments(StrategyContext &context);

/// Removes those replays from valid steps that the budget does not need, the
/// best saving for the price of the bytes first. Steps whose load exceeds the
/// budget (bytes, aligned) are returned with no more load than before. `price`
/// holds, by node, the price of a byte while the node first runs; empty: all
/// the same. First runs stay in place.
std::vector<NodeId> fillReplays(const Problem &problem,
                                const std::vector<NodeId> &steps,
                                int64_t budget,
                                const std::vector<double> &price,
                                Deadline &deadline);

/// Reports steps and, if they are within the budget, the result of
/// fillReplays() too. Returns whether they are.
bool reportFilled(StrategyContext &context, std::vector<NodeId> steps,
                  const std::vector<double> &price);

/// Returns, by node, the price of a byte at its position in the program order,
/// from the relaxation for the context's budget.
std::vector<double> pricesByNode(const StrategyContext &context);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_CONSTRUCT_CONSTRUCT_H
