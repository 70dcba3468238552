//===- OpTableTest.cpp - descriptions of ops by data ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/OpTable.h"
#include "TestModule.h"
#include "ckopt/Analysis/OpFacts.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Remat/Remat.h"
#include "ckopt/Support/Error.h"
#include "gtest/gtest.h"

using namespace ckopt;

static constexpr llvm::StringLiteral text = R"mlir(
  func.func @f(%a: tensor<2x3x4xf32>, %b: tensor<4x5xf32>) {
    %0 = "x.dot"(%a, %b) <{dims = #x.dot<lhs = [2, 0], rhs = []>, list = array<i64: 0, 1>, window = [1, 2]}>
        {labels = "[b, 0, f]x[i, o]->[b, f]", n = 7 : i64, e = 0.5 : f32}
        : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf16>
    %1 = "x.blob"(%a) : (tensor<2x3x4xf32>) -> !x.tensor<[8,3],si64>
    return
  }
)mlir";

namespace {
struct FormulaTest : testing::Test {
  TestModule test{text};
  TypeSizes sizes;
  FormulaScope scope{
      &test.function("f").front().front(),
      [](mlir::Type type) {
        auto shape = mlir::cast<mlir::ShapedType>(type).getShape();
        return std::optional(llvm::to_vector(shape));
      },
      [this](mlir::Type type) { return std::optional(sizes.bytes(type)); }};

  double value(llvm::StringRef formula) {
    auto parsed = ckopt::OpFormula::parse(formula);
    EXPECT_TRUE(bool(parsed)) << formula.str();
    auto number = parsed->evaluate(scope);
    EXPECT_TRUE(bool(number)) << formula.str();
    return *number;
  }
  /// Returns the error of parsing or evaluating.
  std::string error(llvm::StringRef formula) {
    auto parsed = ckopt::OpFormula::parse(formula);
    if (!parsed)
      return takeErrorText(parsed.takeError()).text;
    auto number = parsed->evaluate(scope);
    return number ? "" : takeErrorText(number.takeError()).text;
  }
};
} // namespace

TEST_F(FormulaTest, ComputesWithUsualPrecedence) {
  EXPECT_EQ(value("1 + 2 * 3 - 4 / 2"), 5);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("10 - 3 - 2"), 5);
  EXPECT_EQ(value("-2 + 1.5e3"), 1498);
  EXPECT_EQ(value("max(1, 5, 3) + min(2, 4)"), 7);
}

TEST_F(FormulaTest, AsksForShapes) {
  EXPECT_EQ(value("elements(operands)"), 24 + 20);
  EXPECT_EQ(value("elements(operands[1])"), 20);
  EXPECT_EQ(value("bytes(results)"), 2 * 3 * 5 * 2);
  EXPECT_EQ(value("rank(operands[0])"), 3);
  EXPECT_EQ(value("dim(operands[0], 1)"), 3);
  EXPECT_EQ(value("dim(operands[0], -1)"), 4);
}

TEST_F(FormulaTest, ReadsAttributesOfUnknownDialects) {
  EXPECT_EQ(value("dims(operands[0], 'dims.lhs')"), 8);
  EXPECT_EQ(value("dims(operands[0], 'dims.rhs')"), 1);
  EXPECT_EQ(value("dims(operands[0], 'dims.batching')"), 1);
  EXPECT_EQ(value("dims(operands[0], 'list')"), 6);
  EXPECT_EQ(value("dims(operands[0], 'window')"), 12);
  EXPECT_EQ(value("dim(operands[1], 'labels', 1, 'o')"), 5);
  EXPECT_EQ(value("attr('n') * attr('e')"), 3.5);
  EXPECT_EQ(value("attr('missing', 3)"), 3);
}

TEST_F(FormulaTest, ErrorsNameTheColumn) {
  EXPECT_EQ(error("2 * "), "column 5: expected a number, a function or '('");
  EXPECT_EQ(error("1 + foo(2)"),
            "column 5: there is no function 'foo'; there are elements, bytes, "
            "rank, dim, dims, attr, min, max");
  EXPECT_EQ(error("elements(inputs)"),
            "column 10: expected operands or results");
  EXPECT_EQ(error("dim(operands, 1)"),
            "column 13: expected one value, as operands[0]");
  EXPECT_EQ(error("1 2"), "column 3: expected an operator");
  EXPECT_EQ(error("(1"), "column 3: expected ')'");
  EXPECT_EQ(error("attr('n"), "column 7: expected a string that ends");
  EXPECT_NE(error(std::string(100, '(')).find("more than 64 terms"),
            std::string::npos);
}

TEST_F(FormulaTest, WhatDoesNotFitAnOpIsAnError) {
  EXPECT_EQ(error("elements(operands[2])"), "the op has no operands[2]");
  EXPECT_EQ(error("dim(operands[1], 2)"), "there is no dimension 2 among 2");
  EXPECT_EQ(error("1 / (rank(operands[1]) - 2)"), "division by zero");
  EXPECT_EQ(error("1 - 2"),
            "the formula gives a number that is negative or too large");
  EXPECT_EQ(error("attr('labels')"), "the op has no number 'labels'");
  EXPECT_EQ(error("dim(operands[1], 'labels', 1, 'z')"),
            "'labels' gives no dimension the label 'z' in bracket 1");
}

