//===- Gaps.h - the gap relaxation, for proofs about an order ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interface of this folder beside the public headers: the problem, its linear
// program and the integer prices that certificates are made of.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_BOUNDS_GAPS_H
#define CKOPT_LIB_PLANNER_BOUNDS_GAPS_H

#include "Bounds/GapLp.h"
#include "Bounds/GapPrices.h"
#include "Bounds/GapProblem.h"

#endif // CKOPT_LIB_PLANNER_BOUNDS_GAPS_H
