//===- LossGoldenTest.cpp - attached losses against PyTorch's -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LossGolden.inc holds the results of torch.nn.functional in float64, at
// corners and special points, too. Each case is parsed from the pass's textual
// options, which are thus tested as well.
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Autodiff/Passes.h"
#include "ckopt/Losses/Passes.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;
using ckopt::reference::Tensor;

namespace {
struct LossCase {
  const char *name, *options, *shape; ///< of the predictions: "2x3x"
  std::vector<double> x, targets;
  double loss;
  std::vector<double> gradient;
};
void PrintTo(const LossCase &test, std::ostream *os) { *os << test.name; }

class LossGolden : public testing::TestWithParam<LossCase> {};
} // namespace

static Tensor makeTargets(Type type, const std::vector<double> &numbers) {
  auto tensor = cast<RankedTensorType>(type);
  if (isa<FloatType>(tensor.getElementType()))
    return Tensor(tensor, numbers);
  return Tensor(tensor, std::vector<int64_t>(numbers.begin(), numbers.end()));
}

static void expectClose(double is, double wanted, double scale) {
  EXPECT_NEAR(is, wanted, 1e-12 * std::max(scale, 1e-3));
}

TEST_P(LossGolden, IsPyTorchs) {
  static bool once = (registerAutodiffPasses(), registerLossesPasses(), true);
  (void)once;
  const LossCase &test = GetParam();
  std::string type = "tensor<" + std::string(test.shape) + "f64>";
  auto module = parseSourceString<ModuleOp>(
      "func.func @forward(%x: " + type +
          " {ckopt.name = \"x\", ckopt.role = \"parameter\"}) -> " + type +
          " {\n  return %x : " + type + "\n}\n",
      &testContext());
  PassManager manager(&testContext());
  ASSERT_TRUE(succeeded(parsePassPipeline(
      "attach-loss{" + std::string(test.options) + "},autodiff", manager)));
  ASSERT_TRUE(succeeded(manager.run(*module)));
  auto step = module->lookupSymbol<func::FuncOp>("step");
  auto xType = cast<RankedTensorType>(step.getArgumentTypes()[0]);
  SmallVector<Tensor> results;
  ASSERT_TRUE(succeeded(reference::evaluate(
      step,
      {Tensor(xType, test.x),
       makeTargets(step.getArgumentTypes()[1], test.targets)},
      results)));
  expectClose(results[0].real(0), test.loss, std::abs(test.loss));
  double scale = 0;
  for (double value : test.gradient)
    scale = std::max(scale, std::abs(value));
  for (auto [i, value] : llvm::enumerate(test.gradient)) {
    SCOPED_TRACE("gradient " + std::to_string(i));
    expectClose(results[1].real(int64_t(i)), value, scale);
  }
}

static const std::vector<LossCase> cases = {
#include "LossGolden.inc"
};

INSTANTIATE_TEST_SUITE_P(All, LossGolden, testing::ValuesIn(cases),
                         [](const testing::TestParamInfo<LossCase> &info) {
                           return info.param.name;
                         });
