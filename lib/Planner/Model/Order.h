//===- Order.h - orders of first runs ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_MODEL_ORDER_H
#define CKOPT_LIB_PLANNER_MODEL_ORDER_H

#include "Model/Problem.h"

namespace ckopt::planner {

/// Returns 0, 1, 2, ...
std::vector<NodeId> programOrder(const Problem &problem);

/// Returns valid orders worth trying, the smallest load first; the program
/// order is always among them. No order is listed twice.
std::vector<std::vector<NodeId>> candidateOrders(const Problem &problem);

/// Returns whether each node is there once, after all nodes that it must
/// follow.
bool isValidOrder(const Problem &problem, const std::vector<NodeId> &order);

/// Returns whether first runs follow the ids.
bool isProgramOrder(const Problem &problem, const std::vector<NodeId> &steps);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_MODEL_ORDER_H
