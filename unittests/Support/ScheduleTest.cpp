//===- ScheduleTest.cpp - learning rates against their formulas -----------===//
#include "ckopt/Support/Schedule.h"
#include "TestFiles.h"
#include <cmath>

using namespace ckopt;

TEST(Schedule, Constant) {
  LearningRateSchedule schedule{ScheduleKind::Constant, 0.1, 0, 0, 0};
  EXPECT_EQ(schedule.at(1), 0.1);
  EXPECT_EQ(schedule.at(1000000), 0.1);
}

TEST(Schedule, WarmUpIsLinearAndReachesTheBase) {
  for (ScheduleKind kind :
       {ScheduleKind::Constant, ScheduleKind::Linear, ScheduleKind::Cosine}) {
    LearningRateSchedule schedule{kind, 0.8, 4, 100, 0};
    EXPECT_DOUBLE_EQ(schedule.at(1), 0.2);
    EXPECT_DOUBLE_EQ(schedule.at(2), 0.4);
    EXPECT_DOUBLE_EQ(schedule.at(3), 0.6);
    EXPECT_EQ(schedule.at(4), 0.8);
    EXPECT_EQ(schedule.at(5), 0.8);
  }
}

TEST(Schedule, CosineIsPyTorchsWithoutWarmUp) {
  // eta_min + (base - eta_min) * (1 + cos(pi * t / T)) / 2, t from 0.
  const double base = 1e-3, ratio = 0.1;
  LearningRateSchedule schedule{ScheduleKind::Cosine, base, 0, 50, ratio};
  for (int t = 0; t <= 50; ++t)
    EXPECT_NEAR(schedule.at(t + 1),
                ratio * base +
                    (base - ratio * base) * (1 + std::cos(M_PI * t / 50)) / 2,
                1e-15);
  EXPECT_DOUBLE_EQ(schedule.at(5000), ratio * base);
}

TEST(Schedule, CosineAfterWarmUp) {
  LearningRateSchedule schedule{ScheduleKind::Cosine, 2.0, 10, 30, 0};
  EXPECT_DOUBLE_EQ(schedule.at(21), 1.0); // half way from 10 to 30
  EXPECT_NEAR(schedule.at(31), 0.0, 1e-15);
}

TEST(Schedule, LinearDecay) {
  LearningRateSchedule schedule{ScheduleKind::Linear, 1.0, 2, 12, 0.5};
  EXPECT_DOUBLE_EQ(schedule.at(3), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(8), 0.75);
  EXPECT_DOUBLE_EQ(schedule.at(13), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(99), 0.5);
}

TEST(Schedule, BadFieldsAreUsageErrors) {
  using S = LearningRateSchedule;
  const ScheduleKind cosine = ScheduleKind::Cosine;
  EXPECT_EQ(textOf(S{cosine, 1, 0, 1, 0}.verify()), "");
  EXPECT_EQ(textOf(S{ScheduleKind::Constant, 1, 9, 0, 0}.verify()), "");
  expectContains(textOf(S{cosine, -1, 0, 1, 0}.verify()), "learning rate");
  expectContains(textOf(S{cosine, NAN, 0, 1, 0}.verify()), "learning rate");
  expectContains(textOf(S{cosine, 1, -1, 1, 0}.verify()), "warm-up");
  expectContains(textOf(S{cosine, 1, 5, 5, 0}.verify()),
                 "needs more steps in all (5) than warm-up steps (5)");
  expectContains(textOf(S{cosine, 1, 0, 5, 1.5}.verify()), "between 0 and 1");
  EXPECT_EQ(codeOf(S{cosine, 1, 0, 0, 0}.verify()), ExitUsage);
}

TEST(Schedule, Names) {
  EXPECT_EQ(valueOf(parseScheduleKind("cosine")), ScheduleKind::Cosine);
  EXPECT_EQ(valueOf(parseScheduleKind("linear-warmup")),
            ScheduleKind::Constant);
  EXPECT_EQ(valueOf(parseScheduleKind("linear")), ScheduleKind::Linear);
  expectContains(textOf(parseScheduleKind("cosin")),
                 "unknown learning-rate schedule 'cosin'");
}
