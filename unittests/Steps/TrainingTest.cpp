//===- TrainingTest.cpp - training on real data ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The digits network on the handwritten digits: it learns, a resumed run is an
// unbroken run, budgets change no loss, the trained file loads again.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"
#include "ckopt/Support/Safetensors.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace ckopt;
using namespace ckopt::test;
using runtime::TensorRole;

namespace {

StepData digits() {
  StepData data;
  data.path = dataPath("digits.npz");
  data.inputs = "x=images";
  data.targets = "labels";
  data.loss = HostLoss::CrossEntropy;
  return data;
}

TrainOptions quietly(int64_t epochs) {
  TrainOptions options;
  options.epochs = epochs;
  options.seed = 3;
  options.holdout = 0.2;
  options.schedule.base = 2e-3;
  options.progress = false;
  return options;
}

/// Trains on the digits, and fails the test with an error's text.
TrainResult trainDigits(Session &session, const TrainOptions &options) {
  auto source = get(openSource(session, digits()));
  return source ? get(train(session, *source, digits(), options))
                : TrainResult();
}

/// A freshly initialized digits network with batch 64.
Loaded digitsNetwork(const MemoryBudget &budget = {},
                     ActivationLayout layout = ActivationLayout::ChannelsLast) {
  CompileOptions options = trainingOptions(dataPath("models/digits_cnn.onnx"),
                                           "cross_entropy", budget);
  options.import.batch = 64;
  options.step.layout = layout;
  return get(load(options));
}

class Training : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("ckopt-train", folder));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }
  std::string path(llvm::StringRef name) const {
    llvm::SmallString<128> result(folder);
    llvm::sys::path::append(result, name);
    return result.str().str();
  }
  llvm::SmallString<128> folder;
};

void expectSameWeights(Session &a, Session &b) {
  TensorMap left = get(a.weights(true)), right = get(b.weights(true));
  ASSERT_EQ(left.size(), right.size());
  for (const auto &[name, value] : left) {
    ASSERT_TRUE(right.find(name)) << name;
    EXPECT_TRUE(value.bitEqual(*right.find(name))) << name;
  }
}

TEST_F(Training, LearnsTheDigits) {
  Loaded loaded = digitsNetwork();
  ASSERT_TRUE(loaded.session);
  TrainResult result = trainDigits(*loaded.session, quietly(10));
  EXPECT_GE(result.evaluation.accuracy(), 0.97);
  EXPECT_EQ(result.evaluated, 359);
  EXPECT_EQ(result.steps, 10 * (1438 / 64));
  EXPECT_EQ(result.droppedPerEpoch, 1438 % 64);
}

TEST_F(Training, AResumedRunIsAnUnbrokenRun) {
  Loaded whole = digitsNetwork();
  ASSERT_TRUE(whole.session);
  TrainResult all = trainDigits(*whole.session, quietly(2));

  // Stops in the middle of the second epoch.
  Loaded first = digitsNetwork();
  TrainOptions options = quietly(2);
  options.maxSteps = 30;
  options.checkpoint = path("c.safetensors");
  trainDigits(*first.session, options);

  Loaded second = digitsNetwork();
  options = quietly(2);
  options.resume = path("c.safetensors");
  TrainResult rest = trainDigits(*second.session, options);
  EXPECT_EQ(rest.steps, all.steps);
  EXPECT_EQ(rest.finalLoss, all.finalLoss);
  expectSameWeights(*whole.session, *second.session);
}

TEST_F(Training, VerifyRematComparesEveryRecomputedCall) {
  CompileOptions options =
      trainingOptions(dataPath("models/digits_cnn.onnx"), "cross_entropy");
  options.import.batch = 64;
  options.step.remat.budget.kind = MemoryBudget::Kind::Minimum;
  options.instrument = true;
  SessionOptions checks;
  checks.verifyRemat = checks.keepValues = checks.checkFinite = true;
  Loaded loaded = get(load(options, checks));
  ASSERT_TRUE(loaded.session);
  int64_t compared = 0;
  for (const runtime::CallInfo &call : loaded.session->manifest().calls)
    compared += call.function == 0 && call.originalCall >= 0;
  EXPECT_GT(compared, 0);
  EXPECT_EQ(compared, loaded.compilation->summary().figures.recomputed);
  TrainOptions train = quietly(1);
  train.maxSteps = 3;
  EXPECT_EQ(trainDigits(*loaded.session, train).steps, 3);
}

