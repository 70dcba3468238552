//===- DiagnosticsTest.cpp - what bad files are answered ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestUtils.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using namespace ckopt::test;

static void expectError(const ErrorText &error, ExitCode code,
                        std::initializer_list<const char *> parts) {
  EXPECT_EQ(error.code, code) << error.text;
  for (const char *part : parts)
    EXPECT_NE(error.text.find(part), std::string::npos)
        << "no '" << part << "' in:\n"
        << error.text;
}

static std::string unary(const std::string &op, const std::string &more = "") {
  return "node { op_type: '" + op + "' name: 'n1' input: 'x' output: 'y' " +
         more + " } input { " + info("x", 1, {"2", "3"}) + " } output { " +
         info("y", 1, {"2", "3"}) + " }";
}

TEST(Diagnostics, FilesThatAreNoModels) {
  expectError(importError("/nonexistent/model.onnx"), ExitInputError,
              {"cannot read '/nonexistent/model.onnx'"});
  expectError(importError(writeTemporary("empty.onnx", "")), ExitInputError,
              {"is empty"});
  expectError(importError(writeTemporary("text.onnx", "not a model at all")),
              ExitInputError, {"is not an ONNX model"});
}

// Every cut of a file is an error, and never a crash.
TEST(Diagnostics, TruncatedFile) {
  auto buffer = llvm::MemoryBuffer::getFile(goldenModel("mlp"));
  ASSERT_TRUE(bool(buffer));
  std::string bytes = (*buffer)->getBuffer().str();
  for (size_t keep = 1; keep < bytes.size(); keep += 61) {
    ErrorText error =
        importError(writeTemporary("cut.onnx", bytes.substr(0, keep)));
    EXPECT_EQ(error.code, ExitInputError) << keep << ": " << error.text;
  }
}

// Changed bytes give a model or an error with a documented code.
TEST(Diagnostics, MutatedFile) {
  auto buffer = llvm::MemoryBuffer::getFile(goldenModel("lstm"));
  ASSERT_TRUE(bool(buffer));
  std::string bytes = (*buffer)->getBuffer().str();
  uint64_t state = 12345;
  auto next = [&] {
    return state = state * 6364136223846793005u + 1442695041u;
  };
  for (int i = 0; i < 300; ++i) {
    std::string changed = bytes;
    for (int k = 0; k < 3; ++k)
      changed[(next() >> 20) % changed.size()] = char(next() >> 40);
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    auto model =
        importModel(writeTemporary("changed.onnx", changed), {}, context);
    if (model)
      continue;
    ErrorText error = takeErrorText(model.takeError());
    EXPECT_TRUE(error.code == ExitInputError || error.code == ExitUnsupported)
        << error.text;
    EXPECT_FALSE(error.text.empty());
  }
}

// All unknown operators are named at once, with their nodes: those that ONNX
// has and nobody trains, too.
TEST(Diagnostics, UnknownOperators) {
  std::string graph =
      "node { op_type: 'Foo' name: 'first' input: 'x' output: 'a' } "
      "node { op_type: 'Bar' domain: 'com.example' name: 'second' input: 'a' "
      "output: 'b' } node { op_type: 'TfIdfVectorizer' name: 'third' "
      "input: 'b' output: 'y' } input { " +
      info("x", 1, {"2"}) + " } output { " + info("y", 1, {"2"}) + " }";
  expectError(importError(modelFile("unknown.onnx", graph)), ExitUnsupported,
              {"operator Foo (domain 'ai.onnx', opset 17) at node 'first'",
               "operator Bar (domain 'com.example'", "at node 'second'",
               "operator TfIdfVectorizer (domain 'ai.onnx', opset 17) at node "
               "'third'"});
}

