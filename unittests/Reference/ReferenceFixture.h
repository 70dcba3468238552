//===- ReferenceFixture.h - parse and run functions -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_REFERENCE_REFERENCEFIXTURE_H
#define CKOPT_UNITTESTS_REFERENCE_REFERENCEFIXTURE_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Reference/Folding.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

namespace ckopt::test {

class ReferenceFixture : public testing::Test {
protected:
  ReferenceFixture() {
    mlir::DialectRegistry registry;
    registry.insert<CkoptDialect, mlir::func::FuncDialect>();
    registerReferenceFolding(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The function @main of `text`, which must parse.
  mlir::func::FuncOp parse(llvm::StringRef text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    return module->lookupSymbol<mlir::func::FuncOp>("main");
  }

  llvm::SmallVector<reference::Tensor>
  run(mlir::func::FuncOp function, llvm::ArrayRef<reference::Tensor> args,
      const reference::Options &options = {}) {
    llvm::SmallVector<reference::Tensor> results;
    EXPECT_TRUE(
        llvm::succeeded(reference::evaluate(function, args, results, options)));
    return results;
  }

  /// The diagnostic of a run that must fail.
  std::string errorOf(mlir::func::FuncOp function,
                      llvm::ArrayRef<reference::Tensor> args) {
    std::string text;
    mlir::ScopedDiagnosticHandler handler(&context,
                                          [&](mlir::Diagnostic &diagnostic) {
                                            text = diagnostic.str();
                                            return llvm::success();
                                          });
    llvm::SmallVector<reference::Tensor> results;
    EXPECT_TRUE(llvm::failed(reference::evaluate(function, args, results)));
    return text;
  }

  mlir::RankedTensorType f32(llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape, mlir::Float32Type::get(&context));
  }
  mlir::RankedTensorType i64(llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape,
                                       mlir::IntegerType::get(&context, 64));
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_REFERENCE_REFERENCEFIXTURE_H
