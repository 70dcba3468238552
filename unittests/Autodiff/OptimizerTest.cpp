//===- OptimizerTest.cpp - updates against PyTorch's formulas -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers that PyTorch computed (OptimizerGolden.py), after up to 20 steps with
// changing gradients and learning rates, for every optimizer, groups of
// parameters and averages. For clipping and micro-batches the formulas of
// torch.optim.SGD, Adam and AdamW and of torch.nn.utils.clip_grad_norm_ are
// written out here, in double precision, and run beside the step.
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Optimizers/Optimizers.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <map>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;
using ckopt::reference::Tensor;
using Numbers = std::vector<double>;

/// Two parameters, a of 3 elements and b of 2, whose gradients are inputs.
static const char *stepText = R"(
func.func @step(
    %a: tensor<3xf64> {ckopt.name = "a", ckopt.role = "parameter"},
    %b: tensor<2xf64> {ckopt.name = "b", ckopt.role = "parameter"},
    %ga: tensor<3xf64> {ckopt.name = "ga", ckopt.role = "input"},
    %gb: tensor<2xf64> {ckopt.name = "gb", ckopt.role = "input"})
    -> (tensor<f64> {ckopt.name = "loss"},
        tensor<3xf64> {ckopt.name = "grad/a", ckopt.gradient = 0 : i64},
        tensor<2xf64> {ckopt.name = "grad/b", ckopt.gradient = 1 : i64}) {
  %loss = ckopt.reduce sum %a {axes = array<i64: 0>, keepdims = false}
    : (tensor<3xf64>) -> tensor<f64>
  return %loss, %ga, %gb : tensor<f64>, tensor<3xf64>, tensor<2xf64>
})";

namespace {
/// Runs a step with its state, arguments by name.
class Trainer {
public:
  /// `own`: of parameter b alone, `lr` as a factor.
  explicit Trainer(const OptimizerOptions &options,
                   const HyperValues &own = {}) {
    module = parseSourceString<ModuleOp>(stepText, &testContext());
    auto step = module->lookupSymbol<func::FuncOp>("step");
    NamedAttrList list;
    Builder b(&testContext());
    for (const auto &[name, value] : own)
      list.set(name == "lr" ? "lr_scale" : name, b.getF64FloatAttr(value));
    if (!own.empty())
      step.setArgAttr(1, kOptimizerAttr, list.getDictionary(&testContext()));
    good = succeeded(addOptimizer(step, options)) &&
           succeeded(mlir::verify(module.get()));
    for (unsigned i = 0; i < step.getNumArguments(); ++i)
      values[argumentName(step, i)] =
          Tensor(cast<RankedTensorType>(step.getArgumentTypes()[i]));
    set("a", {1, -2, 0.5});
    set("b", {3, 0.25});
  }

  void set(const std::string &name, const Numbers &numbers) {
    ASSERT_TRUE(values.count(name)) << name;
    for (size_t i = 0; i < numbers.size(); ++i)
      values[name].set(int64_t(i), numbers[i]);
  }
  Numbers get(const std::string &name) {
    return {values[name].getReals().begin(), values[name].getReals().end()};
  }
  void run(const std::string &name) {
    auto function = module->lookupSymbol<func::FuncOp>(name);
    ASSERT_TRUE(function);
    SmallVector<Tensor> args, results;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      args.push_back(values[argumentName(function, i)]);
    ASSERT_TRUE(succeeded(reference::evaluate(function, args, results)));
    for (unsigned i = 0; i < results.size(); ++i)
      if (auto index =
              function.getResultAttrOfType<IntegerAttr>(i, attrs::kUpdates))
        values[argumentName(function, unsigned(index.getInt()))] = results[i];
  }

  bool good;
  std::map<std::string, Tensor> values;

private:
  OwningOpRef<ModuleOp> module;
};

/// Gradients and learning rate of step t = 1, 2, ...
Numbers gradientA(int t) { return {0.1 * t, -0.7, std::sin(3.0 * t)}; }
Numbers gradientB(int t) { return {std::cos(1.0 * t), 2.0 / t}; }
double rate(int t) { return 0.1 / t; }

/// One parameter by PyTorch's formulas.
struct Expected {
  Numbers p, m, v;
  explicit Expected(Numbers start)
      : p(std::move(start)), m(p.size()), v(p.size()) {}

  void sgd(const OptimizerOptions &o, Numbers g, double lr, int t) {
    double momentum = o.values.at("momentum");
    for (size_t i = 0; i < p.size(); ++i) {
      m[i] = t == 1 ? g[i] : momentum * m[i] + g[i];
      p[i] -= lr * m[i];
    }
  }
  void adam(const OptimizerOptions &o, Numbers g, double lr, int t) {
    bool decoupled = o.kind == "adamw";
    double decay = o.values.at("weight_decay");
    double c1 = 1 - std::pow(0.9, t), c2 = 1 - std::pow(0.999, t);
    for (size_t i = 0; i < p.size(); ++i) {
      if (decoupled)
        p[i] *= 1 - lr * decay;
      else
        g[i] += decay * p[i];
      m[i] = 0.9 * m[i] + (1 - 0.9) * g[i];
      v[i] = 0.999 * v[i] + (1 - 0.999) * g[i] * g[i];
      p[i] -= lr / c1 * m[i] / (std::sqrt(v[i]) / std::sqrt(c2) + 1e-8);
    }
  }
  void step(const OptimizerOptions &o, const Numbers &g, double lr, int t) {
    o.kind == "sgd" ? sgd(o, g, lr, t) : adam(o, g, lr, t);
  }
};

void expectNear(const Numbers &want, const Numbers &got, const char *what) {
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(want[i], got[i], 1e-13) << what << "[" << i << "]";
}

/// Scales both gradients as clip_grad_norm_ does.
void clip(Numbers &a, Numbers &b, double limit) {
  double total = 0;
  for (const Numbers *g : {&a, &b})
    for (double value : *g)
      total += value * value;
  double factor = std::min(1.0, limit / (std::sqrt(total) + 1e-6));
  for (Numbers *g : {&a, &b})
    for (double &value : *g)
      value *= factor;
}

/// A case with PyTorch's results.
struct GoldenCase {
  std::string name, kind;
  HyperValues values, own; ///< own: of parameter b
  double ema;
  Numbers rows[4]; ///< a and b, or their averages, after goldenSteps
};
constexpr int goldenSteps[] = {1, 2, 6, 20};
const GoldenCase golden[] = {
#include "OptimizerGolden.inc"
};

class OptimizerTest : public testing::TestWithParam<GoldenCase> {};

OptimizerOptions optionsOf(const char *kind, HyperValues values = {},
                           double clipNorm = 0) {
  OptimizerOptions options;
  options.kind = kind;
  options.values = std::move(values);
  options.clipNorm = clipNorm;
  return options;
}

/// One step of both parameters with the gradients of step t.
void runStep(Trainer &trainer, int t) {
  trainer.set("ga", gradientA(t));
  trainer.set("gb", gradientB(t));
  trainer.set("learning_rate", {rate(t)});
  trainer.set("step", {double(t)});
  trainer.run("step");
}
} // namespace

