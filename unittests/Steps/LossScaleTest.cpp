//===- LossScaleTest.cpp - updates that overflow are skipped --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What torch.amp.GradScaler promises, to the bit: an update whose gradients
// are not finite changes nothing but the scale, which it halves; the updates
// that follow are those of a run that began with the smaller scale.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"
#include "ckopt/Autodiff/Autodiff.h"

#include <cmath>

using namespace ckopt;
using namespace ckopt::test;
using runtime::TensorRole;

namespace {

/// A step of the golden MLP in f16 and its session.
class ScaledRun {
public:
  explicit ScaledRun(double scale, const OptimizerSettings &optimizer,
                     int64_t growth = 2000, bool dynamic = true) {
    CompileOptions options =
        trainingOptions(goldenPath(goldenModels().front().name, "model.onnx"),
                        goldenModels().front().loss);
    options.step.precision = Precision::F16;
    options.step.lossScaling = {dynamic, scale, growth};
    options.step.optimizer = optimizer;
    options.step.evaluation = false;
    loaded = get(load(options));
    if (loaded.session)
      check(setSeed(*loaded.session, 1));
  }
  bool opened() const { return loaded.session != nullptr; }

  void run(int64_t number, const char *function = "step") {
    feedNumbers(*loaded.session, 1);
    check(loaded.session->fill(TensorRole::Step, double(number)));
    check(loaded.session->fill(TensorRole::LearningRate, 1e-3));
    check(loaded.session->run(function));
  }
  LossScale state() {
    return get(readLossScale(*loaded.session)).value_or(LossScale{NAN, -1});
  }
  /// Parameters and states but those of the scale.
  TensorMap weights(bool averages = true) {
    TensorMap all = get(loaded.session->weights(true)), result;
    for (const auto &[name, value] : all)
      if ((averages || !llvm::StringRef(name).ends_with("/ema")) &&
          name != autodiff::kLossScaleName &&
          name != autodiff::kSkippedUpdatesName &&
          name != autodiff::kGoodUpdatesName)
        result.set(name, value);
    return result;
  }

private:
  Loaded loaded;
};

void expectEqual(const TensorMap &a, const TensorMap &b) {
  Outcome first, second;
  first.weights = a;
  second.weights = b;
  expectSame(first, second);
}

OptimizerSettings settingsOf(const OptimizerKind &kind) {
  OptimizerSettings settings;
  settings.kind = kind.name;
  settings.ema = 0.9;
  settings.clipNorm = 1;
  if (kind.find("momentum"))
    settings.values["momentum"] = 0.9;
  return settings;
}

/// Returns the largest scale whose first update is made: the gradients do not
/// depend on the optimizer.
double largestScale() {
  static const double found = [] {
    ScaledRun run(0x1p40, OptimizerSettings());
    if (!run.opened())
      return 0.0;
    for (int64_t step = 1; step < 40; ++step) {
      double before = run.state().scale;
      run.run(step);
      if (run.state().scale == before)
        return before;
      EXPECT_EQ(run.state().scale, before / 2);
      EXPECT_EQ(run.state().skipped, step);
    }
    return 0.0;
  }();
  return found;
}

class LossScaling : public testing::TestWithParam<OptimizerKind> {};

TEST_P(LossScaling, AnOverflowSkipsOneUpdate) {
  double scale = largestScale();
  ASSERT_GT(scale, 1);
  ASSERT_LT(scale, 0x1p40);
  OptimizerSettings optimizer = settingsOf(GetParam());
  ScaledRun overflows(2 * scale, optimizer), fits(scale, optimizer);
  ASSERT_TRUE(overflows.opened() && fits.opened());
  TensorMap start = overflows.weights(/*averages=*/false);
  overflows.run(1);
  EXPECT_EQ(overflows.state().scale, scale);
  EXPECT_EQ(overflows.state().skipped, 1);
  expectEqual(start, overflows.weights(/*averages=*/false));
  // Averages are those of the parameters that are there.
  for (const auto &[name, value] : overflows.weights())
    if (llvm::StringRef base = name; base.consume_back("/ema"))
      EXPECT_TRUE(value.bitEqual(*start.find(base))) << name;
  // The optimizer's first update is the run's second step.
  overflows.run(2);
  fits.run(1);
  EXPECT_EQ(fits.state().skipped, 0);
  EXPECT_EQ(overflows.state().scale, fits.state().scale);
  EXPECT_EQ(overflows.state().skipped, 1);
  TensorMap made = fits.weights();
  EXPECT_TRUE(llvm::any_of(made, [&](const auto &entry) {
    const HostTensor *before = start.find(entry.first);
    return before && !entry.second.bitEqual(*before);
  })) << "nothing was trained";
  expectEqual(made, overflows.weights());
}

TEST(LossScale, GrowsAfterUpdatesWithoutOverflow) {
  ScaledRun run(1024, OptimizerSettings(), /*growth=*/3);
  ASSERT_TRUE(run.opened());
  double expected[] = {1024, 1024, 2048, 2048, 2048, 4096};
  for (int64_t step = 1; step <= 6; ++step) {
    run.run(step);
    EXPECT_EQ(run.state().scale, expected[step - 1]) << step;
  }
  EXPECT_EQ(run.state().skipped, 0);
}

TEST(LossScale, StaysIfFixed) {
  double scale = 2 * largestScale();
  ScaledRun run(scale, OptimizerSettings(), 1, /*dynamic=*/false);
  ASSERT_TRUE(run.opened());
  TensorMap start = run.weights();
  for (int64_t step = 1; step <= 3; ++step)
    run.run(step);
  EXPECT_EQ(run.state().scale, scale);
  EXPECT_EQ(run.state().skipped, 3);
  expectEqual(start, run.weights());
}

// One micro-batch that overflows spoils the sum; the next update has none of
// it.
TEST(LossScale, ClearsSumsOfMicroBatches) {
  double scale = largestScale();
  OptimizerSettings optimizer;
  optimizer.accumulate = 2;
  ScaledRun overflows(2 * scale, optimizer), fits(scale, optimizer);
  ASSERT_TRUE(overflows.opened() && fits.opened());
  TensorMap start = overflows.weights();
  for (int64_t step = 1; step <= 2; ++step) {
    overflows.run(step, "accumulate");
    EXPECT_EQ(overflows.state().skipped, step - 1);
    overflows.run(step);
    EXPECT_EQ(overflows.state().skipped, 1);
    if (step == 1)
      expectEqual(start, overflows.weights());
  }
  fits.run(1, "accumulate");
  fits.run(1);
  EXPECT_EQ(fits.state().skipped, 0);
  expectEqual(fits.weights(), overflows.weights());
}

// Scaling by powers of two rounds nothing: gradients that are results are those
// of another scale, where neither overflows nor loses bits below f16's range.
TEST(LossScale, GradientsAreUnscaled) {
  TensorMap gradients[2];
  for (int i : {0, 1}) {
    CompileOptions options =
        trainingOptions(goldenPath(goldenModels().front().name, "model.onnx"),
                        goldenModels().front().loss);
    options.step.precision = Precision::F16;
    options.step.keepF32 = ".*";
    options.step.lossScaling.initial = i ? 0x1p20 : 1;
    options.step.optimizer.kind.clear();
    options.step.evaluation = false;
    Loaded loaded = get(load(options));
    ASSERT_TRUE(loaded.session);
    feedNumbers(*loaded.session, 1);
    check(loaded.session->run("step"));
    for (int64_t index : loaded.session->tensors(TensorRole::Gradient))
      gradients[i].set(loaded.session->infoOf(index).name,
                       get(loaded.session->read(index)));
  }
  ASSERT_NE(gradients[0].size(), 0u);
  expectEqual(gradients[0], gradients[1]);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, LossScaling,
                         testing::ValuesIn(optimizerKinds()),
                         [](const auto &info) { return info.param.name; });

} // namespace
