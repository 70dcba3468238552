//===- SplitMatMulTest.cpp - products of f32 from pieces of bf16 ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What three and six products of bf16 give for one of f32: errors on ordinary
// data, infinities, NaN, the largest and the smallest numbers. Everything is
// checked with pieces stored as bf16, where the CPU multiplies these, and as
// f32, which every CPU does.
//
//===----------------------------------------------------------------------===//
#include "PrimitiveFixture.h"
#include "ckopt/Base/SplitBF16.h"

#include <random>

using namespace ckopt;
using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

constexpr double kTiny = std::numeric_limits<float>::min(); // 2^-126

MatMulDesc dense(int64_t m, int64_t n, int64_t k) {
  MatMulDesc d;
  d.m = m, d.n = n, d.k = k;
  d.aRow = k, d.aCol = 1, d.bRow = n, d.bCol = 1, d.cRow = n, d.cCol = 1;
  return d;
}

PrimitiveDesc product(const MatMulDesc &m, ProductPrecision precision,
                      DType dtype) {
  PrimitiveDesc desc;
  desc.matmul = m;
  desc.precision = precision;
  desc.dtype = dtype;
  desc.wideResult = dtype == DType::BF16;
  return desc;
}

/// The three ways to multiply by a class, as far as this CPU has them.
std::vector<PrimitiveDesc> products(const MatMulDesc &m,
                                    ProductPrecision precision) {
  std::vector<PrimitiveDesc> result;
  for (DType dtype : {DType::F32, DType::BF16})
    if (PrimitiveDesc desc = product(m, precision, dtype);
        multipliesHalves(desc))
      result.push_back(desc);
  return result;
}

/// Returns the pieces of all numbers, as the primitive reads them.
std::vector<std::vector<char>> pieces(const std::vector<float> &numbers,
                                      const PrimitiveDesc &desc) {
  uint32_t count = pieceCount(desc.precision);
  size_t size = desc.dtype == DType::BF16 ? 2 : 4;
  std::vector<std::vector<char>> result(
      count, std::vector<char>(numbers.size() * size));
  for (size_t i = 0; i < numbers.size(); ++i) {
    float parts[3];
    splitBFloat16(numbers[i], parts, count);
    for (uint32_t p = 0; p < count; ++p) {
      uint16_t half = floatToBFloat16(parts[p]);
      std::memcpy(result[p].data() + i * size,
                  size == 2 ? static_cast<void *>(&half) : &parts[p], size);
    }
  }
  return result;
}

/// Runs c = [addend +] a b; an addend lies in c's bytes or in its own.
std::vector<float> multiply(const PrimitiveDesc &desc,
                            const std::vector<float> &a,
                            const std::vector<float> &b,
                            std::vector<float> addend = {},
                            bool inPlace = false) {
  std::string error;
  int64_t planned = primitiveWorkspace(desc, 2, error);
  EXPECT_GE(planned, 0) << error;
  Guarded workspace(std::max<int64_t>(planned, 0));
  std::vector<float> result(size_t(desc.matmul.m * desc.matmul.n), 7.0f);
  auto as = pieces(a, desc), bs = pieces(b, desc);
  std::vector<void *> args;
  for (auto &piece : as)
    args.push_back(piece.data());
  for (auto &piece : bs)
    args.push_back(piece.data());
  if (desc.accumulate)
    args.push_back(addend.data());
  args.push_back(inPlace ? addend.data() : result.data());
  ckrt_env *env = ckrt_env_create(2, 0);
  int64_t index = -1;
  EXPECT_EQ(ckrt_env_add_primitive(env, &desc, &index), CKRT_OK);
  EXPECT_EQ(ckrt_execute(env, index, args.data(), workspace.data()), 0)
      << ckrt_last_error();
  EXPECT_TRUE(workspace.intact()) << "workspace exceeded";
  ckrt_env_destroy(env);
  return inPlace ? addend : result;
}

/// x times y, as an element of a product.
float times(float x, float y, PrimitiveDesc desc) {
  return multiply(desc, {x}, {y}).front();
}

std::vector<float> normal(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> result(count);
  for (float &value : result)
    value = distribution(engine);
  return result;
}

/// The largest error of an element, as a part of the largest element.
double error(const PrimitiveDesc &desc, const std::vector<float> &a,
             const std::vector<float> &b) {
  const MatMulDesc &m = desc.matmul;
  std::vector<double> expected(size_t(m.m * m.n), 0.0);
  for (int64_t i = 0; i < m.m; ++i)
    for (int64_t j = 0; j < m.n; ++j)
      for (int64_t k = 0; k < m.k; ++k)
        expected[i * m.n + j] +=
            double(a[i * m.k + k]) * double(b[k * m.n + j]);
  return worst(pieceCount(desc.precision) > 1
                   ? multiply(desc, a, b)
                   : runPrimitive<float>(desc, a, b, m.m * m.n),
               expected);
}

