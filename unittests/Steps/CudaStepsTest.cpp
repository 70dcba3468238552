//===- CudaStepsTest.cpp - the promise on CUDA, without a GPU -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The golden networks, planned and lowered for CUDA, run on the stand-in
// driver: gradients against PyTorch's; losses, weights and optimizer state
// equal to the bit for two budgets; the highest byte written plus one is the
// planned peak; dropout drops what the CPU drops. The long tests have all
// networks, a third budget, and threads in both orders (else they race), which
// unit.CudaKernels has of every kernel.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"
#include "CudaHarness.h"

using namespace ckopt;
using namespace ckopt::test;

namespace {

CpuKernels &kernels() {
  static CpuKernels shared;
  return shared;
}

struct Case {
  std::string name, path, loss;
  int64_t batch;
  std::string optimizer = "adamw";
  double ema = 0;
  std::string precision = "f32";
};
void PrintTo(const Case &param, std::ostream *os) { *os << param.name; }

Case golden(const GoldenModel &model) {
  return {model.name, goldenPath(model.name, "model.onnx"), model.loss, 0};
}

CompileOptions optionsOf(const Case &param, const MemoryBudget &budget = {}) {
  CompileOptions options = trainingOptions(param.path, param.loss, budget);
  if (param.batch)
    options.import.batch = param.batch;
  options.step.remat.search.effort = 0; // any plan will do
  options.step.optimizer.kind = param.optimizer;
  options.step.optimizer.ema = param.ema;
  options.step.precision = *parseChoice<Precision>(param.precision);
  return options;
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

class CudaGradients
    : public testing::TestWithParam<std::pair<GoldenModel, std::string>> {};

TEST_P(CudaGradients, MatchPyTorch) {
  auto [model, precision] = GetParam();
  if (!isRepresentative(model.name) || precision != "f32")
    CKOPT_SKIP_UNLESS_LONG();
  CompileOptions options = optionsOf(golden(model));
  options.step.precision = *parseChoice<Precision>(precision);
  options.step.optimizer.kind.clear();
  options.step.evaluation = false;
  CudaStep step = get(compileForCuda(std::move(options)));
  ASSERT_TRUE(step.compilation);
  auto session = get(openOnStandin(step, kernels(), /*descending=*/false));
  ASSERT_TRUE(session);
  checkGradients(*session, model, gradientTolerance(model, precision));
  EXPECT_EQ(get(session->measuredPeak()), step.arena());
}

std::vector<std::pair<GoldenModel, std::string>> gradients() {
  std::vector<std::pair<GoldenModel, std::string>> result;
  for (const GoldenModel &model : goldenModels()) {
    result.push_back({model, "f32"});
    result.push_back({model, "bf16"});
  }
  // f16 differs by its instructions alone.
  for (size_t i : {0, 1})
    result.push_back({goldenModels()[i], "f16"});
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, CudaGradients, testing::ValuesIn(gradients()),
                         [](const auto &info) {
                           return info.param.first.name + "_" +
                                  info.param.second;
                         });

//===----------------------------------------------------------------------===//
// Budgets
//===----------------------------------------------------------------------===//

class CudaInvariance : public testing::TestWithParam<Case> {};

/// Trains in ascending order, and where asked in descending order over the same
/// code.
Outcome run(const MemoryBudget &budget, bool bothOrders) {
  Outcome outcomes[2];
  CudaStep step =
      get(compileForCuda(optionsOf(CudaInvariance::GetParam(), budget)));
  if (!step.compilation)
    return Outcome();
  for (bool descending : {false, true}) {
    if (descending && !bothOrders)
      return outcomes[0];
    SCOPED_TRACE(descending ? "descending" : "ascending");
    auto session = get(openOnStandin(step, kernels(), descending));
    if (!session)
      return Outcome();
    Outcome &outcome = outcomes[descending];
    train(*session, /*steps=*/2, outcome);
    outcome.planned = step.arena();
    // A byte that happened to equal the first pattern shows over another.
    if (outcome.measured != outcome.planned) {
      EXPECT_EQ(ckrt_pattern_refill(session->handle(), 2), CKRT_OK);
      check(session->run("step"));
      outcome.measured = get(session->measuredPeak());
    }
    EXPECT_EQ(outcome.measured, outcome.planned);
  }
  expectSame(outcomes[0], outcomes[1]);
  return outcomes[0];
}

TEST_P(CudaInvariance, EveryBudgetAndOrderGivesTheSameBits) {
  if (!isRepresentative(GetParam().name))
    CKOPT_SKIP_UNLESS_LONG();
  Outcome free = run({}, runsLongTests());
  ASSERT_FALSE(free.losses.empty());
  EXPECT_NE(free.losses.front(), free.losses.back()) << "nothing was trained";
  Outcome least = run(smallestBudget(), runsLongTests());
  EXPECT_LE(least.planned, free.planned);
  expectSame(free, least);
  if (!runsLongTests())
    return;
  int64_t budget = least.planned + (free.planned - least.planned) / 2;
  Outcome middle = run(budgetOf(budget), /*bothOrders=*/false);
  EXPECT_LE(middle.planned, budget);
  expectSame(free, middle);
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const GoldenModel &model : goldenModels())
    result.push_back(golden(model));
  // An optimizer in elementwise ops, with powers of decays in f64.
  Case nadam = result.front();
  nadam.name += "_nadam";
  nadam.optimizer = "nadam";
  nadam.ema = 0.9;
  result.push_back(nadam);
  // Activations stored in bf16: linear layers, convolutions, attention.
  for (const GoldenModel &model : goldenModels())
    if (model.name == "mlp" || model.name == "lenet" || model.name == "gpt" ||
        model.name == "mobile") {
      result.push_back(golden(model));
      result.back().name += "_bf16";
      result.back().precision = "bf16";
    }
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, CudaInvariance, testing::ValuesIn(cases()),
                         [](const auto &info) { return info.param.name; });

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

// One element that is dropped on one side alone changes a loss by far more than
// the order of sums does; another seed shows that.
TEST(CudaDropout, DropsWhatTheCpuDrops) {
  Case param = {"byte_gpt", dataPath("models/byte_gpt.onnx"), "cross_entropy",
                1};
  const int64_t steps = 2;
  Outcome cpu, device, other;
  {
    Loaded loaded = get(load(optionsOf(param)));
    ASSERT_TRUE(loaded.session);
    train(*loaded.session, steps, cpu);
  }
  {
    Loaded loaded = get(load(optionsOf(param)));
    ASSERT_TRUE(loaded.session);
    train(*loaded.session, steps, other, /*seed=*/43);
  }
  CudaStep step = get(compileForCuda(optionsOf(param)));
  ASSERT_TRUE(step.compilation);
  auto session = get(openOnStandin(step, kernels(), /*descending=*/false));
  ASSERT_TRUE(session);
  train(*session, steps, device);
  EXPECT_EQ(device.measured, step.arena());
  for (int64_t i = 0; i < steps; ++i) {
    EXPECT_NEAR(device.losses[i], cpu.losses[i], 1e-5 * cpu.losses[i]);
    EXPECT_GT(std::abs(other.losses[i] - cpu.losses[i]), 1e-3 * cpu.losses[i]);
  }
}

} // namespace
