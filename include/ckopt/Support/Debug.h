//===- Debug.h - what the compiler decides, for its developers --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Debian's LLVM is built without -debug-only and -stats. In their place the
// environment variable CKOPT_DEBUG names the parts that say on standard error
// what they decide (`CKOPT_DEBUG=remat,planner`; `all`), and counters tell how
// often something was done (`--ckopt-stats`). Counts depend on the input alone,
// unless a limit in seconds strikes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_DEBUG_H
#define CKOPT_SUPPORT_DEBUG_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace ckopt::debug {

enum class Part : uint8_t { Planner, Remat, Fuse, Layout, MemoryPlan };

/// Tells whether CKOPT_DEBUG names the part. The first call reads it, and says
/// on standard error which of its names are unknown.
bool isDebugged(Part part);

/// Writes the part's name and what `write` writes as one line of standard
/// error.
void printLine(Part part, llvm::function_ref<void(llvm::raw_ostream &)> write);

/// Writes a line for whoever debugs the part: takes something that writes to a
/// stream, and calls it in that case only.
template <typename Write> void log(Part part, const Write &write) {
  if (isDebugged(part))
    printLine(part, write);
}

/// What is counted; Debug.cpp has the words.
enum class Counter : uint8_t {
  Searches,
  Sequences,
  Packings,
  VerifiedPlans,
  PlannedFunctions,
  RecomputedOps,
  FusedOps,
  Kernels,
  LayoutCopies,
  PlacedFunctions,
};
inline constexpr int numCounters = int(Counter::PlacedFunctions) + 1;

void count(Counter counter, int64_t times = 1);

/// Prints each counter: how often, part, words.
void printCounters(llvm::raw_ostream &os);

} // namespace ckopt::debug

#endif // CKOPT_SUPPORT_DEBUG_H
