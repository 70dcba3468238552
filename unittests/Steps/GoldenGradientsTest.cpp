//===- GoldenGradientsTest.cpp - gradients against PyTorch in float64 -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each golden network holds the loss and every parameter's gradient as PyTorch
// computes them in float64. The compiled step has to give them, in f32, in f64
// and in mixed precision (f16 with a scaled loss, whose gradients come back
// unscaled); parameters whose gradient is missing, or has another
// shape, fail.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"

using namespace ckopt;
using namespace ckopt::test;

namespace {

struct Case {
  GoldenModel model;
  std::string precision;
  double tolerance;
};
void PrintTo(const Case &param, std::ostream *os) { *os << param.model.name; }

class GoldenGradients : public testing::TestWithParam<Case> {};

TEST_P(GoldenGradients, MatchPyTorch) {
  const Case &param = GetParam();
  bool isNarrow = param.precision == "bf16" || param.precision == "f16";
  if (isNarrow && !isRepresentative(param.model.name))
    CKOPT_SKIP_UNLESS_LONG();
  CompileOptions options = trainingOptions(
      goldenPath(param.model.name, "model.onnx"), param.model.loss);
  options.step.optimizer.kind.clear();
  options.step.evaluation = false;
  bool f64 = param.precision == "f64";
  options.import.f64 = f64;
  options.keepDenormals = f64;
  options.step.precision =
      parseChoice<Precision>(param.precision).value_or(Precision::F32);
  Loaded loaded = get(load(options));
  ASSERT_TRUE(loaded.session);
  Session &session = *loaded.session;
  checkGradients(session, param.model, param.tolerance);
  EXPECT_EQ(get(session.measuredPeak()),
            loaded.compilation->summary().figures.arena);
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const GoldenModel &model : goldenModels())
    for (const char *precision : {"f32", "f64", "bf16", "f16"})
      result.push_back({model, precision, gradientTolerance(model, precision)});
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenGradients, testing::ValuesIn(cases()),
                         [](const auto &info) {
                           return info.param.model.name + "_" +
                                  info.param.precision;
                         });

} // namespace
