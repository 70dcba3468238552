//===- Forward.cpp - the compiled code's outputs against the test's -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tolerances are those of ONNX's own backend runner (1e-3 of the value and
// 1e-7), wider for types whose last digit is larger than that; integers and
// bools are equal.
//
//===----------------------------------------------------------------------===//
#include "Check.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Support/Error.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace ckopt;
using namespace conformance;

const HostTensor *conformance::findTensor(const Tensors &tensors,
                                          llvm::StringRef name) {
  for (const auto &[key, value] : tensors)
    if (key == name)
      return &value;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

static CompileOptions optionsFor(const Case &test, const Signature &signature,
                                 const Tensors &inputs,
                                 const std::set<std::string> &constants,
                                 bool f64) {
  CompileOptions options;
  options.model = test.model;
  options.step.forwardOnly = options.step.asWritten = true;
  options.import.trainMode = false;
  // CastLike, written out, has no use for the tensor that gives the type.
  options.import.allowUnread = true;
  options.import.f64 = f64;
  options.keepDenormals = true;
  options.remarks = false;
  options.lost = LostParameters::Ignore;
  for (const auto &[name, value] : inputs) {
    if (constants.count(name)) {
      options.import.constants[name] = value;
      continue;
    }
    for (const Port &port : signature.inputs)
      if (port.name == name && !port.hasInitializer)
        options.import.inputs.push_back(name);
    options.import.shapes[name] = value.shape().vec();
  }
  return options;
}

llvm::Expected<Imported> conformance::importFor(const Case &test,
                                                const Signature &signature,
                                                const Tensors &inputs,
                                                bool f64) {
  Imported result;
  for (;;) {
    std::set<std::string> needed;
    CompileOptions options =
        optionsFor(test, signature, inputs, result.constants, f64);
    options.import.neededConstants = &needed;
    result.compilation = std::make_unique<Compilation>(std::move(options));
    llvm::Error error = result.compilation->import();
    result.compilation->options().import.neededConstants = nullptr;
    if (!error)
      return std::move(result);
    size_t before = result.constants.size();
    result.constants.insert(needed.begin(), needed.end());
    if (result.constants.size() == before)
      return std::move(error);
    llvm::consumeError(std::move(error));
  }
}

llvm::Expected<std::unique_ptr<Session>>
conformance::load(Compilation &compilation, const Tensors &inputs) {
  if (llvm::Error error = compilation.plan())
    return std::move(error);
  if (llvm::Error error = compilation.emit())
    return std::move(error);
  auto session = ckopt::open(compilation, SessionOptions());
  if (!session)
    return session.takeError();
  // Which inputs of a case are weights depends on the case; often none is.
  TensorMap weights = compilation.weights();
  for (const auto &[name, value] : inputs)
    weights.set(name, value);
  if (llvm::Error error = (*session)->initialize(weights, /*seed=*/0))
    return std::move(error);
  return session;
}

llvm::Error conformance::feed(Session &session, const Tensors &inputs) {
  using Role = ckopt::runtime::TensorRole;
  for (Role role : {Role::Input, Role::Target})
    for (int64_t index : session.tensors(role)) {
      const std::string &name = session.infoOf(index).name;
      const HostTensor *value = findTensor(inputs, name);
      if (!value)
        return inputError("the test has no data for '" + name + "'");
      if (llvm::Error error = session.write(index, *value))
        return error;
    }
  for (int64_t index : session.tensors(Role::Seed))
    if (llvm::Error error =
            session.write(index, HostTensor::scalar<int64_t>(1)))
      return error;
  return session.fill(Role::Step, 1);
}

llvm::Expected<Tensors> conformance::runFunction(Session &session,
                                                 const char *function) {
  if (llvm::Error error = session.run(function))
    return std::move(error);
  Tensors result;
  for (const ckopt::runtime::FunctionInfo &info : session.manifest().functions)
    for (int32_t index :
         info.name == function ? info.outputs : std::vector<int32_t>()) {
      auto value = session.read(index);
      if (!value)
        return value.takeError();
      result.emplace_back(session.infoOf(index).name, std::move(*value));
    }
  return result;
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

namespace {
struct Tolerance {
  double relative, absolute;
};
} // namespace

static Tolerance toleranceOf(DType type) {
  switch (type) {
  case DType::F64:
  case DType::F32:
    return {1e-3, 1e-7};
  case DType::F16: // a unit in the last place is 1e-3
    return {4e-3, 1e-3};
  case DType::BF16: // ... and here 8e-3
    return {2e-2, 1e-2};
  default:
    return {0, 0};
  }
}

/// What is wrong with `got`; empty: nothing.
static std::string compare(const HostTensor &got, const HostTensor &want) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return "is " + got.typeString() + ", expected " + want.typeString();
  Tolerance limit = toleranceOf(want.dtype());
  int64_t wrong = 0;
  std::string first;
  bool exact = !isFloat(want.dtype());
  for (int64_t i = 0; i < want.numElements(); ++i) {
    double a = got.getDouble(i), b = want.getDouble(i);
    bool same = exact ? got.getInt(i) == want.getInt(i)
                      : a == b || (std::isnan(a) && std::isnan(b)) ||
                            std::fabs(a - b) <=
                                limit.absolute + limit.relative * std::fabs(b);
    if (same)
      continue;
    if (!wrong++)
      llvm::raw_string_ostream(first)
          << "element " << indexString(i, want.shape())
          << llvm::format(" is %.7g, expected %.7g", a, b);
  }
  if (wrong)
    first += " (" + std::to_string(wrong) + " of " +
             std::to_string(want.numElements()) + " wrong)";
  return first;
}

/// One data set; an error is the reason for which nothing could be compared.
static llvm::Expected<std::string> checkDataSet(const Case &test,
                                                const Signature &signature,
                                                const std::string &folder) {
  auto inputs = readTensors(folder, "input", signature.inputs);
  if (!inputs)
    return inputs.takeError();
  auto imported = importFor(test, signature, *inputs, /*f64=*/false);
  if (!imported)
    return imported.takeError();
  auto loaded = load(*imported->compilation, *inputs);
  if (!loaded)
    return loaded.takeError();
  if (llvm::Error error = feed(**loaded, *inputs))
    return std::move(error);
  auto outputs = runFunction(**loaded, "eval");
  if (!outputs)
    return outputs.takeError();
  auto expected = readTensors(folder, "output", signature.outputs);
  if (!expected)
    return expected.takeError();
  for (const auto &[name, want] : *expected) {
    const HostTensor *got = findTensor(*outputs, name);
    std::string problem = got ? compare(*got, want) : "is not there";
    if (!problem.empty())
      return "output '" + name + "' " + problem;
  }
  return "";
}

static std::string oneLine(std::string text) {
  for (char &c : text)
    if (c == '\n')
      c = ' ';
  return text;
}

Outcome conformance::checkForward(const Case &test) {
  auto signature = readSignature(test.model);
  if (!signature)
    return {Verdict::Fail, oneLine(toString(signature.takeError()))};
  if (test.dataSets.empty())
    return {Verdict::Fail, "there is no test_data_set_0"};
  for (const std::string &folder : test.dataSets) {
    auto problem = checkDataSet(test, *signature, folder);
    if (!problem) {
      ErrorText error = takeErrorText(problem.takeError());
      bool refused =
          !signature->family.empty() &&
          (error.code == ExitUnsupported || error.code == ExitInputError);
      if (refused)
        return {Verdict::Refused, signature->family};
      return {Verdict::Fail, oneLine(error.text)};
    }
    if (!problem->empty())
      return {Verdict::Fail, oneLine(*problem)};
  }
  return {Verdict::Pass, ""};
}
