//===- StepTest.cpp - a program gets what the command line gets -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Refusals, defaults and messages belong to the library, not to the flags of
// the driver.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"
#include "ckopt/Support/Error.h"

using namespace ckopt;
using namespace ckopt::test;

namespace {

CompileOptions stepOptions(const char *loss = "cross_entropy") {
  CompileOptions options =
      trainingOptions(dataPath("models/digits_cnn.onnx"), loss);
  options.import.batch = 64;
  return options;
}

/// Checks that compiling is a usage error that says this.
void expectRefused(CompileOptions options, const std::string &part) {
  auto step = compile(std::move(options));
  ASSERT_FALSE(bool(step)) << part;
  ErrorText error = takeErrorText(step.takeError());
  EXPECT_EQ(error.code, ExitUsage) << error.text;
  EXPECT_NE(error.text.find(part), std::string::npos) << error.text;
}

DataOptions stepData() {
  DataOptions data;
  data.path = dataPath("digits.npz");
  data.inputs = "x=images";
  data.targets = "labels";
  return data;
}

TEST(Step, RefusesOptionsThatMeanNothing) {
  CompileOptions options = stepOptions("mse");
  options.step.lossSettings.labelSmoothing = 0.1;
  expectRefused(options, "--label-smoothing is for losses that are attached");
  options = stepOptions();
  options.step.lossSettings.reduction = "batchmean";
  expectRefused(options, "--reduction=batchmean is for --loss=kl");
  options = stepOptions();
  options.step.optimizer.values["momentum"] = 0.9;
  expectRefused(options, "adamw has no 'momentum'");
  options = stepOptions();
  options.step.optimizer.values["beta1"] = 1.5;
  expectRefused(options, "beta1 must lie in [0, 1)");
  options = stepOptions();
  options.step.optimizer.kind = "adamv";
  expectRefused(options, "unknown optimizer 'adamv'");
  options = stepOptions();
  options.step.threads = 0;
  expectRefused(options, "at least one thread");
  options = stepOptions();
  options.groups.push_back({"bias:lr=1", "bias", {}, 1.0});
  options.learningRate = 0;
  expectRefused(options, "a group's lr needs an --lr above 0");
  options = stepOptions();
  options.step.remat.policy.save = {"("};
  expectRefused(options, "(");
}

TEST(Step, RefusesToTrainWithoutUpdates) {
  CompileOptions options = stepOptions();
  options.step.optimizer.kind.clear();
  CompiledStep step = get(compile(options, stepData()));
  auto session = get(step.load());
  auto source = get(openSource(*session, step.data()));
  auto result = step.train(*session, *source, {});
  ASSERT_FALSE(bool(result));
  EXPECT_EQ(takeErrorText(result.takeError()).code, ExitUsage);
}

TEST(Step, TrainsByTheOptimizersOwnRate) {
  CompileOptions options = stepOptions();
  options.step.optimizer.kind = "adagrad";
  CompiledStep step = get(compile(options, stepData()));
  auto session = get(step.load());
  auto source = get(openSource(*session, step.data()));
  TrainOptions how;
  how.maxSteps = 2;
  how.progress = false;
  get(step.train(*session, *source, how));
  TensorMap usual = get(session->weights(true));

  for (double rate : {1e-2, 2e-2}) { // PyTorch's default, and another one
    how.schedule.base = rate;
    auto again = get(step.load());
    get(step.train(*again, *source, how));
    TensorMap given = get(again->weights(true));
    bool same = true;
    for (const auto &[name, value] : usual)
      same &= value.bitEqual(*given.find(name));
    EXPECT_EQ(same, rate == 1e-2);
  }
}

TEST(Step, HandsWarningsToTheCallersHandler) {
  std::vector<std::string> heard;
  CompileOptions options = stepOptions();
  options.messages = [&](const Message &message) {
    heard.push_back(message.str());
  };
  CompiledStep step = get(compile(options, stepData()));
  auto session = get(step.load());
  auto source = get(openSource(*session, step.data()));
  TrainOptions how;
  how.maxSteps = 12;
  how.progress = false;
  how.schedule.base = 100;
  testing::internal::CaptureStderr();
  TrainResult result = get(step.train(*session, *source, how));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_GT(result.divergedAt, 0);
  ASSERT_FALSE(heard.empty());
  EXPECT_NE(heard.back().find("warning: the loss left its start"),
            std::string::npos)
      << heard.back();
}

TEST(Step, RefusesCountsBelowZero) {
  CompiledStep step = get(compile(stepOptions(), stepData()));
  auto session = get(step.load());
  auto source = get(openSource(*session, step.data()));
  TrainOptions how;
  how.epochs = -1;
  auto result = step.train(*session, *source, how);
  ASSERT_FALSE(bool(result));
  EXPECT_EQ(takeErrorText(result.takeError()).code, ExitUsage);
}

} // namespace
