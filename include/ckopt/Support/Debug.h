//===- Debug.h - logs and counters for ckopt's developers -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Debian's LLVM is built without -debug-only and -stats. In their place the
// environment variable CKOPT_DEBUG names parts whose decisions are logged on
// standard error (`CKOPT_DEBUG=remat,planner`; `all`), and `--ckopt-stats`
// prints counters. Counts depend only on the input, unless a limit in seconds
// is reached.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_DEBUG_H
#define CKOPT_SUPPORT_DEBUG_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace ckopt::debug {

enum class Part : uint8_t { Planner, Remat, Fuse, Layout, MemoryPlan };

/// Tells whether CKOPT_DEBUG names the part. The first call reads the variable,
/// and reports unknown names on standard error.
bool isDebugged(Part part);

/// Writes the part's name and what `write` writes as one line of standard
/// error.
void printLine(Part part, llvm::function_ref<void(llvm::raw_ostream &)> write);

/// Logs a line if CKOPT_DEBUG names the part: calls the function that writes to
/// a stream only in that case.
template <typename Write> void log(Part part, const Write &write) {
  if (isDebugged(part))
    printLine(part, write);
}

/// The counters; Debug.cpp has their descriptions.
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
