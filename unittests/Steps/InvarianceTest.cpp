//===- InvarianceTest.cpp - no budget changes a bit -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The promise: loss and every parameter after N steps are bit-equal for every
// budget; and the arena is exactly as large as planned, nothing of a tensor's
// size is allocated beside it.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"

using namespace ckopt;
using namespace ckopt::test;

namespace {

struct Case {
  std::string name, path, loss;
  int64_t batch;
  OptimizerSettings optimizer = adamw();
  std::vector<std::string> groups = {};
  /// A budget halfway between the smallest and none, too.
  bool middle = true;
  std::string precision = "f32";
  int64_t chunkRows = 0;
  std::string attention = "auto";
  std::string products = "f32"; ///< class of products
  double scale = 65536;         ///< with f16: where it starts
  bool isLong = false;          ///< of a kind that other cases have, too

  static OptimizerSettings adamw() {
    OptimizerSettings settings;
    settings.kind = "adamw";
    return settings;
  }
};
void PrintTo(const Case &param, std::ostream *os) { *os << param.name; }

class Invariance : public testing::TestWithParam<Case> {};

Outcome run(const Case &param, const MemoryBudget &budget, int64_t steps = 5) {
  Outcome outcome;
  CompileOptions options = trainingOptions(param.path, param.loss, budget);
  if (param.batch)
    options.import.batch = param.batch;
  options.step.optimizer = param.optimizer;
  options.step.precision = *parseChoice<Precision>(param.precision);
  options.step.chunkRows = param.chunkRows;
  options.step.matmulPrecision = *parseChoice<MatmulPrecision>(param.products);
  options.step.lossScaling.initial = param.scale;
  options.step.attention = *parseChoice<Attention>(param.attention);
  for (const std::string &group : param.groups)
    options.groups.push_back(
        get(parseParameterGroup(group, *findOptimizer(param.optimizer.kind))));
  SessionOptions sessionOptions;
  sessionOptions.countAllocations = true;
  Loaded loaded = get(load(options, sessionOptions));
  if (!loaded.session)
    return outcome;
  Session &session = *loaded.session;
  train(session, steps, outcome);
  outcome.planned = loaded.compilation->summary().figures.arena;
  outcome.recomputed = loaded.compilation->summary().figures.recomputed;
  ckrt_allocation_stats stats = {};
  stats.size = sizeof(stats);
  EXPECT_EQ(ckrt_allocations(session.handle(), &stats), CKRT_OK);
  EXPECT_EQ(stats.large, 0) << "largest " << stats.largest;
  return outcome;
}

TEST_P(Invariance, EveryBudgetGivesTheSameBits) {
  if (GetParam().isLong)
    CKOPT_SKIP_UNLESS_LONG();
  Outcome free = run(GetParam(), {});
  ASSERT_FALSE(free.losses.empty());
  EXPECT_EQ(free.measured, free.planned);
  EXPECT_NE(free.losses.front(), free.losses.back()) << "nothing was trained";
  Outcome least = run(GetParam(), smallestBudget());
  EXPECT_EQ(least.measured, least.planned);
  EXPECT_LE(least.planned, free.planned);
  expectSame(free, least);
  if (!GetParam().middle)
    return;
  int64_t budget = least.planned + (free.planned - least.planned) / 2;
  Outcome middle = run(GetParam(), budgetOf(budget));
  EXPECT_LE(middle.planned, budget);
  EXPECT_EQ(middle.measured, middle.planned);
  expectSame(free, middle);
}

/// A small GPT with dropouts, also of attention's probabilities.
Case gptWithDropout(const std::string &attention) {
  Case result = {"gpt_dropout_" + attention,
                 dataPath("models/reduced/gpt2_dropout.onnx"), "cross_entropy",
                 0};
  result.attention = attention;
  return result;
}

// Attention drops the same probabilities by blocks as by products.
TEST(Invariance, AttentionKeepsTheMasksOfDropout) {
  Outcome blocks = run(gptWithDropout("on"), {});
  Outcome products = run(gptWithDropout("off"), {});
  ASSERT_EQ(blocks.losses.size(), products.losses.size());
  EXPECT_NE(blocks.planned, products.planned);
  for (size_t i = 0; i < blocks.losses.size(); ++i)
    EXPECT_NEAR(blocks.losses[i], products.losses[i], 2e-4) << "step " << i;
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const GoldenModel &model : goldenModels())
    result.push_back(
        {model.name, goldenPath(model.name, "model.onnx"), model.loss, 0});
  result.push_back(
      {"digits_cnn", dataPath("models/digits_cnn.onnx"), "cross_entropy", 32});
  result.push_back(
      {"byte_gpt", dataPath("models/byte_gpt.onnx"), "cross_entropy", 2});
  // The head in chunks, the last of them smaller: the same sums, in the same
  // order, whether its weight's gradient is made chunk by chunk or later.
  Case chunks = result.back();
  chunks.name += "_chunks";
  chunks.chunkRows = 48;
  result.push_back(chunks);
  result.push_back(gptWithDropout("on"));
  // What is rounded to bf16 follows from the program, not from what the planner
  // repeats.
  for (size_t i = 0, count = result.size(); i < count; ++i) {
    Case low = result[i];
    low.name += "_bf16";
    low.precision = "bf16";
    result.push_back(low);
  }
  // Rounded operands may be made again, an added product of chunks too.
  chunks.name += "_by_bf16";
  chunks.products = "bf16";
  result.push_back(chunks);
  // Rounding to f16 does so, too; its losses are scaled by what updates made of
  // the scale.
  for (const char *name : {"mlp", "lenet", "gpt", "resnet", "byte_gpt_chunks"})
    for (size_t i = 0, count = result.size(); i < count; ++i)
      if (result[i].name == name) {
        Case low = result[i];
        low.name += "_f16";
        low.precision = "f16";
        low.scale = 0x1p30;
        result.push_back(low);
      }
  for (Case &one : result)
    one.isLong =
        !llvm::is_contained({"mlp", "lenet", "resnet", "gpt", "lstm",
                             "digits_cnn", "byte_gpt_chunks", "gpt_dropout_on",
                             "lenet_bf16", "gpt_bf16", "mlp_f16", "lenet_f16"},
                            one.name);
  // Every optimizer, with averages and a group of its own.
  const GoldenModel model = goldenModels().front();
  for (const OptimizerKind &kind : optimizerKinds()) {
    Case one = {model.name + "_" + kind.name,
                goldenPath(model.name, "model.onnx"), model.loss, 0};
    one.optimizer.kind = kind.name;
    one.optimizer.ema = 0.9;
    if (kind.find("momentum"))
      one.optimizer.values["momentum"] = 0.9;
    if (kind.find("amsgrad"))
      one.optimizer.values["amsgrad"] = 1;
    one.groups = {"bias:weight_decay=0.1,lr=1e-4"};
    one.middle = false;
    result.push_back(one);
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, Invariance, testing::ValuesIn(cases()),
                         [](const auto &info) { return info.param.name; });

} // namespace
