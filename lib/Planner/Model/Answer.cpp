//===- Answer.cpp - names and words of answers ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Answer.h"

#include <algorithm>
#include <iterator>

using namespace ckopt::planner;

static const char *const statusNames[] = {
    "optimal", "order_optimal", "feasible", "infeasible", "unknown", "error"};

/// In the order of Restriction.
static const char *const restrictionNames[Scope::numRestrictions] = {
    "fixed_order", "order_only", "policy", "callee_plans", "counted_bytes"};

const char *ckopt::planner::statusName(Status status) {
  return statusNames[int(status)];
}

std::optional<Status> ckopt::planner::parseStatus(std::string_view name) {
  auto found = std::find(std::begin(statusNames), std::end(statusNames), name);
  // An error has no plan file.
  if (found >= statusNames + int(Status::Error))
    return std::nullopt;
  return Status(found - statusNames);
}

std::vector<std::string> Scope::names() const {
  std::vector<std::string> result;
  for (int r = 0; r < numRestrictions; ++r)
    if (has(Restriction(r)))
      result.push_back(restrictionNames[r]);
  return result;
}

bool Scope::add(std::string_view name) {
  auto found =
      std::find(std::begin(restrictionNames), std::end(restrictionNames), name);
  if (found == std::end(restrictionNames))
    return false;
  add(Restriction(found - restrictionNames));
  return true;
}

std::string Scope::words() const {
  std::string text;
  if (has(Restriction::FixedOrder))
    text += " in program order";
  bool policy = has(Restriction::Policy);
  if (policy)
    text += " that follows the policy";
  if (has(Restriction::OrderOnly))
    text +=
        policy ? " and recomputes nothing else" : " that recomputes nothing";
  if (has(Restriction::CalleePlans))
    text += " beside the plans of its callees";
  // What is left out can only add to what plans need.
  return text;
}

Scope Scope::ofCost() const {
  Scope result;
  for (Restriction r : {Restriction::Policy, Restriction::CalleePlans})
    if (has(r))
      result.add(r);
  return result;
}
