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

static std::string intTensor(const std::string &name,
                             const std::vector<int64_t> &values) {
  std::string text = "initializer { name: '" + name +
                     "' data_type: 7 dims: " + std::to_string(values.size()) +
                     " ";
  for (int64_t value : values)
    text += "int64_data: " + std::to_string(value) + " ";
  return text + "} ";
}

/// A model that pools x of `shape` and puts the maxima back in their places.
static std::string unpooling(const std::vector<int64_t> &shape,
                             const std::string &window,
                             const std::string &poolOnly,
                             const std::vector<int64_t> &outputShape) {
  std::string text = "node { op_type: 'MaxPool' input: 'x' output: 'p' "
                     "output: 'i' " +
                     window + poolOnly +
                     "} node { op_type: 'MaxUnpool' input: 'p' input: 'i' ";
  if (!outputShape.empty())
    text += "input: 's' ";
  text += "output: 'y' " + window + "} ";
  if (!outputShape.empty())
    text += intTensor("s", outputShape);
  std::vector<std::string> dims;
  for (int64_t size : shape)
    dims.push_back(std::to_string(size));
  return modelFile("unpooling.onnx", text + "input { " + info("x", 1, dims) +
                                         " } output { " +
                                         info("y", 1, {"n", "c", "w"}) + " }");
}

// Indices of MaxPool count in what it pooled, although the windows alone imply
// a result that is shorter (a remainder) or longer (ceil_mode).
TEST(Window, MaximaReturnToWhereTheyWerePooled) {
  auto unpooled = [](const std::string &path, const HostTensor &x) {
    mlir::MLIRContext context;
    auto model = importModel(path, {}, context);
    if (!model) {
      ADD_FAILURE() << takeErrorText(model.takeError()).text;
      return std::vector<double>();
    }
    auto results = evaluate(*model, {{"x", x}});
    return results.empty() ? std::vector<double>()
                           : results[0].getReals().vec();
  };
  std::string pairs =
      intsAttribute("kernel_shape", {2}) + intsAttribute("strides", {2});
  EXPECT_EQ(unpooled(unpooling({1, 2, 5}, pairs, "", {1, 2, 5}),
                     HostTensor::of<float>({1, 2, 5},
                                           {1, 3, 0, 2, 9, 4, 0, 0, 6, 9})),
            (std::vector<double>{0, 3, 0, 2, 0, 4, 0, 0, 6, 0}));
  std::string overlapping =
      intsAttribute("kernel_shape", {3}) + intsAttribute("strides", {2});
  EXPECT_EQ(
      unpooled(unpooling({1, 1, 4}, overlapping,
                         "attribute { name: 'ceil_mode' type: INT i: 1 } ",
                         {1, 1, 4}),
               HostTensor::of<float>({1, 1, 4}, {1, 2, 5, 7})),
      (std::vector<double>{0, 0, 5, 7}));
  ErrorText error = importError(unpooling({1, 2, 5}, pairs, "", {}));
  EXPECT_NE(error.text.find("give output_shape what was pooled"),
            std::string::npos)
      << error.text;
}

// The f32 numbers of a region are inexact; 0.5 and 4.5 are ties all the same,
// and the third point lies outside.
TEST(Window, RegionsOfResizeAreWhereTheirDecimalsSay) {
  auto cropped = [](float start, float end, int64_t size) {
    std::string path = modelFile(
        "crop.onnx",
        "node { op_type: 'Resize' input: 'x' input: 'r' input: '' input: 's' "
        "output: 'y' attribute { name: 'mode' type: STRING s: 'nearest' } "
        "attribute { name: 'coordinate_transformation_mode' type: STRING "
        "s: 'tf_crop_and_resize' } attribute { name: 'extrapolation_value' "
        "type: FLOAT f: -1 } } " +
            floatTensor("r", {2}, {start, end}) + intTensor("s", {size}) +
            "input { " + info("x", 1, {"6"}) + " } output { " +
            info("y", 1, {"n"}) + " }");
    mlir::MLIRContext context;
    auto model = importModel(path, {}, context);
    if (!model) {
      ADD_FAILURE() << takeErrorText(model.takeError()).text;
      return std::vector<double>();
    }
    auto results = evaluate(
        *model, {{"x", HostTensor::of<float>({6}, {0, 1, 2, 3, 4, 5})}});
    return results.empty() ? std::vector<double>()
                           : results[0].getReals().vec();
  };
  EXPECT_EQ(cropped(0.1f, 1.7f, 3), (std::vector<double>{0, 4, -1}));
}
