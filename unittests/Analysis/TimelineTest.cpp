//===- TimelineTest.cpp - live bytes over a planned step ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestModule.h"
#include "ckopt/Analysis/MemoryTimeline.h"
#include "ckopt/Fuse/Passes.h"
#include "ckopt/MemoryPlan/MemoryPlan.h"
#include "ckopt/Remat/Remat.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace ckopt;

static const char *const step = R"(
func.func @step(%x: tensor<64x64xf32> {ckopt.name = "x", ckopt.role = "input"},
                %w: tensor<64x64xf32> {ckopt.name = "w", ckopt.role = "parameter"},
                %m: tensor<64x64xf32> {ckopt.name = "w/v", ckopt.role = "optimizer_state"},
                %lr: tensor<f32> {ckopt.role = "learning_rate"}, %s: tensor<i64> {ckopt.role = "step"})
    -> (tensor<f32>, tensor<64x64xf32> {ckopt.updates = 1 : i64}, tensor<64x64xf32> {ckopt.updates = 2 : i64}) {
  %a = ckopt.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = ckopt.softmax %a {axis = 1} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = ckopt.matmul %b, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = ckopt.softmax %c {axis = 1} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = ckopt.matmul %d, %c : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %l = ckopt.reduce sum %e {axes = array<i64: 0, 1>, keepdims = false} : (tensor<64x64xf32>) -> tensor<f32>
  %g = ckopt.matmul %e, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %h = ckopt.matmul %g, %a : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %n, %v = ckopt.sgd %w, %h, %lr, %s velocity %m {momentum = 0.9, dampening = 0.0, weight_decay = 0.0} : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<f32>, tensor<i64>, tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>)
  return %l, %n, %v : tensor<f32>, tensor<64x64xf32>, tensor<64x64xf32>
})";

static int64_t peakOf(const TimelinePanel &panel) {
  int64_t peak = 0;
  for (const TimelineStep &entry : panel.steps)
    peak = std::max(peak, entry.total());
  return peak;
}

static void fuse(ModuleOp module) {
  PassManager manager(module.getContext());
  manager.addPass(createFusePass());
  ASSERT_TRUE(succeeded(manager.run(module)));
}

// The picture's peak is the plan's load, with and without recomputation, and
// its parts have the right kinds.
TEST(Timeline, PeakIsTheLoad) {
  for (auto kind :
       {MemoryBudget::Kind::Unlimited, MemoryBudget::Kind::Minimum}) {
    TestModule test(step);
    ASSERT_TRUE(test.module);
    fuse(*test.module);
    func::FuncOp function = test.function("step");
    RematOptions options;
    options.budget.kind = kind;
    RematResult result;
    ASSERT_TRUE(
        succeeded(runRemat(FunctionOpInterface(function), options, result)));
    const std::vector<RematPlan> &plans = result.plans;
    ASSERT_TRUE(succeeded(planMemory(function)));
    EXPECT_LE(plans[0].arena, plans[0].budgetBytes);
    CostModel costs;
    TimelinePanel panel = buildTimeline(function, "plan", 0, costs);
    ASSERT_EQ(panel.steps.size(), plans[0].result.plan.steps.size());
    // Sizes here are multiples of the alignment but for the scalars.
    EXPECT_NEAR(double(peakOf(panel)), double(plans[0].load), 256);
    EXPECT_LE(peakOf(panel), (panel.plannedPeak + 63) / 64 * 64);
    const int64_t tensor = 64 * 64 * 4;
    bool gradient = false, recomputed = false;
    for (TimelineStep &entry : panel.steps) {
      EXPECT_EQ(entry[MemoryKind::Parameters], tensor);
      EXPECT_EQ(entry[MemoryKind::OptimizerState], tensor);
      EXPECT_EQ(entry[MemoryKind::Data], tensor);
      gradient |= entry[MemoryKind::Gradients] == tensor;
      recomputed |= entry.recomputed;
    }
    EXPECT_TRUE(gradient);
    EXPECT_EQ(recomputed, plans[0].recomputedSteps() > 0);
    if (kind == MemoryBudget::Kind::Minimum) {
      EXPECT_GT(plans[0].recomputedSteps(), 0);
    }
  }
}

// A smaller budget than the least gives no plan, the least that would do, and
// leaves the function alone.
TEST(Remat, InfeasibleLeavesTheFunction) {
  TestModule test(step);
  fuse(*test.module);
  func::FuncOp function = test.function("step");
  CostModel costs;
  RematOptions options;
  options.budget.kind = MemoryBudget::Kind::Minimum;
  auto least = planRemat(function, options, costs);
  ASSERT_TRUE(succeeded(least));
  ASSERT_TRUE(least->result.hasPlan());
  options.budget.kind = MemoryBudget::Kind::Bytes;
  options.budget.bytes = least->fixedBytes;
  auto none = planRemat(function, options, costs);
  ASSERT_TRUE(succeeded(none));
  EXPECT_FALSE(none->result.hasPlan());
  EXPECT_EQ(none->result.status(), planner::Status::Infeasible);
  EXPECT_GE(none->result.plan.minimumBudget, least->memoryBound);
  EXPECT_FALSE(function->hasAttr("ckopt.plan"));
}

// A program that uses the library on ops of other dialects need not know that
// clones need ckopt's.
TEST(Remat, ApplyingNeedsNoDialectOfTheCaller) {
  MLIRContext context;
  context
      .loadDialect<func::FuncDialect, math::MathDialect, arith::ArithDialect>();
  auto module = parseSourceString<ModuleOp>(R"(
func.func @f(%x: tensor<256xf32>) -> tensor<256xf32> {
  %a = math.exp %x : tensor<256xf32>
  %b = math.tanh %a : tensor<256xf32>
  %c = math.sin %b : tensor<256xf32>
  %d = math.cos %c : tensor<256xf32>
  %g = arith.mulf %d, %c : tensor<256xf32>
  %h = arith.mulf %g, %b : tensor<256xf32>
  %i = arith.mulf %h, %a : tensor<256xf32>
  return %i : tensor<256xf32>
})",
                                            &context);
  ASSERT_TRUE(module);
  CostModel costs;
  RematOptions options;
  options.budget.kind = MemoryBudget::Kind::Minimum;
  func::FuncOp function = *module->getOps<func::FuncOp>().begin();
  auto plan = planRemat(function, options, costs);
  ASSERT_TRUE(succeeded(plan));
  ASSERT_GT(plan->recomputedSteps(), 0);
  applyRemat(function, *plan);
  EXPECT_TRUE(succeeded(verify(*module)));
}

// Bytes that other functions' arguments take count against the budget.
TEST(Remat, ReservedBytesCount) {
  TestModule test(step);
  fuse(*test.module);
  func::FuncOp function = test.function("step");
  CostModel costs;
  RematOptions options;
  auto free = planRemat(function, options, costs);
  options.reservedBytes = 1 << 20;
  auto reserved = planRemat(function, options, costs);
  ASSERT_TRUE(succeeded(free) && succeeded(reserved));
  EXPECT_EQ(reserved->fullArena, free->fullArena + (1 << 20));
  options.budget.kind = MemoryBudget::Kind::Bytes;
  options.budget.bytes = free->fullArena;
  auto none = planRemat(function, options, costs);
  ASSERT_TRUE(succeeded(none));
  EXPECT_FALSE(none->result.hasPlan());
}
