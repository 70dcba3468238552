//===- Gradients.cpp - gradients against central differences --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loss is a sum of all float outputs with random weights; every float
// input and weight is differentiated. Along a random direction, the gradient
// must agree with a central difference to 1e-5. Test data loves kinks (zeros,
// ties, bounds), so the point is moved a little first; where differences of two
// widths disagree, a kink is near, and another point is tried.
//
//===----------------------------------------------------------------------===//
#include "Check.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Support/Error.h"

#include <cmath>
#include <random>

using namespace ckopt;
using namespace conformance;

namespace {
constexpr double kTolerance = 1e-5;
constexpr int kPoints = 8; ///< tried before a case fails

/// The step of one case, with what it is fed.
class GradientCheck {
public:
  GradientCheck(Session &session, Tensors inputs, Tensors variables)
      : session(session), inputs(std::move(inputs)),
        base(std::move(variables)) {}

  /// What is wrong, "" for nothing.
  llvm::Expected<std::string> run();

private:
  Tensors point(int attempt);
  llvm::Expected<Tensors> evaluate(const Tensors &at, const Tensors &along,
                                   double distance);
  llvm::Expected<double> loss(const Tensors &at, const Tensors &along,
                              double distance);
  enum class Finding { Right, Kink, Wrong };
  /// `problem` says how a gradient that is not right differs.
  /// `h`: distance of the differences.
  llvm::Expected<Finding> checkAt(const Tensors &at, double h,
                                  std::string &problem);

  Session &session;
  Tensors inputs, base;
  std::mt19937_64 random{20240917};
};
} // namespace

/// Random numbers for every element.
static Tensors randomLike(const Tensors &tensors, std::mt19937_64 &random) {
  std::normal_distribution<double> normal;
  Tensors result;
  for (const auto &[name, value] : tensors) {
    HostTensor filled(DType::F64, value.shape().vec());
    for (int64_t i = 0; i < filled.numElements(); ++i)
      filled.setDouble(i, normal(random));
    result.emplace_back(name, std::move(filled));
  }
  return result;
}

/// Near the test's data: moved freely, or by a share of each value, which stays
/// in the domain of functions such as log and acosh.
Tensors GradientCheck::point(int attempt) {
  Tensors noise = randomLike(base, random), result = base;
  bool scaled = attempt % 2 == 1;
  double size = attempt < 4 ? 0.02 : 0.3;
  for (size_t k = 0; k < result.size(); ++k)
    for (int64_t i = 0; i < result[k].second.numElements(); ++i) {
      double value = result[k].second.getDouble(i);
      double step = size * noise[k].second.getDouble(i);
      if (!std::isfinite(value))
        value = 0.5;
      if (attempt >= 6) // the data may lie outside of the domain, as of sqrt
        value = std::fabs(value);
      bool share = scaled && value != 0;
      result[k].second.setDouble(i, share ? value * (1 + std::fabs(step))
                                          : value + step);
    }
  return result;
}

llvm::Expected<Tensors> GradientCheck::evaluate(const Tensors &at,
                                                const Tensors &along,
                                                double distance) {
  if (llvm::Error error = feed(session, inputs))
    return std::move(error);
  for (size_t k = 0; k < at.size(); ++k) {
    auto index = session.find(at[k].first);
    if (!index)
      return index.takeError();
    HostTensor moved(DType::F64, at[k].second.shape().vec());
    for (int64_t i = 0; i < moved.numElements(); ++i)
      moved.setDouble(i, at[k].second.getDouble(i) +
                             distance * along[k].second.getDouble(i));
    if (llvm::Error error = session.write(*index, moved))
      return std::move(error);
  }
  return runFunction(session, "step");
}

llvm::Expected<double>
GradientCheck::loss(const Tensors &at, const Tensors &along, double distance) {
  auto outputs = evaluate(at, along, distance);
  if (!outputs)
    return outputs.takeError();
  return findTensor(*outputs, "loss")->getDouble(0);
}

