//===- PlannerFuzz.h - what random bytes must not break ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_FUZZ_PLANNERFUZZ_H
#define CKOPT_FUZZ_PLANNERFUZZ_H

#include "ckopt/Planner/Graph.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace ckopt::planner {

/// Reads the bytes as a graph, a plan and a packing problem. Returns "", or
/// what went wrong: a failure without a message, a graph that is not well
/// formed or changes when written and read again, a plan that crashes the
/// verifier.
std::string fuzzJson(const uint8_t *data, size_t size);

/// Decodes a graph of at most 8 nodes, a budget and options from the bytes,
/// plans it with little work and compares with exhaustive search: every plan
/// is verified and costs no less than the optimum, bounds are below it, and
/// nothing feasible is called infeasible.
std::string fuzzPlanner(const uint8_t *data, size_t size);

/// Returns the graph that fuzzPlanner() makes of the bytes; it is always well
/// formed.
Graph decodeGraph(const uint8_t *data, size_t size);

} // namespace ckopt::planner

#endif // CKOPT_FUZZ_PLANNERFUZZ_H
