//===- StateRoundingTest.cpp - states in bf16 -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moments that are stored in bf16: the mean over many elements is that of the
// formulas in double precision, also where each step changes a number by less
// than half of the distance to its neighbor; the same seed gives the same bits.
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
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

namespace {
/// A step whose gradient is an input; arguments by name.
class Step {
public:
  Step(const OptimizerOptions &options, int64_t elements) {
    std::string type = "tensor<" + std::to_string(elements) + "xf32>";
    std::string text =
        "func.func @step(%w: " + type +
        " {ckopt.name = \"w\", ckopt.role = \"parameter\"}, %g: " + type +
        " {ckopt.name = \"g\", ckopt.role = \"input\"}) -> (tensor<f32>, " +
        type + " {ckopt.gradient = 0 : i64}) {\n" +
        "  %loss = ckopt.constant dense<0.0> : tensor<f32>\n"
        "  return %loss, %g : tensor<f32>, " +
        type + "\n}";
    module = parseSourceString<ModuleOp>(text, &testContext());
    function = module->lookupSymbol<func::FuncOp>("step");
    good = succeeded(addOptimizer(function, options)) &&
           succeeded(mlir::verify(module.get()));
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      values[argumentName(function, i)] =
          Tensor(cast<RankedTensorType>(function.getArgumentTypes()[i]));
    set("learning_rate", 0.01);
  }

  void set(const std::string &name, double number) {
    ASSERT_TRUE(values.count(name)) << name;
    for (int64_t i = 0; i < int64_t(values[name].getReals().size() +
                                    values[name].getInts().size());
         ++i)
      values[name].set(i, number);
  }
  Numbers get(const std::string &name) {
    return {values[name].getReals().begin(), values[name].getReals().end()};
  }
  double mean(const std::string &name) {
    Numbers all = get(name);
    double sum = 0;
    for (double number : all)
      sum += number;
    return sum / double(all.size());
  }
  void run(int t, double gradient) {
    set("step", t);
    set("g", gradient);
    SmallVector<Tensor> args, results;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      args.push_back(values[argumentName(function, i)]);
    ASSERT_TRUE(succeeded(reference::evaluate(function, args, results)));
    for (unsigned i = 0; i < results.size(); ++i)
      if (auto index =
              function.getResultAttrOfType<IntegerAttr>(i, attrs::kUpdates))
        values[argumentName(function, unsigned(index.getInt()))] = results[i];
  }

  bool good = false;
  std::map<std::string, Tensor> values;

private:
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
};

OptimizerOptions narrow(const char *kind, HyperValues values = {}) {
  OptimizerOptions options;
  options.kind = kind;
  options.values = std::move(values);
  options.stateType = StateType::BF16;
  return options;
}
} // namespace

TEST(StateRounding, TheMeanIsThatOfTheFormulas) {
  Step step(narrow("adamw"), 8192);
  ASSERT_TRUE(step.good);
  step.set("seed", 7);
  double m = 0, v = 0;
  for (int t = 1; t <= 60; ++t) {
    // The second moment only decays after step 10, by a thousandth a step.
    double g = t <= 10 ? 0.3 : 0;
    step.run(t, g);
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
  }
  // Neighbors are at most 2^-7 apart: one rounding's deviation is at most half
  // of that, a mean's over 8192 elements 1/90 of it; five of these deviations.
  double allowed = 5 * std::sqrt(60.0) / 256 / std::sqrt(8192.0);
  EXPECT_NEAR(step.mean("w/m") / m, 1, allowed);
  EXPECT_NEAR(step.mean("w/v") / v, 1, allowed);
  for (const char *name : {"w/m", "w/v"})
    for (double number : step.get(name)) {
      int exponent = 0;
      double scaled = std::ldexp(std::frexp(number, &exponent), 8);
      ASSERT_EQ(scaled, std::floor(scaled)) << name;
    }
}

TEST(StateRounding, BitsAreThoseOfTheSeed) {
  auto after = [](int64_t seed, const std::string &name) {
    Step step(narrow("adamw"), 4096);
    step.set("seed", double(seed));
    for (int t = 1; t <= 3; ++t)
      step.run(t, 0.3 / t);
    return step.get(name);
  };
  EXPECT_EQ(after(1, "w/m"), after(1, "w/m"));
  EXPECT_EQ(after(1, "w"), after(1, "w"));
  EXPECT_NE(after(1, "w/m"), after(2, "w/m"));
  EXPECT_NE(after(1, "w/v"), after(2, "w/v"));
}

TEST(StateRounding, SmallTensorsStayAsTheyAre) {
  const std::pair<const char *, HyperValues> cases[] = {
      {"adamw", {}},
      {"adam", {{"weight_decay", 0.1}}},
      {"sgd", {{"momentum", 0.9}, {"dampening", 0.5}}},
      {"sgd", {{"momentum", 0.9}, {"nesterov", 1}, {"weight_decay", 0.1}}},
      {"lion", {}}};
  for (const auto &[kind, values] : cases) {
    OptimizerOptions wide = narrow(kind, values);
    wide.stateType = StateType::F32;
    Step one(narrow(kind, values), 4095), other(wide, 4095);
    ASSERT_TRUE(one.good && other.good) << kind;
    for (int t = 1; t <= 4; ++t) {
      one.run(t, std::sin(t));
      other.run(t, std::sin(t));
    }
    EXPECT_NEAR(one.mean("w"), other.mean("w"), 1e-7) << kind;
  }
}
