//===- RandomProgramsTest.cpp - random models, compiled, against doubles --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For each random program (RandomProgram.h):
// - the gradients that autodiff builds, interpreted in double, agree with
//   central differences of the interpreted loss along a random direction;
// - the compiled step gives the interpreted loss and gradients, in f64 and f32;
// - under the smallest budget the compiled f32 step gives the same bits, and so
//   do steps that store or multiply bf16 at three budgets.
// A difference at a kink (a maximum that changes hands within the step) is told
// from a wrong gradient by two step sizes that disagree.
//
// scripts/random-programs N --seed=S runs many; CKOPT_RANDOM_PROGRAMS=N and
// CKOPT_RANDOM_SEED=S do so here.
//
//===----------------------------------------------------------------------===//
#include "../Frontend/TestUtils.h"
#include "Checks.h"
#include "RandomProgram.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Target/Targets.h"

using namespace ckopt;
using namespace ckopt::test;
using reference::Tensor;
using runtime::TensorRole;

namespace {

uint64_t fromEnvironment(const char *name, uint64_t missing) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : missing;
}

/// The step after autodiff, for the interpreter.
class Interpreted {
public:
  explicit Interpreted(const std::string &path) {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    onnx_frontend::ImportOptions options;
    options.f64 = true;
    auto imported = onnx_frontend::importModel(path, options, context);
    if (!imported) {
      error = llvm::toString(imported.takeError());
      return;
    }
    model = std::move(*imported);
    StepOptions step;
    step.optimizer.kind.clear();
    step.evaluation = false;
    std::vector<Phase> phases = llvm::cantFail(buildPhases(step, cpuTarget()));
    PhaseControl control;
    control.to = "autodiff";
    if (llvm::Error failure = runPhases(*model.module, phases, control))
      error = llvm::toString(std::move(failure));
    else
      function = model.module->lookupSymbol<mlir::func::FuncOp>("step");
  }

  mlir::SmallVector<Tensor> arguments(const HostTensor &x) {
    mlir::SmallVector<Tensor> args;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto type =
          mlir::cast<mlir::RankedTensorType>(function.getArgumentTypes()[i]);
      std::string name = argumentName(function, i);
      auto weight = model.weights.find(name);
      if (weight != model.weights.end())
        args.push_back(Tensor::fromHost(weight->second, type));
      else if (name == "x")
        args.push_back(Tensor::fromHost(x, type));
      else
        args.push_back(Tensor::splat(type, 1));
    }
    return args;
  }

  /// Loss, then gradients by name ("grad/w1").
  std::map<std::string, Tensor> run(mlir::ArrayRef<Tensor> args) {
    reference::Options options;
    options.roundToType = false;
    mlir::SmallVector<Tensor> results;
    std::map<std::string, Tensor> named;
    if (failed(reference::evaluate(function, args, results, options)))
      return named;
    for (auto [i, result] : llvm::enumerate(results)) {
      std::string name = resultName(function, unsigned(i));
      if (name == "loss" || llvm::StringRef(name).starts_with("grad/"))
        named[name] = result; // new running statistics are neither
    }
    return named;
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  onnx_frontend::ImportedModel model;
  mlir::func::FuncOp function;
  std::string error;
};

HostTensor makeInput(mlir::RankedTensorType type, uint64_t seed) {
  HostTensor x(DType::F32, type.getShape().vec());
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < x.numElements(); ++i)
    x.setDouble(i, double(random() % 20011) / 10005.5 - 1);
  return x;
}

