//===- ExportTest.cpp - trained weights back into ONNX files --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestUtils.h"
#include "ckopt/Support/Npz.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using namespace ckopt::test;

static onnx::ModelProto readProto(const std::string &path) {
  onnx::ModelProto model;
  auto buffer = llvm::MemoryBuffer::getFile(path);
  EXPECT_TRUE(bool(buffer));
  EXPECT_TRUE(model.ParseFromArray((*buffer)->getBufferStart(),
                                   int((*buffer)->getBufferSize())));
  return model;
}

// Exporting what was imported gives the same model; new values replace old.
TEST(Export, ReplacesInitializers) {
  std::string original = goldenModel("resnet");
  mlir::MLIRContext context;
  auto model = importModel(original, {}, context);
  ASSERT_TRUE(bool(model));
  auto weights = model->weights;
  for (auto &[name, value] : weights)
    value.setDouble(0, 42);
  std::string path = writeTemporary("trained.onnx", "old");
  llvm::Error error = exportModel(original, path, weights);
  ASSERT_FALSE(bool(error)) << takeErrorText(std::move(error)).text;
  auto again = importModel(path, {}, context);
  ASSERT_TRUE(bool(again)) << takeErrorText(again.takeError()).text;
  ASSERT_EQ(again->weights.size(), weights.size());
  for (auto &[name, value] : weights)
    EXPECT_TRUE(again->weights.at(name).bitEqual(value)) << name;
  onnx::ModelProto was = readProto(original), is = readProto(path);
  was.mutable_graph()->clear_initializer();
  is.mutable_graph()->clear_initializer();
  EXPECT_EQ(was.SerializeAsString(), is.SerializeAsString());
}

// Weights in f64 go back in the file's own type.
TEST(Export, KeepsElementTypes) {
  std::string original = goldenModel("mlp");
  mlir::MLIRContext context;
  ImportOptions options;
  options.computeType = "f64";
  auto model = importModel(original, options, context);
  ASSERT_TRUE(bool(model));
  std::string path = writeTemporary("f32.onnx", "");
  llvm::Error error = exportModel(original, path, model->weights);
  ASSERT_FALSE(bool(error)) << takeErrorText(std::move(error)).text;
  onnx::ModelProto proto = readProto(path);
  for (const auto &tensor : proto.graph().initializer())
    EXPECT_EQ(tensor.data_type(), onnx::TensorProto::FLOAT);
}

// Parameters that were graph inputs become initializers.
TEST(Export, InputsBecomeInitializers) {
  std::string graph =
      "node { op_type: 'MatMul' input: 'x' input: 'w' output: 'y' } input { " +
      info("x", 1, {"2", "3"}) + " } input { " + info("w", 1, {"3", "4"}) +
      " } output { " + info("y", 1, {"2", "4"}) + " }";
  std::string original = modelFile("input.onnx", graph);
  std::string path = writeTemporary("filled.onnx", "");
  std::map<std::string, HostTensor> weights{
      {"w", HostTensor(DType::F32, {3, 4})}};
  llvm::Error error = exportModel(original, path, weights);
  ASSERT_FALSE(bool(error)) << takeErrorText(std::move(error)).text;
  onnx::ModelProto proto = readProto(path);
  ASSERT_EQ(proto.graph().input_size(), 1);
  EXPECT_EQ(proto.graph().input(0).name(), "x");
  ASSERT_EQ(proto.graph().initializer_size(), 1);
  EXPECT_EQ(proto.graph().initializer(0).name(), "w");
}

// A wrong weight is an error and leaves the file that was there.
TEST(Export, WrongWeights) {
  std::string path = writeTemporary("kept.onnx", "old bytes");
  std::map<std::string, HostTensor> weights{
      {"no such weight", HostTensor(DType::F32, {1})}};
  ErrorText error =
      takeErrorText(exportModel(goldenModel("mlp"), path, weights));
  EXPECT_EQ(error.code, ExitInputError);
  EXPECT_NE(error.text.find("no weight 'no such weight'"), std::string::npos);
  mlir::MLIRContext context;
  auto model = importModel(goldenModel("mlp"), {}, context);
  ASSERT_TRUE(bool(model));
  weights = {
      {model->weights.begin()->first, HostTensor(DType::F32, {1, 1, 7})}};
  error = takeErrorText(exportModel(goldenModel("mlp"), path, weights));
  EXPECT_NE(error.text.find("the model wants"), std::string::npos)
      << error.text;
  auto buffer = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(bool(buffer));
  EXPECT_EQ((*buffer)->getBuffer(), "old bytes");
}

