//===- HostTensorTest.cpp - tensors and checked conversions ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/HostTensor.h"
#include "TestFiles.h"
#include <cmath>
#include <limits>

using namespace ckopt;

template <typename T> static HostTensor make(std::vector<T> values) {
  HostTensor tensor(dtypeOf<T>(), {int64_t(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    tensor.mutableData<T>()[i] = values[i];
  return tensor;
}

TEST(HostTensor, StartsAsZerosInAlignedMemory) {
  HostTensor tensor(DType::F32, {2, 3});
  EXPECT_EQ(tensor.numElements(), 6);
  EXPECT_EQ(tensor.sizeInBytes(), 24);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.rawData()) % 64, 0u);
  for (float value : tensor.data<float>())
    EXPECT_EQ(value, 0.0f);
  EXPECT_EQ(tensor.typeString(), "f32 [2, 3]");
}

TEST(HostTensor, CopiesShareUntilWritten) {
  HostTensor a = make<float>({1, 2, 3});
  HostTensor b = a;
  EXPECT_EQ(a.rawData(), b.rawData());
  b.mutableData<float>()[0] = 9;
  EXPECT_EQ(a.data<float>()[0], 1);
  EXPECT_EQ(b.data<float>()[0], 9);
}

TEST(HostTensor, WritingAViewLeavesTheViewedBytes) {
  alignas(8) static const float source[2] = {1, 2};
  HostTensor view = HostTensor::view(DType::F32, {2}, source, nullptr);
  EXPECT_EQ(view.rawData(), source);
  view.mutableData<float>()[0] = 5;
  EXPECT_EQ(source[0], 1);
}

TEST(HostTensor, UnalignedViewsAreCopied) {
  alignas(8) char bytes[12] = {};
  const float value = 2.5f;
  std::memcpy(bytes + 1, &value, 4);
  HostTensor view = HostTensor::view(DType::F32, {1}, bytes + 1, nullptr);
  EXPECT_EQ(view.data<float>()[0], 2.5f);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.rawData()) % 4, 0u);
}

TEST(HostTensor, ScalarsAndEmptyTensors) {
  EXPECT_EQ(HostTensor::scalar(2.0).numElements(), 1);
  EXPECT_EQ(HostTensor(DType::F32, {0, 5}).numElements(), 0);
  EXPECT_EQ(HostTensor().numElements(), 0);
  HostTensor none;
  EXPECT_TRUE(valueOf(none.convertTo(DType::I8, Conversion::AllowTruncation))
                  .data<int8_t>()
                  .empty());
}

TEST(HostTensor, BitEqualityTellsZerosAndTypesApart) {
  EXPECT_FALSE(make<float>({0.0f}).bitEqual(make<float>({-0.0f})));
  EXPECT_TRUE(make<float>({NAN}).bitEqual(make<float>({NAN})));
  EXPECT_FALSE(make<int32_t>({0}).bitEqual(make<uint32_t>({0})));
  EXPECT_FALSE(
      make<float>({1, 2}).bitEqual(make<float>({1, 2}).reshaped({2, 1})));
}

TEST(HostTensor, ImpossibleShapesAreErrors) {
  expectContains(textOf(checkedNumElements({2, -1})), "negative extent");
  expectContains(
      textOf(checkedNumElements({int64_t(1) << 32, int64_t(1) << 32})),
      "more bytes than an address");
  expectContains(textOf(checkedNumElements({int64_t(1) << 61}, 8)),
                 "more bytes than an address");
  EXPECT_EQ(
      valueOf(checkedNumElements({int64_t(1) << 62, 0, int64_t(1) << 62})), 0);
}

TEST(HostTensor, WideningConversions) {
  HostTensor image = make<uint8_t>({0, 7, 255});
  HostTensor floats = valueOf(image.convertTo(DType::F32));
  EXPECT_EQ(floats.data<float>()[2], 255.0f);
  HostTensor labels = valueOf(make<int32_t>({-5, 9}).convertTo(DType::I64));
  EXPECT_EQ(labels.data<int64_t>()[0], -5);
  HostTensor flags = valueOf(make<bool>({true, false}).convertTo(DType::F16));
  EXPECT_EQ(flags.getDouble(0), 1.0);
}

