//===- TestReference.cpp - prints what the reference interpreter computes -===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs @main in the reference interpreter and prints its results, one a line
// (`--test-reference`), to test the meaning of ops. An argument takes its
// `test.value`, or seeded random numbers in [-1, 1) (integers in [0, 4)).
//
//===----------------------------------------------------------------------===//
#include "TestPasses.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace ckopt;

namespace {
struct TestReferencePass
    : PassWrapper<TestReferencePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestReferencePass)
  TestReferencePass() = default;
  TestReferencePass(const TestReferencePass &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "test-reference"; }
  StringRef getDescription() const override {
    return "Run a function in the reference interpreter and print its results";
  }
  Option<std::string> function{*this, "function",
                               llvm::cl::desc("Name of the function"),
                               llvm::cl::init("main")};
  Option<bool> wide{*this, "f64",
                    llvm::cl::desc("Compute in double, do not round"),
                    llvm::cl::init(false)};
  Option<bool> trace{*this, "trace", llvm::cl::desc("Print every op's results"),
                     llvm::cl::init(false)};

  void runOnOperation() override {
    auto callee = getOperation().lookupSymbol<func::FuncOp>(function);
    if (!callee) {
      getOperation().emitError("has no function @") << function;
      return signalPassFailure();
    }
    const int64_t maxElements = int64_t(1) << 20;
    SmallVector<reference::Tensor> args, results;
    for (auto [i, type] : llvm::enumerate(callee.getArgumentTypes())) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !tensor.hasStaticShape() ||
          !tensor.getElementType().isIntOrFloat() ||
          tensor.getNumElements() > maxElements ||
          tensor.getNumElements() < 0) {
        callee.emitError("argument ")
            << i << " is not a static tensor of up to 2^20 numbers";
        return signalPassFailure();
      }
      auto value = callee.getArgAttrOfType<ElementsAttr>(i, "test.value");
      bool floating = isa<FloatType>(tensor.getElementType());
      args.push_back(value ? reference::Tensor::fromAttr(value)
                           : reference::Tensor::random(tensor, i,
                                                       floating ? -1 : 0,
                                                       floating ? 1 : 4));
    }
    reference::Options options;
    options.roundToType = !wide;
    if (trace)
      options.observer = [](Operation *op, ArrayRef<reference::Tensor> values) {
        for (const reference::Tensor &value : values)
          llvm::outs() << op->getName() << ": " << value.str() << "\n";
      };
    if (failed(reference::evaluate(callee, args, results, options)))
      return signalPassFailure();
    for (auto [i, result] : llvm::enumerate(results))
      llvm::outs() << "result " << i << ": " << result.str() << "\n";
    markAllAnalysesPreserved();
  }
};
} // namespace

void ckopt::registerTestPasses() { PassRegistration<TestReferencePass>(); }
