//===- ImportTest.cpp - whole networks and what their weights become ------===//
#include "TestUtils.h"
#include "ckopt/Support/Npz.h"
#include "mlir/IR/Verifier.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using namespace ckopt::test;

static ImportedModel load(const std::string &path, mlir::MLIRContext &context,
                          const ImportOptions &options = {}) {
  auto model = importModel(path, options, context);
  if (!model) {
    ADD_FAILURE() << takeErrorText(model.takeError()).text;
    return {};
  }
  return std::move(*model);
}

class Golden : public ::testing::TestWithParam<const char *> {};

// The imported forward pass gives PyTorch's logits in float64.
TEST_P(Golden, ForwardMatchesReference) {
  mlir::MLIRContext context;
  ImportOptions options;
  options.computeType = "f64";
  ImportedModel model = load(goldenModel(GetParam()), context, options);
  ASSERT_TRUE(model.module);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*model.module)));
  auto data =
      readNpz(dataFile("golden/" + std::string(GetParam()) + "/data.npz"));
  ASSERT_TRUE(bool(data));
  auto results = evaluate(model, {{"x", *data->find("x")}});
  ASSERT_FALSE(results.empty());
  auto logits =
      reference::Tensor::fromHost(*data->find("logits"), results[0].getType());
  EXPECT_LT(reference::compare(results[0], logits).normRel, 1e-7)
      << reference::compare(results[0], logits).str();
}

INSTANTIATE_TEST_SUITE_P(Import, Golden,
                         ::testing::Values("mlp", "lenet", "resnet", "mobile",
                                           "unet", "lstm", "gpt", "vit"));

// Training form: statistics of the batch, running ones as updated state.
TEST(Import, BatchNormUpdatesItsState) {
  mlir::MLIRContext context;
  ImportOptions options;
  options.batch = 4;
  ImportedModel model =
      load(dataFile("models/digits_cnn.onnx"), context, options);
  ASSERT_TRUE(model.module);
  EXPECT_EQ(model.batch, 4);
  auto func = forward(model);
  int mean = argumentNamed(func, "f.0.1.running_mean");
  ASSERT_GE(mean, 0);
  EXPECT_EQ(argumentText(func, unsigned(mean), "ckopt.role"), "state");
  EXPECT_EQ(func.getNumResults(), 9u); // logits, four means and variances
  auto updates =
      func.getResultAttrOfType<mlir::IntegerAttr>(1, "ckopt.updates");
  ASSERT_TRUE(updates);
  EXPECT_EQ(updates.getInt(), mean);
  EXPECT_NE(print(model).find("ckopt.dropout"), std::string::npos);
  EXPECT_GE(argumentNamed(func, "seed"), 0);
  EXPECT_GE(argumentNamed(func, "step"), 0);
}

// Inference form: given statistics, no dropout, no updates.
TEST(Import, EvaluationForm) {
  mlir::MLIRContext context;
  ImportOptions options;
  options.batch = 4;
  options.trainMode = false;
  ImportedModel model =
      load(dataFile("models/digits_cnn.onnx"), context, options);
  ASSERT_TRUE(model.module);
  EXPECT_EQ(forward(model).getNumResults(), 1u);
  EXPECT_EQ(print(model).find("ckopt.dropout"), std::string::npos);
  EXPECT_NE(print(model).find("ckopt.batch_norm_inference"), std::string::npos);
}

// A tied weight is one argument; the mask of causal attention is no tensor of
// weights; GELU is one op.
TEST(Import, TransformerForms) {
  mlir::MLIRContext context;
  ImportOptions options;
  options.batch = 2;
  ImportedModel model =
      load(dataFile("models/byte_gpt.onnx"), context, options);
  ASSERT_TRUE(model.module);
  auto func = forward(model);
  int embedding = argumentNamed(func, "t.weight");
  ASSERT_GE(embedding, 0);
  unsigned uses = 0;
  for (auto &use : func.getArgument(unsigned(embedding)).getUses()) {
    (void)use;
    ++uses;
  }
  EXPECT_EQ(uses, 2u);
  std::string text = print(model);
  EXPECT_NE(text.find("ckopt.gelu"), std::string::npos);
  EXPECT_EQ(text.find("ckopt.erf"), std::string::npos);
  EXPECT_EQ(text.find("\"constant\""), std::string::npos);
}

