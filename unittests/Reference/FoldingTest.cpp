//===- FoldingTest.cpp - folding while building ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ReferenceFixture.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ckopt;

namespace {
/// Builds at the start of an empty function.
class FoldingTest : public test::ReferenceFixture {
protected:
  FoldingTest() : builder(&context) {
    auto function = parse("func.func @main() { return }");
    builder.setInsertionPointToStart(&function.getBody().front());
  }
  Value constant(ArrayRef<int64_t> values) {
    return ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(i64({int64_t(values.size())}), values));
  }
  /// The folded elements of `value`; empty where it is no constant.
  std::vector<int64_t> elements(Value value) {
    DenseIntElementsAttr attr;
    if (!matchPattern(value, m_Constant(&attr)))
      return {};
    auto values = attr.getValues<int64_t>();
    return {values.begin(), values.end()};
  }
  OpBuilder builder;
  Location loc = UnknownLoc::get(&context);
};
} // namespace

/// Builds ops as an importer does, so that they fold while they are built.
TEST_F(FoldingTest, CreateOrFold) {
  Value shape = constant({8, 3, 32, 32});
  Value index = constant({2});
  Value gathered = builder.createOrFold<GatherOp>(loc, shape, index,
                                                  builder.getI64IntegerAttr(0));
  EXPECT_EQ(elements(gathered), std::vector<int64_t>({32}));
  Value doubled = builder.createOrFold<AddOp>(loc, gathered, gathered);
  EXPECT_EQ(elements(doubled), std::vector<int64_t>({64}));
  Value joined = builder.createOrFold<ConcatOp>(
      loc, ValueRange{doubled, gathered}, builder.getI64IntegerAttr(0));
  EXPECT_EQ(elements(joined), std::vector<int64_t>({64, 32}));
  EXPECT_EQ(joined.getDefiningOp()->getName().getStringRef(), "ckopt.constant");
}

TEST_F(FoldingTest, SeveralResults) {
  auto type = f32({2});
  Value x = ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, ArrayRef<float>({1, 3})));
  SmallVector<Value> results;
  builder.createOrFold<MomentsOp>(results, loc, x,
                                  builder.getDenseI64ArrayAttr({0}));
  ASSERT_EQ(results.size(), 2u);
  DenseFPElementsAttr mean, variance;
  ASSERT_TRUE(matchPattern(results[0], m_Constant(&mean)));
  ASSERT_TRUE(matchPattern(results[1], m_Constant(&variance)));
  EXPECT_EQ(mean.getValues<float>()[0], 2);
  EXPECT_EQ(variance.getValues<float>()[0], 1);
}

/// An index out of range is no fold and no diagnostic: the op stays.
TEST_F(FoldingTest, FailureIsQuiet) {
  unsigned diagnostics = 0;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &) {
    ++diagnostics;
    return success();
  });
  Value gathered = builder.createOrFold<GatherOp>(
      loc, constant({1, 2}), constant({5}), builder.getI64IntegerAttr(0));
  EXPECT_TRUE(gathered.getDefiningOp<GatherOp>());
  EXPECT_EQ(diagnostics, 0u);
}

/// Every op of the dialect has a meaning: a new one without is found here.
TEST_F(FoldingTest, EveryOpHasAModel) {
  unsigned ops = 0;
  for (RegisteredOperationName name :
       context.getRegisteredOperationsByDialect("ckopt")) {
    ++ops;
    EXPECT_TRUE(name.hasInterface<reference::ReferenceOpInterface>())
        << name.getStringRef().str();
  }
  EXPECT_GT(ops, 70u);
}