/// d loss along a random direction of all parameters, by gradients and by
/// differences.
void checkDifferences(Interpreted &step, mlir::ArrayRef<Tensor> args,
                      const std::map<std::string, Tensor> &at, uint64_t seed) {
  std::mt19937_64 random(seed);
  mlir::SmallVector<Tensor> direction(args.begin(), args.end());
  double slope = 0, size = 0;
  for (unsigned i = 0; i < args.size(); ++i) {
    auto gradient = at.find("grad/" + argumentName(step.function, i));
    for (int64_t e = 0; args[i].isFloat() && e < args[i].size(); ++e) {
      double d = gradient == at.end() ? 0 : double(random() % 2001) / 1000 - 1;
      direction[i].real(e) = d;
      if (gradient == at.end())
        continue;
      slope += d * gradient->second.real(e);
      size += std::abs(d * gradient->second.real(e));
    }
  }
  auto lossAt = [&](double h) {
    mlir::SmallVector<Tensor> moved(args.begin(), args.end());
    for (unsigned i = 0; i < args.size(); ++i)
      for (int64_t e = 0; args[i].isFloat() && e < args[i].size(); ++e)
        if (at.count("grad/" + argumentName(step.function, i)))
          moved[i].real(e) += h * direction[i].real(e);
    return step.run(moved).at("loss").real(0);
  };
  constexpr double kWide = 1e-5, kNarrow = 1e-6;
  double center = at.at("loss").real(0);
  double after = lossAt(kNarrow), before = lossAt(-kNarrow);
  double wide = (lossAt(kWide) - lossAt(-kWide)) / (2 * kWide);
  double narrow = (after - before) / (2 * kNarrow);
  double tolerance = 1e-5 * std::max(size, 1e-3);
  // A kink within reach makes the differences depend on the step. One that the
  // values lie on exactly (a tie of TopK) does not: there the two sides differ.
  double jump = (after - 2 * center + before) / kNarrow;
  bool kink =
      std::abs(wide - narrow) > tolerance || std::abs(jump) > 10 * tolerance;
  EXPECT_TRUE(kink || std::abs(narrow - slope) <= 2 * tolerance)
      << "slope " << slope << " by gradients, " << narrow << " by differences";
}

struct Compiled {
  std::map<std::string, HostTensor> values; ///< loss and gradients
  int64_t arena = 0;                        ///< measured
  int64_t planned = 0; ///< at most 63 bytes more: the last tensor may end early
};

/// How a program is computed: --compute-type, --precision, --matmul-precision.
struct Numbers {
  std::string type, precision = "f32", products = "highest";
};

Compiled compileAndRun(const std::string &path, const Numbers &numbers,
                       const MemoryBudget &budget, const HostTensor &x) {
  Compiled result;
  const std::string &type = numbers.type;
  CompileOptions options = trainingOptions(path, "", budget);
  options.step.precision = *parseChoice<Precision>(numbers.precision);
  options.step.matmulPrecision =
      *parseChoice<MatmulPrecision>(numbers.products);
  options.step.optimizer.kind.clear();
  options.step.evaluation = false;
  options.step.threads = 1;
  options.import.f64 = type == "f64";
  options.keepDenormals = !type.empty();
  options.step.remat.search.workLimit = 500000;
  auto opened = load(options);
  if (!opened && budget.kind == MemoryBudget::Kind::Bytes) {
    // So little work does not find each plan that there is.
    ErrorText error = takeErrorText(opened.takeError());
    EXPECT_EQ(error.code, ExitNoPlanFound) << error.text;
    return result;
  }
  Loaded loaded = get(std::move(opened));
  if (!loaded.session)
    return result;
  Session &session = *loaded.session;
  for (int64_t index : session.tensors(TensorRole::Input))
    check(
        session.write(index, type.empty() ? x : get(x.convertTo(DType::F64))));
  check(session.fill(TensorRole::Step, 1));
  check(session.run("step"));
  for (const runtime::TensorInfo &tensor : session.manifest().tensors)
    if (tensor.name == "loss" ||
        llvm::StringRef(tensor.name).starts_with("grad/"))
      result.values[tensor.name] =
          get(session.read(get(session.find(tensor.name))));
  result.arena = get(session.measuredPeak());
  result.planned = loaded.compilation->summary().figures.arena;
  EXPECT_LE(result.arena, result.planned);
  EXPECT_GT(result.arena, result.planned - 64);
  return result;
}

/// The norm of the difference, over the norm but at least `floor`.
double relativeDistance(const HostTensor &got, const Tensor &wanted,
                        double floor) {
  double distance = 0, norm = 0;
  for (int64_t i = 0; i < wanted.size(); ++i) {
    double d = got.getDouble(i) - wanted.real(i);
    distance += d * d;
    norm += wanted.real(i) * wanted.real(i);
  }
  // All gradients may be zero, and the floor with them.
  return distance == 0 ? 0
                       : std::sqrt(distance) / std::max(std::sqrt(norm), floor);
}

