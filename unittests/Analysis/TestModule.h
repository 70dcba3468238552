//===- TestModule.h - modules from text for tests ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_ANALYSIS_TESTMODULE_H
#define CKOPT_UNITTESTS_ANALYSIS_TESTMODULE_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

/// A context with the dialects of the tests, and a module parsed from text.
struct TestModule {
  explicit TestModule(llvm::StringRef text) {
    context.loadDialect<ckopt::CkoptDialect, mlir::func::FuncDialect,
                        mlir::arith::ArithDialect, mlir::math::MathDialect,
                        mlir::tensor::TensorDialect>();
    context.allowUnregisteredDialects();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  }
  mlir::func::FuncOp function(llvm::StringRef name) {
    return module->lookupSymbol<mlir::func::FuncOp>(name);
  }
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

#endif // CKOPT_UNITTESTS_ANALYSIS_TESTMODULE_H
