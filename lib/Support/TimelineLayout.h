//===- TimelineLayout.h - what the picture is computed from -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Internal to the picture: scales, merged columns, text helpers.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_SUPPORT_TIMELINELAYOUT_H
#define CKOPT_LIB_SUPPORT_TIMELINELAYOUT_H

#include "ckopt/Support/Timeline.h"

namespace ckopt {

/// Merged calls: one column of the picture.
struct TimelineBar {
  double from = 0, to = 0; ///< in x units
  const TimelineStep *step = nullptr;
  size_t index = 0;
  bool recomputed = false; ///< any of the merged
};

/// Common to all panels.
struct TimelineScales {
  explicit TimelineScales(const Timeline &timeline);
  bool timed = false; ///< x is in seconds, else in calls
  double xMax = 1, yMax = 1;
  double unit = 1; ///< bytes of the y axis's unit
  const char *unitName = "B";
};

/// The columns of a panel that is `pixels` wide.
std::vector<TimelineBar> makeBars(const TimelinePanel &panel,
                                  const TimelineScales &scales, double pixels);

/// The largest sum of live bytes.
int64_t peakLoad(const TimelinePanel &panel);
/// The arena's size, or the load where none is given.
int64_t peakOf(const TimelinePanel &panel);
double secondsOf(const TimelinePanel &panel);

/// Text for XML.
std::string escape(llvm::StringRef text);
/// At most `limit` bytes, cut in the middle: both ends of a name tell most.
std::string shorten(llvm::StringRef text, size_t limit);
/// 1, 2 or 5 times a power of ten, so that about `count` fit into `range`.
double niceStep(double range, int count);

} // namespace ckopt

#endif // CKOPT_LIB_SUPPORT_TIMELINELAYOUT_H
