//===- WindowTest.cpp - where windows begin -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestUtils.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using namespace ckopt::test;

static std::string intsAttribute(const std::string &name,
                                 const std::vector<int64_t> &values) {
  std::string text = "attribute { name: '" + name + "' type: INTS ";
  for (int64_t value : values)
    text += "ints: " + std::to_string(value) + " ";
  return text + "} ";
}

static std::string floatTensor(const std::string &name,
                               const std::vector<int64_t> &shape,
                               const std::vector<float> &values) {
  std::string text = "initializer { name: '" + name + "' data_type: 1 ";
  for (int64_t size : shape)
    text += "dims: " + std::to_string(size) + " ";
  for (float value : values)
    text += "float_data: " + std::to_string(value) + " ";
  return text + "} ";
}

/// What ConvTranspose makes of two or four numbers.
static std::vector<double> convTransposed(size_t spatial, int opset,
                                          const std::string &attributes) {
  bool plane = spatial == 2;
  std::vector<int64_t> image{1, 1, 2}, kernel{1, 1, 3};
  std::vector<float> weights{1, 10, 100}, numbers{1, 2};
  if (plane) {
    image = kernel = {1, 1, 2, 2};
    weights = {1, 10, 100, 1000};
    numbers = {1, 2, 3, 4};
  }
  std::vector<std::string> dims;
  for (int64_t size : image)
    dims.push_back(std::to_string(size));
  std::string path = modelFile(
      "transposed.onnx",
      "node { op_type: 'ConvTranspose' input: 'x' input: 'w' output: 'y' " +
          attributes + "} " + floatTensor("w", kernel, weights) + "input { " +
          info("x", 1, dims) + " } output { " +
          info("y", 1, std::vector<std::string>(image.size(), "n")) + " }",
      opset);
  mlir::MLIRContext context;
  auto model = importModel(path, {}, context);
  if (!model) {
    ADD_FAILURE() << takeErrorText(model.takeError()).text;
    return {};
  }
  auto results =
      evaluate(*model, {{"x", HostTensor::of<float>(image, numbers)}});
  return results.empty() ? std::vector<double>() : results[0].getReals().vec();
}

// Of 1 10 102 20 200, output_shape leaves some: the extra entry of an odd total
// goes at the beginning, except with SAME_UPPER.
TEST(Window, OutputShapeCropsTheBeginningFirst) {
  using Row = std::vector<double>;
  auto row = [](int opset, std::vector<int64_t> shape, const char *pad) {
    std::string text =
        intsAttribute("strides", {2}) + intsAttribute("output_shape", shape);
    if (pad)
      text += std::string("attribute { name: 'auto_pad' type: STRING s: '") +
              pad + "' } ";
    return convTransposed(1, opset, text);
  };
  for (int opset : {8, 11, 22}) {
    EXPECT_EQ(row(opset, {4}, nullptr), (Row{10, 102, 20, 200})) << opset;
    EXPECT_EQ(row(opset, {4}, "NOTSET"), (Row{10, 102, 20, 200})) << opset;
    EXPECT_EQ(row(opset, {4}, "SAME_LOWER"), (Row{10, 102, 20, 200})) << opset;
    EXPECT_EQ(row(opset, {4}, "SAME_UPPER"), (Row{1, 10, 102, 20})) << opset;
    EXPECT_EQ(row(opset, {3}, nullptr), (Row{10, 102, 20})) << opset;
    EXPECT_EQ(row(opset, {2}, nullptr), (Row{102, 20})) << opset;
  }
  // Each dimension on its own, of rows 1 12 20, 103 1234 2040, 300 3400 4000.
  EXPECT_EQ(convTransposed(2, 11, intsAttribute("output_shape", {2, 3})),
            (Row{103, 1234, 2040, 300, 3400, 4000}));
  EXPECT_EQ(convTransposed(2, 11, intsAttribute("output_shape", {1, 2})),
            (Row{1234, 2040}));
}
