//===- BatchTest.cpp - symbolic and changed batch sizes -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestUtils.h"
#include "ckopt/Support/Npz.h"
#include "llvm/Support/FileSystem.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using namespace ckopt::test;

/// `x` twice, along dimension 0.
static HostTensor doubled(const HostTensor &x) {
  std::vector<int64_t> shape = x.shape().vec();
  shape[0] *= 2;
  HostTensor result(x.dtype(), shape);
  for (int64_t i = 0; i < result.numElements(); ++i)
    result.setDouble(i, x.getDouble(i % x.numElements()));
  return result;
}

class ChangedBatch : public ::testing::TestWithParam<const char *> {};

// A batch of twice the file's gives each sample the same logits as before:
// the right constants were taken for the batch.
TEST_P(ChangedBatch, SamplesStayApart) {
  auto data =
      readNpz(dataFile("golden/" + std::string(GetParam()) + "/data.npz"));
  ASSERT_TRUE(bool(data));
  HostTensor x = *data->find("x");
  ImportOptions options;
  options.f64 = true;
  options.batch = 2 * x.dim(0);
  mlir::MLIRContext context;
  auto model = importModel(goldenModel(GetParam()), options, context);
  ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
  auto results = evaluate(*model, {{"x", doubled(x)}});
  auto want = reference::Tensor::fromHost(doubled(*data->find("logits")),
                                          results[0].getType());
  EXPECT_LT(reference::compare(results[0], want).normRel, 1e-7)
      << reference::compare(results[0], want).str();
}

// Batch norm's statistics of a doubled batch are those of the batch.
INSTANTIATE_TEST_SUITE_P(Import, ChangedBatch,
                         ::testing::Values("mlp", "lenet", "resnet", "mobile",
                                           "unet", "lstm", "gpt", "vit"));

TEST(Batch, SymbolicNeedsANumber) {
  ErrorText error = importError(dataFile("models/digits_cnn.onnx"));
  EXPECT_EQ(error.code, ExitInputError);
  EXPECT_NE(error.text.find("symbolic batch dimension 'batch'"),
            std::string::npos)
      << error.text;
  EXPECT_NE(error.text.find("--batch=N"), std::string::npos);
}

TEST(Batch, SymbolByName) {
  mlir::MLIRContext context;
  ImportOptions options;
  options.dims["batch"] = 6;
  auto model =
      importModel(dataFile("models/digits_cnn.onnx"), options, context);
  ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
  EXPECT_EQ(model->batch, 6);
}

/// y = Reshape(x, shape) with x [4, 6].
static std::string reshapeModel(const std::string &name,
                                const std::string &shape, int entries) {
  return modelFile(name,
                   "node { op_type: 'Reshape' name: 'r' input: 'x' input: 's' "
                   "output: 'y' } initializer { name: 's' data_type: 7 dims: " +
                       std::to_string(entries) + " " + shape + " } input { " +
                       info("x", 1, {"4", "6"}) + " } output { " +
                       info("y", 1, {"4", "6"}) + " }");
}

// [4, 6] to [8, 3]: each sample fills two rows, so the first entry grows.
TEST(Batch, ReshapeThatSplitsSamples) {
  ImportOptions options;
  options.batch = 2;
  mlir::MLIRContext context;
  auto model =
      importModel(reshapeModel("split.onnx", "int64_data: 8 int64_data: 3", 2),
                  options, context);
  ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
  EXPECT_NE(print(*model).find("-> tensor<4x3xf32>"), std::string::npos);
}

// [4, 6] to [3, 8]: rows hold parts of two samples; no batch but 4 is right.
TEST(Batch, ReshapeThatMixesSamplesFails) {
  ImportOptions options;
  options.batch = 2;
  ErrorText error = importError(
      reshapeModel("mix.onnx", "int64_data: 3 int64_data: 8", 2), options);
  EXPECT_EQ(error.code, ExitUnsupported);
  EXPECT_NE(error.text.find("node 'r' (Reshape)"), std::string::npos);
  EXPECT_NE(error.text.find("not proven"), std::string::npos) << error.text;
}

