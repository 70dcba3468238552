//===- ScalarTargetTest.cpp - a target that only this program knows -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface of targets is complete if one that nothing in ckopt knows
// trains networks: from the command line and from options, through text
// pipelines, to PyTorch's gradients.
//
//===----------------------------------------------------------------------===//
#include "ScalarTarget.h"
#include "../Steps/Checks.h"
#include "ckopt/CodeGen/Kernels.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Npz.h"
#include "ckopt/Target/TargetRegistry.h"
#include "ckopt/Target/Targets.h"
#include "ckopt/Tool/Main.h"

using namespace ckopt;
using namespace ckopt::test;

namespace {

class ScalarGradients : public testing::TestWithParam<GoldenModel> {
protected:
  /// The only edit that a new target asks for.
  static void SetUpTestSuite() { check(registerTarget(scalarTarget())); }
};

CompileOptions scalarOptions(const std::string &name, const std::string &loss) {
  CompileOptions options =
      trainingOptions(goldenPath(name, "model.onnx"), loss);
  options.step.target = "scalar";
  return options;
}

/// Emits the kernels again, and looks at every value of their code.
void expectScalars(mlir::ModuleOp planned) {
  CodegenOptions options = get(scalarTarget().codegen({}));
  int64_t values = 0;
  for (auto kernel : planned.getOps<mlir::func::FuncOp>()) {
    if (!kernel->hasAttr("ckopt.kernel"))
      continue;
    mlir::OwningOpRef<mlir::ModuleOp> into =
        mlir::ModuleOp::create(kernel.getLoc());
    ASSERT_TRUE(succeeded(emitKernel(kernel, options, *into)));
    into->walk([&](mlir::Operation *op) {
      for (mlir::Type type : op->getResultTypes()) {
        ++values;
        EXPECT_FALSE(mlir::isa<mlir::VectorType>(type))
            << kernel.getSymName().str() << ": "
            << op->getName().getStringRef().str();
      }
    });
  }
  EXPECT_GT(values, 100);
}

// Scalar code, one thread, no layouts of its own; the gradients are PyTorch's.
TEST_P(ScalarGradients, ReachesGoldenGradients) {
  CompileOptions options = scalarOptions(GetParam().name, GetParam().loss);
  options.step.optimizer.kind.clear();
  options.step.evaluation = false;
  Loaded loaded = get(load(options));
  ASSERT_TRUE(loaded.session);
  checkGradients(*loaded.session, GetParam(), 1e-4);
  const Compilation &compilation = *loaded.compilation;
  EXPECT_EQ(get(loaded.session->measuredPeak()),
            compilation.summary().figures.arena);
  EXPECT_EQ(compilation.manifest().threads, 1);
  EXPECT_EQ(compilation.options().step.layout, ActivationLayout::None);
  expectScalars(compilation.module());
}

INSTANTIATE_TEST_SUITE_P(All, ScalarGradients,
                         testing::ValuesIn(goldenModels()),
                         [](const auto &info) { return info.param.name; });

class ScalarStep : public testing::Test {
protected:
  static void SetUpTestSuite() { check(registerTarget(scalarTarget())); }
};

// A few steps of AdamW at the smallest budget go the CPU's way, with the bits
// of the unconstrained step.
TEST_F(ScalarStep, Trains) {
  Outcome cpu, free, tight;
  CompileOptions options = scalarOptions("lenet", "cross_entropy");
  Loaded loaded = get(load(options));
  ASSERT_TRUE(loaded.session);
  train(*loaded.session, 4, free);
  double seconds = loaded.compilation->summary().figures.seconds;
  options.step.remat.budget = smallestBudget();
  loaded = get(load(options));
  ASSERT_TRUE(loaded.session);
  train(*loaded.session, 4, tight);
  EXPECT_LT(tight.measured, free.measured);
  expectSame(free, tight);

  options.step.remat.budget = {};
  options.step.target = "cpu";
  loaded = get(load(options));
  ASSERT_TRUE(loaded.session);
  train(*loaded.session, 4, cpu);
  for (size_t i = 0; i < free.losses.size(); ++i)
    EXPECT_NEAR(free.losses[i], cpu.losses[i], 1e-5 * cpu.losses[i]);
  // Its rates say that what is generated takes longer.
  EXPECT_GT(seconds, 1.5 * loaded.compilation->summary().figures.seconds);
}

// The phases' text names the target, and gives what the options give.
TEST_F(ScalarStep, TextPipelines) {
  CompileOptions options = scalarOptions("resnet", "cross_entropy");
  std::string modules[2];
  for (std::string &text : modules) {
    Compilation compilation(options);
    check(compilation.import());
    bool asText = &text == &modules[1];
    for (const Phase &phase :
         get(buildPhases(compilation.options().step, scalarTarget()))) {
      if (!asText) {
        check(runPhases(compilation.module(), {phase}, {}));
        continue;
      }
      registerAllPasses();
      mlir::PassManager manager(compilation.module()->getContext());
      std::string pipeline = phase.pipeline();
      pipeline = pipeline.substr(pipeline.find('(') + 1);
      pipeline.pop_back();
      ASSERT_TRUE(succeeded(mlir::parsePassPipeline(pipeline, manager)));
      ASSERT_TRUE(succeeded(manager.run(compilation.module())));
    }
    llvm::raw_string_ostream(text) << compilation.module();
  }
  EXPECT_EQ(modules[0], modules[1]);
  EXPECT_NE(modules[0].find("ckopt.target = \"scalar\""), std::string::npos);
}

int runTool(std::vector<std::string> arguments, std::string &errors) {
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  testing::internal::CaptureStderr();
  int code = driverMain(int(argv.size()), argv.data());
  errors = testing::internal::GetCapturedStderr();
  return code;
}

// The command line takes the name, and the target refuses what it has no use
// for.
TEST_F(ScalarStep, CommandLine) {
  std::string out = testing::TempDir() + "scalar-gradients.npz", errors;
  std::vector<std::string> grad = {"ckopt",
                                   "grad",
                                   goldenPath("mlp", "model.onnx"),
                                   "--loss=mse",
                                   "--quiet",
                                   "--target=scalar",
                                   "--data=" + goldenPath("mlp", "data.npz"),
                                   "-o",
                                   out};
  EXPECT_EQ(runTool(grad, errors), ExitOk) << errors;
  EXPECT_GT(get(readNpz(out)).size(), 1u);
  auto with = [&](const char *flag) {
    std::vector<std::string> arguments = grad;
    arguments.push_back(flag);
    return arguments;
  };
  EXPECT_EQ(runTool(with("--threads=2"), errors), ExitUsage);
  EXPECT_NE(errors.find("target scalar has one"), std::string::npos) << errors;
  EXPECT_EQ(runTool(with("--sm=90"), errors), ExitUsage);
  EXPECT_NE(errors.find("--sm is for GPUs"), std::string::npos) << errors;
  EXPECT_EQ(runTool(with("--device=scalar:0"), errors), ExitUsage);
  EXPECT_NE(errors.find("is no device"), std::string::npos) << errors;
}

// Names that nobody registered are an error that lists those that are known.
TEST_F(ScalarStep, UnknownNames) {
  CompileOptions options = scalarOptions("mlp", "mse");
  options.step.target = "vector";
  Compilation compilation(options);
  std::string error = llvm::toString(compilation.import());
  EXPECT_NE(error.find("no target 'vector'; there are"), std::string::npos);
  for (const char *known : {"cpu", "cuda", "scalar"})
    EXPECT_NE(error.find(known), std::string::npos) << error;
}

} // namespace
