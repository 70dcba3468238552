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

#include <cmath>

using namespace ckopt;
using namespace ckopt::test;

namespace {

CompileOptions stepOptions() {
  CompileOptions options =
      trainingOptions(dataPath("models/digits_cnn.onnx"), "cross_entropy");
  options.import.batch = 64;
  return options;
}

DataOptions stepData() {
  DataOptions data;
  data.path = dataPath("digits.npz");
  data.inputs = "x=images";
  data.targets = "labels";
  return data;
}

TEST(Step, RefusesOptionsThatMeanNothing) {
  struct Case {
    const char *text;
    void (*change)(CompileOptions &);
  };
  const Case cases[] = {
      {"--label-smoothing is for --loss=cross_entropy, not for mse",
       [](CompileOptions &o) {
         o.step.loss = llvm::cantFail(parseLoss("mse"));
         o.step.lossSettings.labelSmoothing = 0.1;
       }},
      {"--label-smoothing is a share",
       [](CompileOptions &o) { o.step.lossSettings.labelSmoothing = 2; }},
      {"weights of classes",
       [](CompileOptions &o) { o.step.lossSettings.classWeights = {1, -1}; }},
      {"--margin", [](CompileOptions &o) { o.step.lossSettings.margin = NAN; }},
      {"--reduction=batchmean is for --loss=kl",
       [](CompileOptions &o) {
         o.step.lossSettings.reduction = Reduction::BatchMean;
       }},
      {"adamw has no 'momentum'",
       [](CompileOptions &o) { o.step.optimizer.values["momentum"] = 0.9; }},
      {"beta1 must lie in [0, 1)",
       [](CompileOptions &o) { o.step.optimizer.values["beta1"] = 1.5; }},
      {"unknown optimizer 'adamv'",
       [](CompileOptions &o) { o.step.optimizer.kind = "adamv"; }},
      {"threads, not 0", [](CompileOptions &o) { o.step.threads = 0; }},
      {"threads, not 100000",
       [](CompileOptions &o) { o.step.threads = 100000; }},
      {"levels 0 to 3", [](CompileOptions &o) { o.target.optLevel = 9; }},
      {"ratio is a number above 0",
       [](CompileOptions &o) {
         o.step.remat.budget.kind = MemoryBudget::Kind::Ratio;
         o.step.remat.budget.ratio = NAN;
       }},
      {"ratio is a number above 0 up to 1",
       [](CompileOptions &o) {
         o.step.remat.budget.kind = MemoryBudget::Kind::ActivationRatio;
         o.step.remat.budget.ratio = 7;
       }},
      {"0 bytes holds nothing",
       [](CompileOptions &o) {
         o.step.remat.budget.kind = MemoryBudget::Kind::Bytes;
       }},
      {"--lr is a number", [](CompileOptions &o) { o.learningRate = -3; }},
      {"512 bits, or 0 for none, not 333",
       [](CompileOptions &o) { o.step.vectorBits = 333; }},
      {"--strategy: 'nosuch' is not one of auto",
       [](CompileOptions &o) { o.step.remat.search.strategy = "nosuch"; }},
      {"products by tf32 are for target cuda alone",
       [](CompileOptions &o) {
         o.step.matmulPrecision = MatmulPrecision::TF32;
       }},
      {"--clip-norm",
       [](CompileOptions &o) { o.step.optimizer.clipNorm = -1; }},
      {"--clip-norm",
       [](CompileOptions &o) { o.step.optimizer.clipNorm = NAN; }},
      {"--ema must lie in [0, 1)",
       [](CompileOptions &o) { o.step.optimizer.ema = 1.5; }},
      {"--accumulate",
       [](CompileOptions &o) { o.step.optimizer.accumulate = -1; }},
      {"--optimizer=none has no updates",
       [](CompileOptions &o) {
         o.step.optimizer.kind.clear();
         o.step.optimizer.ema = 0.9;
       }},
      {"phases that stop behind 'fuse'",
       [](CompileOptions &o) { o.phases.to = "fuse"; }},
      {"no phase 'nosuch'; the phases are",
       [](CompileOptions &o) { o.phases.from = "nosuch"; }},
      {"--group='(:lr=1'",
       [](CompileOptions &o) { o.groups.push_back({"(:lr=1", "(", {}, 1.0}); }},
      {"a group's lr needs an --lr above 0",
       [](CompileOptions &o) {
         o.groups.push_back({"bias:lr=1", "bias", {}, 1.0});
         o.learningRate = 0;
       }},
      {"(", [](CompileOptions &o) { o.step.remat.policy.save = {"("}; }},
      {"effort", [](CompileOptions &o) { o.step.remat.search.effort = -1; }},
  };
  for (const Case &one : cases) {
    CompileOptions options = stepOptions();
    options.model = "absent.onnx"; // said before it is looked for
    one.change(options);
    auto step = compile(std::move(options));
    ASSERT_FALSE(bool(step)) << one.text;
    ErrorText error = takeErrorText(step.takeError());
    EXPECT_EQ(error.code, ExitUsage) << error.text;
    EXPECT_NE(error.text.find(one.text), std::string::npos) << error.text;
  }
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

TEST(Step, RefusesFieldsThatItDoesNotTake) {
  for (auto [name, text] :
       {std::pair("images", "no field 'images'"), std::pair("x", "")}) {
    CallbackSource::Options mine;
    mine.fields = {{name, DType::F32, {1, 8, 8}}, {"target", DType::I64, {}}};
    CallbackSource source(mine, nullptr);
    auto step = compile(stepOptions(), source);
    EXPECT_EQ(bool(step), *text == 0) << name;
    if (!step)
      EXPECT_NE(takeErrorText(step.takeError()).text.find(text),
                std::string::npos);
  }
  CallbackSource::Options few;
  few.fields = {{"x", DType::F32, {1, 8, 8}}};
  auto step = compile(stepOptions(), CallbackSource(few, nullptr));
  ASSERT_FALSE(bool(step));
  EXPECT_NE(takeErrorText(step.takeError()).text.find("no field 'target'"),
            std::string::npos);
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
    heard.push_back(message.str().inShell());
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

TEST(Step, RefusesTrainingThatItCannotDo) {
  CompiledStep step = get(compile(stepOptions(), stepData()));
  auto session = get(step.load());
  auto source = get(openSource(*session, step.data()));
  TrainOptions averages, validation;
  averages.averages = true;
  validation.validateEvery = 3;
  for (auto [how, text] :
       {std::pair(&averages, "without averaged weights"),
        std::pair(&validation, "needs --validation or --holdout")}) {
    auto result = step.train(*session, *source, *how);
    ASSERT_FALSE(bool(result)) << text;
    ErrorText error = takeErrorText(result.takeError());
    EXPECT_EQ(error.code, ExitUsage);
    EXPECT_NE(error.text.find(text), std::string::npos) << error.text;
  }
}

// A step is compiled for its number of micro-batches; another one would train
// otherwise than the caller thinks.
TEST(Step, RefusesAnotherNumberOfMicroBatches) {
  CompiledStep step = get(compile(stepOptions(), stepData()));
  auto session = get(step.load());
  auto source = get(openSource(*session, step.data()));
  for (int64_t accumulate : {-1, 0, 2}) {
    TrainOptions how;
    how.accumulate = accumulate;
    auto result = step.train(*session, *source, how);
    ASSERT_FALSE(bool(result));
    EXPECT_EQ(takeErrorText(result.takeError()).code, ExitUsage);
  }
}

TEST(Step, WritesWeightsToFilesOfKnownKindsAlone) {
  CompiledStep step = get(compile(stepOptions(), stepData()));
  auto session = get(step.load());
  llvm::Error error = step.writeWeights(*session, "weights.bin");
  ASSERT_TRUE(bool(error));
  EXPECT_EQ(takeErrorText(std::move(error)).code, ExitUsage);
}

} // namespace
