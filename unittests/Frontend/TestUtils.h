//===- TestUtils.h - models and evaluation for the import tests -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_FRONTEND_TESTUTILS_H
#define CKOPT_UNITTESTS_FRONTEND_TESTUTILS_H

#include "ckopt/Frontend/Onnx/Onnx.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include <string>

namespace ckopt::test {

std::string goldenModel(const std::string &name);
std::string dataFile(const std::string &name);
/// Writes `bytes` to a file of this test run and returns its path.
std::string writeTemporary(const std::string &name, const std::string &bytes);

/// A model given in protobuf's text format as a binary file. IR version 8 and
/// opset 17 where the text names none.
std::string modelFile(const std::string &name, const std::string &graphText,
                      int opset = 17);
/// The same for a whole model (opset_import included).
std::string wholeModelFile(const std::string &name, const std::string &text);
/// `name: "x" type { ... }` for graph inputs and outputs.
std::string info(const std::string &name, int elementType,
                 const std::vector<std::string> &dims);

/// The error text of an import that must fail, and its exit code.
ErrorText importError(const std::string &path,
                      const onnx_frontend::ImportOptions &options = {});

/// @forward of a model.
mlir::func::FuncOp forward(onnx_frontend::ImportedModel &model);
std::string argumentText(mlir::func::FuncOp func, unsigned i,
                         llvm::StringRef attribute);
/// The number of the argument of that name, -1 where there is none.
int argumentNamed(mlir::func::FuncOp func, llvm::StringRef name);

/// Runs @forward: inputs by name, weights from the model.
std::vector<reference::Tensor>
evaluate(onnx_frontend::ImportedModel &model,
         const std::map<std::string, HostTensor> &inputs);

/// The IR as text.
std::string print(onnx_frontend::ImportedModel &model);

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_FRONTEND_TESTUTILS_H
