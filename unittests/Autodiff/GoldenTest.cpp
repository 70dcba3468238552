//===- GoldenTest.cpp - whole networks, interpreted -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The golden networks' gradients by PyTorch in float64 against the reference
// interpreter's values of the differentiated, normalized and decomposed
// function: rules and rewrites alone, no fusion and no generated code.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Frontend/Onnx/Onnx.h"
#include "ckopt/Losses/Loss.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Reference/Folding.h"
#include "ckopt/Reference/Interpreter.h"
#include "ckopt/Support/Npz.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace ckopt;
using ckopt::reference::Tensor;

namespace {
struct Golden {
  std::string name, loss;
  std::string folder = "golden", file = "model";
};
class GoldenNetwork : public testing::TestWithParam<Golden> {};
} // namespace

static double norm(ArrayRef<double> values) {
  double sum = 0;
  for (double value : values)
    sum += value * value;
  return std::sqrt(sum);
}

template <typename T> static T get(llvm::Expected<T> value) {
  if (!value) {
    ADD_FAILURE() << llvm::toString(value.takeError());
    return T();
  }
  return std::move(*value);
}

/// Weights, the data arrays x and y, zeros for seeds.
static SmallVector<Tensor> arguments(func::FuncOp function,
                                     const onnx_frontend::ImportedModel &model,
                                     const TensorMap &data) {
  SmallVector<Tensor> args;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    StringRef role = argumentRole(function, i);
    auto weight = model.weights.find(argumentName(function, i));
    if (role == roles::kInput)
      args.push_back(Tensor::fromHost(*data.find("x"), tensor));
    else if (role == roles::kTarget)
      args.push_back(Tensor::fromHost(*data.find("y"), tensor));
    else if (weight != model.weights.end())
      args.push_back(Tensor::fromHost(weight->second, tensor));
    else
      args.emplace_back(tensor);
  }
  return args;
}

TEST_P(GoldenNetwork, GradientsMatchPyTorch) {
  DialectRegistry registry;
  registry.insert<CkoptDialect, func::FuncDialect>();
  registerReferenceFolding(registry);
  registerAutodiffRules(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string folder =
      CKOPT_TEST_DATA "/" + GetParam().folder + "/" + GetParam().name;
  onnx_frontend::ImportOptions options;
  options.f64 = true;
  options.inputs = {"x"};
  auto model = onnx_frontend::importModel(
      folder + "/" + GetParam().file + ".onnx", options, context);
  if (!model)
    FAIL() << llvm::toString(model.takeError());
  EXPECT_EQ(llvm::join(model->diagnosis.lost, "; "), "");
  TensorMap data = get(readNpz(folder + "/data.npz"));
  auto function = model->module->lookupSymbol<func::FuncOp>("forward");
  LossOptions loss;
  loss.terms.front().kind = GetParam().loss;
  ASSERT_TRUE(succeeded(normalize(function)));
  ASSERT_TRUE(succeeded(makeEval(function, "eval")));
  ASSERT_TRUE(succeeded(attachLoss(function, loss)));
  ASSERT_TRUE(succeeded(autodiff::differentiate(function, {})));
  decompose(function);
  ASSERT_TRUE(succeeded(mlir::verify(model->module.get())));
  SmallVector<Tensor> results;
  ASSERT_TRUE(succeeded(reference::evaluate(
      function, arguments(function, *model, data), results)));

  double wanted = data.find("loss")->getDouble(0);
  EXPECT_NEAR(results[0].real(0), wanted, 1e-6 * std::abs(wanted));
  double squares = 0, count = 0;
  for (const auto &[name, value] : data)
    if (StringRef(name).starts_with("grad/"))
      for (int64_t i = 0; i < value.numElements(); ++i, ++count)
        squares += value.getDouble(i) * value.getDouble(i);
  unsigned compared = 0;
  for (unsigned r = 1; r < results.size(); ++r) {
    if (!function.getResultAttr(r, kGradientAttr))
      continue;
    std::string name = resultName(function, r);
    const HostTensor *want = data.find(name);
    ASSERT_TRUE(want) << name;
    ASSERT_EQ(want->shape(), results[r].getShape()) << name;
    ++compared;
    std::vector<double> off, reference;
    for (int64_t i = 0; i < want->numElements(); ++i) {
      reference.push_back(want->getDouble(i));
      off.push_back(results[r].real(i) - reference.back());
    }
    double floor = 0.1 * std::sqrt(squares / count * double(off.size()));
    EXPECT_LT(norm(off) / std::max(norm(reference), floor), 1e-6) << name;
  }
  unsigned gradients = 0;
  for (const auto &[name, value] : data)
    gradients += StringRef(name).starts_with("grad/");
  EXPECT_EQ(compared, gradients);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenNetwork,
                         testing::Values(Golden{"mlp", "mse"},
                                         Golden{"lenet", "cross_entropy"},
                                         Golden{"resnet", "cross_entropy"},
                                         Golden{"lstm", "cross_entropy"},
                                         Golden{"unet", "cross_entropy"},
                                         Golden{"mobile", "cross_entropy"},
                                         Golden{"vit", "cross_entropy"},
                                         Golden{"gpt", "cross_entropy"}),
                         [](const testing::TestParamInfo<Golden> &info) {
                           return info.param.name;
                         });

/// PyTorch's exporter merges, transposes, packs and repeats parameters by
/// default. Each is recovered, with PyTorch's gradient under PyTorch's name,
/// and nothing else is trained.
static Golden exported(const char *name) {
  return {name, "mse", "from_torch", "default"};
}
INSTANTIATE_TEST_SUITE_P(
    Exported, GoldenNetwork,
    testing::Values(exported("tied"), exported("shared"), exported("zeros"),
                    exported("gru"), exported("cell"), exported("token"),
                    exported("encoder"), exported("types"), exported("lookup"),
                    exported("states"), exported("tables"),
                    Golden{"attention", "mse", "from_torch", "script"},
                    Golden{"stops", "mse", "from_torch", "raw"},
                    Golden{"gru", "mse", "from_torch", "script"},
                    Golden{"twice", "mse", "from_torch", "script"}),
    [](const testing::TestParamInfo<Golden> &info) {
      return info.param.name + "_" + info.param.file;
    });
