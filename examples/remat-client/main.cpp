// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads a function of linalg, arith and math ops, plans it within a budget in
// this program's own pass manager, and prints the result:
//
//   remat-client in.mlir 0.8x
#include "ckopt/Remat/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  if (argc != 3) {
    llvm::errs() << "usage: remat-client FILE BUDGET\n";
    return 64;
  }
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::linalg::LinalgDialect, mlir::math::MathDialect,
                  mlir::tensor::TensorDialect>();
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(argv[1], &context);
  if (!module)
    return 1;

  ckopt::RematPassOptions options;
  options.budget = argv[2];
  mlir::PassManager passes(&context);
  passes.addNestedPass<mlir::func::FuncOp>(ckopt::createRematPass(options));
  if (mlir::failed(passes.run(*module)))
    return 1;

  module->walk([](mlir::func::FuncOp function) {
    auto plan = function->getAttrOfType<mlir::DictionaryAttr>("ckopt.plan");
    if (plan)
      llvm::outs() << function.getSymName() << ": "
                   << plan.getAs<mlir::IntegerAttr>("arena").getInt()
                   << " bytes instead of "
                   << plan.getAs<mlir::IntegerAttr>("full_arena").getInt()
                   << ", "
                   << plan.getAs<mlir::IntegerAttr>("recomputed").getInt()
                   << " ops computed again\n";
  });
  return 0;
}
