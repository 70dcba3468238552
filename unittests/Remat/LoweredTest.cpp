//===- LoweredTest.cpp - plans are true about what runs -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Many small functions are lowered as docs/remat-pass.md says, as they stand
// and behind `remat`, and run with an allocator that counts.
//
//===----------------------------------------------------------------------===//
#include "CountedJit.h"
#include "Samples.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Remat/Figures.h"
#include "ckopt/Remat/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

/// Returns the passes that docs/remat-pass.md tells users to run after `remat`.
static std::string documentedPasses() {
  auto file =
      llvm::MemoryBuffer::getFile(CKOPT_TEST_DATA "/../../docs/remat-pass.md");
  StringRef text = (*file)->getBuffer();
  StringRef lowering = text.substr(text.find("## After the pass"));
  lowering = lowering.substr(lowering.find("func.func(remat{"));
  lowering = lowering.substr(lowering.find("}),") + 3);
  return lowering.take_until([](char c) { return c == '\''; })
             .rtrim(')')
             .str() +
         ")";
}

namespace {
class Lowered : public testing::Test {
protected:
  static void SetUpTestSuite() {
    registerRematPasses();
    bufferization::registerBufferizationPasses();
    bufferization::registerBufferizationPipelines();
    registerLinalgPasses();
  }
  Lowered() {
    registerJit(registry);
    // What `remat` registers lowers the functions as they stand, too.
    createRematPass(RematOptions())->getDependentDialects(registry);
    registry.insert<func::FuncDialect, arith::ArithDialect, math::MathDialect,
                    linalg::LinalgDialect, memref::MemRefDialect,
                    scf::SCFDialect, tensor::TensorDialect,
                    bufferization::BufferizationDialect, CkoptDialect>();
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
  }
  OwningOpRef<ModuleOp> parse(const std::string &text) {
    return parseSourceString<ModuleOp>(text, &context);
  }
  bool run(ModuleOp module, StringRef passes) {
    PassManager manager(&context);
    return succeeded(parsePassPipeline(passes, manager)) &&
           succeeded(manager.run(module));
  }
  std::vector<CountedRun> measure(ModuleOp module) {
    if (!run(module, documentedPasses()))
      return {};
    return runCounted(module);
  }

  DialectRegistry registry;
  MLIRContext context;
};
} // namespace

static RematFigures figuresOf(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  return figuresFromAttribute(main->getAttrOfType<DictionaryAttr>(kPlanAttr));
}

TEST_F(Lowered, NeedsNoMoreThanPlannedAndThanBefore) {
  ScopedDiagnosticHandler remarks(&context, [](Diagnostic &message) {
    return success(message.getSeverity() == DiagnosticSeverity::Remark);
  });
  int smaller = 0, count = 0;
  for (const Sample &sample : samples()) {
    SCOPED_TRACE(sample.name + "\n" + sample.text);
    OwningOpRef<ModuleOp> before = parse(sample.text);
    ASSERT_TRUE(before);
    std::vector<CountedRun> untouched = measure(*before);
    ASSERT_FALSE(untouched.empty());
    for (StringRef options :
         {"remat{effort=0}", "remat{budget=min effort=0}"}) {
      OwningOpRef<ModuleOp> after = parse(sample.text);
      ASSERT_TRUE(run(*after, options));
      RematFigures figures = figuresOf(*after);
      ASSERT_GT(figures.lowered, 0);
      std::vector<CountedRun> planned = measure(*after);
      ASSERT_EQ(planned.size(), untouched.size());
      int64_t most = 0, mostBefore = 0;
      for (auto [now, old] : llvm::zip(planned, untouched)) {
        EXPECT_EQ(std::memcmp(now.result.data(), old.result.data(),
                              now.result.size() * sizeof(float)),
                  0);
        most = std::max(most, now.peak);
        mostBefore = std::max(mostBefore, old.peak);
      }
      EXPECT_LE(most, figures.arena - figures.argumentBytes) << options.str();
      EXPECT_LE(most, mostBefore) << options.str();
      smaller += most < mostBefore;
    }
    ++count;
  }
  EXPECT_GE(count, 60);
  EXPECT_GT(smaller, 10); // else nothing was planned
}

/// Each value is used once, soon after it was made; merged by CSE, the first
/// would live to the end.
static std::string largeFunction() {
  const std::string type = "tensor<256xf32>";
  std::string text = "func.func @main(%x: " + type + ") -> " + type + " {\n";
  std::string sum = "%x";
  for (int i = 0; i < 100; ++i) {
    std::string n = std::to_string(i);
    text += "%e" + n + " = math.exp %x : " + type + "\n";
    text += "%f" + n + " = math." + (i % 2 ? "sin" : "cos") + " %e" + n +
            " : " + type + "\n";
    text +=
        "%s" + n + " = arith.addf %f" + n + ", " + sum + " : " + type + "\n";
    sum = "%s" + n;
  }
  return text + "return " + sum + " : " + type + "\n}";
}

TEST_F(Lowered, SaysWhichFunctionsAreTooLarge) {
  std::string said;
  ScopedDiagnosticHandler remarks(
      &context, [&](Diagnostic &message) { said += message.str() + "\n"; });
  OwningOpRef<ModuleOp> module = parse(largeFunction());
  ASSERT_TRUE(module);
  ASSERT_TRUE(run(*module, "remat{effort=0}"));
  EXPECT_EQ(figuresOf(*module).lowered, 0);
  EXPECT_NE(said.find("@main is too large to be lowered on trial"),
            std::string::npos);
  int made = 0;
  module->walk([&](math::ExpOp) { ++made; });
  EXPECT_EQ(made, 100);
  ASSERT_FALSE(run(*module, "remat{effort=0 budget=1500}"));
  EXPECT_NE(said.find("(proven for what the plan counts;"), std::string::npos);
}
