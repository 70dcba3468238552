//===- OptimizerTest.cpp - updates against PyTorch's formulas -------------===//
//
// The formulas of torch.optim.SGD, Adam and AdamW and of
// torch.nn.utils.clip_grad_norm_ are written out here, in double precision, and
// run beside the step for several steps with changing gradients and learning
// rates.
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <map>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;
using autodiff::OptimizerOptions;
using ckopt::reference::Tensor;
using Kind = OptimizerOptions::Kind;
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
  explicit Trainer(const OptimizerOptions &options) {
    module = parseSourceString<ModuleOp>(stepText, &testContext());
    auto step = module->lookupSymbol<func::FuncOp>("step");
    good = succeeded(autodiff::addOptimizer(step, options)) &&
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
    for (size_t i = 0; i < p.size(); ++i) {
      g[i] += o.weightDecay.value_or(0) * p[i];
      if (o.momentum != 0) {
        m[i] = t == 1 ? g[i] : o.momentum * m[i] + (1 - o.dampening) * g[i];
        g[i] = o.nesterov ? g[i] + o.momentum * m[i] : m[i];
      }
      p[i] -= lr * g[i];
    }
  }
  void adam(const OptimizerOptions &o, Numbers g, double lr, int t) {
    bool decoupled = o.kind == Kind::AdamW;
    double decay = o.weightDecay.value_or(decoupled ? 0.01 : 0);
    double c1 = 1 - std::pow(o.beta1, t), c2 = 1 - std::pow(o.beta2, t);
    for (size_t i = 0; i < p.size(); ++i) {
      if (decoupled)
        p[i] *= 1 - lr * decay;
      else
        g[i] += decay * p[i];
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g[i];
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g[i] * g[i];
      p[i] -= lr / c1 * m[i] / (std::sqrt(v[i]) / std::sqrt(c2) + o.epsilon);
    }
  }
  void step(const OptimizerOptions &o, const Numbers &g, double lr, int t) {
    o.kind == Kind::Sgd ? sgd(o, g, lr, t) : adam(o, g, lr, t);
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

struct OptimizerCase {
  std::string name;
  OptimizerOptions options;
};
std::string optimizerName(const testing::TestParamInfo<OptimizerCase> &info) {
  return info.param.name;
}

class OptimizerTest : public testing::TestWithParam<OptimizerCase> {};
} // namespace

TEST_P(OptimizerTest, FollowsPyTorch) {
  const OptimizerOptions &options = GetParam().options;
  Trainer trainer(options);
  ASSERT_TRUE(trainer.good);
  Expected a(trainer.get("a")), b(trainer.get("b"));
  for (int t = 1; t <= 5; ++t) {
    Numbers ga = gradientA(t), gb = gradientB(t);
    trainer.set("ga", ga);
    trainer.set("gb", gb);
    trainer.set("learning_rate", {rate(t)});
    trainer.set("step", {double(t)});
    trainer.run("step");
    if (options.clipNorm > 0)
      clip(ga, gb, options.clipNorm);
    a.step(options, ga, rate(t), t);
    b.step(options, gb, rate(t), t);
    expectNear(a.p, trainer.get("a"), "a");
    expectNear(b.p, trainer.get("b"), "b");
  }
}

static OptimizerOptions sgd(double momentum, double dampening, bool nesterov,
                            std::optional<double> decay = std::nullopt) {
  OptimizerOptions options;
  options.kind = Kind::Sgd;
  options.momentum = momentum;
  options.dampening = dampening;
  options.nesterov = nesterov;
  options.weightDecay = decay;
  return options;
}

static OptimizerOptions adam(Kind kind, std::optional<double> decay = {},
                             double clipNorm = 0) {
  OptimizerOptions options;
  options.kind = kind;
  options.weightDecay = decay;
  options.clipNorm = clipNorm;
  return options;
}

static std::vector<OptimizerCase> optimizerCases() {
  OptimizerOptions otherBetas = adam(Kind::AdamW, 0.3);
  otherBetas.beta1 = 0.5;
  otherBetas.beta2 = 0.75;
  otherBetas.epsilon = 0.1;
  OptimizerOptions clipped = sgd(0.9, 0, false);
  clipped.clipNorm = 0.5;
  return {{"sgd", sgd(0, 0, false)},
          {"sgd_decay", sgd(0, 0, false, 0.1)},
          {"sgd_momentum", sgd(0.9, 0, false)},
          {"sgd_dampening", sgd(0.9, 0.4, false, 0.05)},
          {"sgd_nesterov", sgd(0.8, 0, true, 0.05)},
          {"sgd_clipped", clipped},
          {"adam", adam(Kind::Adam)},
          {"adam_decay", adam(Kind::Adam, 0.1)},
          {"adamw", adam(Kind::AdamW)},
          {"adamw_no_decay", adam(Kind::AdamW, 0.0)},
          {"adamw_clipped", adam(Kind::AdamW, 0.1, 1.5)},
          {"adamw_never_clipped", adam(Kind::AdamW, 0.1, 1e6)},
          {"adamw_betas", otherBetas}};
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerTest,
                         testing::ValuesIn(optimizerCases()), optimizerName);

TEST(Optimizer, MicroBatchesAddUpToOneStep) {
  OptimizerOptions options = adam(Kind::AdamW, 0.1, 0.8);
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