/// Compares the bits of a narrow step at three budgets, and its loss with that
/// of doubles: its gradients may lie beyond kinks that rounding has crossed.
void checkNarrow(const std::string &path, const Numbers &numbers,
                 const HostTensor &x, double loss) {
  SCOPED_TRACE(numbers.precision + ", " + numbers.products);
  Compiled whole = compileAndRun(path, numbers, {}, x);
  ASSERT_TRUE(whole.values.count("loss"));
  EXPECT_NEAR(whole.values["loss"].getDouble(0), loss,
              0.1 * std::max(1.0, std::abs(loss)));
  Compiled least = compileAndRun(path, numbers, smallestBudget(), x);
  int64_t budget = (whole.planned + least.planned) / 2;
  Compiled between = compileAndRun(path, numbers, budgetOf(budget), x);
  EXPECT_LE(between.planned, budget);
  static int asked = 0, missed = 0;
  missed += between.values.empty();
  EXPECT_LE(missed, 1 + ++asked / 50);
  for (const auto &[name, value] : whole.values) {
    if (!between.values.empty())
      EXPECT_TRUE(value.bitEqual(between.values[name])) << name << " between";
    EXPECT_TRUE(value.bitEqual(least.values[name])) << name << " at least";
  }
}

void checkProgram(uint64_t seed) {
  RandomProgram program(seed);
  SCOPED_TRACE("CKOPT_RANDOM_SEED=" + std::to_string(seed) + ": " +
               program.summary());
  std::string path =
      modelFile("random" + std::to_string(seed) + ".onnx", program.text(), 18);
  Interpreted step(path);
  ASSERT_TRUE(step.error.empty()) << step.error;
  HostTensor x = makeInput(
      mlir::cast<mlir::RankedTensorType>(step.function.getArgumentTypes()[0]),
      seed);
  mlir::SmallVector<Tensor> args = step.arguments(x);
  std::map<std::string, Tensor> wanted = step.run(args);
  ASSERT_TRUE(wanted.count("loss"));
  ASSERT_TRUE(std::isfinite(wanted["loss"].real(0)));
  checkDifferences(step, args, wanted, seed);

  double scale = 0;
  for (const auto &[name, value] : wanted)
    for (int64_t i = 0; name != "loss" && i < value.size(); ++i)
      scale = std::max(scale, std::abs(value.real(i)));
  MemoryBudget least = smallestBudget();
  Compiled wide = compileAndRun(path, {"f64"}, {}, x),
           narrow = compileAndRun(path, {}, {}, x),
           tight = compileAndRun(path, {}, least, x);
  EXPECT_LE(tight.arena, narrow.arena);
  for (const auto &[name, value] : wanted) {
    ASSERT_TRUE(wide.values.count(name) && narrow.values.count(name)) << name;
    EXPECT_LE(relativeDistance(wide.values[name], value, 0.01 * scale), 1e-9)
        << name << " in f64";
    EXPECT_LE(relativeDistance(narrow.values[name], value, 0.1 * scale), 1e-3)
        << name << " in f32";
    EXPECT_TRUE(narrow.values[name].bitEqual(tight.values[name]))
        << name << " under the smallest budget";
  }
  // Each program would take as long again: all do in the long tests.
  if (!runsLongTests() && seed % 5)
    return;
  double loss = wanted["loss"].real(0);
  checkNarrow(path, {"", "bf16", "highest"}, x, loss);
  checkNarrow(path, {"", "f32", "medium"}, x, loss);
}

} // namespace

TEST(RandomPrograms, CompiledStepsAgreeWithDoubles) {
  uint64_t first = fromEnvironment("CKOPT_RANDOM_SEED", 1),
           number = fromEnvironment("CKOPT_RANDOM_PROGRAMS",
                                    runsLongTests() ? 100 : 15);
  for (uint64_t seed = first; seed < first + number; ++seed)
    checkProgram(seed);
}