llvm::Expected<GradientCheck::Finding>
GradientCheck::checkAt(const Tensors &at, double h, std::string &problem) {
  Tensors along = randomLike(at, random);
  auto outputs = evaluate(at, along, 0);
  if (!outputs)
    return outputs.takeError();
  double slope = 0, size = 0,
         center = findTensor(*outputs, "loss")->getDouble(0);
  for (size_t k = 0; k < at.size(); ++k)
    if (const HostTensor *grad = findTensor(*outputs, "grad/" + at[k].first))
      for (int64_t i = 0; i < grad->numElements(); ++i) {
        double part = grad->getDouble(i) * along[k].second.getDouble(i);
        slope += part;
        size += std::fabs(part);
      }
  double f[4];
  const double places[] = {h, -h, 2 * h, -2 * h};
  for (int i = 0; i < 4; ++i) {
    auto value = loss(at, along, places[i]);
    if (!value)
      return value.takeError();
    f[i] = *value;
  }
  double narrow = (f[0] - f[1]) / (2 * h), wide = (f[2] - f[3]) / (4 * h);
  double best = (4 * narrow - wide) / 3;
  // Rounding of the loss bounds what a difference can tell.
  double noise = 1e-15 * (std::fabs(center) + 1) / h;
  double scale = std::max({std::fabs(best), std::fabs(slope), 1e-2 * size});
  if (std::fabs(best - slope) <= kTolerance * scale + 4 * noise)
    return Finding::Right;
  bool kink = !(std::fabs(narrow - wide) <= 1e-6 * scale + 8 * noise);
  problem = "the gradient along a direction is " + std::to_string(slope) +
            ", central differences give " + std::to_string(narrow) + " and " +
            std::to_string(wide) + (kink ? ", which disagree" : "");
  return kink ? Finding::Kink : Finding::Wrong;
}

llvm::Expected<std::string> GradientCheck::run() {
  std::string problem;
  int wrong = 0; // among many kinks one point may look smooth by chance
  for (int attempt = 0; attempt < kPoints; ++attempt) {
    // Where kinks are many, none lies within a short distance.
    double h = attempt % 4 < 2 ? 2e-5 : 5e-7;
    auto finding = checkAt(point(attempt), h, problem);
    if (!finding)
      return finding.takeError();
    if (*finding == Finding::Right)
      return "";
    if (*finding == Finding::Wrong && ++wrong == 2)
      break;
  }
  return problem;
}

/// Makes the weighted sum of the float outputs the only result, and every float
/// argument a parameter; false where one of both is missing. Names of the
/// weights' arguments begin with "cotangent/".
static bool attachSum(mlir::func::FuncOp function) {
  bool anyArgument = false;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto type = cast<mlir::RankedTensorType>(function.getArgumentTypes()[i]);
    llvm::StringRef role = argumentRole(function, i);
    bool data = role == roles::kInput || role == roles::kFrozen ||
                role == roles::kParameter || role == roles::kState;
    if (!data || !isa<mlir::FloatType>(type.getElementType()))
      continue;
    anyArgument |= !function.getArgument(i).use_empty();
    function.setArgAttr(
        i, attrs::kRole,
        mlir::StringAttr::get(function.getContext(), roles::kParameter));
  }
  mlir::OpBuilder builder(function.getBody().front().getTerminator());
  TensorBuilder b(builder, function.getLoc());
  mlir::Value sum;
  auto results = takeResults(function);
  for (auto [i, result] : llvm::enumerate(results)) {
    auto type = tensorType(result.value);
    if (!isa<mlir::FloatType>(type.getElementType()))
      continue;
    mlir::Value weights = addArgument(
        function, type, "cotangent/" + std::to_string(i), roles::kInput);
    // Masks of attention are infinite; what is finite has a gradient still.
    mlir::Value infinite =
        b.compare(ComparePredicate::EQ, b.make<AbsOp>(result.value),
                  std::numeric_limits<double>::infinity());
    mlir::Value weighted = b.mul(result.value, weights);
    mlir::Value finite = b.select(infinite, b.number(weighted, 0), weighted);
    mlir::Value part = b.cast(b.sumAll(finite), builder.getF64Type());
    sum = sum ? b.add(sum, part) : part;
  }
  Result loss;
  if (sum) {
    loss.value = sum;
    loss.set(builder, attrs::kName, builder.getStringAttr("loss"));
    loss.set(builder, attrs::kRole, builder.getStringAttr("loss"));
    results.assign(1, loss);
  }
  setResults(function, results);
  return anyArgument && sum;
}

