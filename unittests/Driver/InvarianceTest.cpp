//===- InvarianceTest.cpp - no budget changes a bit -----------------------===//
//
// The promise: loss and every parameter after N steps are bit-equal for every
// budget; and the arena is exactly as large as planned, nothing of a tensor's
// size is allocated beside it.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"
#include "ckopt/Support/Philox.h"

using namespace ckopt;
using namespace ckopt::test;
using runtime::TensorRole;

namespace {

struct Case {
  std::string name, path, loss;
  int64_t batch;
};
void PrintTo(const Case &param, std::ostream *os) { *os << param.name; }

class Invariance : public testing::TestWithParam<Case> {};

/// What a run of a few steps leaves behind.
struct Outcome {
  std::vector<double> losses;
  TensorMap weights;
  int64_t planned = 0, measured = 0, recomputed = 0;
};

/// Inputs that differ from step to step, targets within the classes.
void feedNumbers(Session &session, int64_t step) {
  for (TensorRole role : {TensorRole::Input, TensorRole::Target})
    for (int64_t index : session.tensors(role)) {
      const runtime::TensorInfo &info = session.info_of(index);
      HostTensor value(hostType(info.dtype), info.shape);
      for (int64_t i = 0; i < value.numElements(); ++i) {
        int64_t mixed = (i * 7919 + step * 104729 + 13) % 10007;
        value.setDouble(i, isFloat(value.dtype()) ? double(mixed) / 5003.5 - 1
                                                  : double(mixed % 3));
      }
      check(session.write(index, value));
    }
}

Outcome run(const Case &param, const MemoryBudget &budget, int64_t steps = 5) {
  Outcome outcome;
  CompileOptions options = trainingOptions(param.path, param.loss, budget);
  if (param.batch)
    options.import.batch = param.batch;
  SessionOptions sessionOptions;
  sessionOptions.countAllocations = true;
  Loaded loaded = get(load(options, sessionOptions));
  if (!loaded.session)
    return outcome;
  Session &session = *loaded.session;
  check(session.write(session.tensors(TensorRole::Seed).empty()
                          ? session.tensors(TensorRole::Step).front()
                          : session.tensors(TensorRole::Seed).front(),
                      HostTensor::scalar<int64_t>(42)));
  check(session.fill(TensorRole::LearningRate, 1e-3));
  for (int64_t step = 1; step <= steps; ++step) {
    feedNumbers(session, step);
    check(session.fill(TensorRole::Step, double(step)));
    check(session.run("step"));
    outcome.losses.push_back(get(readLoss(session)));
  }
  outcome.weights = get(session.weights(/*optimizerState=*/true));
  outcome.planned = loaded.compilation->summary().figures.arena;
  outcome.recomputed = loaded.compilation->summary().figures.recomputed;
  outcome.measured = get(session.measuredPeak());
  ckrt_allocation_stats stats = {};
  stats.size = sizeof(stats);
  EXPECT_EQ(ckrt_allocations(session.handle(), &stats), CKRT_OK);
  EXPECT_EQ(stats.large, 0) << "largest " << stats.largest;
  return outcome;
}

void expectSame(const Outcome &a, const Outcome &b) {
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (size_t i = 0; i < a.losses.size(); ++i)
    EXPECT_EQ(std::bit_cast<uint64_t>(a.losses[i]),
              std::bit_cast<uint64_t>(b.losses[i]))
        << "step " << i + 1;
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (const auto &[name, value] : a.weights) {
    const HostTensor *other = b.weights.find(name);
    ASSERT_TRUE(other) << name;
    EXPECT_TRUE(value.bitEqual(*other)) << name;
  }
}

MemoryBudget bytes(int64_t count) {
  MemoryBudget budget;
  budget.kind = MemoryBudget::Kind::Bytes;
  budget.bytes = count;
  return budget;
}

TEST_P(Invariance, EveryBudgetGivesTheSameBits) {
  Outcome free = run(GetParam(), {});
  ASSERT_FALSE(free.losses.empty());
  EXPECT_EQ(free.measured, free.planned);
  EXPECT_NE(free.losses.front(), free.losses.back()) << "nothing was trained";
  MemoryBudget minimum;
  minimum.kind = MemoryBudget::Kind::Minimum;
  Outcome least = run(GetParam(), minimum);
  EXPECT_EQ(least.measured, least.planned);
  EXPECT_LE(least.planned, free.planned);
  expectSame(free, least);
  for (double share : {0.5, 0.75}) {
    int64_t budget =
        least.planned + int64_t(double(free.planned - least.planned) * share);
    Outcome middle = run(GetParam(), bytes(budget));
    EXPECT_LE(middle.planned, budget);
    EXPECT_EQ(middle.measured, middle.planned);
    expectSame(free, middle);
  }
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
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, Invariance, testing::ValuesIn(cases()),
                         [](const auto &info) { return info.param.name; });

} // namespace
