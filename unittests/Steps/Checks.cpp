//===- Checks.cpp - what must hold of steps, wherever they run ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Checks.h"
#include "ckopt/Support/Npz.h"
#include "llvm/ADT/StringSwitch.h"

#include <bit>
#include <cmath>

using namespace ckopt;
using namespace ckopt::test;
using runtime::TensorRole;

static double norm(const HostTensor &a) {
  double sum = 0;
  for (int64_t i = 0; i < a.numElements(); ++i)
    sum += a.getDouble(i) * a.getDouble(i);
  return std::sqrt(sum);
}

static double distance(const HostTensor &a, const HostTensor &b) {
  double sum = 0;
  for (int64_t i = 0; i < a.numElements(); ++i) {
    double d = a.getDouble(i) - b.getDouble(i);
    sum += d * d;
  }
  return std::sqrt(sum);
}

/// Root mean square over all reference gradients, as the scale for parameters
/// whose gradient is zero by construction.
static double modelScale(const TensorMap &reference) {
  double sum = 0, count = 0;
  for (const auto &[name, value] : reference)
    if (llvm::StringRef(name).starts_with("grad/")) {
      sum += norm(value) * norm(value);
      count += double(value.numElements());
    }
  return std::sqrt(sum / count);
}

double ckopt::test::gradientTolerance(const GoldenModel &model,
                                      llvm::StringRef precision) {
  double low = llvm::StringSwitch<double>(model.name)
                   .Cases({"mlp", "gpt", "vit", "lstm"}, 0.03)
                   .Case("lenet", 0.15)
                   .Case("mobile", 0.35)
                   .Default(0.6);
  return llvm::StringSwitch<double>(precision)
      .Case("f64", 1e-6)
      .Case("bf16", low)
      .Case("f16", low / 2)
      .Default(1e-4);
}

void ckopt::test::checkGradients(Session &session, const GoldenModel &model,
                                 double tolerance) {
  StepData data;
  data.path = goldenPath(model.name, "data.npz");
  data.loss = parseChoice<HostLoss>(model.loss).value_or(HostLoss::None);
  auto source = get(openSource(session, data, DatasetSource::Order::AsStored));
  check(source->seek(/*seed=*/0, {}));
  EXPECT_EQ(get(feed(session, *source, data)), *source->numSamples());
  check(session.fill(TensorRole::Step, 1));
  check(session.run("step"));

  TensorMap reference = get(readNpz(data.path));
  double loss = get(readLoss(session));
  double wanted = reference.find("loss")->getDouble(0);
  EXPECT_LT(std::abs(loss - wanted) / std::abs(wanted), tolerance);
  double scale = modelScale(reference);
  for (const auto &[name, value] : reference) {
    if (!llvm::StringRef(name).starts_with("grad/"))
      continue;
    auto index = session.find(name);
    ASSERT_TRUE(bool(index)) << llvm::toString(index.takeError());
    HostTensor gradient = get(session.read(*index));
    ASSERT_EQ(gradient.shape(), value.shape()) << name;
    double size = std::sqrt(double(value.numElements()));
    double error =
        distance(gradient, value) / std::max(norm(value), 0.1 * scale * size);
    EXPECT_LT(error, tolerance) << name;
  }
}

/// Inputs that differ from step to step, targets within the classes.
void ckopt::test::feedNumbers(Session &session, int64_t step) {
  for (TensorRole role : {TensorRole::Input, TensorRole::Target})
    for (int64_t index : session.tensors(role)) {
      const runtime::TensorInfo &info = session.infoOf(index);
      HostTensor value(info.dtype, info.shape);
      for (int64_t i = 0; i < value.numElements(); ++i) {
        int64_t mixed = (i * 7919 + step * 104729 + 13) % 10007;
        value.setDouble(i, isFloat(value.dtype()) ? double(mixed) / 5003.5 - 1
                                                  : double(mixed % 3));
      }
      check(session.write(index, value));
    }
}

void ckopt::test::train(Session &session, int64_t steps, Outcome &outcome,
                        int64_t seed) {
  check(session.write(session.tensors(TensorRole::Seed).empty()
                          ? session.tensors(TensorRole::Step).front()
                          : session.tensors(TensorRole::Seed).front(),
                      HostTensor::scalar<int64_t>(seed)));
  check(session.fill(TensorRole::LearningRate, 1e-3));
  for (int64_t step = 1; step <= steps; ++step) {
    feedNumbers(session, step);
    check(session.fill(TensorRole::Step, double(step)));
    check(session.run("step"));
    outcome.losses.push_back(get(readLoss(session)));
  }
  outcome.weights = get(session.weights(/*optimizerState=*/true));
  outcome.measured = get(session.measuredPeak());
}

void ckopt::test::expectSame(const Outcome &a, const Outcome &b) {
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

MemoryBudget ckopt::test::budgetOf(int64_t bytes) {
  MemoryBudget budget;
  budget.kind = MemoryBudget::Kind::Bytes;
  budget.bytes = bytes;
  return budget;
}

MemoryBudget ckopt::test::smallestBudget() {
  MemoryBudget budget;
  budget.kind = MemoryBudget::Kind::Minimum;
  return budget;
}
