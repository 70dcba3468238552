//===- MetricsTest.cpp - losses against PyTorch's -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/Metrics.h"
#include "TestFiles.h"
#include "ckopt/Support/Npz.h"
#include <cmath>

using namespace ckopt;

static TensorMap golden(const std::string &name) {
  return valueOf(
      readNpz(std::string(CKOPT_TEST_DATA) + "/golden/" + name + "/data.npz"));
}

TEST(Metrics, CrossEntropyOfTheGoldenNetworks) {
  for (const char *name :
       {"gpt", "lenet", "lstm", "mobile", "resnet", "unet", "vit"}) {
    TensorMap data = golden(name);
    MetricSums sums =
        valueOf(crossEntropyMetrics(*data.find("logits"), *data.find("y")));
    EXPECT_NEAR(sums.meanLoss(), data.find("loss")->getDouble(0), 1e-12)
        << name;
    EXPECT_EQ(sums.count, data.find("y")->numElements());
  }
}

TEST(Metrics, SquaredErrorOfTheGoldenNetwork) {
  TensorMap data = golden("mlp");
  MetricSums sums =
      valueOf(squaredErrorMetrics(*data.find("logits"), *data.find("y")));
  EXPECT_NEAR(sums.meanLoss(), data.find("loss")->getDouble(0), 1e-12);
}

TEST(Metrics, ClassAxis) {
  EXPECT_EQ(valueOf(resolveClassAxis({4, 10}, {4})), 1);
  EXPECT_EQ(valueOf(resolveClassAxis({2, 3, 32, 32}, {2, 32, 32})), 1);
  EXPECT_EQ(valueOf(resolveClassAxis({3, 12, 50}, {3, 12})), 2);
  EXPECT_EQ(valueOf(resolveClassAxis({3, 50, 12}, {3, 12})), 1);
  expectContains(textOf(resolveClassAxis({3, 12, 12}, {3, 12})),
                 "--class-axis=1 as PyTorch takes them, --class-axis=2");
  expectContains(textOf(resolveClassAxis({3, 5, 5, 5}, {3, 5, 5})),
                 "axis 1 or along axis 3");
  expectContains(textOf(resolveClassAxis({3, 50, 12}, {3, 13})),
                 "expected [3, 50] (classes last) or [3, 12] (classes in axis "
                 "1)");
  expectContains(textOf(resolveClassAxis({3, 4}, {3, 4})), "expected [3]");
  expectContains(textOf(resolveClassAxis({3}, {3})), "rank 2 or more");
}

static const std::vector<float> logitValues = {2, 1, 0, 0, 3, 0,
                                               1, 1, 5, 9, 0, 0};

TEST(Metrics, LabelsAmongTheBest) {
  // Ranks of the labels: 1, 0, 2 (the first of equal logits comes first), 0.
  HostTensor logits = HostTensor::of<float>({4, 3}, logitValues);
  HostTensor labels = HostTensor::of<int32_t>({4}, {1, 1, 1, 0});
  for (auto [k, wanted] : {std::pair(1, 2), std::pair(2, 3), std::pair(3, 4)}) {
    MetricSums sums =
        valueOf(crossEntropyMetrics(logits, labels, {}, {}, {}, k));
    EXPECT_EQ(sums.inTop, wanted) << k;
    EXPECT_EQ(sums.correct, 2);
    EXPECT_EQ((Metric{Metric::Kind::TopK, k}.of(sums)), wanted / 4.0);
  }
  HostTensor bad = HostTensor::of<float>({1, 3}, {NAN, 1, 2});
  MetricSums nan = valueOf(crossEntropyMetrics(
      bad, HostTensor::of<int64_t>({1}, {2}), {}, {}, {}, 3));
  EXPECT_EQ(nan.inTop, 0);
}

