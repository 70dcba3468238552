//===- Timeline.h - pictures of memory over a step --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// These functions draw the memory of a step as stacked areas by kind, in one
// panel for each plan, with the budget as a line and the peak marked: as a
// self-contained SVG, or as a Chrome trace of counters (chrome://tracing,
// Perfetto).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_TIMELINE_H
#define CKOPT_SUPPORT_TIMELINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ckopt {

/// The purpose of live bytes, in the order in which they are stacked.
enum class MemoryKind {
  Parameters,
  OptimizerState,
  Gradients,
  Data,
  Activations,
  Recomputed, ///< activations that were dropped and made again
  Workspace,
  Other,
};
constexpr size_t numMemoryKinds = 8;
/// "parameters", "optimizer state", ...
const char *memoryKindName(MemoryKind kind);

/// One kernel call of the step.
struct TimelineStep {
  std::string name;   ///< of the kernel or its source node
  double seconds = 0; ///< expected time; 0 throughout: equal widths
  bool recomputed = false;
  std::string phase; ///< e.g. "forward", "backward", "update"; may be empty
  std::array<int64_t, numMemoryKinds> bytes{}; ///< live while it runs

  int64_t &operator[](MemoryKind kind) { return bytes[size_t(kind)]; }
  int64_t total() const;
};

/// The picture of one plan.
struct TimelinePanel {
  std::string title; ///< e.g. "without recomputation"
  std::vector<TimelineStep> steps;
  int64_t plannedPeak = 0; ///< size of the arena; 0: the largest load
  int64_t budget = 0;      ///< 0: none
};

struct Timeline {
  std::string title;    ///< e.g. the model's name
  std::string subtitle; ///< batch, optimizer, precision, ...
  std::vector<TimelinePanel> panels;
  /// The unit of TimelineStep::seconds where it is not seconds, e.g. "cost".
  std::string costUnit = {};
};

/// Draws the panels one below the other on common scales (bytes up, seconds or
/// kernel calls to the right). Written atomically.
llvm::Error writeTimelineSvg(llvm::StringRef path, const Timeline &timeline);
std::string timelineSvg(const Timeline &timeline);

/// Writes Chrome trace events: a process for each panel, an event for each
/// kernel call, and a counter of live bytes by kind. The file is written
/// atomically.
llvm::Error writeMemoryTrace(llvm::StringRef path, const Timeline &timeline);
std::string memoryTrace(const Timeline &timeline);

} // namespace ckopt

#endif // CKOPT_SUPPORT_TIMELINE_H
