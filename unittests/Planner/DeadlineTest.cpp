//===- DeadlineTest.cpp - limits counted in work --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Model/Strategy.h"

#include <gtest/gtest.h>

#include <thread>

using namespace ckopt::planner;

namespace {

/// Without a gain a search ends when its patience does, with one it goes on,
/// but not beyond its limit.
TEST(Deadline, PatienceEndsWhatGainsNothing) {
  Deadline deadline(0, 1000);
  deadline.setPatience(100);
  EXPECT_TRUE(deadline.spend(99));
  deadline.gained();
  EXPECT_TRUE(deadline.spend(99));
  EXPECT_FALSE(deadline.spend(1));
  EXPECT_TRUE(deadline.stale());
  EXPECT_FALSE(deadline.workPassed());
  deadline.gained();
  EXPECT_FALSE(deadline.passed());
  EXPECT_EQ(deadline.spent(), 199);
  for (int i = 0; i < 9; ++i) {
    deadline.spend(90);
    deadline.gained();
  }
  EXPECT_TRUE(deadline.workPassed());
  EXPECT_TRUE(deadline.passed());
}

/// A part counts its own work and its own gains.
TEST(Deadline, PartsCountAnew) {
  Deadline deadline(0, 1000);
  deadline.setPatience(100);
  deadline.spend(90);
  Deadline part = deadline.part(500);
  EXPECT_TRUE(part.spend(99));
  EXPECT_FALSE(part.spend(1));
  EXPECT_EQ(deadline.part(0).unitsLeft(), 910);
}

/// A limit of a minute is a net for the whole search: its parts have no share
/// of it, so what they find does not depend on the clock.
TEST(Deadline, ShortLimitsAreDivided) {
  Deadline net(55), brief(10);
  Deadline partOfNet = net.part(1000, 1e-7), part = brief.part(1000, 1e-7);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_FALSE(partOfNet.passed());
  EXPECT_FALSE(net.wasCutByTime());
  EXPECT_FALSE(brief.wasCutByTime());
  EXPECT_TRUE(part.passed());
  EXPECT_TRUE(brief.wasCutByTime()) << "of a part";
  EXPECT_FALSE(brief.passed());
}

} // namespace
