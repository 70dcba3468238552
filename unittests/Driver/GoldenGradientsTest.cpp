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

#include "llvm/ADT/StringSwitch.h"

using namespace ckopt;
using namespace ckopt::test;

namespace {

struct Case {
  GoldenModel model;
  std::string precision;
  double tolerance;
  std::string products = "f32"; ///< class of products
};
void PrintTo(const Case &param, std::ostream *os) { *os << param.model.name; }

class GoldenGradients : public testing::TestWithParam<Case> {};

TEST_P(GoldenGradients, MatchPyTorch) {
  const Case &param = GetParam();
  CompileOptions options = trainingOptions(
      goldenPath(param.model.name, "model.onnx"), param.model.loss);
  options.step.optimizer.kind.clear();
  options.step.evaluation = false;
  bool f64 = param.precision == "f64";
  options.import.computeType = f64 ? "f64" : "";
  options.keepDenormals = f64;
  options.step.precision = f64 ? "f32" : param.precision;
  options.step.matmulPrecision = param.products;
  Loaded loaded = get(load(options));
  ASSERT_TRUE(loaded.session);
  Session &session = *loaded.session;
  checkGradients(session, param.model, param.tolerance);
  EXPECT_EQ(get(session.measuredPeak()),
            loaded.compilation->summary().figures.arena);
}

/// What bf16 costs: about what PyTorch's autocast has on the same networks,
/// which is 0.013 at worst for the first four, and 0.09, 0.44, 0.59 and 0.10
/// for one parameter of lenet, resnet, unet and mobile: batch norms of a few
/// samples take differences of what was rounded.
double lowTolerance(const GoldenModel &model) {
  return llvm::StringSwitch<double>(model.name)
      .Cases({"mlp", "gpt", "vit", "lstm"}, 0.03)
      .Case("lenet", 0.15)
      .Case("mobile", 0.35)
      .Default(0.6);
}

/// f16 has three bits more than bf16.
double halfTolerance(const GoldenModel &model) {
  return lowTolerance(model) / 2;
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const GoldenModel &model : goldenModels())
    for (auto [precision, tolerance] : {std::pair("f32", 1e-4),
                                        {"f64", 1e-6},
                                        {"bf16", lowTolerance(model)},
                                        {"f16", halfTolerance(model)}})
      result.push_back({model, precision, tolerance});
  // Six products of pieces are as close as one of f32, three nearly.
  for (const GoldenModel &model : goldenModels())
    if (model.name == "mlp" || model.name == "gpt" || model.name == "vit" ||
        model.name == "lstm") {
      result.push_back({model, "f32", 1e-4, "bf16x6"});
      result.push_back({model, "f32", 1e-3, "bf16x3"});
    }
  return result;
}

INSTANTIATE_TEST_SUITE_P(
    All, GoldenGradients, testing::ValuesIn(cases()), [](const auto &info) {
      return info.param.model.name + "_" + info.param.precision +
             (info.param.products == "f32" ? "" : "_" + info.param.products);
    });

} // namespace