TEST(Diagnostics, Opsets) {
  expectError(importError(modelFile("old.onnx", unary("Relu"), 0)),
              ExitUnsupported, {"opset 0 is not supported", "1 to"});
  expectError(importError(modelFile("new.onnx", unary("Relu"), 99)),
              ExitUnsupported, {"opset 99 is not supported"});
  expectError(importError(modelFile("gelu.onnx", unary("Gelu"), 17)),
              ExitUnsupported,
              {"operator Gelu", "knows it from a later opset on"});
}

TEST(Diagnostics, WrongAttribute) {
  expectError(
      importError(modelFile(
          "attribute.onnx",
          unary("Softmax", "attribute { name: 'axis' type: FLOAT f: 1 }"))),
      ExitInputError,
      {"node 'n1' (Softmax)", "attribute 'axis' must be an integer"});
  expectError(
      importError(modelFile(
          "axis.onnx",
          unary("Softmax", "attribute { name: 'axis' type: INT i: 5 }"))),
      ExitInputError, {"node 'n1' (Softmax)", "axis 5 is outside of rank 2"});
}

TEST(Diagnostics, MissingOperand) {
  expectError(importError(modelFile("operand.onnx", unary("Add"))),
              ExitInputError, {"node 'n1' (Add)", "operand 1 is missing"});
}

TEST(Diagnostics, UndefinedName) {
  std::string graph = unary("Add", "input: 'nowhere'");
  expectError(importError(modelFile("undefined.onnx", graph)), ExitInputError,
              {"node 'n1' (Add)", "reads 'nowhere'"});
}

// Errors in several nodes are reported together.
TEST(Diagnostics, SeveralNodes) {
  std::string graph =
      "node { op_type: 'Softmax' name: 'a' input: 'x' output: 'p' attribute { "
      "name: 'axis' type: INT i: 9 } } "
      "node { op_type: 'Flatten' name: 'b' input: 'x' output: 'q' attribute { "
      "name: 'axis' type: INT i: 9 } } "
      "node { op_type: 'Add' name: 'c' input: 'p' input: 'q' output: 'y' } "
      "input { " +
      info("x", 1, {"2", "3"}) + " } output { " + info("y", 1, {"2", "3"}) +
      " }";
  ErrorText error = importError(modelFile("several.onnx", graph));
  expectError(error, ExitInputError,
              {"node 'a' (Softmax)", "node 'b' (Flatten)"});
  EXPECT_EQ(error.text.find("node 'c'"), std::string::npos) << error.text;
}

TEST(Diagnostics, ShapesThatDoNotFit) {
  std::string graph =
      "node { op_type: 'MatMul' name: 'm' input: 'x' input: 'w' output: 'y' } "
      "input { " +
      info("x", 1, {"2", "3"}) + " } input { " + info("w", 1, {"4", "5"}) +
      " } output { " + info("y", 1, {"2", "5"}) + " }";
  expectError(importError(modelFile("matmul.onnx", graph)), ExitInputError,
              {"node 'm' (MatMul)", "inner dimensions differ: 3 and 4"});
}

TEST(Diagnostics, ShapeFromData) {
  std::string graph =
      "node { op_type: 'Reshape' name: 'r' input: 'x' input: 's' output: 'y' } "
      "input { " +
      info("x", 1, {"2", "3"}) + " } input { " + info("s", 7, {"2"}) +
      " } output { " + info("y", 1, {"3", "2"}) + " }";
  ImportOptions options;
  options.inputs = {"x", "s"};
  expectError(importError(modelFile("data.onnx", graph), options),
              ExitUnsupported,
              {"node 'r' (Reshape)", "('s') must be a constant"});
}

TEST(Diagnostics, Inputs) {
  std::string path = modelFile("relu.onnx", unary("Relu"));
  ImportOptions options;
  options.inputs = {"images"};
  expectError(importError(path, options), ExitInputError,
              {"there is no graph input 'images'; there are 'x'"});
  options = {};
  options.freezeRegex = "(";
  expectError(importError(path, options), ExitUsage,
              {"malformed regular expression"});
  options = {};
  options.batch = 0;
  expectError(importError(path, options), ExitUsage, {"must be positive"});
}