TEST(Import, FreezeTakesWholeNames) {
  mlir::MLIRContext context;
  ImportOptions options;
  options.freezeRegex = "fc|fc.weight";
  ImportedModel model = load(goldenModel("mobile"), context, options);
  ASSERT_TRUE(model.module);
  auto func = forward(model);
  int weight = argumentNamed(func, "fc.weight");
  int bias = argumentNamed(func, "fc.bias");
  ASSERT_GE(weight, 0);
  ASSERT_GE(bias, 0);
  EXPECT_EQ(argumentText(func, unsigned(weight), "ckopt.role"), "frozen");
  EXPECT_EQ(argumentText(func, unsigned(bias), "ckopt.role"), "parameter");
}

// Weights without values say how they are initialized.
TEST(Import, WeightsThatAreInputs) {
  std::string graph =
      "node { op_type: 'Conv' input: 'x' input: 'w' input: 'b' output: 'a' } "
      "node { op_type: 'BatchNormalization' input: 'a' input: 's' input: 'o' "
      "input: 'm' input: 'v' output: 'n' } "
      "node { op_type: 'GlobalAveragePool' input: 'n' output: 'p' } "
      "node { op_type: 'Flatten' input: 'p' output: 'f' } "
      "node { op_type: 'MatMul' input: 'f' input: 'd' output: 'y' } "
      "input { " +
      info("x", 1, {"2", "3", "8", "8"}) +
      " } "
      "input { " +
      info("w", 1, {"4", "3", "3", "3"}) + " } ";
  for (const char *name : {"b", "s", "o", "m", "v"})
    graph += "input { " + info(name, 1, {"4"}) + " } ";
  graph += "input { " + info("d", 1, {"4", "7"}) + " } " + "output { " +
           info("y", 1, {"2", "7"}) + " }";
  mlir::MLIRContext context;
  ImportedModel model = load(modelFile("inputs.onnx", graph), context);
  ASSERT_TRUE(model.module);
  auto func = forward(model);
  auto init = [&](const char *name) {
    int i = argumentNamed(func, name);
    return i < 0 ? "none" : argumentText(func, unsigned(i), "ckopt.init");
  };
  EXPECT_EQ(init("x"), "");
  EXPECT_EQ(init("w"), "kaiming");
  EXPECT_EQ(init("b"), "zeros");
  EXPECT_EQ(init("s"), "ones");
  EXPECT_EQ(init("o"), "zeros");
  EXPECT_EQ(init("m"), "zeros");
  EXPECT_EQ(init("v"), "ones");
  EXPECT_EQ(init("d"), "kaiming");
  auto fan = func.getArgAttrOfType<mlir::IntegerAttr>(
      unsigned(argumentNamed(func, "d")), "ckopt.fan_in");
  ASSERT_TRUE(fan);
  EXPECT_EQ(fan.getInt(), 4);
  EXPECT_TRUE(model.weights.empty());
}

// A graph that ends in a loss says so, and its labels are the target.
TEST(Import, LossInTheGraph) {
  std::string graph =
      "node { op_type: 'SoftmaxCrossEntropyLoss' input: 'x' input: 't' "
      "output: 'loss' } input { " +
      info("x", 1, {"4", "5"}) + " } input { " + info("t", 7, {"4"}) +
      " } output { " + info("loss", 1, {}) + " }";
  mlir::MLIRContext context;
  ImportOptions options;
  options.inputs = {"x", "t"};
  ImportedModel model = load(modelFile("loss.onnx", graph), context, options);
  ASSERT_TRUE(model.module);
  EXPECT_TRUE(model.endsInLoss);
  EXPECT_EQ(argumentText(forward(model), 1, "ckopt.role"), "target");
}
