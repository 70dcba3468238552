//===- Packing.h - offsets in one arena -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A problem is a list of buffers with lifespans and sizes, a solution an offset
// for each; the words are those of MiniMalloc (Moffitt, ASPLOS 2023).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_PACKING_H
#define CKOPT_PLANNER_PACKING_H

#include "ckopt/Planner/Plan.h"

#include <optional>
#include <string_view>

namespace ckopt::planner {

/// The lifespan of a buffer: half-open, [lower, upper).
struct Lifespan {
  int64_t lower, upper;
};

/// A buffer: bytes that keep one offset for a lifespan.
struct Buffer {
  Lifespan lifespan;
  int64_t size;
  /// A buffer before this one in the problem, or -1. This one either starts at
  /// that one's offset, and then shares its last time (which is this one's
  /// first), or does not overlap it.
  int32_t inPlaceOf = -1;
};

struct PackProblem {
  std::vector<Buffer> buffers;
  /// Offsets are multiples of this number of bytes, and sizes are rounded up to
  /// it.
  int64_t alignment = 1;
  /// Capacity in bytes, at which the search ends; 0: as few bytes as can be
  /// found.
  int64_t capacity = 0;
};

struct PackOptions {
  /// Work units (about 50 ns each; the default is ten to fifteen seconds).
  int64_t workLimit = 200'000'000;
  /// Limit in seconds, for safety; 0: none. An answer depends on it only if it
  /// is reached.
  double timeLimitSeconds = 0;
  uint64_t seed = 1;
  /// Replaces times by their ranks, which mean the same. Without it, times are
  /// small (0 to 2^31), and longer lifespans may be placed first.
  bool rankTimes = true;
  /// Only computes the load if not set.
  bool search = true;
};

enum class PackStatus : uint8_t {
  Fits,    ///< offsets within the capacity (or, without one, the best found)
  TooMuch, ///< proven: no packing fits the capacity
  Unknown, ///< none found within the capacity, and not proven impossible
  Error,   ///< an invalid problem; see message
};

struct PackResult {
  PackStatus status = PackStatus::Error;
  /// Offsets by buffer: the best packing found, even if it exceeds the
  /// capacity; empty on Error, and without a search.
  std::vector<int64_t> offsets;
  /// Size of the arena for `offsets`, bytes.
  int64_t height = 0;
  /// Bounds on smaller arenas.
  PackingFacts facts;
  /// How the height (or, if nothing fits, the status) is proven.
  PackProof proof = PackProof::None;
  std::string message;
};

/// Packs buffers: offline dynamic storage allocation.
PackResult pack(const PackProblem &problem, const PackOptions &options = {});

/// Returns the problem of a plan's steps, with the inputs and persistent values
/// in the arena that `initial` names.
PackProblem packingOf(const Graph &graph, const Plan &plan);
/// Returns the limits for such a problem; its times are steps. At effort 1 they
/// are a second at most.
PackOptions planPacking(const PackProblem &problem, double effort = 1);

/// Sets offsets, initial, arena and packing of a plan from its steps. With
/// `holdsAll`, inputs and persistent values lie in the arena.
void packPlan(const Graph &graph, Plan &plan, bool holdsAll, double effort = 1);

/// A packing problem as a CSV file: a header that names the columns `lower`,
/// `upper` (exclusive) and `size` in any order, and one line for each item.
/// Other columns (`id`, for example) are kept.
struct PackingCsv {
  std::string header;
  std::vector<std::string> rows;
  std::vector<Buffer> buffers;
};

/// Reads a problem. On failure returns nothing and sets `error` to the line and
/// its problem.
std::optional<PackingCsv> parsePackingCsv(std::string_view text,
                                          std::string &error);

/// Writes the same file with a column `offset` at the end of each line; an
/// older such column is dropped.
std::string printPackingCsv(const PackingCsv &csv,
                            const std::vector<int64_t> &offsets);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_PACKING_H
