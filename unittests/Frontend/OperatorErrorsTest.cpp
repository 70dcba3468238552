//===- OperatorErrorsTest.cpp - nodes that are wrong or not supported -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestUtils.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using namespace ckopt::test;

namespace {
struct Case {
  std::string node; ///< `op_type` and attributes; operands are added
  std::vector<std::string> shape;
  std::string constants; ///< initializers, after x
  std::vector<std::string> operands;
  ExitCode code;
  std::string message;
};
} // namespace

static std::string ints(const std::string &name, const std::string &dims,
                        const std::string &data) {
  return "initializer { name: '" + name + "' data_type: 7 " + dims +
         " int64_data: [" + data + "] } ";
}

static std::string floats(const std::string &name, const std::string &dims,
                          const std::string &data) {
  return "initializer { name: '" + name + "' data_type: 1 " + dims +
         " float_data: [" + data + "] } ";
}

static std::string text(const std::string &name, const std::string &value) {
  return " attribute { name: '" + name + "' type: STRING s: '" + value + "' }";
}

static std::string number(const std::string &name, int64_t value) {
  return " attribute { name: '" + name +
         "' type: INT i: " + std::to_string(value) + " }";
}

/// Imports x -> y by the node and expects that error, at the node.
static void expectFailure(const Case &given, int opset = 21) {
  std::string graph =
      "node { name: 'n1' op_type: " + given.node + " input: 'x'";
  for (const std::string &operand : given.operands)
    graph += " input: '" + operand + "'";
  graph += " output: 'y' } input { " + info("x", 1, given.shape) + " } " +
           given.constants + "output { " + info("y", 1, {"1"}) + " }";
  ErrorText error = importError(modelFile("wrong.onnx", graph, opset));
  EXPECT_EQ(error.code, given.code) << error.text;
  EXPECT_NE(error.text.find("n1"), std::string::npos) << error.text;
  EXPECT_NE(error.text.find(given.message), std::string::npos)
      << "no '" << given.message << "' in:\n"
      << error.text;
}

TEST(OperatorErrors, Resize) {
  std::string scales = floats("s", "dims: 2", "1, 2");
  std::vector<std::string> operands = {"", "s"};
  expectFailure({"'Resize'" + text("mode", "lanczos"),
                 {"2", "3"},
                 scales,
                 operands,
                 ExitInputError,
                 "unknown mode 'lanczos'"});
  expectFailure({"'Resize'" + text("coordinate_transformation_mode", "middle"),
                 {"2", "3"},
                 scales,
                 operands,
                 ExitInputError,
                 "unknown coordinate_transformation_mode 'middle'"});
  expectFailure({"'Resize'",
                 {"2", "3"},
                 floats("s", "dims: 2", "1, -2"),
                 operands,
                 ExitInputError,
                 "by a scale of -2"});
  expectFailure({"'Resize'",
                 {"2", "3"},
                 floats("s", "dims: 1", "1"),
                 operands,
                 ExitInputError,
                 "must have 2 entries, has 1"});
  expectFailure({"'Resize'",
                 {"2", "3"},
                 "",
                 {},
                 ExitInputError,
                 "needs scales or sizes"});
  expectFailure({"'Resize'",
                 {"2", "3"},
                 ints("s", "dims: 2", "2, 999999999"),
                 {"", "", "s"},
                 ExitUnsupported,
                 "to 999999999"});
}

TEST(OperatorErrors, Einsum) {
  auto fails = [](const std::string &equation, const std::string &message) {
    expectFailure({"'Einsum'" + text("equation", equation),
                   {"2", "3"},
                   "",
                   {},
                   ExitInputError,
                   message});
  };
  fails("ijk->i", "does not fit an operand");
  fails("ij,jk->ik", "has 2 terms for 1 operands");
  fails("ij->k", "that no operand has");
  fails("ij->ii", "names a label of the result twice");
  fails("ii->i", "gives dimensions of 2 and 3 entries one label");
  fails("i1->i", "other than letters");
}

TEST(OperatorErrors, Attention) {
  expectFailure({"'Attention'",
                 {"2", "3"},
                 "",
                 {"x", "x"},
                 ExitInputError,
                 "of rank 3, or all of rank 4"},
                23);
  expectFailure(
      {"'Attention'" + number("q_num_heads", 3) + number("kv_num_heads", 1),
       {"2", "3", "4"},
       "",
       {"x", "x"},
       ExitInputError,
       "cannot divide dimension 2"},
      23);
  expectFailure({"'Attention' attribute { name: 'softcap' type: FLOAT f: -1 }",
                 {"2", "3", "4", "8"},
                 "",
                 {"x", "x"},
                 ExitInputError,
                 "softcap is -1"},
                23);
  expectFailure({"'LinearAttention'" + text("update_rule", "quadratic"),
                 {"2", "3", "4"},
                 "",
                 {"x", "x"},
                 ExitInputError,
                 "unknown update_rule 'quadratic'"},
                27);
}

TEST(OperatorErrors, Sampling) {
  std::string grid = floats("g", "dims: [1, 1, 1, 2]", "0, 0");
  expectFailure({"'GridSample'" + text("padding_mode", "mirror"),
                 {"1", "1", "2", "2"},
                 grid,
                 {"g"},
                 ExitInputError,
                 "unknown padding_mode 'mirror'"});
  expectFailure({"'GridSample'",
                 {"1", "1", "2"},
                 grid,
                 {"g"},
                 ExitInputError,
                 "needs an input [N, C, spatial...]"});
  expectFailure({"'Pad'" + text("mode", "random"),
                 {"2", "3"},
                 ints("p", "dims: 4", "0, 0, 1, 1"),
                 {"p"},
                 ExitInputError,
                 "unknown mode 'random'"});
  expectFailure({"'DepthToSpace'" + number("blocksize", 2),
                 {"1", "3", "2", "2"},
                 "",
                 {},
                 ExitInputError,
                 "no multiple of the block's 4 points"});
  expectFailure({"'DFT'",
                 {"1", "9000", "1"},
                 "",
                 {},
                 ExitUnsupported,
                 "a transform of length 9000"});
}

TEST(OperatorErrors, Quantization) {
  expectFailure({"'QuantizeLinear'" + number("output_dtype", 17),
                 {"2", "3"},
                 floats("s", "", "1"),
                 {"s"},
                 ExitUnsupported,
                 "element type float8e4m3fn"});
  expectFailure({"'QuantizeLinear'",
                 {"2", "3"},
                 floats("s", "dims: 2", "1, 1"),
                 {"s"},
                 ExitInputError,
                 "do not fit"});
}

// Several zero points need a dimension that they belong to.
TEST(OperatorErrors, ConvIntegerZeroPoints) {
  expectFailure(
      {"'ConvInteger'",
       {"3"},
       ints("w", "dims: 1 dims: 1 dims: 1", "1") + ints("z", "dims: 2", "0, 1"),
       {"w", "z"},
       ExitInputError,
       "a zero point of 2 entries for an operand of rank 1"});
}

TEST(OperatorErrors, IsInfOfIntegers) {
  ErrorText error = importError(modelFile(
      "wrong.onnx",
      "node { name: 'n1' op_type: 'IsInf' input: 'x' output: 'y' } input { " +
          info("x", 7, {"3"}) + " } output { " + info("y", 9, {"3"}) + " }",
      20));
  EXPECT_EQ(error.code, ExitInputError) << error.text;
  EXPECT_NE(error.text.find("infinities among 'i64'"), std::string::npos)
      << error.text;
}
