//===- DataLimitsTest.cpp - how far indices in data may go ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An argument whose values pick rows says how many rows there are, whatever
// moves the values on their way.
//
//===----------------------------------------------------------------------===//
#include "TestUtils.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using namespace ckopt::test;

/// The rows that `argument` may name by its attribute; 0 where it has none.
static int64_t rowsOf(const std::string &path, const std::string &argument,
                      const std::vector<std::string> &inputs) {
  ImportOptions options;
  options.inputs = inputs;
  mlir::MLIRContext context;
  auto model = importModel(path, options, context);
  if (!model) {
    ADD_FAILURE() << takeErrorText(model.takeError()).text;
    return -1;
  }
  auto function = forward(*model);
  auto rows = function.getArgAttrOfType<mlir::IntegerAttr>(
      unsigned(argumentNamed(function, argument)), kRowsAttr);
  return rows ? rows.getInt() : 0;
}

static std::string constant(const std::string &name, const std::string &dims,
                            const std::string &values) {
  return "initializer { name: '" + name + "' data_type: 7 " + dims + " " +
         values + " } ";
}

// w[0..2, tags] as exporters write it: tuples of a counter and a tag. The
// counter goes to 3, the tags to 5.
TEST(DataLimits, TuplesKeepTheirColumnsApart) {
  std::string path = modelFile(
      "tuples.onnx",
      "node { op_type: 'Unsqueeze' input: 'tags' input: 'last' output: 'u' } "
      "node { op_type: 'Concat' input: 'count' input: 'u' output: 't' "
      "attribute { name: 'axis' i: -1 type: INT } } "
      "node { op_type: 'GatherND' input: 'w' input: 't' output: 'y' } " +
          constant("last", "dims: 1", "int64_data: 1") +
          constant("count", "dims: 3 dims: 1",
                   "int64_data: 0 int64_data: 1 int64_data: 2") +
          "input { " + info("w", 1, {"3", "5"}) + " } input { " +
          info("tags", 7, {"3"}) + " } output { " + info("y", 1, {"3"}) + " }");
  EXPECT_EQ(rowsOf(path, "tags", {"w", "tags"}), 5);
}

/// Column i of `cats` [4, 2] picks rows of table i.
static std::string columns(const std::string &more) {
  return modelFile(
      "columns.onnx",
      "node { op_type: 'Gather' input: 'cats' input: 'zero' output: 'c0' "
      "attribute { name: 'axis' i: 1 type: INT } } "
      "node { op_type: 'Gather' input: 'cats' input: 'one' output: 'c1' "
      "attribute { name: 'axis' i: 1 type: INT } } "
      "node { op_type: 'Gather' input: 'small' input: 'c0' output: 'a' } "
      "node { op_type: 'Gather' input: 'large' input: 'c1' output: 'b' } "
      "node { op_type: 'Add' input: 'a' input: 'b' output: 'y' } " +
          more + constant("zero", "", "int64_data: 0") +
          constant("one", "", "int64_data: 1") + "input { " +
          info("cats", 7, {"4", "2"}) + " } input { " +
          info("small", 1, {"3", "6"}) + " } input { " +
          info("large", 1, {"9", "6"}) + " } output { " +
          info("y", 1, {"4", "6"}) + " }");
}

// What is valid in one column must not be refused for another column's table.
TEST(DataLimits, ColumnsOfDifferentTablesTakeTheLargest) {
  EXPECT_EQ(rowsOf(columns(""), "cats", {"cats", "small", "large"}), 9);
}

// A table that all values pick from holds for every column.
TEST(DataLimits, WholeReadsCountBeforeColumns) {
  std::string whole =
      "node { op_type: 'Gather' input: 'small' input: 'cats' output: 'z' } "
      "output { " +
      info("z", 1, {"4", "2", "6"}) + " } ";
  EXPECT_EQ(rowsOf(columns(whole), "cats", {"cats", "small", "large"}), 3);
}
