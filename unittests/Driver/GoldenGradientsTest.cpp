//===- GoldenGradientsTest.cpp - gradients against PyTorch in float64 -----===//
//
// Each golden network holds the loss and every parameter's gradient as PyTorch
// computes them in float64. The compiled step has to give them, in f32 and in
// f64; parameters whose gradient is missing, or has another shape, fail.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"
#include "ckopt/Support/Npz.h"

#include <cmath>

using namespace ckopt;
using namespace ckopt::test;
using runtime::TensorRole;

namespace {

struct Case {
  GoldenModel model;
  bool f64;
};
void PrintTo(const Case &param, std::ostream *os) { *os << param.model.name; }

double norm(const HostTensor &a) {
  double sum = 0;
  for (int64_t i = 0; i < a.numElements(); ++i)
    sum += a.getDouble(i) * a.getDouble(i);
  return std::sqrt(sum);
}

double distance(const HostTensor &a, const HostTensor &b) {
  double sum = 0;
  for (int64_t i = 0; i < a.numElements(); ++i) {
    double d = a.getDouble(i) - b.getDouble(i);
    sum += d * d;
  }
  return std::sqrt(sum);
}

class GoldenGradients : public testing::TestWithParam<Case> {};

/// Root mean square over all reference gradients: what "small" means where one
/// parameter's gradient is zero by construction.
double modelScale(const TensorMap &reference) {
  double sum = 0, count = 0;
  for (const auto &[name, value] : reference)
    if (llvm::StringRef(name).starts_with("grad/")) {
      sum += norm(value) * norm(value);
      count += double(value.numElements());
    }
  return std::sqrt(sum / count);
}

TEST_P(GoldenGradients, MatchPyTorch) {
  const Case &param = GetParam();
  CompileOptions options = trainingOptions(
      goldenPath(param.model.name, "model.onnx"), param.model.loss);
  options.step.optimizer.kind.clear();
  options.step.evaluation = false;
  options.import.computeType = param.f64 ? "f64" : "";
  options.keepDenormals = param.f64;
  Loaded loaded = get(load(options));
  ASSERT_TRUE(loaded.session);
  Session &session = *loaded.session;
  DataOptions data;
  data.path = goldenPath(param.model.name, "data.npz");
  data.loss = param.model.loss;
  Dataset dataset = get(loadDataset(session, data));
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < dataset.numSamples(); ++i)
    samples.push_back(i);
  check(feed(session, dataset, samples));
  check(session.fill(TensorRole::Step, 1));
  check(session.run("step"));

  TensorMap reference = get(readNpz(data.path));
  double tolerance = param.f64 ? 1e-6 : 1e-4;
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
  EXPECT_EQ(get(session.measuredPeak()),
            loaded.compilation->summary().figures.arena);
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const GoldenModel &model : goldenModels())
    for (bool f64 : {false, true})
      result.push_back({model, f64});
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenGradients, testing::ValuesIn(cases()),
                         [](const auto &info) {
                           return info.param.model.name +
                                  (info.param.f64 ? "_f64" : "_f32");
                         });

} // namespace
