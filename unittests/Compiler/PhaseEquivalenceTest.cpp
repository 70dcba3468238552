//===- PhaseEquivalenceTest.cpp - no phase changes what a step computes ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The training step of each network, interpreted after the phases: decomposing,
// layouts and fusion keep its numbers up to the rounding of double arithmetic;
// recomputation under the smallest budget and memory planning keep every bit.
// Dropout is on, running statistics and optimizer state are results. No code is
// generated in these tests.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Compiler/Phases.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Frontend/Onnx/Onnx.h"
#include "ckopt/Reference/Interpreter.h"
#include "ckopt/Target/Targets.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace ckopt;
using reference::Tensor;

namespace {
struct Network {
  std::string name, path, loss;
  std::vector<std::string> inputs = {"x"};
  std::optional<int64_t> batch = std::nullopt;
  bool recomputes = true; ///< under the smallest budget
};
[[maybe_unused]] void PrintTo(const Network &network, std::ostream *os) {
  *os << network.name;
}
class PhaseEquivalence : public testing::TestWithParam<Network> {
protected:
  PhaseEquivalence() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  MLIRContext context{MLIRContext::Threading::DISABLED};
};
} // namespace

/// Weights from the file, numbers in range for everything else.
static SmallVector<Tensor>
makeArguments(func::FuncOp function,
              const std::map<std::string, HostTensor> &weights) {
  SmallVector<Tensor> args;
  for (auto [i, argType] : llvm::enumerate(function.getArgumentTypes())) {
    auto type = cast<RankedTensorType>(argType);
    StringRef role = argumentRole(function, unsigned(i));
    auto weight = weights.find(argumentName(function, unsigned(i)));
    if (weight != weights.end())
      args.push_back(Tensor::fromHost(weight->second, type));
    else if (role == roles::kStep)
      args.push_back(Tensor::splat(type, 3));
    else if (role == roles::kLearningRate)
      args.push_back(Tensor::splat(type, 1e-3));
    else if (role == roles::kState || role == roles::kOptimizerState)
      args.push_back(Tensor::random(type, i, 0.5, 1.5));
    else if (isa<FloatType>(type.getElementType()))
      args.push_back(Tensor::random(type, i));
    else // token numbers and labels: every network has at least 3
      args.push_back(Tensor::random(type, i, 0, 3));
  }
  return args;
}

/// Runs it in double, so that only its dataflow decides the numbers.
static SmallVector<Tensor> run(func::FuncOp function, ArrayRef<Tensor> args) {
  reference::Options options;
  options.roundToType = false;
  SmallVector<Tensor> results;
  EXPECT_TRUE(succeeded(reference::evaluate(function, args, results, options)));
  return results;
}

static void expectClose(ArrayRef<Tensor> got, ArrayRef<Tensor> wanted,
                        double tolerance, func::FuncOp function) {
  ASSERT_EQ(got.size(), wanted.size());
  for (auto [i, a, b] : llvm::enumerate(got, wanted)) {
    reference::Comparison found = reference::compare(a, b);
    EXPECT_TRUE(found.sameShape && found.normRel <= tolerance)
        << resultName(function, unsigned(i)) << ": " << found.str();
  }
}

std::vector<Phase> phasesOf(const StepOptions &options) {
  return llvm::cantFail(buildPhases(
      options, options.target == "cuda" ? cudaTarget() : cpuTarget()));
}

TEST_P(PhaseEquivalence, KeepsTheNumbers) {
  onnx_frontend::ImportOptions import;
  import.inputs = GetParam().inputs;
  import.batch = GetParam().batch;
  auto model = onnx_frontend::importModel(GetParam().path, import, context);
  if (!model)
    FAIL() << llvm::toString(model.takeError());
  ModuleOp module = model->module.get();

  StepOptions options;
  options.loss = *parseLoss(GetParam().loss);
  options.optimizer.kind = "adamw";
  options.remat.budget.kind = MemoryBudget::Kind::Minimum;
  options.remat.search.workLimit = 20000000; // about a second
  std::map<std::string, SmallVector<Tensor>> args, before, fused;
  for (const Phase &phase : phasesOf(options)) {
    if (llvm::Error error = runPhases(module, {phase}, PhaseControl()))
      FAIL() << llvm::toString(std::move(error));
    for (std::string name : {"step", "eval"}) {
      auto function = module.lookupSymbol<func::FuncOp>(name);
      SCOPED_TRACE("@" + name + " after " + phase.name);
      if (phase.name == "optimizer") {
        args[name] = makeArguments(function, model->weights);
        before[name] = run(function, args[name]);
        ASSERT_FALSE(before[name].empty());
        // NaN equals NaN below: it must not be there.
        for (const Tensor &result : before[name])
          for (int64_t i = 0; i < result.size(); ++i)
            ASSERT_TRUE(std::isfinite(result.get(i)));
      } else if (phase.name == "fuse") {
        fused[name] = run(function, args[name]);
        expectClose(fused[name], before[name], 1e-9, function);
      } else if (phase.name == "remat" || phase.name == "plan-memory") {
        expectClose(run(function, args[name]), fused[name], 0, function);
      }
    }
  }
  ASSERT_EQ(fused.size(), 2u);
  int64_t clones = 0;
  module.lookupSymbol<func::FuncOp>("step").walk(
      [&](KernelCallOp call) { clones += bool(call.getClone()); });
  if (GetParam().recomputes)
    EXPECT_GT(clones, 0) << "the smallest budget needs no recomputation: the "
                            "test shows nothing about it";
  RecordProperty("clones", int(clones));
}

