//===- PlanningProblemTest.cpp - functions as planning problems -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Storages, updates and costs of small functions: test/Analysis, by the pass
// --print-planning-problem.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/PlanningProblem.h"
#include "TestModule.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace ckopt;

// Foreign ops: constants and destinations are no nodes, views no copies, and
// every op costs something.
TEST(PlanningProblem, ForeignOps) {
  TestModule test(R"(
func.func @f(%x: tensor<16xf32>) -> tensor<16xf32> {
  %c = arith.constant dense<1.0> : tensor<16xf32>
  %0 = arith.addf %x, %c : tensor<16xf32>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [4, 4] : tensor<16xf32> into tensor<4x4xf32>
  %2 = tensor.collapse_shape %1 [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
  %3 = arith.mulf %2, %0 : tensor<16xf32>
  return %3 : tensor<16xf32>
})");
  CostModel costs;
  auto problem = buildProblem(test.function("f"), costs);
  ASSERT_TRUE(succeeded(problem));
  ASSERT_EQ(problem->graph.nodes.size(), 2u);
  EXPECT_EQ(problem->graph.nodes[1].inputs.size(), 1u);
  for (const planner::Node &node : problem->graph.nodes) {
    EXPECT_GT(node.cost, 0);
    EXPECT_TRUE(node.recompute);
  }
}

// The estimate grows with the work and is the same for equal kernels.
TEST(CostModel, Proportions) {
  TestModule test(R"(
func.func private @small(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %y : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
func.func private @large(%x: tensor<1024x1024xf32>, %y: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %y : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %0 : tensor<1024x1024xf32>
}
func.func @step(%x: tensor<64x64xf32>, %y: tensor<1024x1024xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<1024x1024xf32>) {
  %0 = ckopt.kernel_call @small(%x, %x) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = ckopt.kernel_call @small(%0, %x) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = ckopt.kernel_call @large(%y, %y) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %0, %1, %2 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<1024x1024xf32>
})");
  CostModel costs;
  SmallVector<double> seconds;
  test.function("step").walk(
      [&](KernelCallOp call) { seconds.push_back(costs.seconds(call)); });
  ASSERT_EQ(seconds.size(), 3u);
  EXPECT_EQ(seconds[0], seconds[1]);
  EXPECT_GT(seconds[2], 20 * seconds[0]);
}

// The block is the path up to the last numbered component; names of ops and of
// submodules that merely end in a digit are none.
TEST(Values, RepeatedBlock) {
  EXPECT_EQ(getRepeatedBlock("/encoder/layers.3/attn/MatMul"),
            "/encoder/layers.3");
  EXPECT_EQ(getRepeatedBlock("/layers.1/blocks.0/mlp/fc1/Gemm"),
            "/layers.1/blocks.0");
  EXPECT_EQ(getRepeatedBlock("/layer1/layer1.0/conv1/Conv"),
            "/layer1/layer1.0");
  EXPECT_EQ(getRepeatedBlock("/conv1/Conv"), "");
  EXPECT_EQ(getRepeatedBlock("MatMul_12"), "");
  EXPECT_EQ(getRepeatedBlock(""), "");
}

// For ops of other dialects: which operands can be overwritten, which ops run
// once, in which order, at what cost.
TEST(PlanningProblem, RulesOfForeignOps) {
  TestModule test(R"(
func.func @f(%x: tensor<16xf32>, %y: tensor<16xi32>) -> tensor<16xi32> {
  %0 = arith.addf %x, %x {ckopt.cost = 3.0 : f64} : tensor<16xf32>
  %1 = tensor.extract_slice %0[0] [4] [1] : tensor<16xf32> to tensor<4xf32>
  %2 = arith.mulf %1, %1 : tensor<4xf32>
  %3 = "test.effect"(%2) : (tensor<4xf32>) -> tensor<16xi32>
  %4 = arith.divsi %y, %3 : tensor<16xi32>
  %5 = arith.addi %4, %3 : tensor<16xi32>
  return %5 : tensor<16xi32>
})");
  CostModel costs;
  auto problem = buildProblem(test.function("f"), costs);
  ASSERT_TRUE(succeeded(problem));
  const auto &nodes = problem->graph.nodes;
  ASSERT_EQ(nodes.size(), 5u);
  EXPECT_EQ(nodes[0].cost, 3.0);
  EXPECT_EQ(problem->costs.attribute, 1);
  EXPECT_EQ(problem->costs.analytic, 4);
  // A slice shows a part of its storage, so nothing may be written over it.
  EXPECT_TRUE(nodes[1].reuse.empty());
  EXPECT_EQ(nodes[1].inputs, nodes[0].outputs);
  EXPECT_FALSE(nodes[2].recompute);
  // The division may be undefined: it stays behind the effect.
  EXPECT_EQ(nodes[3].after, std::vector<planner::NodeId>{2});
  EXPECT_TRUE(nodes[3].recompute);
  EXPECT_TRUE(nodes[4].after.empty());
}

// The most specific entry of a profile counts; rates replace the defaults.
TEST(CostProfile, MostSpecificEntry) {
  auto profile = CostProfile::parse(R"({"format": "ckopt-profile/1",
    "rates": {"overhead": 0, "bandwidth": 1},
    "ops": [{"op": "math.exp", "seconds": 1},
            {"op": "math.exp", "type": "(tensor<4xf32>)->tensor<4xf32>", "seconds": 2},
            {"name": "n", "seconds": 3}]})");
  ASSERT_TRUE(bool(profile));
  CostOptions options;
  options.profile = std::make_shared<const CostProfile>(std::move(*profile));
  TestModule test(R"(
func.func @f(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  %0 = math.exp %x : tensor<8xf32>
  %1 = math.exp %y : tensor<4xf32>
  %2 = math.exp %y : tensor<4xf32> loc("n")
  %3 = math.tanh %y : tensor<4xf32>
  return
})");
  CostModel costs(options);
  SmallVector<double> seconds;
  for (Operation &op : test.function("f").front().without_terminator())
    seconds.push_back(costs.seconds(&op));
  // Ops that the profile does not name cost 32 bytes at one byte a second.
  EXPECT_EQ(seconds, (SmallVector<double>{1, 2, 3, 32}));
}

TEST(CostProfile, Errors) {
  auto errorOf = [](StringRef text) {
    auto profile = CostProfile::parse(text);
    return profile ? std::string() : llvm::toString(profile.takeError());
  };
  EXPECT_NE(errorOf("{"), "");
  EXPECT_NE(errorOf(R"({"format": "ckopt-profile/2"})").find("format"),
            std::string::npos);
  EXPECT_NE(errorOf(R"({"format": "ckopt-profile/1", "rates": {"vector": 0}})")
                .find("'vector' must be a positive number"),
            std::string::npos);
  EXPECT_NE(
      errorOf(
          R"({"format": "ckopt-profile/1", "ops": [{"op": "a", "seconds": 1}, {"op": "a", "seconds": 2}]})")
          .find("ops[1]: an entry for the same ops stands before it"),
      std::string::npos);
  EXPECT_NE(errorOf(R"({"format": "ckopt-profile/1", "ops": [{"seconds": 1}]})")
                .find("ops[0]: needs 'op' or 'name'"),
            std::string::npos);
}