static std::string withTensor(const std::string &tensor) {
  return unary("Add", "input: 'w'") + " initializer { name: 'w' " + tensor +
         " }";
}

TEST(Diagnostics, DamagedTensors) {
  expectError(
      importError(modelFile("short.onnx", withTensor("data_type: 1 dims: 3 "
                                                     "float_data: 1"))),
      ExitInputError,
      {"initializer 'w'", "needs 3 elements", "the file holds 1"});
  expectError(
      importError(modelFile("type.onnx", withTensor("data_type: 8 dims: 1"))),
      ExitUnsupported, {"initializer 'w'", "element type string"});
  expectError(
      importError(modelFile("huge.onnx",
                            withTensor("data_type: 1 dims: 4611686018427387904 "
                                       "dims: 4611686018427387904"))),
      ExitInputError, {"initializer 'w'"});
}

// A line end in any name would forge lines of reports; texts for people, of
// which no report tells, have lines.
TEST(Diagnostics, NamesDoNotBreakLines) {
  const std::string value = info("x", 1, {"2"});
  const std::string graph = "name: 'g' doc_string: 'a\\nb' input: { " + value +
                            " } output { name: 'y' } ";
  const char *bad[] = {
      "node { op_type: 'Relu' name: 'n\\nverdict' input: 'x' output: 'y' }",
      "node { op_type: 'Re\\nverdict' input: 'x' output: 'y' }",
      "node { op_type: 'Relu' input: 'x' output: 'y\\nverdict' }",
      "initializer { name: 'w\\nverdict' data_type: 1 dims: 0 }",
      ("node { op_type: 'If' attribute { name: 'then_branch' type: GRAPH g { "
       "node { name: 'n\\nverdict' op_type: 'Relu' } } } }"),
  };
  for (const char *text : bad)
    expectError(importError(modelFile("lines.onnx", graph + text)),
                ExitInputError,
                {"\\x0averdict' has control characters: rename it"});
  expectError(importError(modelFile(
                  "dim.onnx", "input { " + info("x", 1, {"a\\nb"}) + " }")),
              ExitInputError, {"dim_param", "'a\\x0ab'"});
  mlir::MLIRContext context;
  auto good = importModel(
      modelFile("doc.onnx",
                graph + "node { op_type: 'Relu' input: 'x' output: 'y' }"),
      {}, context);
  EXPECT_TRUE(bool(good)) << takeErrorText(good.takeError()).text;
}

static std::string external(const std::string &location) {
  return withTensor("data_type: 1 dims: 3 data_location: EXTERNAL "
                    "external_data { key: 'location' value: '" +
                    location + "' }");
}

// External data is read from beside the model, and from nowhere else.
TEST(Diagnostics, ExternalData) {
  expectError(importError(modelFile("gone.onnx", external("gone.bin"))),
              ExitInputError, {"cannot open external data"});
  expectError(importError(modelFile("up.onnx", external("../secret.bin"))),
              ExitInputError, {"below the model's own folder"});
  expectError(importError(modelFile("root.onnx", external("/etc/passwd"))),
              ExitInputError, {"below the model's own folder"});
  // A pipe would be waited for.
  std::string pipe = writeTemporary("pipe.bin", "");
  ASSERT_EQ(unlink(pipe.c_str()), 0);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  alarm(60);
  expectError(importError(modelFile("pipe.onnx", external("pipe.bin"))),
              ExitInputError, {"and no regular file"});
  alarm(0);
  ASSERT_EQ(unlink(pipe.c_str()), 0);
  writeTemporary("small.bin", "12345");
  expectError(importError(modelFile("small.onnx", external("small.bin"))),
              ExitInputError, {"holds 5 bytes", "12 are needed"});
  writeTemporary("right.bin", std::string(12, '\0'));
  mlir::MLIRContext context;
  auto model =
      importModel(modelFile("right.onnx", external("right.bin")), {}, context);
  ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
  EXPECT_EQ(model->weights.at("w").numElements(), 3);
}