static Network golden(std::string name, std::string loss,
                      bool recomputes = true) {
  return {name,         CKOPT_TEST_DATA "/golden/" + name + "/model.onnx",
          loss,         {"x"},
          std::nullopt, recomputes};
}
static Network model(std::string name, int64_t batch) {
  return {name,
          CKOPT_TEST_DATA "/models/" + name + ".onnx",
          "cross_entropy",
          {},
          batch,
          true};
}

INSTANTIATE_TEST_SUITE_P(
    All, PhaseEquivalence,
    testing::Values(
        golden("mlp", "mse", /*recomputes=*/false),
        golden("lenet", "cross_entropy"), golden("resnet", "cross_entropy"),
        golden("lstm", "cross_entropy", /*recomputes=*/false),
        golden("unet", "cross_entropy"), golden("mobile", "cross_entropy"),
        golden("vit", "cross_entropy"), golden("gpt", "cross_entropy"),
        model("digits_cnn", 16), model("byte_gpt", 1)),
    [](const testing::TestParamInfo<Network> &info) {
      return info.param.name;
    });

/// Options with all fields set, including numbers that six digits cannot
/// represent.
static StepOptions unusualOptions() {
  StepOptions options;
  options.loss = *parseLoss("cross_entropy*0.3333333333333333");
  options.lossSettings.labelSmoothing = 1.0 / 7;
  options.lossSettings.classWeights.assign(10, 1.0 / 3);
  options.lossSettings.classAxis = 1;
  options.optimizer.kind = "sgd";
  options.optimizer.values = {{"momentum", 2.0 / 3}, {"nesterov", 1}};
  options.optimizer.clipNorm = 1.0 / 3;
  options.optimizer.ema = 0.999;
  options.threads = 2;
  options.remat.budget.kind = MemoryBudget::Kind::Bytes;
  options.remat.budget.bytes = (1 << 20) + 1;
  options.remat.search.effort = 1.0 / 3;
  options.remat.search.workLimit = 20000000;
  options.remat.policy.save = {"op:Relu|a;b", "op:Ma.{1,2}Pool"};
  options.remat.policy.saveable = "dots_saveable";
  options.remat.compare = Comparison::Off;
  return options;
}

// If a phase's printed pipeline is parsed as ckopt-opt does, it makes the same
// IR as the phase, which was made from option structs.
TEST(Phases, PrintedPipelinesDoTheSame) {
  registerAllPasses(); // textual pipelines find passes by their names
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string messages;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    messages += diagnostic.str() + "\n";
  });
  auto model = onnx_frontend::importModel(
      CKOPT_TEST_DATA "/golden/lenet/model.onnx", {}, context);
  if (!model)
    FAIL() << llvm::toString(model.takeError());
  auto print = [](ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream os(text);
    module.print(os);
    return text;
  };
  ModuleOp module = *model->module;
  for (const Phase &phase : phasesOf(unusualOptions())) {
    SCOPED_TRACE(phase.pipeline());
    OwningOpRef<ModuleOp> copy(module.clone());
    auto parsed = parsePassPipeline(phase.pipeline());
    ASSERT_TRUE(succeeded(parsed));
    PassManager manager(&context);
    static_cast<OpPassManager &>(manager) = std::move(*parsed);
    ASSERT_TRUE(succeeded(manager.run(*copy))) << messages;
    if (llvm::Error error = runPhases(module, {phase}, PhaseControl()))
      FAIL() << llvm::toString(std::move(error));
    EXPECT_EQ(print(*copy), print(module));
  }
}

// Without a device there is no IR to compare, but text that is parsed and
// printed again is the same.
TEST(Phases, PrintedPipelinesAreReadBack) {
  registerAllPasses();
  StepOptions device = unusualOptions(), forward, rounded;
  rounded.matmulPrecision = MatmulPrecision::Medium;
  device.target = "cuda";
  device.matmulPrecision = MatmulPrecision::TF32;
  device.libraryWorkspace = 1 << 20;
  device.freezeNorms = device.evaluateLoss = true;
  device.remat.budget.kind = MemoryBudget::Kind::ActivationRatio;
  device.remat.budget.ratio = 1.0 / 3;
  device.remat.policy.regions = "sequential:3";
  forward.forwardOnly = forward.asWritten = true;
  for (const StepOptions &options :
       {unusualOptions(), device, forward, rounded})
    for (const Phase &phase : phasesOf(options)) {
      auto parsed = parsePassPipeline(phase.pipeline());
      ASSERT_TRUE(succeeded(parsed)) << phase.pipeline();
      std::string again;
      llvm::raw_string_ostream os(again);
      parsed->printAsTextualPipeline(os);
      EXPECT_EQ(again, phase.pipeline());
    }
}
