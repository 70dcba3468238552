//===- ImportTest.cpp - whole networks and what their weights become ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
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
  options.f64 = true;
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

// A file in training form can be imported unchanged: it keeps its dropouts and
// the statistics of its batches, and nothing is updated.
TEST(Import, AsWritten) {
  mlir::MLIRContext context;
  ImportOptions options;
  options.batch = 4;
  options.trainMode = false;
  ImportedModel model =
      load(dataFile("models/digits_cnn.onnx"), context, options);
  ASSERT_TRUE(model.module);
  EXPECT_EQ(forward(model).getNumResults(), 1u);
  EXPECT_NE(print(model).find("ckopt.dropout"), std::string::npos);
  EXPECT_EQ(print(model).find("ckopt.batch_norm_inference"), std::string::npos);
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

// A number that an op must know is a constant, unless --train names it; class
// weights are never trained, which is said where somebody asks for it.
TEST(Import, SettingsOfOpsAreConstants) {
  std::string one = " dims: 3 data_type: 1 float_data: 1 float_data: 2 "
                    "float_data: 3 ";
  std::string graph =
      "node { op_type: 'Pow' input: 'x' input: 'p' output: 'z' } "
      "node { op_type: 'SoftmaxCrossEntropyLoss' input: 'z' input: 't' input: "
      "'c' output: 'loss' } initializer { name: 'p'" +
      one + "} initializer { name: 'c'" + one + "} input { " +
      info("x", 1, {"4", "3"}) + " } input { " + info("t", 7, {"4"}) +
      " } output { " + info("loss", 1, {}) + " }";
  std::string path = modelFile("settings.onnx", graph);
  auto remarks = [&](const char *train) {
    mlir::MLIRContext context;
    ImportOptions options;
    options.trainRegex = train;
    std::string text;
    for (const MessageText &remark : load(path, context, options).remarks)
      text += remark.inShell() + "\n";
    return text;
  };
  EXPECT_NE(remarks("").find("constant (2): 'p', 'c'"), std::string::npos);
  EXPECT_NE(remarks("p").find("parameter (1): 'p'"), std::string::npos);
  EXPECT_NE(remarks("c").find("not trained: 'c', a setting of the loss"),
            std::string::npos);
}

// Without axes nothing is summed, but what else the operator does is done.
TEST(Import, ReductionsOverNoAxes) {
  float values[] = {-2, 4};
  auto x = HostTensor::of<float>({2}, values);
  for (auto [op, first, second] :
       {std::tuple("ReduceSum", -2.0, 4.0), std::tuple("ReduceMax", -2.0, 4.0),
        std::tuple("ReduceMean", -2.0, 4.0), std::tuple("ReduceL1", 2.0, 4.0),
        std::tuple("ReduceL2", 2.0, 4.0),
        std::tuple("ReduceLogSumExp", -2.0, 4.0),
        std::tuple("ReduceSumSquare", 4.0, 16.0)}) {
    std::string graph =
        std::string("node { op_type: '") + op +
        "' input: 'x' output: 'y' attribute { name: 'noop_with_empty_axes' "
        "type: INT i: 1 } } input { " +
        info("x", 1, {"2"}) + " } output { " + info("y", 1, {"2"}) + " }";
    mlir::MLIRContext context;
    ImportedModel model = load(modelFile("reduce.onnx", graph, 18), context);
    ASSERT_TRUE(model.module) << op;
    auto results = evaluate(model, {{"x", x}});
    ASSERT_EQ(results.size(), 1u);
    EXPECT_NEAR(results[0].real(0), first, 1e-6) << op;
    EXPECT_NEAR(results[0].real(1), second, 1e-6) << op;
  }
}

/// y = d / sqrt(mean(d * d) + epsilon) * s + o, d = x - mean(x), over the last
/// dimension, in opset 13.
static std::string layerNormGraph(const char *square, const char *quotient) {
  auto axes = "attribute { name: 'axes' type: INTS ints: -1 } ";
  return std::string("node { op_type: 'ReduceMean' input: 'x' output: 'm' ") +
         axes + "} node { op_type: 'Sub' input: 'x' input: 'm' output: 'd' } " +
         square + " node { op_type: 'ReduceMean' input: 'q' output: 'v' " +
         axes + "} node { op_type: 'Add' input: 'v' input: 'e' output: 'a' } " +
         "node { op_type: 'Sqrt' input: 'a' output: 'r' } " + quotient +
         " node { op_type: 'Mul' input: 'n' input: 's' output: 't' } "
         "node { op_type: 'Add' input: 't' input: 'o' output: 'y' } "
         "initializer { name: 'e' data_type: 1 float_data: 0.001 } "
         "initializer { name: 'two' data_type: 1 float_data: 2 } "
         "initializer { name: 's' data_type: 1 dims: 3 float_data: 1 "
         "float_data: 2 float_data: 3 } initializer { name: 'o' data_type: 1 "
         "dims: 3 float_data: 0.5 float_data: 0 float_data: -1 } input { " +
         info("x", 1, {"2", "3"}) + " } output { " + info("y", 1, {"2", "3"}) +
         " }";
}

// Layer normalization in the forms of exporters before opset 17 becomes one op,
// with the same result; a similar formula stays unchanged.
TEST(Import, LayerNormSpelledOut) {
  const char *power =
      "node { op_type: 'Pow' input: 'd' input: 'two' output: 'q' }";
  const char *product =
      "node { op_type: 'Mul' input: 'd' input: 'd' output: 'q' }";
  const char *cross =
      "node { op_type: 'Mul' input: 'd' input: 'x' output: 'q' }";
  const char *division =
      "node { op_type: 'Div' input: 'd' input: 'r' output: 'n' }";
  const char *reciprocal =
      "node { op_type: 'Reciprocal' input: 'r' output: 'i' } "
      "node { op_type: 'Mul' input: 'i' input: 'd' output: 'n' }";
  float values[] = {1, 2, 4, -3, 0.5f, 0.25f};
  auto x = HostTensor::of<float>({2, 3}, values);
  std::vector<double> first;
  for (auto [square, quotient, fused] :
       {std::tuple(cross, division, false), std::tuple(power, division, true),
        std::tuple(product, reciprocal, true)}) {
    mlir::MLIRContext context;
    ImportedModel model = load(
        modelFile("norm.onnx", layerNormGraph(square, quotient), 13), context);
    ASSERT_TRUE(model.module);
    std::string text = print(model);
    EXPECT_EQ(text.find("ckopt.layer_norm") != std::string::npos, fused)
        << text;
    EXPECT_EQ(text.find("ckopt.reduce") == std::string::npos, fused) << text;
    // mean(d * x) = mean(d * d), since the mean of d is 0: one result.
    auto results = evaluate(model, {{"x", x}});
    ASSERT_EQ(results.size(), 1u);
    llvm::ArrayRef<double> got = results[0].getReals();
    if (first.empty())
      first = got.vec();
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_NEAR(got[size_t(i)], first[size_t(i)], 1e-5);
  }
}

/// y = x / sqrt(mean(x * x) + epsilon) * s over the last dimension, as Llama
/// has it in f32, in bf16 with `tail` behind a product in f32.
static std::string rmsNormGraph(bool isHalf, const std::string &tail) {
  std::string x = isHalf ? "w" : "x";
  std::string half = isHalf ? "data_type: 16 dims: 3 int32_data: 16256 "
                              "int32_data: 16384 int32_data: 16448"
                            : "data_type: 1 dims: 3 float_data: 1 "
                              "float_data: 2 float_data: 3";
  int type = isHalf ? 16 : 1;
  return (isHalf ? "node { op_type: 'Cast' input: 'x' output: 'w' attribute { "
                   "name: 'to' type: INT i: 1 } } "
                 : "") +
         ("node { op_type: 'Pow' input: '" + x +
          "' input: 'two' output: 'q' } " +
          "node { op_type: 'ReduceMean' input: 'q' output: 'v' attribute { "
          "name: 'axes' type: INTS ints: -1 } } node { op_type: 'Add' input: "
          "'v' input: 'e' output: 'a' } node { op_type: 'Sqrt' input: 'a' "
          "output: 'r' } node { op_type: 'Reciprocal' input: 'r' output: 'i' } "
          "node { op_type: 'Mul' input: '" +
          x + "' input: 'i' output: 'n' } ") +
         tail +
         " initializer { name: 'e' data_type: 1 float_data: 0.001 } "
         "initializer { name: 'two' data_type: 1 float_data: 2 } "
         "initializer { name: 's' " +
         half +
         " } initializer { name: 'f' data_type: 1 dims: 3 float_data: 1 "
         "float_data: 2 float_data: 3 } input { " +
         info("x", type, {"2", "3"}) + " } output { " +
         info("y", type, {"2", "3"}) + " }";
}

// RMS normalization as Transformers writes it becomes one op: in f32; of halves
// in f32 between casts, with the weight behind them (Llama) or inside (Gemma).
TEST(Import, RmsNormSpelledOut) {
  std::string cast = "node { op_type: 'Cast' input: '%' output: '&' attribute "
                     "{ name: 'to' type: INT i: 16 } } ";
  auto castOf = [&](char from, char to) {
    std::string text = cast;
    text[text.find('%')] = from;
    text[text.find('&')] = to;
    return text;
  };
  std::string plain =
      "node { op_type: 'Mul' input: 's' input: 'n' output: 'y' }";
  std::string behind = castOf('n', 'h') +
                       "node { op_type: 'Mul' input: 's' input: 'h' output: "
                       "'y' }";
  std::string inside = "node { op_type: 'Mul' input: 'n' input: 'f' output: "
                       "'t' } " +
                       castOf('t', 'y');
  for (auto [isHalf, tail, rounds] :
       {std::tuple(false, plain, false), std::tuple(true, behind, true),
        std::tuple(true, inside, false)}) {
    mlir::MLIRContext context;
    ImportedModel model =
        load(modelFile("norm.onnx", rmsNormGraph(isHalf, tail), 13), context);
    ASSERT_TRUE(model.module);
    std::string text = print(model);
    EXPECT_NE(text.find("ckopt.rms_norm"), std::string::npos) << text;
    EXPECT_EQ(text.find("rounds") != std::string::npos, rounds) << text;
    for (const char *gone : {"ckopt.reduce", "ckopt.cast", "ckopt.mul"})
      EXPECT_EQ(text.find(gone), std::string::npos) << text;
  }
}
