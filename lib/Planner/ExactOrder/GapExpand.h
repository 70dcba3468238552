//===- GapExpand.h - steps from the gaps that a plan drops ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACTORDER_GAPEXPAND_H
#define CKOPT_LIB_PLANNER_EXACTORDER_GAPEXPAND_H

#include "Bounds/Gaps.h"

#include <optional>

namespace ckopt::planner {

/// Returns steps that run the order and drop the given gaps (by index into
/// `gaps.gaps`). Each dropped storage is made again as late as possible,
/// together with the storages that this needs. Storages that replays make or
/// read stay for their next use if the load leaves room under the budget.
/// Returns nothing if a needed value cannot be made again. The steps may still
/// exceed the budget while they replay.
std::optional<std::vector<NodeId>> expandGaps(const GapProblem &gaps,
                                              const std::vector<char> &dropped,
                                              int64_t budget);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACTORDER_GAPEXPAND_H
