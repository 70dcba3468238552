//===- Debug.cpp - what the compiler decides, for its developers ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Debug.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <atomic>
#include <cstdlib>

using namespace ckopt;
using namespace ckopt::debug;
using llvm::StringRef;

/// By Part.
static constexpr llvm::StringLiteral partNames[] = {"planner", "remat", "fuse",
                                                    "layout", "memory-plan"};

static constexpr struct {
  Part part;
  const char *words;
} counterNames[] = {
    {Part::Planner, "searches for a budget, or for the smallest"},
    {Part::Planner, "sequences of steps that strategies found"},
    {Part::Planner, "packings searched for"},
    {Part::Planner, "plans verified"},
    {Part::Remat, "functions planned"},
    {Part::Remat, "ops computed again"},
    {Part::Fuse, "ops put into kernels"},
    {Part::Fuse, "kernel calls made of them"},
    {Part::Layout, "copies into another layout"},
    {Part::MemoryPlan, "functions given offsets"},
};
static_assert(std::size(counterNames) == numCounters);

/// Returns a bit for each part that CKOPT_DEBUG names.
static unsigned readParts() {
  const char *given = std::getenv("CKOPT_DEBUG");
  llvm::SmallVector<StringRef> names;
  StringRef(given ? given : "").split(names, ',', -1, /*KeepEmpty=*/false);
  unsigned parts = 0;
  for (StringRef name : names) {
    name = name.trim();
    const auto *found = llvm::find(partNames, name);
    if (name == "all")
      parts = ~0u;
    else if (found != std::end(partNames))
      parts |= 1u << (found - partNames);
    else
      llvm::errs() << "CKOPT_DEBUG: '" << name << "' is none of "
                   << llvm::join(std::begin(partNames), std::end(partNames),
                                 ", ")
                   << ", all\n";
  }
  return parts;
}

bool debug::isDebugged(Part part) {
  static const unsigned parts = readParts();
  return parts >> unsigned(part) & 1;
}

void debug::printLine(Part part,
                      llvm::function_ref<void(llvm::raw_ostream &)> write) {
  std::string line;
  llvm::raw_string_ostream os(line);
  os << partNames[int(part)] << ": ";
  write(os);
  line += '\n';
  llvm::errs() << line; // unbuffered: lines of several threads do not mix
}

static std::atomic<int64_t> &counterOf(Counter counter) {
  static std::atomic<int64_t> counters[numCounters];
  return counters[int(counter)];
}

void debug::count(Counter counter, int64_t times) {
  counterOf(counter).fetch_add(times, std::memory_order_relaxed);
}

void debug::printCounters(llvm::raw_ostream &os) {
  for (int i = 0; i < numCounters; ++i)
    os << llvm::format("%12lld  ", (long long)counterOf(Counter(i)).load())
       << partNames[int(counterNames[i].part)] << ": " << counterNames[i].words
       << "\n";
}
