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

/// Steps that run the order and drop the given gaps (by index into
/// `gaps.gaps`), each storage made again as late as it can be, together with
/// what that needs. What replays make or read stays for its next use where the
/// load leaves room under the budget. Nothing if a value that is needed cannot
/// be made again. The steps may still pass the budget while they replay.
std::optional<std::vector<NodeId>> expandGaps(const GapProblem &gaps,
                                              const std::vector<char> &dropped,
                                              int64_t budget);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACTORDER_GAPEXPAND_H