constexpr ProductPrecision kSplit[] = {ProductPrecision::BF16x3,
                                       ProductPrecision::BF16x6};

} // namespace

// The last piece of three leaves nothing, of ordinary numbers.
TEST(SplitBF16, PiecesSumToTheNumber) {
  std::vector<float> numbers = normal(2000, 1);
  for (float scale : {1.0f, 1e-30f, 1e37f, 0x1p-100f})
    for (float x : numbers) {
      float two[2], three[3];
      splitBFloat16(x * scale, two, 2);
      splitBFloat16(x * scale, three, 3);
      if (std::fabs(x * scale) >= 0x1p-102f)
        EXPECT_EQ(three[0] + (three[1] + three[2]), x * scale);
      EXPECT_LE(std::fabs(double(two[0]) + two[1] - double(x * scale)),
                std::fabs(double(x * scale)) * 0x1p-16 + kTiny);
    }
  float largest = std::numeric_limits<float>::max(), parts[3];
  splitBFloat16(largest, parts, 3);
  EXPECT_EQ(parts[0], bfloat16ToFloat(0x7f7f));
  EXPECT_EQ(parts[0] + (parts[1] + parts[2]), largest);
  splitBFloat16(-largest, parts, 2);
  EXPECT_EQ(parts[0], -bfloat16ToFloat(0x7f7f));
}

// bf16x6 is as close as f32 itself, bf16x3 keeps 16 bits of operands.
TEST(SplitMatMul, ErrorsOfNormalNumbers) {
  MatMulDesc m = dense(33, 40, 768);
  std::vector<float> a = normal(m.m * m.k, 1), b = normal(m.k * m.n, 2);
  double single = error(product(m, ProductPrecision::F32, DType::F32), a, b);
  for (const PrimitiveDesc &desc : products(m, ProductPrecision::BF16x3)) {
    SCOPED_TRACE(describe(desc));
    EXPECT_LT(error(desc, a, b), 1e-5);
    EXPECT_GT(error(desc, a, b), 1e-7) << "no pieces were left out";
  }
  for (const PrimitiveDesc &desc : products(m, ProductPrecision::BF16x6)) {
    SCOPED_TRACE(describe(desc));
    EXPECT_LT(error(desc, a, b), 1e-6);
    EXPECT_LT(error(desc, a, b), 3 * single);
  }
}

// Where a factor is not finite the product is what it is in f32.
TEST(SplitMatMul, InfinitiesAndNaN) {
  const float inf = INFINITY;
  const float numbers[] = {inf,
                           -inf,
                           NAN,
                           0.0f,
                           -0.0f,
                           1.0f,
                           -1.0f,
                           1.00390625f,
                           0.1f,
                           -7.3e5f,
                           1e-30f,
                           3e38f,
                           -std::numeric_limits<float>::max()};
  for (ProductPrecision precision : kSplit)
    for (const PrimitiveDesc &desc : products(dense(1, 1, 1), precision))
      for (float x : numbers)
        for (float y : numbers) {
          if (std::isfinite(x) && std::isfinite(y))
            continue;
          float want = x * y, got = times(x, y, desc);
          EXPECT_TRUE(want == got || (std::isnan(want) && std::isnan(got)))
              << describe(desc) << ": " << x << " times " << y << " is " << want
              << ", not " << got;
        }
  // Two infinities of one sign, and of two, in one sum.
  for (ProductPrecision precision : kSplit)
    for (const PrimitiveDesc &desc : products(dense(1, 2, 3), precision)) {
      std::vector<float> c =
          multiply(desc, {inf, 2.5f, -inf}, {1, 1, 0.3f, 0.3f, -1, 1});
      EXPECT_EQ(c[0], inf) << describe(desc);
      EXPECT_TRUE(std::isnan(c[1])) << describe(desc);
    }
}

// The largest numbers do not overflow in their first piece; what is lost of
// the smallest is less than the smallest normal number, or a term of it.
TEST(SplitMatMul, LargeAndSmallNumbers) {
  for (ProductPrecision precision : kSplit) {
    double relative = precision == ProductPrecision::BF16x3 ? 0x1p-16 : 0x1p-23;
    for (const PrimitiveDesc &desc : products(dense(1, 1, 1), precision)) {
      SCOPED_TRACE(describe(desc));
      for (float x : {3e38f, -3.4e38f, std::numeric_limits<float>::max(),
                      1.7e38f, 0x1.fffffep100f}) {
        EXPECT_NEAR(times(x, 1, desc), x, std::fabs(x) * relative);
        EXPECT_NEAR(times(0.25f, x, desc), x / 4, std::fabs(x) * relative);
      }
      EXPECT_EQ(times(1e20f, 1e20f, desc), INFINITY);
      EXPECT_EQ(times(-1e20f, 1e20f, desc), -INFINITY);
      // Here products of other pieces overflow, too, with signs of their own.
      EXPECT_FALSE(std::isfinite(times(3e38f, 3e38f, desc)));
      for (float x : {0x1.fffffep-90f, 0x1.234566p-102f})
        EXPECT_NEAR(times(x, 1, desc), x, std::fabs(x) * relative);
      for (float x : {1e-38f, 0x1.fffffep-120f, -1.1754944e-38f, 1e-40f})
        EXPECT_NEAR(times(x, 1, desc), x, 2 * kTiny);
      EXPECT_EQ(times(1e-40f, 1e30f, desc), 0) << "denormals are flushed";
      EXPECT_EQ(times(1, -1e-44f, desc), 0);
    }
  }
}

