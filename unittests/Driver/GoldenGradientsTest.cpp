//===- GoldenGradientsTest.cpp - gradients against PyTorch in float64 -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each golden network holds the loss and every parameter's gradient as PyTorch
// computes them in float64. The compiled step has to give them, in f32 and in
// f64; parameters whose gradient is missing, or has another shape, fail.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"

using namespace ckopt;
using namespace ckopt::test;

namespace {

struct Case {
  GoldenModel model;
  bool f64;
};
void PrintTo(const Case &param, std::ostream *os) { *os << param.model.name; }

class GoldenGradients : public testing::TestWithParam<Case> {};

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
  checkGradients(session, param.model, param.f64 ? 1e-6 : 1e-4);
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
