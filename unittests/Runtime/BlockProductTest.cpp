//===- BlockProductTest.cpp - products of blocks against loops ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles the files themselves in, for the code of every set of instructions
// that this CPU has; attention takes the widest alone.
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/Cpu/AttentionRows.h"
#include "PrimitiveFixture.h"

#include <algorithm>
#include <cstring>

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

class Blocks : public testing::TestWithParam<Instructions> {
protected:
  void SetUp() override {
    if (GetParam() > widestInstructions())
      GTEST_SKIP() << "not on this CPU";
  }
};

/// Rows that end where a guard begins.
template <typename T> struct Rows {
  int64_t rows, columns, pitch;
  std::vector<T> all;

  Rows(int64_t rows, int64_t columns, int64_t pitch, uint32_t seed)
      : rows(rows), columns(columns), pitch(pitch),
        all(values<T>(rows * pitch, seed)) {}
  T &at(int64_t i, int64_t j) { return all[size_t(i * pitch + j)]; }
};

template <typename T> struct Shape {
  int64_t m, n, k;
  bool across, add, panels;
  Bounded bounded = Bounded::None;
  int64_t most = 0, least = -1000; ///< of key - row
};

template <typename T> void checkProduct(Instructions with, Shape<T> s) {
  SCOPED_TRACE(std::to_string(s.m) + "x" + std::to_string(s.n) + "x" +
               std::to_string(s.k) + ", bounded " +
               std::to_string(int(s.bounded)) + ": " + std::to_string(s.least) +
               " to " + std::to_string(s.most));
  Rows<T> a(s.across ? s.k : s.m, s.across ? s.m : s.k,
            (s.across ? s.m : s.k) + 3, 1);
  Rows<T> b(s.panels ? s.n : s.k, s.panels ? s.k : s.n,
            (s.panels ? s.k : s.n) + 5, 2);
  Rows<T> c(s.m, s.n, s.n + 2, 3);
  int64_t width = roundUp(s.n, kPanel<T>);
  std::vector<T> copy(size_t(s.k * width), T(NAN));
  const BlockCopies<T> &copies = blockCopies<T>(with);
  if (s.panels)
    copies.transpose(b.all.data(), b.pitch, s.n, s.k, T(2), copy.data());
  else
    copies.copy(b.all.data(), b.pitch, s.k, s.n, T(2), copy.data(), width);
  auto left = [&](int64_t i, int64_t l) -> T & {
    return s.across ? a.at(l, i) : a.at(i, l);
  };
  bool isByRow = s.bounded != Bounded::Rows;
  int64_t keys = s.bounded == Bounded::Columns ? s.n : isByRow ? s.k : s.m;
  std::vector<int32_t> first, end;
  for (int64_t i = 0; i < (isByRow ? s.m : s.k); ++i) {
    first.push_back(int32_t(std::clamp<int64_t>(i + s.least, 0, keys)));
    end.push_back(int32_t(std::clamp<int64_t>(i + s.most + 1, 0, keys)));
  }
  /// Returns whether a row does not look at a key.
  auto closed = [&](int64_t row, int64_t key) {
    return key < first[size_t(row)] || key >= end[size_t(row)];
  };
  // What bounds leave out is zero, as its owner has it.
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t l = 0; l < s.k; ++l)
      if ((s.bounded == Bounded::Depth && closed(i, l)) ||
          (s.bounded == Bounded::Rows && closed(l, i)))
        left(i, l) = 0;
  Rows<T> before = c;
  BlockProduct<T> p{s.m,
                    s.n,
                    s.k,
                    a.all.data(),
                    s.across ? 1 : a.pitch,
                    s.across ? a.pitch : 1,
                    copy.data(),
                    s.panels ? kPanel<T> : width,
                    s.panels ? kPanel<T> * s.k : kPanel<T>,
                    c.all.data(),
                    c.pitch,
                    s.add,
                    /*wide=*/false,
                    s.bounded,
                    first.data(),
                    end.data()};
  blockMultiply<T>(with)(p);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      if (s.bounded == Bounded::Columns && closed(i, j))
        continue;
      double sum = s.add ? double(before.at(i, j)) : 0;
      for (int64_t l = 0; l < s.k; ++l)
        sum +=
            double(left(i, l)) * 2 * double(s.panels ? b.at(j, l) : b.at(l, j));
      ASSERT_NEAR(c.at(i, j), sum, sizeof(T) == 4 ? 2e-5 : 1e-13)
          << "element " << i << ", " << j;
    }
    for (int64_t j = s.n; j < c.pitch; ++j)
      ASSERT_EQ(c.at(i, j), before.at(i, j)) << "beside row " << i;
  }
}

