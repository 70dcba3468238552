//===- IntegerLimitsTest.cpp - which element is beyond its limits ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/IntegerLimits.h"
#include "gtest/gtest.h"

using namespace ckopt;

/// "ELEMENT: VALUE" of the first element beyond its limits; "": none is.
template <typename T>
static std::string
beyond(const TensorLimits &limits, DType dtype, const std::vector<T> &values,
       const std::vector<int64_t> &shape, bool checkFirst = true) {
  auto found = findBeyond(limits, dtype, values.data(), shape, checkFirst);
  return found ? std::to_string(found->element) + ": " + found->value : "";
}

static IntegerLimits rows(int64_t count) { return {0, false, 0, count}; }

// Of [2, 3, 2]: [:, 1, :] is below 5, [:, 2, 1] below 3, [0, 0, 1] below 2.
TEST(IntegerLimits, PartsHoldWhereTheyRepeat) {
  TensorLimits limits;
  limits.parts = {{1, 2, 4, rows(5)}, {1, 5, 6, rows(3)}, {0, 1, 2, rows(2)}};
  auto first = [&](size_t element, int64_t value) {
    std::vector<int64_t> values = {90, 1, 4, 4, 90, 2, 90, 90, 4, 4, 90, 2};
    values[element] = value;
    return beyond(limits, DType::I64, values, {2, 3, 2});
  };
  EXPECT_EQ(first(0, 91), "");
  EXPECT_EQ(first(1, 2), "1: 2");
  EXPECT_EQ(first(3, 5), "3: 5");
  EXPECT_EQ(first(8, -6), "8: -6");
  EXPECT_EQ(first(11, 3), "11: 3");
  limits.all = rows(90);
  EXPECT_EQ(first(11, 3), "0: 90"); // the first of all, whatever it breaks
  limits.all = rows(91);
  EXPECT_EQ(first(11, 3), "11: 3");
}

// Where axis 0 counts samples of a file, their places in a batch are unknown.
TEST(IntegerLimits, PartsOfABatchCanBeLeftOut) {
  TensorLimits limits;
  limits.parts = {{0, 1, 2, rows(2)}, {1, 0, 1, rows(3)}};
  std::vector<int32_t> values = {2, 9, 3, 9};
  EXPECT_EQ(beyond(limits, DType::I32, values, {2, 2}), "1: 9");
  EXPECT_EQ(beyond(limits, DType::I32, values, {2, 2}, false), "2: 3");
}

TEST(IntegerLimits, ValuesAreShownAsGiven) {
  TensorLimits limits;
  limits.all = rows(7);
  EXPECT_EQ(beyond<uint64_t>(limits, DType::U64, {6, UINT64_MAX - 1}, {2}),
            "1: 18446744073709551614");
  EXPECT_EQ(beyond<int64_t>(limits, DType::I64, {INT64_MIN}, {1}),
            "0: -9223372036854775808");
  EXPECT_EQ(beyond<uint8_t>(limits, DType::U8, {6, 200}, {2}), "1: 200");
}
