//===- ExportTest.cpp - trained weights back into ONNX files --------------===//
#include "TestUtils.h"
#include "llvm/Support/MemoryBuffer.h"
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
