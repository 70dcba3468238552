//===- NoLinearPrograms.cpp - a planner without Clp -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In place of LinearProgram.cpp (-DCKOPT_CLP=OFF): programs are not solved, and
// bounds are 0. Who would search by them asks haveLinearPrograms() first.
//
//===----------------------------------------------------------------------===//
#include "Math/LinearProgram.h"
#include "ckopt/Planner/Answer.h"

using namespace ckopt::planner;

bool ckopt::planner::haveLinearPrograms() { return false; }

const char *ckopt::planner::boundsNote() {
  return "bounds are those without linear programs: built without Clp";
}

struct LinearProgram::Impl {};

LinearProgram::LinearProgram(std::vector<double> costs)
    : cost(std::move(costs)), solution(cost.size(), 0) {}
LinearProgram::~LinearProgram() = default;
void LinearProgram::addRows(std::vector<Row>) {}
void LinearProgram::fix(int32_t, int) {}
auto LinearProgram::solve(int32_t) -> Outcome { return {}; }
