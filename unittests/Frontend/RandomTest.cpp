//===- RandomTest.cpp - random operators of files -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestUtils.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using namespace ckopt::test;

/// Returns result 0 of one node, and the import's remarks.
static reference::Tensor draw(const std::string &node, const std::string &x,
                              const HostTensor &value, int outputType = 1,
                              std::vector<MessageText> *remarks = nullptr) {
  mlir::MLIRContext context;
  std::string graph = node + " input { " + x + " } output { " +
                      info("y", outputType, {"n"}) + " }";
  ImportOptions options;
  options.allowUnread = true; // nodes without inputs
  auto model = importModel(modelFile("random.onnx", graph), options, context);
  if (!model) {
    ADD_FAILURE() << takeErrorText(model.takeError()).text;
    return {};
  }
  if (remarks)
    *remarks = model->remarks;
  return evaluate(*model, {{"x", value}})[0];
}

static std::string floatAttribute(const std::string &name, double value) {
  return "attribute { name: '" + name +
         "' type: FLOAT f: " + std::to_string(value) + " } ";
}

struct Moments {
  double mean = 0, deviation = 0, least = INFINITY, most = -INFINITY;
};
static Moments momentsOf(const reference::Tensor &t) {
  Moments m;
  for (int64_t i = 0; i < t.size(); ++i) {
    m.mean += t.get(i) / double(t.size());
    m.least = std::min(m.least, t.get(i));
    m.most = std::max(m.most, t.get(i));
  }
  for (int64_t i = 0; i < t.size(); ++i)
    m.deviation += std::pow(t.get(i) - m.mean, 2) / double(t.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

// 10,000 numbers have the moments that the attributes ask for, within five
// standard errors; the file's seed is not used, which is said.
TEST(Random, NormalAndUniform) {
  std::string x = info("x", 1, {"100", "100"});
  HostTensor zeros(DType::F32, {100, 100});
  std::vector<MessageText> remarks;
  Moments normal = momentsOf(
      draw("node { op_type: 'RandomNormalLike' name: 'r' input: 'x' output: "
           "'y' " +
               floatAttribute("mean", 3) + floatAttribute("scale", 2) +
               floatAttribute("seed", 7) + "}",
           x, zeros, 1, &remarks));
  EXPECT_NEAR(normal.mean, 3, 0.1);
  EXPECT_NEAR(normal.deviation, 2, 0.08);
  EXPECT_NE(std::find(remarks.begin(), remarks.end(),
                      "the seed of node 'r' is not used: random numbers follow "
                      "the seed of the run"),
            remarks.end());
  Moments uniform =
      momentsOf(draw("node { op_type: 'RandomUniform' output: 'y' " +
                         floatAttribute("low", -2) + floatAttribute("high", 4) +
                         "attribute { name: 'shape' type: INTS ints: 10000 } }",
                     x, zeros));
  EXPECT_GE(uniform.least, -2);
  EXPECT_LT(uniform.most, 4);
  EXPECT_NEAR(uniform.mean, 1, 0.09);
  EXPECT_NEAR(uniform.deviation, 6 / std::sqrt(12.0), 0.04);
}

// Two nodes of one kind draw different numbers.
TEST(Random, SitesDiffer) {
  std::string one = "node { op_type: 'RandomNormalLike' input: 'x' output: ";
  reference::Tensor difference =
      draw(one + "'a' } " + one +
               "'b' } node { op_type: 'Sub' input: 'a' "
               "input: 'b' output: 'y' }",
           info("x", 1, {"1000"}), HostTensor(DType::F32, {1000}));
  EXPECT_NEAR(momentsOf(difference).deviation, std::sqrt(2.0), 0.2);
}

TEST(Random, Bernoulli) {
  HostTensor p(DType::F32, {3, 4000});
  for (int64_t i = 0; i < 4000; ++i) {
    p.setDouble(4000 + i, 1);
    p.setDouble(8000 + i, 0.25);
  }
  reference::Tensor y =
      draw("node { op_type: 'Bernoulli' input: 'x' output: 'y' attribute { "
           "name: 'dtype' type: INT i: 7 } }",
           info("x", 1, {"3", "4000"}), p, 7);
  double sums[3] = {};
  for (int64_t i = 0; i < y.size(); ++i)
    sums[i / 4000] += y.get(i);
  EXPECT_EQ(sums[0], 0);
  EXPECT_EQ(sums[1], 4000);
  EXPECT_NEAR(sums[2], 1000, 140);
}
