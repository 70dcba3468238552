//===- TensorTest.cpp - tensors of the reference interpreter --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Reference/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>
#include <limits>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

namespace {
class TensorTest : public testing::Test {
protected:
  RankedTensorType type(ArrayRef<int64_t> shape, Type element) {
    return RankedTensorType::get(shape, element);
  }
  MLIRContext context;
  Builder b{&context};
};
} // namespace

/// Values at the edges of each type survive attributes and host tensors.
TEST_F(TensorTest, EveryElementTypeSurvives) {
  auto unsignedType = [&](unsigned width) {
    return IntegerType::get(&context, width, IntegerType::Unsigned);
  };
  for (Type element :
       {Type(b.getF64Type()), Type(b.getF32Type()), Type(b.getF16Type()),
        Type(b.getBF16Type()), Type(b.getI64Type()), Type(b.getI32Type()),
        Type(b.getIntegerType(16)), Type(b.getIntegerType(8)),
        Type(unsignedType(64)), Type(unsignedType(32)), Type(unsignedType(16)),
        Type(unsignedType(8)), Type(b.getI1Type())}) {
    Tensor tensor(type({2, 3}, element));
    double values[] = {0, 1, -1, 100, -128, 255};
    for (int64_t i = 0; i < 6; ++i)
      tensor.set(i, values[i]);
    tensor.roundToType();
    Tensor fromAttr = Tensor::fromAttr(tensor.toAttr());
    Tensor fromHost = Tensor::fromHost(tensor.toHost(), tensor.getType());
    EXPECT_TRUE(compare(tensor, fromAttr).sameValues) << tensor.str();
    EXPECT_TRUE(compare(tensor, fromHost).sameValues) << tensor.str();
    EXPECT_EQ(tensor.toAttr().getType(), tensor.getType());
  }
}

TEST_F(TensorTest, IntegersWrap) {
  Tensor bytes(type({2}, b.getIntegerType(8)), std::vector<int64_t>{200, -129});
  bytes.roundToType();
  EXPECT_EQ(bytes.integer(0), -56);
  EXPECT_EQ(bytes.integer(1), 127);
  Tensor unsignedBytes(
      type({1}, IntegerType::get(&context, 8, IntegerType::Unsigned)),
      std::vector<int64_t>{-1});
  unsignedBytes.roundToType();
  EXPECT_EQ(unsignedBytes.integer(0), 255);
  Tensor flags(type({2}, b.getI1Type()), std::vector<int64_t>{2, 0});
  flags.roundToType();
  EXPECT_EQ(flags.integer(0), 1);
  EXPECT_EQ(flags.integer(1), 0);
}

/// Values outside of an integer type become its nearest bound, and NaN becomes
/// 0: conversions are defined for every input.
TEST_F(TensorTest, FloatsOutOfRangeSaturate) {
  Tensor wide(type({4}, b.getI64Type()));
  wide.set(0, 1e300);
  wide.set(1, -1e300);
  wide.set(2, std::numeric_limits<double>::quiet_NaN());
  wide.set(3, -2.9);
  EXPECT_EQ(wide.integer(0), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(wide.integer(1), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(wide.integer(2), 0);
  EXPECT_EQ(wide.integer(3), -2);
}

TEST_F(TensorTest, EqualElementsBecomeSplats) {
  EXPECT_TRUE(
      Tensor::splat(type({64}, b.getF32Type()), 2.5).toAttr().isSplat());
  EXPECT_TRUE(Tensor::splat(type({64}, b.getI1Type()), 1).toAttr().isSplat());
  // 0 and -0 are equal as numbers but not as bits.
  Tensor zeros(type({2}, b.getF32Type()), std::vector<double>{0.0, -0.0});
  EXPECT_FALSE(zeros.toAttr().isSplat());
  Tensor back = Tensor::fromAttr(zeros.toAttr());
  EXPECT_FALSE(std::signbit(back.real(0)));
  EXPECT_TRUE(std::signbit(back.real(1)));
}

TEST_F(TensorTest, EmptyTensors) {
  Tensor empty(type({0, 3}, b.getF32Type()));
  EXPECT_EQ(empty.size(), 0);
  EXPECT_EQ(Tensor::fromAttr(empty.toAttr()).size(), 0);
  EXPECT_TRUE(compare(empty, empty).sameValues);
}

TEST_F(TensorTest, UnreadableAttributesAreNull) {
  auto strings = DenseElementsAttr::get(type({1}, b.getF32Type()),
                                        {Attribute(b.getF32FloatAttr(1))});
  EXPECT_TRUE(bool(Tensor::fromAttr(strings)));
  auto index = DenseElementsAttr::get(type({1}, b.getIndexType()),
                                      {Attribute(b.getIndexAttr(1))});
  EXPECT_FALSE(bool(Tensor::fromAttr(index)));
}

TEST_F(TensorTest, RandomIsReproducibleAndInRange) {
  auto floats = type({100}, b.getF32Type());
  Tensor first = Tensor::random(floats, 7, 2, 3);
  EXPECT_TRUE(compare(first, Tensor::random(floats, 7, 2, 3)).sameValues);
  EXPECT_FALSE(compare(first, Tensor::random(floats, 8, 2, 3)).sameValues);
  for (double value : first.getReals()) {
    EXPECT_GE(value, 2);
    EXPECT_LE(value, 3);
    EXPECT_EQ(value, double(float(value)));
  }
  Tensor labels = Tensor::random(type({1000}, b.getI64Type()), 1, 0, 10);
  EXPECT_EQ(*llvm::min_element(labels.getInts()), 0);
  EXPECT_EQ(*llvm::max_element(labels.getInts()), 9);
}

TEST_F(TensorTest, Comparison) {
  auto pair = type({2}, b.getF64Type());
  Tensor a(pair, std::vector<double>{3, 4}), c(pair, std::vector<double>{3, 5});
  Comparison found = compare(a, c);
  EXPECT_EQ(found.maxAbs, 1);
  EXPECT_EQ(found.where, 1);
  EXPECT_DOUBLE_EQ(found.maxRel, 0.2);
  EXPECT_DOUBLE_EQ(found.normRel, 1 / std::sqrt(34.0));
  EXPECT_TRUE(allClose(a, c, 0, 0.2));
  EXPECT_FALSE(allClose(a, c, 0.9, 0.19));
  EXPECT_FALSE(compare(a, Tensor(type({3}, b.getF64Type()))).sameShape);
  double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor n(pair, std::vector<double>{nan, 4});
  EXPECT_TRUE(compare(n, n).sameValues);
  EXPECT_TRUE(std::isinf(compare(n, a).maxAbs));
  EXPECT_FALSE(allClose(n, a, 1e300, 1));
}
