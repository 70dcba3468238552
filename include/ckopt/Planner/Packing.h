//===- Packing.h - offsets in one arena -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_PACKING_H
#define CKOPT_PLANNER_PACKING_H

#include "ckopt/Planner/Plan.h"

#include <optional>
#include <string_view>

namespace ckopt::planner {

/// A box to place: `bytes` over the steps [first, last]. If `inPlaceOf` is not
/// negative, the box either starts at that box's offset, and then shares its
/// last step (which is this one's first), or does not overlap it.
struct Box {
  int32_t first, last;
  int64_t bytes;
  int32_t inPlaceOf = -1;
};

/// Computes offsets of the boxes, multiples of `alignment`; returns the arena's
/// size. Runs for about `effort` seconds at most (counted in steps, not by the
/// clock). `facts` (optional) receives what is known about smaller arenas.
int64_t packBoxes(const std::vector<Box> &boxes, int64_t alignment,
                  std::vector<int64_t> &offsets, double effort = 1,
                  PackingFacts *facts = nullptr);

/// Sets offsets, initial, arena and packing of a plan from its steps. With
/// `holdsAll`, inputs and persistent values lie in the arena. Returns whether
/// these steps are proven to have no smaller arena.
PackProof packPlan(const Graph &graph, Plan &plan, bool holdsAll,
                   double effort = 1);

/// Returns bounds on the packing of the plan's steps, with the inputs and
/// persistent values in the arena that `initial` names. `effort` as above; with
/// 0 only the load is computed. `arena` (optional) receives the smallest one
/// found, or -1 if none was looked for.
PackingFacts packingFacts(const Graph &graph, const Plan &plan,
                          double effort = 0, int64_t *arena = nullptr);

/// A buffer of a packing problem: `size` bytes over the times [lower, upper).
struct PackItem {
  int64_t lower, upper, size;
};

struct PackOptions {
  /// Bytes to fit into, upon which the search ends; 0: as few as can be found.
  int64_t capacity = 0;
  /// Offsets are multiples of this number of bytes, and sizes are rounded up to
  /// it.
  int64_t alignment = 1;
  /// Work units (about 50 ns each); 0: a limit scaled from the problem's size.
  int64_t workLimit = 0;
  /// Safety net in seconds; 0: none. An answer depends on it only if it is
  /// reached.
  double timeLimitSeconds = 0;
  /// Threads to use; the answer does not depend on it.
  int threads = 1;
  uint64_t seed = 1;
};

enum class PackStatus : uint8_t {
  Fits,    ///< offsets within the capacity (or, without one, the best found)
  TooMuch, ///< proven: no packing fits the capacity
  Unknown, ///< none found within the capacity, and not proven impossible
  Error,   ///< invalid items or options; see message
};

struct PackResult {
  PackStatus status = PackStatus::Error;
  /// Offsets by item: the best packing found, even if it exceeds the capacity;
  /// empty on Error.
  std::vector<int64_t> offsets;
  /// Size of the arena for `offsets`, bytes.
  int64_t height = 0;
  /// A proven lower bound of the arena in bytes: the load, or the result of a
  /// search.
  int64_t lowerBound = 0;
  /// How the height (or, if nothing fits, the status) is proven.
  PackProof proof = PackProof::None;
  std::string message;
};

/// Packs items, offline dynamic storage allocation.
PackResult packProblem(const std::vector<PackItem> &items,
                       const PackOptions &options);

/// A packing problem as a CSV file: a header that names the columns `lower`,
/// `upper` (exclusive) and `size` in any order, and one line for each item.
/// Other columns (`id`, for example) are kept.
struct PackingCsv {
  std::string header;
  std::vector<std::string> rows;
  std::vector<PackItem> items;
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