/// The values of the arguments of role parameter, and data for the rest.
static void splitArguments(const Compilation &compilation,
                           mlir::func::FuncOp function, Tensors &inputs,
                           Tensors &variables) {
  std::mt19937_64 random{7};
  TensorMap weights = compilation.weights();
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    std::string name = argumentName(function, i);
    llvm::StringRef role = argumentRole(function, i);
    std::vector<int64_t> shape =
        cast<mlir::RankedTensorType>(function.getArgumentTypes()[i])
            .getShape()
            .vec();
    if (role == roles::kInput && !findTensor(inputs, name)) {
      Tensors weight{{name, HostTensor(DType::F64, shape)}};
      inputs.push_back(randomLike(weight, random)[0]);
    }
    if (role != roles::kParameter)
      continue;
    const HostTensor *value = findTensor(inputs, name);
    if (!value)
      value = weights.find(name);
    HostTensor wide(DType::F64, shape);
    for (int64_t k = 0; value && k < wide.numElements(); ++k)
      wide.setDouble(k, value->getDouble(k));
    variables.emplace_back(name, std::move(wide));
  }
}

static llvm::Expected<Outcome> check(const Case &test,
                                     const Signature &signature) {
  auto inputs = readTensors(test.dataSets[0], "input", signature.inputs);
  if (!inputs)
    return inputs.takeError();
  auto imported = importFor(test, signature, *inputs, /*f64=*/true);
  if (!imported)
    return imported.takeError();
  Compilation &compilation = *imported->compilation;
  auto forward =
      compilation.module().lookupSymbol<mlir::func::FuncOp>("forward");
  if (!attachSum(forward))
    return Outcome{Verdict::Skipped, "no float output that depends on floats"};
  Tensors variables;
  splitArguments(compilation, forward, *inputs, variables);
  StepOptions &step = compilation.options().step;
  step.forwardOnly = step.evaluation = false;
  step.loss.clear();
  step.optimizer.kind.clear();
  auto loaded = load(compilation, *inputs);
  if (!loaded)
    return loaded.takeError();
  // An argument that the loss does not read is no part of the step.
  llvm::erase_if(variables, [&](const auto &variable) {
    auto index = (*loaded)->find(variable.first);
    bool missing = !index;
    llvm::consumeError(index.takeError());
    return missing;
  });
  auto problem = GradientCheck(**loaded, *inputs, std::move(variables)).run();
  if (!problem)
    return problem.takeError();
  return problem->empty() ? Outcome{Verdict::Pass, ""}
                          : Outcome{Verdict::Fail, *problem};
}

Outcome conformance::checkGradients(const Case &test) {
  auto signature = readSignature(test.model);
  if (!signature)
    return {Verdict::Fail, toString(signature.takeError())};
  if (test.dataSets.empty())
    return {Verdict::Fail, "there is no test_data_set_0"};
  if (signature->narrow)
    return {Verdict::Skipped, "f16 or bf16: too coarse for differences"};
  bool floats = llvm::any_of(signature->inputs,
                             [](const Port &port) { return port.isWide; });
  if (!floats)
    return {Verdict::Skipped, "no float input"};
  auto outcome = check(test, *signature);
  if (outcome)
    return *outcome;
  ErrorText error = takeErrorText(outcome.takeError());
  bool refused = !signature->family.empty() && (error.code == ExitUnsupported ||
                                                error.code == ExitInputError);
  if (refused)
    return {Verdict::Refused, signature->family};
  return {Verdict::Fail, error.text};
}
