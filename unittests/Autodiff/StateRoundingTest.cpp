//===- StateRoundingTest.cpp - states and weights in few bits -------------===//
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
  Step(const OptimizerOptions &options, int64_t elements,
       const std::string &stored = "f32") {
    std::string type = "tensor<" + std::to_string(elements) + "xf32>";
    std::string text =
        "func.func @step(%w: tensor<" + std::to_string(elements) + "x" +
        stored +
        "> {ckopt.name = \"w\", ckopt.role = \"parameter\"}, %g: " + type +
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
  void setAll(const std::string &name, const Numbers &numbers) {
    for (size_t i = 0; i < numbers.size(); ++i)
      values[name].set(int64_t(i), numbers[i]);
  }
  Numbers get(const std::string &name) {
    const Tensor &tensor = values[name];
    Numbers all(tensor.getReals().begin(), tensor.getReals().end());
    all.insert(all.end(), tensor.getInts().begin(), tensor.getInts().end());
    return all;
  }
  double mean(const std::string &name) {
    Numbers all = get(name);
    double sum = 0;
    for (double number : all)
      sum += number;
    return sum / double(all.size());
  }
  void run(int t, double gradient) {
    set("g", gradient);
    run(t);
  }
  void run(int t) {
    set("step", t);
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

TEST(StateRounding, WeightsFollowStepsBelowTheirNeighbors) {
  OptimizerOptions options;
  options.kind = "sgd";
  Step step(options, 8192, "bf16");
  ASSERT_TRUE(step.good);
  step.set("seed", 3);
  step.set("w", 1);
  // Neighbors of 1 lie 2^-7 above and 2^-8 below it.
  for (int t = 1; t <= 40; ++t)
    step.run(t, 0.01);
  double allowed = 5 * std::sqrt(40.0) / 256 / std::sqrt(8192.0);
  EXPECT_NEAR(step.mean("w"), 1 - 40 * 0.01 * 0.01, allowed);
  for (double number : step.get("w"))
    ASSERT_EQ(number, std::ldexp(std::floor(std::ldexp(number, 9)), -9));
}

//===----------------------------------------------------------------------===//
// 8 bits
//===----------------------------------------------------------------------===//

namespace {
/// What torchao's AdamW8bit does to one tensor (torchao/optim: adam.py,
/// quant_utils.py, subclass_8bit.py), which computes in f32.
struct Published {
  static constexpr size_t kBlock = 256;

  static std::vector<float> createDynamicMap(bool isSigned) {
    std::vector<float> data{0, 1};
    for (int i = 0; i < 7; ++i) {
      int items = (1 << (isSigned ? i : i + 1)) + 1;
      for (int at = 0; at + 1 < items; ++at) {
        float a = 0.1f + 0.9f * float(at) / float(items - 1);
        float b = 0.1f + 0.9f * float(at + 1) / float(items - 1);
        auto mean = float(std::pow(10.0, i - 6) * ((a + b) / 2));
        data.push_back(mean);
        if (isSigned)
          data.push_back(-mean);
      }
    }
    llvm::sort(data);
    return data;
  }

  explicit Published(bool isSigned) : map(createDynamicMap(isSigned)) {}

  int quantize(float input) const {
    int code = 0;
    for (int bit = 128; bit; bit /= 2)
      code += input >= map[size_t(code + bit)] ? bit : 0;
    int up = std::min(code + 1, 255);
    float down = map[size_t(code)];
    return input - down >= (map[size_t(up)] - down) * 0.5f ? up : code;
  }
  std::vector<float> dequantize(const Numbers &codes, const Numbers &scales) {
    std::vector<float> result;
    for (size_t i = 0; i < codes.size(); ++i)
      result.push_back(map[size_t(codes[i])] * float(scales[i / kBlock]));
    return result;
  }

  std::vector<float> map;
};

/// Expects codes and scales to be those of the numbers, but for codes of
/// numbers that lie halfway.
void expectCoded(Step &step, const std::string &name, const Published &book,
                 const std::vector<float> &numbers) {
  Numbers codes = step.get(name), scales = step.get(name + "_scale");
  int others = 0;
  for (size_t i = 0; i < numbers.size(); i += Published::kBlock) {
    float scale = 1e-12f;
    for (size_t j = i; j < i + Published::kBlock; ++j)
      scale = std::max(scale, std::abs(numbers[j]));
    ASSERT_NEAR(scales[i / Published::kBlock] / scale, 1, 1e-6) << name;
    for (size_t j = i; j < i + Published::kBlock; ++j) {
      int expected = book.quantize(numbers[j] / scale);
      if (book.map.front() == 0 && numbers[j] > 0) // ours is never 0
        expected = std::max(expected, 1);
      ASSERT_LE(std::abs(codes[j] - expected), 1) << name << " " << j;
      others += codes[j] != expected;
    }
  }
  EXPECT_LE(others, int(numbers.size() / 1000)) << name;
}
} // namespace

TEST(StateCodes, UpdatesAreThosePublished) {
  constexpr size_t kElements = 4096;
  OptimizerOptions options = narrow("adamw", {{"weight_decay", 0.1}});
  options.stateType = StateType::INT8;
  Step step(options, kElements);
  ASSERT_TRUE(step.good);
  Published first(true), second(false);
  std::vector<float> w(kElements);
  for (int t = 1; t <= 5; ++t) {
    Numbers g(kElements);
    for (size_t i = 0; i < kElements; ++i)
      g[i] = std::sin(double(i * 7 + size_t(t))) *
             std::exp(3 * std::sin(double(i)) - double(i % 9));
    auto m = first.dequantize(step.get("w/m"), step.get("w/m_scale"));
    auto v = second.dequantize(step.get("w/v"), step.get("w/v_scale"));
    step.setAll("g", g);
    step.run(t);
    for (size_t i = 0; i < kElements; ++i) {
      auto own = float(g[i]);
      m[i] = 0.9f * m[i] + 0.1f * own;
      v[i] = 0.999f * v[i] + 0.001f * own * own;
      double root = std::sqrt(v[i]) / std::sqrt(1 - std::pow(0.999, t)) + 1e-8;
      w[i] = float(w[i] * (1 - 0.01 * 0.1) -
                   0.01 / (1 - std::pow(0.9, t)) * m[i] / root);
    }
    expectCoded(step, "w/m", first, m);
    expectCoded(step, "w/v", second, v);
    Numbers now = step.get("w");
    for (size_t i = 0; i < kElements; ++i)
      ASSERT_NEAR(now[i], w[i], 2e-6 + 1e-4 * std::abs(w[i])) << t << " " << i;
    for (size_t i = 0; i < kElements; ++i)
      w[i] = float(now[i]);
  }
}

TEST(StateCodes, OthersThanWholeBlocksStayAsTheyAre) {
  OptimizerOptions options = narrow("adamw");
  options.stateType = StateType::INT8;
  Step whole(options, 8192), part(options, 8192 + 128);
  ASSERT_TRUE(whole.good && part.good);
  EXPECT_TRUE(whole.values["w/m"].getElementType().isUnsignedInteger(8));
  EXPECT_EQ(whole.get("w/v_scale").size(), 8192u / 256);
  EXPECT_TRUE(part.values["w/m"].getElementType().isF32());
  EXPECT_FALSE(part.values.count("w/m_scale"));
}
