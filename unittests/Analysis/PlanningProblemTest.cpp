//===- PlanningProblemTest.cpp - functions as planning problems -----------===//
#include "ckopt/Analysis/PlanningProblem.h"
#include "TestModule.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace ckopt;

static const char *const kernels = R"(
func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.exp %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @u(%p: tensor<16xf32>, %g: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.accumulate %p, %g : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
)";

// Views share their base's storage; reuse pairs, workspaces and costs arrive.
TEST(PlanningProblem, Storages) {
  TestModule test(std::string(kernels) + R"(
func.func @step(%x: tensor<16xf32>) -> tensor<4x4xf32> {
  %0 = ckopt.kernel_call @f(%x) {cost = 3.0, workspace = 100 : i64, reuse = array<i64: 0, 0>} : (tensor<16xf32>) -> tensor<16xf32>
  %1 = ckopt.reshape %0 : (tensor<16xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
})");
  CostModel costs;
  auto problem = buildProblem(test.function("step"), costs);
  ASSERT_TRUE(succeeded(problem));
  const planner::Graph &graph = problem->graph;
  ASSERT_EQ(graph.nodes.size(), 1u);
  ASSERT_EQ(graph.values.size(), 2u);
  EXPECT_EQ(graph.values[0].kind, planner::ValueKind::Persistent);
  EXPECT_EQ(graph.values[1].kind, planner::ValueKind::Output);
  EXPECT_EQ(graph.values[1].bytes, 64);
  EXPECT_EQ(graph.nodes[0].cost, 3.0);
  EXPECT_EQ(graph.nodes[0].workspace, 100);
  ASSERT_EQ(graph.nodes[0].reuse.size(), 1u);
  EXPECT_EQ(problem->argumentBytes, 64);
  EXPECT_EQ(planner::validate(graph), "");
}

// An update mutates its argument, runs once, and comes after the last reader
// of the old value; a reader of the new value comes after it.
TEST(PlanningProblem, Updates) {
  TestModule test(std::string(kernels) + R"(
func.func @step(%p: tensor<16xf32>, %g: tensor<16xf32>) -> (tensor<16xf32> {ckopt.updates = 0 : i64}, tensor<16xf32>) {
  %n = ckopt.kernel_call @u(%p, %g) {updates = array<i64: 0, 0>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %r = ckopt.kernel_call @f(%p) : (tensor<16xf32>) -> tensor<16xf32>
  return %n, %r : tensor<16xf32>, tensor<16xf32>
})");
  CostModel costs;
  auto problem = buildProblem(test.function("step"), costs);
  ASSERT_TRUE(succeeded(problem));
  const planner::Graph &graph = problem->graph;
  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_TRUE(graph.nodes[0].mutates.empty());
  EXPECT_TRUE(graph.nodes[0].recompute);
  ASSERT_EQ(graph.nodes[1].mutates.size(), 1u);
  EXPECT_EQ(graph.nodes[1].mutates[0], problem->arguments[0]);
  EXPECT_FALSE(graph.nodes[1].recompute);
  EXPECT_TRUE(graph.nodes[1].outputs.empty());
}

// A result that replaces an argument which its maker does not read (a sum set
// back to zero) is written to the argument's bytes, too.
TEST(PlanningProblem, Reset) {
  TestModule test(std::string(kernels) + R"(
func.func @step(%p: tensor<16xf32>, %x: tensor<16xf32>) -> (tensor<16xf32> {ckopt.updates = 0 : i64}, tensor<16xf32>) {
  %n = ckopt.kernel_call @f(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %r = ckopt.kernel_call @f(%p) : (tensor<16xf32>) -> tensor<16xf32>
  return %n, %r : tensor<16xf32>, tensor<16xf32>
})");
  CostModel costs;
  auto problem = buildProblem(test.function("step"), costs);
  ASSERT_TRUE(succeeded(problem));
  ASSERT_EQ(problem->graph.nodes.size(), 2u);
  EXPECT_EQ(problem->graph.nodes[1].mutates.size(), 1u);
}

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
