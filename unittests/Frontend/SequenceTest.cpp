//===- SequenceTest.cpp - sequences that fold away ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestUtils.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using namespace ckopt::test;

static const char *positions =
    "initializer { name: 'last' data_type: 7 int64_data: -1 } "
    "initializer { name: 'first' data_type: 7 int64_data: 0 } "
    "initializer { name: 'two' data_type: 7 int64_data: 2 } ";

// [5, 2] in parts of 2 rows: the last one (1 row) goes to the front, the one
// in the middle is erased, the rest is joined.
TEST(Sequence, FoldsAway) {
  std::string graph =
      std::string(
          "node { op_type: 'SplitToSequence' input: 'x' input: 'two' output: "
          "'s' } "
          "node { op_type: 'SequenceAt' input: 's' input: 'last' output: 't' } "
          "node { op_type: 'SequenceInsert' input: 's' input: 't' input: "
          "'first' output: 's2' } "
          "node { op_type: 'SequenceErase' input: 's2' input: 'two' output: "
          "'s3' } "
          "node { op_type: 'SequenceLength' input: 's3' output: 'n' } "
          "node { op_type: 'ConcatFromSequence' input: 's3' output: 'y' "
          "attribute { name: 'axis' type: INT i: 0 } } ") +
      positions + "input { " + info("x", 1, {"5", "2"}) + " } output { " +
      info("y", 1, {"4", "2"}) + " } output { " + info("n", 7, {}) + " }";
  mlir::MLIRContext context;
  auto model = importModel(modelFile("sequence.onnx", graph), {}, context);
  ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
  HostTensor x(DType::F32, {5, 2});
  for (int64_t i = 0; i < 10; ++i)
    x.setDouble(i, double(i));
  auto results = evaluate(*model, {{"x", x}});
  std::vector<double> got;
  for (int64_t i = 0; i < results[0].size(); ++i)
    got.push_back(results[0].get(i));
  EXPECT_EQ(got, (std::vector<double>{8, 9, 0, 1, 2, 3, 8, 9}));
  EXPECT_EQ(results[1].get(0), 3);
}

// A sequence as a result of the graph would have to exist at run time.
TEST(Sequence, ResultIsRefused) {
  std::string graph = "node { op_type: 'SequenceConstruct' input: 'x' output: "
                      "'y' } input { " +
                      info("x", 1, {"2"}) +
                      " } output { name: 'y' type { sequence_type { elem_type "
                      "{ tensor_type { elem_type: 1 } } } } }";
  ErrorText error = importError(modelFile("sequence_result.onnx", graph));
  EXPECT_EQ(error.code, ExitUnsupported);
  EXPECT_NE(error.text.find("graph output 'y' is a sequence"),
            std::string::npos)
      << error.text;
}

// So would one whose position depends on data, and one that comes from outside.
TEST(Sequence, DynamicOnesAreRefused) {
  std::string graph =
      std::string("node { op_type: 'SplitToSequence' input: 'x' input: 'two' "
                  "output: 's' } node { op_type: 'Cast' input: 'p' output: 'q' "
                  "attribute { name: 'to' type: INT i: 7 } } node { op_type: "
                  "'SequenceAt' name: 'at' input: 's' input: 'q' output: 'y' "
                  "} ") +
      positions + "input { " + info("x", 1, {"4", "2"}) + " } input { " +
      info("p", 1, {}) + " } output { " + info("y", 1, {"2", "2"}) + " }";
  ErrorText error = importError(modelFile("sequence_at.onnx", graph));
  EXPECT_EQ(error.code, ExitUnsupported);
  EXPECT_NE(error.text.find("node 'at' (SequenceAt)"), std::string::npos)
      << error.text;
  graph = "node { op_type: 'SequenceLength' input: 's' output: 'y' } input { "
          "name: 's' type { sequence_type { elem_type { tensor_type { "
          "elem_type: 1 } } } } } output { " +
          info("y", 7, {}) + " }";
  error = importError(modelFile("sequence_input.onnx", graph));
  EXPECT_EQ(error.code, ExitUnsupported);
  EXPECT_NE(error.text.find("sequence(f32)"), std::string::npos) << error.text;
}