/// Returns the error of a table with one entry.
static std::string errorOf(const std::string &entry) {
  auto table = OpTable::parse(
      R"({"format": "ckopt-ops/1", "ops": [)" + entry + "]}", "t.json");
  return table ? "" : takeErrorText(table.takeError()).text;
}

TEST(OpTable, ErrorsNameFileAndEntry) {
  EXPECT_EQ(errorOf(R"({"op": "x.a", "fast": true})"),
            "t.json: ops[0] (x.a): unknown member 'fast'");
  EXPECT_EQ(errorOf(R"({"pure": true})"),
            "t.json: ops[0]: needs 'op', a name or a list of names");
  EXPECT_EQ(errorOf(R"({"op": ["x.a", "x.b"], "work": {"vector": "2 *"}})"),
            "t.json: ops[0] (x.a, ...): work.vector: column 4: expected a "
            "number, a function or '('");
  EXPECT_EQ(errorOf(R"({"op": "x.a"}, {"op": ["x.b", "x.a"]})"),
            "t.json: ops[1] (x.b, ...): an entry before it describes 'x.a'");
  EXPECT_EQ(errorOf(R"({"op": "x.a", "view": -1})"),
            "t.json: ops[0] (x.a): 'view' must be the number of an operand, or "
            "\"each\"");
  EXPECT_EQ(errorOf(R"({"op": "x.a", "reuse": [[0]]})"),
            "t.json: ops[0] (x.a): 'reuse' must be \"elementwise\", \"each\", "
            "or a list of pairs [operand, result]");
}

TEST(OpTable, ExactNamesComeBeforePatterns) {
  TestModule test(text);
  auto table = OpTable::parse(R"json({"format": "ckopt-ops/1",
    "types": [{"type": "!x.tensor<[$dims],$element>"}],
    "ops": [{"op": "x.*", "pure": false},
            {"op": "x.dot", "where": {"labels": "other"}, "workspace": 1},
            {"op": "x.dot", "pure": true,
             "workspace": "bytes(results) + attr('n')"}]})json",
                              "t.json");
  ASSERT_TRUE(bool(table));
  OpTables tables{std::make_shared<const OpTable>(std::move(*table))};
  std::string before, after;
  llvm::raw_string_ostream(before) << *test.module;
  ASSERT_TRUE(mlir::succeeded(describeOps(*test.module, tables)));
  mlir::Operation &dot = test.function("f").front().front();
  EXPECT_EQ(facts::isPure(&dot), true);
  EXPECT_EQ(facts::isPure(dot.getNextNode()), false);
  EXPECT_EQ(getStatedWorkspace(&dot, {}), 2 * 3 * 5 * 2 + 7);
  PlanningHooks hooks;
  sizeTypes(hooks, tables);
  EXPECT_EQ(hooks.typeBytes(dot.getNextNode()->getResult(0).getType()), 192);
  EXPECT_EQ(hooks.typeBytes(dot.getResult(0).getType()), std::nullopt);
  undescribeOps(*test.module);
  llvm::raw_string_ostream(after) << *test.module;
  EXPECT_EQ(before, after);
}

// Without the pass, too: the plan leaves no descriptions behind, and applying
// it needs them again (a view is made anew for each copy of what it shows).
TEST(OpTable, HoldsForPlansOfTheLibrary) {
  TestModule test(R"mlir(
    module attributes {ckopt.ops = [{op = "x.view", pure = true, view = 0},
        {op = "x.*", pure = true, reuse = "elementwise"}]} {
      func.func @f(%x: tensor<1024xf32>) -> tensor<1024xf32> {
        %0 = "x.a"(%x) : (tensor<1024xf32>) -> tensor<1024xf32>
        %v = "x.view"(%0) : (tensor<1024xf32>) -> tensor<32x32xf32>
        %1 = "x.b"(%v) : (tensor<32x32xf32>) -> tensor<32x32xf32>
        %2 = "x.c"(%1) : (tensor<32x32xf32>) -> tensor<32x32xf32>
        %3 = "x.c"(%2) : (tensor<32x32xf32>) -> tensor<32x32xf32>
        %4 = "x.d"(%3, %2) : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
        %5 = "x.d"(%4, %1) : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
        %6 = "x.d"(%5, %v) : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
        %7 = "x.view"(%6) : (tensor<32x32xf32>) -> tensor<1024xf32>
        return %7 : tensor<1024xf32>
      }
    })mlir");
  mlir::func::FuncOp function = test.function("f");
  std::string before, after;
  llvm::raw_string_ostream(before) << *test.module;
  RematOptions options;
  options.budget.kind = MemoryBudget::Kind::Minimum;
  CostModel costs;
  mlir::FailureOr<RematPlan> plan = planRemat(function, options, costs);
  ASSERT_TRUE(mlir::succeeded(plan));
  llvm::raw_string_ostream(after) << *test.module;
  EXPECT_EQ(before, after);
  EXPECT_GT(plan->recomputedSteps(), 0);
  applyRemat(function, *plan);
  int64_t views = 0, described = 0;
  function.walk([&](mlir::Operation *op) {
    views += op->getName().getStringRef() == "x.view";
    described += facts::isDescribed(op);
  });
  EXPECT_GT(views, 2);
  EXPECT_EQ(described, 0);
}