// A constant with a row for each sample follows only where all rows agree.
TEST(Batch, ConstantsThatDifferBySampleFail) {
  auto model = [&](const std::string &name, const std::string &values) {
    return modelFile(
        name, "node { op_type: 'Add' name: 'a' input: 'x' input: 'c' output: "
              "'y' } node { op_type: 'Constant' output: 'c' attribute { name: "
              "'value' type: TENSOR t { data_type: 1 dims: 2 dims: 1 " +
                  values + " } } } input { " + info("x", 1, {"2", "3"}) +
                  " } output { " + info("y", 1, {"2", "3"}) + " }");
  };
  auto ordered = [&](const std::string &name, const std::string &values) {
    return modelFile(
        name,
        "node { op_type: 'Constant' output: 'c' attribute { name: 'value' "
        "type: TENSOR t { data_type: 1 dims: 2 dims: 1 " +
            values +
            " } } } node { op_type: 'Add' name: 'a' input: 'x' input: "
            "'c' output: 'y' } input { " +
            info("x", 1, {"2", "3"}) + " } output { " +
            info("y", 1, {"2", "3"}) + " }");
  };
  ImportOptions options;
  options.batch = 5;
  mlir::MLIRContext context;
  auto same = importModel(ordered("same.onnx", "float_data: 7 float_data: 7"),
                          options, context);
  EXPECT_TRUE(bool(same)) << takeErrorText(same.takeError()).text;
  ErrorText error = importError(
      ordered("differ.onnx", "float_data: 7 float_data: 8"), options);
  EXPECT_EQ(error.code, ExitUnsupported);
  EXPECT_NE(error.text.find("node 'a' (Add)"), std::string::npos) << error.text;
  // The same nodes out of order are not a valid graph.
  error = importError(model("order.onnx", "float_data: 7 float_data: 7"), {});
  EXPECT_NE(error.text.find("reads 'c'"), std::string::npos) << error.text;
}

/// y[b, i] = x[b, at[b, i]] by GatherND, whose tuples are constants.
static std::string ownRows(const std::string &name,
                           const std::vector<int> &samples,
                           const std::vector<int> &places) {
  std::string tuples;
  for (int b : samples)
    for (int at : places)
      tuples += " int64_data: " + std::to_string(b) +
                " int64_data: " + std::to_string(at);
  return modelFile(name, "node { op_type: 'GatherND' name: 'g' input: 'x' "
                         "input: 't' output: 'y' } initializer { name: 't' "
                         "data_type: 7 dims: " +
                             std::to_string(samples.size()) + " dims: " +
                             std::to_string(places.size()) + " dims: 2" +
                             tuples + " } input { " + info("x", 1, {"3", "4"}) +
                             " } output { " + info("y", 1, {"3", "2"}) + " }");
}

// Masks of padding are read by tuples of each sample and a position. Samples
// that read others' rows have no other batch.
TEST(Batch, TuplesOfOwnSamples) {
  ImportOptions options;
  options.batch = 5;
  mlir::MLIRContext context;
  auto model =
      importModel(ownRows("own.onnx", {0, 1, 2}, {3, 1}), options, context);
  ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
  HostTensor x(DType::F32, {5, 4});
  for (int64_t i = 0; i < 20; ++i)
    x.setDouble(i, double(i));
  auto results = evaluate(*model, {{"x", x}});
  for (int64_t b = 0; b < 5; ++b) {
    EXPECT_EQ(results[0].get(2 * b), double(4 * b + 3));
    EXPECT_EQ(results[0].get(2 * b + 1), double(4 * b + 1));
  }
  ErrorText error =
      importError(ownRows("others.onnx", {0, 2, 1}, {3, 1}), options);
  EXPECT_EQ(error.code, ExitUnsupported);
  EXPECT_NE(error.text.find("node 'g' (GatherND)"), std::string::npos)
      << error.text;
}

// Tests the full-size networks if their files exist.
TEST(Batch, FullSizeNetworks) {
  std::string folder = std::string(CKOPT_SHARED_DIR) + "/models/";
  if (!llvm::sys::fs::is_directory(folder))
    GTEST_SKIP() << "no " << folder;
  for (const char *name :
       {"bert_base", "densenet121", "gpt2_small", "gpt2_xl_96", "mobilenet_v2",
        "resnet18", "resnet50", "unet", "vgg16", "vit_b_16"})
    for (int64_t batch : {0, 2, 8}) {
      ImportOptions options;
      if (batch)
        options.batch = batch;
      mlir::MLIRContext context;
      auto model = importModel(folder + name + ".onnx", options, context);
      ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
      if (!batch)
        continue;
      auto type = mlir::cast<mlir::RankedTensorType>(
          forward(*model).getResultTypes()[0]);
      EXPECT_EQ(type.getDimSize(0), batch) << name;
    }
}
