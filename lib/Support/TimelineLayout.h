//===- TimelineLayout.h - what the picture is computed from -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scales, merged columns and text helpers of the timeline picture; internal.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_SUPPORT_TIMELINELAYOUT_H
#define CKOPT_LIB_SUPPORT_TIMELINELAYOUT_H

#include "ckopt/Support/Timeline.h"

namespace ckopt {

/// One column of the picture: one call, or several merged ones.
struct TimelineBar {
  double from = 0, to = 0; ///< in x units
  const TimelineStep *step = nullptr;
  size_t index = 0;
  bool recomputed = false; ///< set if any of the calls is recomputed
};

/// Scales that all panels share.
struct TimelineScales {
  explicit TimelineScales(const Timeline &timeline);
  bool timed = false; ///< x is in seconds, else in calls
  double xMax = 1, yMax = 1;
  double unit = 1; ///< bytes of the y axis's unit
  const char *unitName = "B";
};

/// Returns the columns of a panel that is `pixels` wide.
std::vector<TimelineBar> makeBars(const TimelinePanel &panel,
                                  const TimelineScales &scales, double pixels);

/// Returns the largest sum of live bytes.
int64_t peakLoad(const TimelinePanel &panel);
/// Returns the arena's size, or the load if no size is given.
int64_t peakOf(const TimelinePanel &panel);
double secondsOf(const TimelinePanel &panel);

/// Escapes text for XML.
std::string escape(llvm::StringRef text);
/// Shortens text to at most `limit` bytes by cutting out its middle, since both
/// ends of a name matter most.
std::string shorten(llvm::StringRef text, size_t limit);
/// Returns 1, 2 or 5 times a power of ten, so that about `count` steps fit into
/// `range`.
double niceStep(double range, int count);

} // namespace ckopt

#endif // CKOPT_LIB_SUPPORT_TIMELINELAYOUT_H