template <typename T> void checkProducts(Instructions with) {
  for (int64_t m : {1, 5, 6, 13})
    for (int64_t n : {1, 8, 16, 37, 64, 130})
      for (int64_t k : {1, 7, 96, 201})
        for (bool across : {false, true})
          checkProduct<T>(with, {m, n, k, across, m % 2 == 0, n % 2 == 0});
  for (int64_t most : {-9, 0, 4, 40})
    for (int64_t least : {-1000, -30, -7, 2, 60})
      for (bool add : {false, true}) {
        checkProduct<T>(
            with, {20, 70, 9, false, add, true, Bounded::Columns, most, least});
        checkProduct<T>(with, {20, 17, 130, false, add, false, Bounded::Depth,
                               most, least});
        checkProduct<T>(
            with, {70, 17, 110, true, add, false, Bounded::Rows, most, least});
      }
}

TEST_P(Blocks, MultiplyF32) { checkProducts<float>(GetParam()); }
TEST_P(Blocks, MultiplyF64) { checkProducts<double>(GetParam()); }

TEST_P(Blocks, KeepTheElementsOfDropout) {
  const RowPasses<float> &passes = rowPasses<float>(GetParam());
  std::vector<unsigned char> space(300 + size_t(kKeepPad));
  for (int64_t first : {int64_t(0), int64_t(5), (int64_t(1) << 34) - 90})
    for (int64_t count : {1, 3, 64, 65, 200}) {
      DropoutWords words{{1, 2}, 3, 4, 5000000};
      const unsigned char *kept =
          passes.keep(words, first, count, space.data());
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(kept[i], ckrt_dropout_uniform(uint64_t(2) << 32 | 1, 3, 4,
                                                uint64_t(first + i)) >=
                               5000000 * 0x1p-24f)
            << first << " + " << i;
    }
}

TEST_P(Blocks, ExponentialsOfRows) {
  const RowPasses<float> &passes = rowPasses<float>(GetParam());
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> row(48, -infinity);
  RowSum<float> none = passes.exponentials(row.data(), 19, -infinity);
  EXPECT_EQ(none.greatest, -infinity);
  EXPECT_EQ(none.sum, 0);
  EXPECT_EQ(row[18], 0);
  row = values<float>(48, 1);
  std::vector<float> before = row;
  RowSum<float> some = passes.exponentials(row.data(), 37, 2.5f);
  EXPECT_EQ(some.greatest, 2.5f);
  double sum = 0;
  for (int i = 0; i < 37; ++i) {
    double value = std::exp(double(before[size_t(i)]) - 2.5);
    EXPECT_NEAR(row[size_t(i)], value, 3e-7 * value);
    sum += value;
  }
  EXPECT_NEAR(some.sum, sum, 1e-6 * sum);
}

// Of all sizes, also where the function is its end, and where a row ends within
// a vector.
TEST_P(Blocks, CapsOfRows) {
  const RowPasses<float> &passes = rowPasses<float>(GetParam());
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> before{0, infinity, -infinity, NAN};
  for (float x = 1e-30f; x < 1e30f; x *= 1.01f)
    before.insert(before.end(), {x, -x});
  int64_t count = int64_t(before.size()), room = roundUp(count, kRowPad);
  std::vector<float> row(before), slopes(size_t(room), 7), alone(before);
  row.resize(size_t(room), 7), alone.resize(size_t(room), 7);
  RowCap<float> by{50, 0.02f};
  passes.cap(row.data(), count, by, slopes.data());
  passes.cap(alone.data(), count, by, nullptr);
  for (size_t i = 0; i < before.size(); ++i) {
    double t = std::tanh(double(before[i]) / 50);
    if (std::isnan(before[i])) {
      EXPECT_TRUE(std::isnan(row[i]) && std::isnan(slopes[i]));
      continue;
    }
    EXPECT_NEAR(row[i], 50 * t, 5e-7 * std::abs(50 * t)) << before[i];
    EXPECT_NEAR(slopes[i], 1 - t * t, 5e-7) << before[i];
    EXPECT_EQ(alone[i], row[i]);
  }
  std::vector<float> product{3, 5};
  passes.multiply(product.data(), 2, slopes.data());
  EXPECT_EQ(product, (std::vector<float>{3, 0}));
}

std::string nameOf(const testing::TestParamInfo<Instructions> &info) {
  return info.param == Instructions::Plain  ? "Plain"
         : info.param == Instructions::Avx2 ? "Avx2"
                                            : "Avx512";
}

INSTANTIATE_TEST_SUITE_P(All, Blocks,
                         testing::Values(Instructions::Plain,
                                         Instructions::Avx2,
                                         Instructions::Avx512),
                         nameOf);

} // namespace
