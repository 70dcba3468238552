//===- ConstantInputTest.cpp - inputs that must be known ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs that decide shapes are fixed to values; inputs whose shape the file
// omits get one; missing ones are named.
//
//===----------------------------------------------------------------------===//
#include "TestUtils.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using namespace ckopt::test;

/// y = Reshape(x, s + t), all three graph inputs.
static std::string reshapeModel() {
  return modelFile(
      "reshape.onnx",
      "node { op_type: 'Add' name: 'sum' input: 's' input: 't' output: 'u' } "
      "node { op_type: 'Reshape' name: 'view' input: 'x' input: 'u' output: "
      "'y' } input { " +
          info("x", 1, {"2", "3"}) + " } input { " + info("s", 7, {"2"}) +
          " } input { " + info("t", 7, {"2"}) + " } output { " +
          info("y", 1, {"3", "2"}) + " }");
}

static ImportOptions allInputs() {
  ImportOptions options;
  options.inputs = {"x", "s", "t"};
  return options;
}

TEST(ConstantInputs, AreNamedWhereTheyAreNeeded) {
  ImportOptions options = allInputs();
  std::set<std::string> needed;
  options.neededConstants = &needed;
  ErrorText error = importError(reshapeModel(), options);
  EXPECT_EQ(error.code, ExitUnsupported);
  EXPECT_NE(error.text.find("node 'view' (Reshape)"), std::string::npos)
      << error.text;
  EXPECT_NE(error.text.find("'s', 't'"), std::string::npos) << error.text;
  EXPECT_EQ(needed, std::set<std::string>({"s", "t"}));
}

TEST(ConstantInputs, DecideShapes) {
  ImportOptions options;
  options.inputs = {"x"};
  options.constants["s"] = HostTensor::of<int64_t>({2}, {1, 1});
  options.constants["t"] = HostTensor::of<int32_t>({2}, {2, 1}); // converted
  mlir::MLIRContext context;
  auto model = importModel(reshapeModel(), options, context);
  ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
  auto func = forward(*model);
  ASSERT_EQ(func.getNumArguments(), 1u);
  auto type = llvm::cast<mlir::RankedTensorType>(func.getResultTypes()[0]);
  EXPECT_EQ(type.getShape(), llvm::ArrayRef<int64_t>({3, 2}));
}

TEST(ConstantInputs, MustBeInputs) {
  ImportOptions options;
  options.inputs = {"x"};
  options.constants["u"] = HostTensor::of<int64_t>({2}, {1, 1});
  EXPECT_NE(importError(reshapeModel(), options)
                .text.find("no graph input 'u' to be a constant"),
            std::string::npos);
}

/// y = Relu(x); x has no shape.
static std::string openModel() {
  return modelFile("open.onnx",
                   "node { op_type: 'Relu' name: 'n' input: 'x' output: 'y' } "
                   "input { name: 'x' type { tensor_type { elem_type: 1 } } } "
                   "output { " +
                       info("y", 1, {"2"}) + " }");
}

TEST(InputShapes, FillWhatTheFileLeavesOpen) {
  EXPECT_NE(importError(openModel()).text.find("--shape=x="),
            std::string::npos);
  ImportOptions options;
  options.shapes["x"] = {2, 0};
  mlir::MLIRContext context;
  auto model = importModel(openModel(), options, context);
  ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
  auto type =
      llvm::cast<mlir::RankedTensorType>(forward(*model).getResultTypes()[0]);
  EXPECT_EQ(type.getShape(), llvm::ArrayRef<int64_t>({2, 0}));
}

TEST(InputShapes, AgreeWithTheFile) {
  ImportOptions options = allInputs();
  options.shapes["x"] = {2, 4};
  EXPECT_NE(importError(reshapeModel(), options)
                .text.find("3 entries in dimension 1, not the shape [2, 4]"),
            std::string::npos);
  options.shapes["x"] = {6};
  EXPECT_NE(importError(reshapeModel(), options).text.find("has rank 2"),
            std::string::npos);
}

TEST(Forms, BroadcastByAxisBeforeOpset7) {
  std::string path = modelFile(
      "axis.onnx",
      "node { op_type: 'Add' name: 'n' input: 'x' input: 'b' output: 'y' "
      "attribute { name: 'broadcast' type: INT i: 1 } attribute { name: 'axis' "
      "type: INT i: 0 } } input { " +
          info("x", 1, {"2", "2"}) + " } input { " + info("b", 1, {"2"}) +
          " } output { " + info("y", 1, {"2", "2"}) + " }",
      6);
  ImportOptions options;
  options.inputs = {"x", "b"};
  mlir::MLIRContext context;
  auto model = importModel(path, options, context);
  ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
  auto results =
      evaluate(*model, {{"x", HostTensor::of<float>({2, 2}, {1, 2, 3, 4})},
                        {"b", HostTensor::of<float>({2}, {10, 20})}});
  auto want = reference::Tensor::fromHost(
      HostTensor::of<float>({2, 2}, {11, 12, 23, 24}), results[0].getType());
  EXPECT_TRUE(reference::allClose(results[0], want, 0, 0));
}