TEST(HostTensor, NarrowingConversionsRound) {
  HostTensor f32 =
      valueOf(make<double>({0.1, INFINITY, NAN}).convertTo(DType::F32));
  EXPECT_EQ(f32.data<float>()[0], 0.1f);
  EXPECT_TRUE(std::isinf(f32.data<float>()[1]));
  EXPECT_TRUE(std::isnan(f32.data<float>()[2]));
  // 2^24 + 1 lies between two floats; ties go to the even one.
  HostTensor big = valueOf(make<int64_t>({16777217}).convertTo(DType::F32));
  EXPECT_EQ(big.data<float>()[0], 16777216.0f);
}

TEST(HostTensor, ValuesOutOfRangeAreNamed) {
  expectContains(textOf(make<int64_t>({1, 300}).convertTo(DType::I8)),
                 "cannot convert i64 to i8: element [1] = 300 is out of range");
  expectContains(textOf(make<int8_t>({-1}).convertTo(DType::U64)),
                 "element [0] = -1 is out of range");
  expectContains(textOf(make<uint64_t>({~uint64_t(0)}).convertTo(DType::I64)),
                 "18446744073709551615 is out of range");
  expectContains(textOf(make<double>({1, 1e39}).convertTo(DType::F32)),
                 "element [1]");
  expectContains(textOf(make<float>({70000}).convertTo(DType::F16)),
                 "is out of range");
  expectContains(textOf(make<int32_t>({2}).convertTo(DType::Bool)),
                 "is neither 0 nor 1");
}

TEST(HostTensor, FloatToIntegerOnlyWhenAsked) {
  HostTensor tensor = make<float>({1.75f, -1.75f});
  expectContains(textOf(tensor.convertTo(DType::I64)),
                 "cannot convert f32 to i64: fractions would be lost");
  HostTensor truncated =
      valueOf(tensor.convertTo(DType::I64, Conversion::AllowTruncation));
  EXPECT_EQ(truncated.data<int64_t>()[0], 1);
  EXPECT_EQ(truncated.data<int64_t>()[1], -1);
  expectContains(textOf(make<float>({NAN}).convertTo(
                     DType::I32, Conversion::AllowTruncation)),
                 "is not a number");
  expectContains(
      textOf(make<float>({2147483648.0f})
                 .convertTo(DType::I32, Conversion::AllowTruncation)),
      "is out of range");
  EXPECT_EQ(valueOf(make<float>({-2147483648.0f})
                        .convertTo(DType::I32, Conversion::AllowTruncation))
                .getInt(0),
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(valueOf(make<float>({-0.5f}).convertTo(DType::U8,
                                                   Conversion::AllowTruncation))
                .getInt(0),
            0);
}

TEST(HostTensor, EveryPairOfTypesConvertsSmallIntegers) {
  for (unsigned from = 0; from < numDTypes; ++from)
    for (unsigned to = 0; to < numDTypes; ++to) {
      HostTensor tensor(DType(from), {2});
      tensor.setDouble(1, 1);
      HostTensor result =
          valueOf(tensor.convertTo(DType(to), Conversion::AllowTruncation));
      EXPECT_EQ(result.dtype(), DType(to));
      EXPECT_EQ(result.getDouble(0), 0) << from << " to " << to;
      EXPECT_EQ(result.getDouble(1), 1) << from << " to " << to;
    }
}

TEST(HostTensor, IndexStrings) {
  EXPECT_EQ(indexString(23, {2, 3, 4}), "[1, 2, 3]");
  EXPECT_EQ(indexString(0, {}), "[]");
}

TEST(TensorMap, KeepsOrderAndRefusesDuplicates) {
  TensorMap map;
  EXPECT_TRUE(map.insert("b", HostTensor::scalar(1.0f)));
  EXPECT_TRUE(map.insert("a", HostTensor::scalar(2.0f)));
  EXPECT_FALSE(map.insert("b", HostTensor::scalar(3.0f)));
  EXPECT_EQ(map.begin()->first, "b");
  EXPECT_EQ(map.find("b")->getDouble(0), 1.0);
  map.set("b", HostTensor::scalar(4.0f));
  EXPECT_EQ(map.find("b")->getDouble(0), 4.0);
  EXPECT_EQ(map.size(), 2u);
  EXPECT_EQ(map.find("c"), nullptr);
}
