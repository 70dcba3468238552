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

/// The attribute `name` of `argument`, if it has one: as `read` reads it.
template <typename Attr, typename Read>
static auto limitsOf(const std::string &path, const std::string &argument,
                     const std::vector<std::string> &inputs,
                     llvm::StringRef name, Read read)
    -> std::optional<decltype(read(Attr()))> {
  ImportOptions options;
  options.inputs = inputs;
  mlir::MLIRContext context;
  auto model = importModel(path, options, context);
  if (!model) {
    ADD_FAILURE() << takeErrorText(model.takeError()).text;
    return std::nullopt;
  }
  auto function = forward(*model);
  auto limit = function.getArgAttrOfType<Attr>(
      unsigned(argumentNamed(function, argument)), name);
  return limit ? std::optional(read(limit)) : std::nullopt;
}

static std::optional<int64_t> limitOf(const std::string &path,
                                      const std::string &argument,
                                      const std::vector<std::string> &inputs,
                                      llvm::StringRef name) {
  return limitsOf<mlir::IntegerAttr>(
      path, argument, inputs, name,
      [](mlir::IntegerAttr limit) { return limit.getInt(); });
}

static std::string partText(mlir::Attribute part) {
  auto number = [&](llvm::StringRef name) {
    auto attr = mlir::cast<mlir::DictionaryAttr>(part).get(name);
    return std::to_string(mlir::cast<mlir::IntegerAttr>(attr).getInt());
  };
  return number("axis") + ":[" + number("low") + "," + number("high") + ")<" +
         number("rows");
}

/// The limits of parts of `argument`, as text: "1:[0,2)<3" of places 0 and 1
/// from axis 1 on that pick of 3 rows; "": none has any.
static std::string partsOf(const std::string &path, const std::string &argument,
                           const std::vector<std::string> &inputs) {
  return limitsOf<mlir::ArrayAttr>(path, argument, inputs, kPartLimitsAttr,
                                   [](mlir::ArrayAttr parts) {
                                     std::string text;
                                     for (mlir::Attribute part : parts)
                                       text += (text.empty() ? "" : " ") +
                                               partText(part);
                                     return text;
                                   })
      .value_or("");
}