TEST_P(OptimizerTest, FollowsPyTorch) {
  const GoldenCase &golden = GetParam();
  OptimizerOptions options = optionsOf(golden.kind.c_str(), golden.values);
  options.ema = golden.ema;
  Trainer trainer(options, golden.own);
  ASSERT_TRUE(trainer.good);
  std::string suffix = golden.ema ? "/ema" : "";
  const int *at = goldenSteps;
  for (int t = 1; t <= 20; ++t) {
    runStep(trainer, t);
    if (t != *at)
      continue;
    Numbers both = trainer.get("a" + suffix), b = trainer.get("b" + suffix);
    both.insert(both.end(), b.begin(), b.end());
    expectNear(golden.rows[at++ - goldenSteps], both, "a and b");
  }
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerTest, testing::ValuesIn(golden),
                         [](const auto &info) { return info.param.name; });

TEST(Optimizer, ClipsByTheGlobalNorm) {
  for (const OptimizerOptions &options :
       {optionsOf("sgd", {{"momentum", 0.9}}, 0.5),
        optionsOf("adamw", {{"weight_decay", 0.1}}, 1.5),
        optionsOf("adam", {{"weight_decay", 0.1}}, 1e6)}) {
    Trainer trainer(options);
    ASSERT_TRUE(trainer.good);
    Expected a(trainer.get("a")), b(trainer.get("b"));
    for (int t = 1; t <= 5; ++t) {
      Numbers ga = gradientA(t), gb = gradientB(t);
      runStep(trainer, t);
      clip(ga, gb, options.clipNorm);
      a.step(options, ga, rate(t), t);
      b.step(options, gb, rate(t), t);
      expectNear(a.p, trainer.get("a"), "a");
      expectNear(b.p, trainer.get("b"), "b");
    }
  }
}

// A group is trained as it would be alone with the group's settings.
TEST(Optimizer, EveryKindHasGroupsAndAverages) {
  for (const OptimizerKind &kind : optimizerKinds()) {
    OptimizerOptions options = optionsOf(kind.name);
    options.ema = 0.5;
    HyperValues own{{"weight_decay", 0.2}, {"lr", 0.5}};
    Trainer both(options, own);
    OptimizerOptions other = optionsOf(kind.name, {{"weight_decay", 0.2}});
    Trainer alone(other);
    ASSERT_TRUE(both.good && alone.good) << kind.name;
    for (int t = 1; t <= 8; ++t) {
      runStep(both, t);
      alone.set("ga", gradientA(t));
      alone.set("gb", gradientB(t));
      alone.set("learning_rate", {rate(t) * 0.5});
      alone.set("step", {double(t)});
      alone.run("step");
    }
    expectNear(alone.get("b"), both.get("b"), kind.name);
    EXPECT_NE(both.get("b"), both.get("b/ema")) << kind.name;
  }
}

TEST(Optimizer, MicroBatchesAddUpToOneStep) {
  OptimizerOptions options = optionsOf("adamw", {{"weight_decay", 0.1}}, 0.8);
  options.accumulate = 4;
  Trainer trainer(options);
  ASSERT_TRUE(trainer.good);
  Expected a(trainer.get("a")), b(trainer.get("b"));
  for (int t = 1; t <= 3; ++t) {
    Numbers meanA(3), meanB(2);
    trainer.set("learning_rate", {rate(t)});
    trainer.set("step", {double(t)});
    for (int micro = 0; micro < 4; ++micro) {
      Numbers ga = gradientA(4 * t + micro), gb = gradientB(4 * t + micro);
      for (size_t i = 0; i < ga.size(); ++i)
        meanA[i] += ga[i] / 4;
      for (size_t i = 0; i < gb.size(); ++i)
        meanB[i] += gb[i] / 4;
      trainer.set("ga", ga);
      trainer.set("gb", gb);
      trainer.run(micro < 3 ? "accumulate" : "step");
    }
    clip(meanA, meanB, 0.8);
    a.step(options, meanA, rate(t), t);
    b.step(options, meanB, rate(t), t);
    expectNear(a.p, trainer.get("a"), "a");
    expectNear(b.p, trainer.get("b"), "b");
    EXPECT_EQ(trainer.get("a/grad_sum"), Numbers(3, 0.0));
    EXPECT_EQ(trainer.get("b/grad_sum"), Numbers(2, 0.0));
  }
}
