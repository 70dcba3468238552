//===- GapPrices.h - prices of the gap relaxation in integers ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner: what certificates are made of.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_BOUNDS_GAPPRICES_H
#define CKOPT_LIB_PLANNER_BOUNDS_GAPPRICES_H

#include "Bounds/GapProblem.h"
#include "ckopt/Planner/Certificate.h"

namespace ckopt::planner {

/// The scale at which costs and prices that add up to `largest` at most stay
/// below 2^61.
int32_t certificateScale(double largest);

/// By row, at the certificate's scale, which bounds their sum.
Certificate::Prices integerPrices(const std::vector<double> &prices,
                                  const Certificate &certificate);

/// All claims of the relaxation that can hold in some gap.
std::vector<std::pair<ValueId, ValueId>>
certificateClaims(const GapProblem &gaps);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_BOUNDS_GAPPRICES_H