TEST_F(Training, ACheckpointOfAnotherRunIsRefused) {
  Loaded first = digitsNetwork();
  ASSERT_TRUE(first.session);
  TrainOptions options = quietly(1);
  options.maxSteps = 1;
  options.checkpoint = path("c.safetensors");
  options.identity["lr"] = "1";
  trainDigits(*first.session, options);
  Loaded second = digitsNetwork();
  options.resume = path("c.safetensors");
  options.identity["lr"] = "2";
  auto source = get(openSource(*second.session, digits()));
  auto result = train(*second.session, *source, digits(), options);
  ASSERT_FALSE(bool(result));
  std::string text = llvm::toString(result.takeError());
  EXPECT_NE(text.find("lr"), std::string::npos) << text;
}

/// Counts weights and states of convolutions, and checks that all have this
/// stride between input channels, or, if it is 0, that of row-major order.
int64_t countKernels(const Session &session, int64_t stride) {
  int64_t count = 0;
  for (const runtime::TensorInfo &t : session.manifest().tensors)
    if (t.shape.size() == 4 && t.shape[1] > 1 && t.shape[3] > 1 &&
        (t.role == TensorRole::Parameter ||
         t.role == TensorRole::OptimizerState)) {
      EXPECT_EQ(t.strides[1], stride ? stride : t.shape[2] * t.shape[3])
          << t.name;
      ++count;
    }
  return count;
}

// Weights and their optimizer state lie [out, window, in]; nobody outside sees
// it: not in first values, not in a checkpoint that a row-major step goes on
// from.
TEST_F(Training, OrderAtRestIsNotSeen) {
  Loaded last = digitsNetwork(),
         plain = digitsNetwork({}, ActivationLayout::None);
  ASSERT_TRUE(last.session && plain.session);
  EXPECT_GT(countKernels(*last.session, 1), 2);
  EXPECT_EQ(countKernels(*plain.session, 0), countKernels(*last.session, 1));
  expectSameWeights(*last.session, *plain.session);

  TrainOptions options = quietly(2);
  options.maxSteps = 30;
  options.checkpoint = path("c.safetensors");
  trainDigits(*last.session, options);
  options.resume = options.checkpoint;
  options.checkpoint.clear();
  options.maxSteps = 31;
  trainDigits(*plain.session, options);
  Loaded again = digitsNetwork();
  trainDigits(*again.session, options);
  TensorMap left = get(again.session->weights(true)),
            right = get(plain.session->weights(true));
  for (const auto &[name, value] : left)
    for (int64_t i = 0; i < value.numElements(); ++i)
      ASSERT_NEAR(value.getDouble(i), right.find(name)->getDouble(i), 1e-4)
          << name;
}

TEST_F(Training, TheTrainedFileLoadsAgain) {
  Loaded loaded = digitsNetwork();
  ASSERT_TRUE(loaded.session);
  trainDigits(*loaded.session, quietly(1));
  TensorMap weights = get(loaded.session->weights(false));
  std::map<std::string, HostTensor> byName;
  for (const auto &[name, value] : weights)
    byName[name] = value;
  check(onnx_frontend::exportModel(dataPath("models/digits_cnn.onnx"),
                                   path("trained.onnx"), byName));
  CompileOptions options =
      trainingOptions(path("trained.onnx"), "cross_entropy");
  options.import.batch = 64;
  Loaded again = get(load(options));
  ASSERT_TRUE(again.session);
  TensorMap back = get(again.session->weights(false));
  ASSERT_EQ(back.size(), weights.size());
  for (const auto &[name, value] : weights)
    EXPECT_TRUE(value.bitEqual(*back.find(name))) << name;
}

} // namespace
