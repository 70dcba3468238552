//===- ScheduleTest.cpp - learning rates against their formulas -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/Schedule.h"
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

/// Rates that PyTorch's scheduler gave for base 0.8 at steps 1, 5, 10, 21, 30.
static void expectRates(const LearningRateSchedule &schedule,
                        std::vector<double> rates) {
  const int64_t steps[] = {1, 5, 10, 21, 30};
  for (size_t i = 0; i < rates.size(); ++i)
    EXPECT_NEAR(schedule.at(steps[i]), rates[i], 1e-15) << "step " << steps[i];
}

static LearningRateSchedule withBase(ScheduleKind kind) {
  LearningRateSchedule schedule;
  schedule.kind = kind;
  schedule.base = 0.8;
  return schedule;
}

TEST(Schedule, StepsArePyTorchs) {
  LearningRateSchedule step = withBase(ScheduleKind::Step);
  step.stepSize = 7;
  step.gamma = 0.5;
  expectRates(step, {0.8, 0.8, 0.4, 0.2, 0.05});
  LearningRateSchedule multi = withBase(ScheduleKind::MultiStep);
  multi.milestones = {3, 10, 20};
  multi.gamma = 0.3;
  expectRates(multi, {0.8, 0.24, 0.24, 0.0216, 0.0216});
  LearningRateSchedule exponential = withBase(ScheduleKind::Exponential);
  exponential.gamma = 0.9;
  expectRates(exponential, {0.8, 0.52488, 0.30993639120000016,
                            0.097261323672455519, 0.037681029577970003});
  // Behind a warm-up their own clock begins.
  LearningRateSchedule warm = withBase(ScheduleKind::Step);
  warm.warmupSteps = 4;
  warm.stepSize = 5;
  warm.gamma = 0.5;
  expectRates(warm, {0.2, 0.8, 0.4, 0.1, 0.025});
  // get_linear_schedule_with_warmup of Transformers begins with no rate.
  warm.warmupStart = 0;
  EXPECT_EQ(warm.at(1), 0);
  EXPECT_NEAR(warm.at(4), 0.6, 1e-15);
  EXPECT_EQ(warm.at(5), 0.8);
}

TEST(Schedule, OneCycleIsPyTorchs) {
  LearningRateSchedule cycle = withBase(ScheduleKind::OneCycle);
  cycle.totalSteps = 31;
  expectRates(cycle, {0.032, 0.39420981513225972, 0.79794773756584059,
                      0.35090282436728598, 0.0041877605378517349});
  EXPECT_NEAR(cycle.at(31), 0.8 / 25 / 1e4, 1e-15);
  EXPECT_EQ(cycle.at(31), cycle.at(500));
  cycle.warmShare = 0.5;
  cycle.divide = 10;
  cycle.divideFinal = 100;
  cycle.linearCycle = true;
  expectRates(cycle, {0.08, 0.27862068965517245, 0.52689655172413796,
                      0.51641290322580646, 0.052361290322580745});
}

TEST(Schedule, CountsEpochs) {
  LearningRateSchedule step = withBase(ScheduleKind::Step);
  step.stepSize = 2;
  step.gamma = 0.5;
  step.byEpoch = true;
  step.batchesPerEpoch = 10;
  step.batchesPerStep = 4; // updates end within epochs
  // The sixth update begins with batch 20, the first of the third epoch.
  EXPECT_EQ(step.at(5), 0.8);
  EXPECT_EQ(step.at(6), 0.4);
  EXPECT_EQ(step.at(10), 0.4);
  EXPECT_EQ(step.at(11), 0.2);
}

class ScheduleFile : public FilesTest {};
TEST_F(ScheduleFile, HoldsARateALine) {
  put("rates", "# rates\n0.5\n\n 1e-3 # low\n");
  LearningRateSchedule list = withBase(ScheduleKind::File);
  list.rates = valueOf(readRates(file("rates")));
  EXPECT_EQ(list.at(1), 0.5);
  EXPECT_EQ(list.at(2), 1e-3);
  EXPECT_EQ(list.at(9), 1e-3);
  put("negative", "0.5\n-1\n");
  expectContains(textOf(readRates(file("negative"))),
                 ":2: '-1' is no learning rate");
  put("empty", "# none\n");
  expectContains(textOf(readRates(file("empty"))), "no learning rates");
  expectContains(textOf(readRates(file("missing"))), "cannot read");
}

TEST(Schedule, BadFieldsAreUsageErrors) {
  using S = LearningRateSchedule;
  const ScheduleKind cosine = ScheduleKind::Cosine;
  EXPECT_EQ(textOf(S{cosine, 1, 0, 1, 0}.verify()), "");
  EXPECT_EQ(textOf(S{ScheduleKind::Constant, 1, 9, 0, 0}.verify()), "");
  expectContains(textOf(S{cosine, -1, 0, 1, 0}.verify()), "--lr must be");
  expectContains(textOf(S{cosine, NAN, 0, 1, 0}.verify()), "--lr must be");
  expectContains(textOf(S{cosine, 1, -1, 1, 0}.verify()), "--warmup-steps");
  expectContains(textOf(S{cosine, 1, 5, 5, 0}.verify()),
                 "needs more steps in all (5) than warm-up steps (5)");
  expectContains(textOf(S{cosine, 1, 0, 5, 1.5}.verify()), "between 0 and 1");
  expectContains(textOf(S{ScheduleKind::Step, 1, 0, 5, 0}.verify()),
                 "--lr-step-size of 1 or more");
  expectContains(textOf(S{ScheduleKind::MultiStep, 1, 0, 5, 0}.verify()),
                 "needs --lr-milestones");
  expectContains(textOf(S{ScheduleKind::OneCycle, 1, 2, 5, 0}.verify()),
                 "leave out --warmup-steps");
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
