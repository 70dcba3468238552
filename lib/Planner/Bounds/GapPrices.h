//===- GapPrices.h - prices of the gap relaxation in integers ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Integer prices and claims for certificates.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_BOUNDS_GAPPRICES_H
#define CKOPT_LIB_PLANNER_BOUNDS_GAPPRICES_H

#include "Bounds/GapProblem.h"
#include "ckopt/Planner/Certificate.h"

namespace ckopt::planner {

/// Returns the scale at which costs and prices that add up to at most `largest`
/// stay below 2^61.
int32_t certificateScale(double largest);

/// Returns prices by row at the certificate's scale, which bounds their sum.
Certificate::Prices integerPrices(const std::vector<double> &prices,
                                  const Certificate &certificate);

/// Returns all claims of the relaxation that can hold in some gap.
std::vector<std::pair<ValueId, ValueId>>
certificateClaims(const GapProblem &gaps);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_BOUNDS_GAPPRICES_H