TEST(SplitMatMul, EveryTransposeBatchAndAddend) {
  for (ProductPrecision precision : kSplit)
    for (int form = 0; form < 16; ++form) {
      MatMulDesc m = dense(17, 24, 33);
      if (form & 1)
        m.aRow = 1, m.aCol = m.m;
      if (form & 2)
        m.bRow = 1, m.bCol = m.k;
      if (form & 4)
        m.cRow = 1, m.cCol = m.m;
      std::vector<float> a = normal(m.m * m.k, 3), b = normal(m.k * m.n, 4);
      std::vector<float> addend = normal(m.m * m.n, 5);
      std::vector<double> expected(addend.begin(), addend.end());
      for (int64_t i = 0; i < m.m; ++i)
        for (int64_t j = 0; j < m.n; ++j) {
          double &sum = expected[i * m.cRow + j * m.cCol];
          sum = form & 8 ? sum : 0;
          for (int64_t k = 0; k < m.k; ++k)
            sum += double(a[i * m.aRow + k * m.aCol]) *
                   double(b[k * m.bRow + j * m.bCol]);
        }
      for (PrimitiveDesc desc : products(m, precision)) {
        desc.accumulate = form & 8;
        SCOPED_TRACE(describe(desc));
        std::vector<float> apart = multiply(desc, a, b, addend);
        EXPECT_LT(worst(apart, expected), 1e-5);
        if (desc.accumulate)
          EXPECT_EQ(apart, multiply(desc, a, b, addend, /*inPlace=*/true));
      }
    }
  MatMulDesc heads = dense(9, 10, 16);
  heads.batch[1] = 3;
  heads.aBatch[1] = 9 * 16, heads.bBatch[1] = 0, heads.cBatch[1] = 90;
  for (const PrimitiveDesc &desc : products(heads, ProductPrecision::BF16x3)) {
    PrimitiveDesc one = desc;
    one.matmul.batch[1] = 1;
    std::vector<float> a = normal(3 * 9 * 16, 6), b = normal(16 * 10, 7),
                       all(270);
    std::string reason;
    Guarded space(primitiveWorkspace(desc, 2, reason));
    auto as = pieces(a, desc), bs = pieces(b, desc);
    auto primitive = Primitive::create(desc, 2, reason);
    ASSERT_NE(primitive, nullptr) << reason;
    void *args[] = {as[0].data(), as[1].data(), bs[0].data(), bs[1].data(),
                    all.data()};
    ASSERT_TRUE(primitive->execute(args, space.data(), reason)) << reason;
    for (int64_t head = 0; head < 3; ++head) {
      std::vector<float> own(a.begin() + head * 144,
                             a.begin() + (head + 1) * 144);
      std::vector<float> c = multiply(one, own, b);
      std::vector<double> want(c.begin(), c.end());
      EXPECT_LT(worst(std::vector<float>(all.begin() + head * 90,
                                         all.begin() + (head + 1) * 90),
                      want),
                1e-6);
    }
  }
}

TEST(SplitMatMul, SaysWhatItIsAndRefusesTheRest) {
  MatMulDesc m = dense(4, 5, 6);
  EXPECT_EQ(describe(product(m, ProductPrecision::BF16x3, DType::BF16)),
            "matmul f32 by bf16x3 4x5x6");
  EXPECT_EQ(describe(product(m, ProductPrecision::BF16x6, DType::F32)),
            "matmul f32 by bf16x6 in f32 4x5x6");
  PrimitiveDesc desc = product(m, ProductPrecision::BF16x3, DType::BF16);
  EXPECT_NE(cudaLibraryRefuses(desc).find("for CPUs"), std::string::npos);
  desc.wideResult = false;
  EXPECT_NE(check(desc).find("only matrix products of f32 are split"),
            std::string::npos);
  desc = product(m, ProductPrecision::BF16x3, DType::F64);
  EXPECT_NE(check(desc), "");
  desc = product(m, ProductPrecision::BF16x6, DType::F32);
  desc.kind = PrimitiveKind::ConvForward;
  EXPECT_NE(check(desc), "");
}