// A file whose parameters were merged, transposed and packed when exporting
// takes them back one by one, under PyTorch's names: the copy imports with the
// new values, needs no mending, and gives the same results.
TEST(Export, FoldedParametersGoBackApart) {
  for (const char *name : {"tied", "gru", "norms", "cell", "encoder", "token",
                           "widened", "parallel", "states", "lookup", "tables"})
    for (const char *form : {"default", "script"}) {
      std::string original =
          dataFile(std::string("from_torch/") + name + "/" + form + ".onnx");
      if (!llvm::sys::fs::exists(original))
        continue;
      SCOPED_TRACE(original);
      mlir::MLIRContext context;
      auto model = importModel(original, {}, context);
      ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
      double next = 0.25; // all different: a merged value would show
      for (unsigned i = 0; i < forward(*model).getNumArguments(); ++i) {
        if (argumentText(forward(*model), i, "ckopt.role") != "parameter")
          continue;
        auto &value =
            model->weights.at(argumentText(forward(*model), i, "ckopt.name"));
        for (int64_t e = 0; e < value.numElements(); ++e)
          value.setDouble(e, std::sin(next += 1));
      }
      std::string path = writeTemporary("apart.onnx", "");
      llvm::Error error = exportModel(original, path, model->weights);
      ASSERT_FALSE(bool(error)) << takeErrorText(std::move(error)).text;
      auto again = importModel(path, {}, context);
      ASSERT_TRUE(bool(again)) << takeErrorText(again.takeError()).text;
      for (auto &[key, value] : model->weights)
        EXPECT_TRUE(again->weights.at(key).bitEqual(value)) << key;
      auto data =
          readNpz(dataFile(std::string("from_torch/") + name + "/data.npz"));
      ASSERT_TRUE(bool(data));
      auto want = evaluate(*model, {{"x", *data->find("x")}});
      auto have = evaluate(*again, {{"x", *data->find("x")}});
      ASSERT_FALSE(want.empty());
      EXPECT_EQ(reference::compare(have[0], want[0]).maxAbs, 0);
    }
}

// Weights that a file makes by ConstantOfShape are parameters without values on
// request, and go back as initializers.
TEST(Export, WeightsFromConstants) {
  std::string graph =
      "initializer { name: 's' data_type: 7 dims: 2 int64_data: 3 int64_data: "
      "4 "
      "} node { op_type: 'ConstantOfShape' input: 's' output: 'w' attribute { "
      "name: 'value' type: TENSOR t { data_type: 1 dims: 1 float_data: 0.02 } "
      "} "
      "} node { op_type: 'MatMul' input: 'x' input: 'w' output: 'y' } input "
      "{ " +
      info("x", 1, {"2", "3"}) + " } output { " + info("y", 1, {"2", "4"}) +
      " }";
  std::string original = modelFile("constants.onnx", graph, 9);
  mlir::MLIRContext context;
  ImportOptions options;
  auto plain = importModel(original, options, context);
  ASSERT_TRUE(bool(plain));
  EXPECT_EQ(argumentNamed(forward(*plain), "w"), -1);
  options.paramsFromConstants = true;
  auto model = importModel(original, options, context);
  ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
  int w = argumentNamed(forward(*model), "w");
  ASSERT_GE(w, 0);
  EXPECT_EQ(argumentText(forward(*model), unsigned(w), "ckopt.role"),
            "parameter");
  EXPECT_EQ(argumentText(forward(*model), unsigned(w), "ckopt.init"),
            "kaiming");
  HostTensor value(DType::F32, {3, 4});
  value.setDouble(5, 7);
  std::string path = writeTemporary("filled.onnx", "");
  llvm::Error error = exportModel(original, path, {{"w", value}});
  ASSERT_FALSE(bool(error)) << takeErrorText(std::move(error)).text;
  auto again = importModel(path, {}, context);
  ASSERT_TRUE(bool(again));
  EXPECT_TRUE(again->weights.at("w").bitEqual(value));
}
