//===- PackSweep.h - placement of very many boxes ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_PACKING_PACKSWEEP_H
#define CKOPT_LIB_PLANNER_PACKING_PACKSWEEP_H

#include "Packing/PackModel.h"

namespace ckopt::planner {

/// Places the units by best fit, in order of time or in reverse, and returns
/// their offsets.
std::vector<int64_t> sweepUnits(const PackModel &model, bool backwards);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_PACKING_PACKSWEEP_H