TEST(Metrics, ByName) {
  auto metrics = valueOf(parseMetrics("accuracy, top5,perplexity,mse", "--m"));
  ASSERT_EQ(metrics.size(), 4u);
  MetricSums sums;
  sums.count = sums.labels = 4;
  sums.loss = 100; // smoothed, weighted: not what a perplexity is of
  sums.crossEntropy = 8;
  sums.correct = 1;
  sums.inTop = 3;
  sums.squaredError = 6;
  sums.compared = 12;
  const double wanted[] = {0.25, 0.75, std::exp(2.0), 0.5};
  const char *names[] = {"accuracy", "top5", "perplexity", "mse"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(metrics[i].of(sums), wanted[i]);
    EXPECT_EQ(metrics[i].name(), names[i]);
  }
  EXPECT_TRUE(metrics[1].isBetter(0.5, 0.4));
  EXPECT_TRUE(metrics[2].isBetter(0.4, 0.5));
  EXPECT_FALSE(metrics[2].isBetter(NAN, 0.5));
  EXPECT_TRUE(std::isnan(metrics[3].of(MetricSums())));
  for (const char *wrong : {"top", "top0", "f1", "", "top2,top3", "mse,mse"})
    EXPECT_NE(textOf(parseMetrics(wrong, "--m")), "") << wrong;
}

TEST(Metrics, AccuracyMaskAndIgnoredTargets) {
  HostTensor logits = HostTensor::of<float>({4, 3}, logitValues);
  HostTensor labels = HostTensor::of<int32_t>({4}, {0, 1, 1, -100});
  MetricSums sums = valueOf(crossEntropyMetrics(logits, labels, -100));
  EXPECT_EQ(sums.count, 3);
  EXPECT_EQ(sums.correct, 2);
  MetricSums masked =
      valueOf(crossEntropyMetrics(logits, labels, -100, {1, 0, 1, 1}));
  EXPECT_EQ(masked.count, 2);
  EXPECT_EQ(masked.correct, 1);
  // Parts add up to the whole.
  MetricSums rest =
      valueOf(crossEntropyMetrics(logits, labels, -100, {0, 1, 0, 0}));
  rest += masked;
  EXPECT_NEAR(rest.loss, sums.loss, 1e-12);
  EXPECT_EQ(rest.count, sums.count);
}

TEST(Metrics, LabelsOutOfRangeAreNamed) {
  HostTensor logits = HostTensor::of<float>({4, 3}, logitValues);
  HostTensor labels = HostTensor::of<int64_t>({4}, {0, 1, 3, 0});
  expectContains(textOf(crossEntropyMetrics(logits, labels)),
                 "target [2] = 3 is no class: there are 3");
  // A sample that is masked out is not looked at.
  EXPECT_EQ(textOf(crossEntropyMetrics(logits, labels, {}, {1, 1, 0, 1})), "");
}

TEST(Metrics, ExtremeLogits) {
  HostTensor logits = HostTensor::of<float>({2, 2}, {1e30f, -1e30f, 0, 0});
  HostTensor labels = HostTensor::of<int64_t>({2}, {0, 1});
  MetricSums sums = valueOf(crossEntropyMetrics(logits, labels));
  EXPECT_NEAR(sums.loss, std::log(2.0), 1e-12);
  EXPECT_EQ(sums.correct, 1) << "the first of equal logits wins";
  HostTensor bad = HostTensor::of<float>({1, 2}, {NAN, 1});
  MetricSums nan =
      valueOf(crossEntropyMetrics(bad, HostTensor::of<int64_t>({1}, {0})));
  EXPECT_TRUE(std::isnan(nan.loss));
  EXPECT_EQ(nan.correct, 0);
}

TEST(Metrics, WrongTypesAndShapes) {
  HostTensor logits = HostTensor::of<float>({4, 3}, logitValues);
  expectContains(
      textOf(crossEntropyMetrics(logits, HostTensor(DType::F32, {4}))),
      "integer targets");
  expectContains(textOf(crossEntropyMetrics(HostTensor(DType::I32, {4, 3}),
                                            HostTensor(DType::I64, {4}))),
                 "float type");
  expectContains(textOf(crossEntropyMetrics(logits, HostTensor(DType::I64, {4}),
                                            {}, {1, 1})),
                 "a mask of 2 entries for 4 samples");
  expectContains(
      textOf(squaredErrorMetrics(logits, HostTensor(DType::F32, {3, 4}))),
      "do not fit");
}

TEST(Metrics, SquaredErrorWithMask) {
  HostTensor a = HostTensor::of<float>({2, 2}, {1, 2, 3, 4});
  HostTensor b = HostTensor::of<float>({2, 2}, {0, 0, 0, 0});
  MetricSums sums = valueOf(squaredErrorMetrics(a, b, {1, 0}));
  EXPECT_EQ(sums.loss, 5);
  EXPECT_EQ(sums.count, 2);
}