/// The rows that `argument` may name; 0 where nothing is known.
static int64_t rowsOf(const std::string &path, const std::string &argument,
                      const std::vector<std::string> &inputs) {
  return limitOf(path, argument, inputs, kRowsAttr).value_or(0);
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

static const char *const kColumns = "1:[0,1)<3 1:[1,2)<9";

// What is valid in one column must not be refused for another column's table.
TEST(DataLimits, ColumnsHaveTheLimitsOfTheirTables) {
  std::vector<std::string> inputs = {"cats", "small", "large"};
  EXPECT_EQ(rowsOf(columns(""), "cats", inputs), 0);
  EXPECT_EQ(partsOf(columns(""), "cats", inputs), kColumns);
}

// A table that all values pick from holds for every column.
TEST(DataLimits, WholeReadsCountBeforeColumns) {
  std::string whole =
      "node { op_type: 'Gather' input: 'small' input: 'cats' output: 'z' } "
      "output { " +
      info("z", 1, {"4", "2", "6"}) + " } ";
  std::vector<std::string> inputs = {"cats", "small", "large"};
  EXPECT_EQ(rowsOf(columns(whole), "cats", inputs), 3);
  EXPECT_EQ(partsOf(columns(whole), "cats", inputs), "");
}

// Column 0 of `cats` picks rows, column 1 is a number: 500 is a valid one.
TEST(DataLimits, ColumnsOfAnotherMeaningAreNotLimited) {
  std::string path = modelFile(
      "meanings.onnx",
      "node { op_type: 'Gather' input: 'cats' input: 'zero' output: 'c0' "
      "attribute { name: 'axis' i: 1 type: INT } } "
      "node { op_type: 'Gather' input: 'cats' input: 'one' output: 'c1' "
      "attribute { name: 'axis' i: 1 type: INT } } "
      "node { op_type: 'Gather' input: 'small' input: 'c0' output: 'a' } "
      "node { op_type: 'Cast' input: 'c1' output: 'f' "
      "attribute { name: 'to' i: 1 type: INT } } "
      "node { op_type: 'Mul' input: 'a' input: 'f' output: 'y' } " +
          constant("zero", "", "int64_data: 0") +
          constant("one", "dims: 1", "int64_data: 1") + "input { " +
          info("cats", 7, {"4", "2"}) + " } input { " +
          info("small", 1, {"3", "6"}) + " } output { " +
          info("y", 1, {"4", "6"}) + " }");
  EXPECT_EQ(rowsOf(path, "cats", {"cats", "small"}), 0);
  EXPECT_EQ(partsOf(path, "cats", {"cats", "small"}), "1:[0,1)<3");
}

/// `cats` [4, 2], moved by `nodes` to 'first' and 'second', which pick rows of
/// two tables.
static std::string moved(const std::string &nodes, const std::string &first,
                         const std::string &second) {
  return modelFile(
      "moved.onnx",
      nodes +
          "node { op_type: 'Gather' input: 'small' input: 'first' output: 'a' "
          "} node { op_type: 'Gather' input: 'large' input: 'second' output: "
          "'b' } " +
          constant("zero", "dims: 1", "int64_data: 0") +
          constant("one", "dims: 1", "int64_data: 1") +
          constant("two", "dims: 1", "int64_data: 2") +
          constant("three", "dims: 1", "int64_data: 3") +
          constant("eight", "dims: 1", "int64_data: 8") + "input { " +
          info("cats", 7, {"4", "2"}) + " } input { " +
          info("small", 1, {"3", "6"}) + " } input { " +
          info("large", 1, {"9", "6"}) + " } output { " +
          info("a", 1, {first, "6"}) + " } output { " +
          info("b", 1, {second, "6"}) + " }");
}

static std::string slice(const std::string &of, const std::string &from,
                         const std::string &to, const std::string &step,
                         const std::string &name) {
  return "node { op_type: 'Slice' input: '" + of + "' input: '" + from +
         "' input: '" + to + "' input: 'zero' input: '" + step + "' output: '" +
         name + "' } ";
}

// Columns are columns behind transpositions, reshapes and steps, too.
TEST(DataLimits, ColumnsAreFoundBehindWhatMovesThem) {
  std::vector<std::string> inputs = {"cats", "small", "large"};
  std::string flat = "node { op_type: 'Flatten' input: 'cats' output: 'f' "
                     "attribute { name: 'axis' i: 0 type: INT } } "
                     "node { op_type: 'Squeeze' input: 'f' input: 'zero' "
                     "output: 't' } ";
  std::string path = moved(flat + slice("t", "zero", "eight", "two", "first") +
                               slice("t", "one", "eight", "two", "second"),
                           "4", "4");
  EXPECT_EQ(rowsOf(path, "cats", inputs), 0);
  EXPECT_EQ(partsOf(path, "cats", inputs), kColumns);
  std::string turned =
      "node { op_type: 'Transpose' input: 'cats' output: 't' } "
      "node { op_type: 'Gather' input: 't' input: 'zero' output: 'r0' "
      "attribute { name: 'axis' i: 0 type: INT } } "
      "node { op_type: 'Gather' input: 't' input: 'one' output: 'r1' "
      "attribute { name: 'axis' i: 0 type: INT } } "
      "node { op_type: 'Squeeze' input: 'r0' input: 'zero' output: 'first' } "
      "node { op_type: 'Squeeze' input: 'r1' input: 'zero' output: 'second' } ";
  EXPECT_EQ(partsOf(moved(turned, "4", "4"), "cats", inputs), kColumns);
}

// Elements that are no columns have the limits of their tables, too.
TEST(DataLimits, PlacesNeedNotBeColumns) {
  std::vector<std::string> inputs = {"cats", "small", "large"};
  std::string flat = "node { op_type: 'Flatten' input: 'cats' output: 'f' "
                     "attribute { name: 'axis' i: 0 type: INT } } "
                     "node { op_type: 'Squeeze' input: 'f' input: 'zero' "
                     "output: 't' } ";
  std::string path = moved(flat + slice("t", "zero", "three", "one", "first") +
                               slice("t", "three", "eight", "one", "second"),
                           "3", "5");
  EXPECT_EQ(rowsOf(path, "cats", inputs), 0);
  EXPECT_EQ(partsOf(path, "cats", inputs), "0:[0,3)<3 0:[3,8)<9");
}

/// The parts of `x` [4, 3, 2], of which `nodes` make `picked`, of some type and
/// any shape, that picks of 7 rows.
static std::string picked(const std::string &nodes, int type = 7) {
  std::string path = modelFile(
      "picked.onnx",
      nodes +
          "node { op_type: 'Cast' input: 'picked' output: 'i' "
          "attribute { name: 'to' i: 7 type: INT } } "
          "node { op_type: 'Gather' input: 'w' input: 'i' output: 'g' } "
          "node { op_type: 'ReduceSum' input: 'g' output: 'y' "
          "attribute { name: 'keepdims' i: 0 type: INT } } " +
          constant("first", "", "int64_data: 0") +
          constant("last", "", "int64_data: -1") +
          constant("ends", "dims: 2", "int64_data: 2 int64_data: -3") +
          constant("pairs", "dims: 2 dims: 2",
                   "int64_data: 0 int64_data: 2 int64_data: 3 int64_data: 1") +
          constant("each", "dims: 4 dims: 1 dims: 2",
                   "int64_data: 2 int64_data: -1 int64_data: 2 int64_data: 2 "
                   "int64_data: 2 int64_data: 2 int64_data: 2 int64_data: 2") +
          "input { " + info("x", type, {"4", "3", "2"}) + " } input { " +
          info("w", 1, {"7", "6"}) + " } output { " + info("y", 1, {}) + " }");
  EXPECT_EQ(rowsOf(path, "x", {"x", "w"}), 0);
  return partsOf(path, "x", {"x", "w"});
}

static std::string gather(const std::string &of, const std::string &indices,
                          const std::string &axis, const std::string &name,
                          const std::string &op = "Gather") {
  return "node { op_type: '" + op + "' input: '" + of + "' input: '" + indices +
         "' output: '" + name + "' attribute { name: 'axis' i: " + axis +
         " type: INT } } ";
}

// Constant indices pick what slices do: x[:, -1], x[:, [2, -3]], x[..., 0].
TEST(DataLimits, ConstantIndicesPickColumns) {
  EXPECT_EQ(picked(gather("x", "last", "1", "picked")), "1:[4,6)<7");
  EXPECT_EQ(picked(gather("x", "ends", "1", "picked")), "1:[0,2)<7 1:[4,6)<7");
  EXPECT_EQ(picked(gather("x", "first", "2", "picked")), "2:[0,1)<7");
  // One of the other: x[:, [2, -3]][:, :, 0], x[:, -1][:, 0].
  EXPECT_EQ(picked(gather("x", "ends", "1", "g1") +
                   gather("g1", "first", "2", "picked")),
            "1:[0,1)<7 1:[4,5)<7");
  EXPECT_EQ(picked(gather("x", "last", "1", "g1") +
                   gather("g1", "first", "1", "picked")),
            "1:[4,5)<7");
  // Behind a transposition, and of a type that counts to 127.
  EXPECT_EQ(picked("node { op_type: 'Transpose' input: 'x' output: 't' " +
                       std::string("} ") + gather("t", "ends", "1", "picked"),
                   3),
            "1:[0,2)<7 1:[4,6)<7");
  // Tuples and single elements: x[[0, 3], [2, 1]], and one for each place.
  EXPECT_EQ(picked("node { op_type: 'GatherND' input: 'x' input: 'pairs' "
                   "output: 'picked' } "),
            "0:[4,6)<7 0:[20,22)<7");
  EXPECT_EQ(picked(gather("x", "each", "1", "picked", "GatherElements")),
            "1:[4,6)<7");
}

/// `x` [8200], of which `op` picks 8193 by a constant that is too large for
/// import to look into it: counting down from `last`.
static std::string manyPicked(const std::string &op, int64_t last,
                              const std::string &dims) {
  std::string values;
  for (int64_t i = 0; i < 8193; ++i)
    values += "int64_data: " + std::to_string(last - i) + " ";
  return modelFile(
      "many.onnx",
      "node { op_type: '" + op +
          "' input: 'x' input: 'many' output: 'picked' } "
          "node { op_type: 'Gather' input: 'w' input: 'picked' output: 'g' } "
          "node { op_type: 'ReduceSum' input: 'g' output: 'y' "
          "attribute { name: 'keepdims' i: 0 type: INT } } " +
          constant("many", dims, values) + "input { " + info("x", 7, {"8200"}) +
          " } input { " + info("w", 1, {"7", "6"}) + " } output { " +
          info("y", 1, {}) + " }");
}

// Large constants are constants: arguments, with ops on them.
TEST(DataLimits, LargeConstantsPickAndAreChecked) {
  EXPECT_EQ(partsOf(manyPicked("Gather", 8193, "dims: 8193"), "x", {"x", "w"}),
            "0:[1,8194)<7");
  EXPECT_EQ(partsOf(manyPicked("GatherND", 8193, "dims: 8193 dims: 1"), "x",
                    {"x", "w"}),
            "0:[1,8194)<7");
  ImportOptions options;
  options.inputs = {"x", "w"};
  mlir::MLIRContext context;
  auto model =
      importModel(manyPicked("Gather", 8200, "dims: 8193"), options, context);
  ASSERT_FALSE(bool(model));
  EXPECT_NE(takeErrorText(model.takeError())
                .text.find("element 0 of the constant 'many', 8200, is outside "
                           "of a dimension of 8200"),
            std::string::npos);
}

// What the model computes picks other places for other data.
TEST(DataLimits, ComputedIndicesSayNothing) {
  EXPECT_EQ(picked("node { op_type: 'ReduceMax' input: 'x' output: 'm' "
                   "attribute { name: 'keepdims' i: 0 type: INT } } " +
                   gather("x", "m", "1", "picked")),
            "");
}

// Whether a number is zero picks one of two rows, whatever the number.
TEST(DataLimits, BoolsOfNumbersLimitNone) {
  for (const char *type : {"9", "7"}) {
    std::string path = modelFile(
        "bools.onnx",
        std::string("node { op_type: 'Cast' input: 'x' output: 'b' "
                    "attribute { name: 'to' i: ") +
            type +
            " type: INT } } "
            "node { op_type: 'Cast' input: 'b' output: 'i' "
            "attribute { name: 'to' i: 7 type: INT } } "
            "node { op_type: 'Gather' input: 'w' input: 'i' output: 'y' } "
            "input { " +
            info("x", 7, {"4"}) + " } input { " + info("w", 1, {"2", "6"}) +
            " } output { " + info("y", 1, {"4", "6"}) + " }");
    EXPECT_EQ(rowsOf(path, "x", {"x", "w"}), type[0] == '9' ? 0 : 2);
  }
}

/// A loss of `scores` with some classes and labels that another loss may read.
static std::string loss(const std::string &scores, const std::string &ignored,
                        const std::string &out) {
  return "node { op_type: 'SoftmaxCrossEntropyLoss' input: '" + scores +
         "' input: 'labels' output: '" + out + "' " +
         (ignored.empty() ? ""
                          : "attribute { name: 'ignore_index' i: " + ignored +
                                " type: INT } ") +
         "} ";
}

/// (classes, ignored label) of `labels`, read by two losses of 5 and 7 classes.
static std::pair<int64_t, std::optional<int64_t>>
labelsOf(const std::string &first, const std::string &second) {
  std::string path = modelFile(
      "losses.onnx",
      loss("five", first, "a") + loss("seven", second, "b") +
          "node { op_type: 'Add' input: 'a' input: 'b' output: 'y' } input { " +
          info("five", 1, {"4", "5"}) + " } input { " +
          info("seven", 1, {"4", "7"}) + " } input { " +
          info("labels", 7, {"4"}) + " } output { " + info("y", 1, {}) + " }");
  std::vector<std::string> inputs = {"five", "seven", "labels"};
  return {limitOf(path, "labels", inputs, kClassesAttr).value_or(0),
          limitOf(path, "labels", inputs, kIgnoreIndexAttr)};
}

// A loss without ignore_index ignores nothing; of two, a label is ignored if
// both take it.
TEST(DataLimits, LabelsAreWhatAllLossesTake) {
  using Limits = std::pair<int64_t, std::optional<int64_t>>;
  EXPECT_EQ(labelsOf("", ""), Limits(5, std::nullopt));
  EXPECT_EQ(labelsOf("-100", ""), Limits(5, std::nullopt));
  EXPECT_EQ(labelsOf("-100", "-100"), Limits(5, -100));
  EXPECT_EQ(labelsOf("-1", "6"), Limits(5, std::nullopt));
  EXPECT_EQ(labelsOf("6", "-1"), Limits(5, 6));
}
