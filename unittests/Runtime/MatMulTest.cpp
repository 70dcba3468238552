//===- MatMulTest.cpp - matrix products against three loops ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "PrimitiveFixture.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

/// Elements that an operand with these extents and strides spans.
int64_t span(const int64_t *batch, const int64_t *batchStride, int64_t rows,
             int64_t row, int64_t cols, int64_t col) {
  return (batch[0] - 1) * batchStride[0] + (batch[1] - 1) * batchStride[1] +
         (rows - 1) * row + (cols - 1) * col + 1;
}

template <typename T> void check(const MatMulDesc &m, double tolerance) {
  PrimitiveDesc desc;
  desc.kind = PrimitiveKind::MatMul;
  desc.dtype = sizeof(T) == 8 ? DType::F64 : DType::F32;
  desc.matmul = m;
  SCOPED_TRACE(describe(desc));
  auto a = values<T>(span(m.batch, m.aBatch, m.m, m.aRow, m.k, m.aCol), 1);
  auto b = values<T>(span(m.batch, m.bBatch, m.k, m.bRow, m.n, m.bCol), 2);
  int64_t size = span(m.batch, m.cBatch, m.m, m.cRow, m.n, m.cCol);
  // Elements outside of the product keep their 7s.
  std::vector<double> expected(size, 7.0);
  for (int64_t i = 0; i < m.batch[0]; ++i)
    for (int64_t j = 0; j < m.batch[1]; ++j)
      for (int64_t r = 0; r < m.m; ++r)
        for (int64_t s = 0; s < m.n; ++s) {
          double sum = 0;
          for (int64_t k = 0; k < m.k; ++k)
            sum += double(a[i * m.aBatch[0] + j * m.aBatch[1] + r * m.aRow +
                            k * m.aCol]) *
                   double(b[i * m.bBatch[0] + j * m.bBatch[1] + k * m.bRow +
                            s * m.bCol]);
          expected[i * m.cBatch[0] + j * m.cBatch[1] + r * m.cRow +
                   s * m.cCol] = sum;
        }
  EXPECT_LT(worst(runPrimitive<T>(desc, a, b, size), expected), tolerance);
}

void both(const MatMulDesc &m) {
  check<float>(m, 2e-6);
  check<double>(m, 1e-14);
}

/// Dense row-major, either operand stored transposed, batches dense.
MatMulDesc dense(int64_t batch, int64_t m, int64_t n, int64_t k, bool ta,
                 bool tb, bool tc = false) {
  MatMulDesc d;
  d.batch[1] = batch;
  d.m = m, d.n = n, d.k = k;
  d.aRow = ta ? 1 : k, d.aCol = ta ? m : 1;
  d.bRow = tb ? 1 : n, d.bCol = tb ? k : 1;
  d.cRow = tc ? 1 : n, d.cCol = tc ? m : 1;
  d.aBatch[1] = m * k, d.bBatch[1] = k * n, d.cBatch[1] = m * n;
  return d;
}

/// Runs c = addend + a b, with the addend in c's bytes or in its own.
template <typename T, typename R = T>
std::vector<R> runSum(const PrimitiveDesc &desc, std::vector<T> a,
                      std::vector<T> b, std::vector<R> addend, bool inPlace) {
  std::string error;
  std::vector<R> result(addend.size(), R(7));
  std::vector<char> workspace(primitiveWorkspace(desc, 2, error) + 64);
  ckrt_env *env = ckrt_env_create(2, 0);
  int64_t index = -1;
  EXPECT_EQ(ckrt_env_add_primitive(env, &desc, &index), CKRT_OK);
  R *out = inPlace ? addend.data() : result.data();
  void *args[] = {a.data(), b.data(), addend.data(), out};
  auto space = (reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64;
  EXPECT_EQ(ckrt_execute(env, index, args, reinterpret_cast<void *>(space)), 0)
      << ckrt_last_error();
  ckrt_env_destroy(env);
  return inPlace ? addend : result;
}

/// Checks that a sum is the addend and the product, and has the same bits in
/// the addend's place.
template <typename T, typename R = T>
void checkSum(const PrimitiveDesc &desc, const std::vector<T> &a,
              const std::vector<T> &b, double tolerance) {
  SCOPED_TRACE(describe(desc));
  const MatMulDesc &m = desc.matmul;
  int64_t size = m.batch[1] * m.m * m.n;
  PrimitiveDesc product = desc;
  product.accumulate = false;
  std::vector<R> addend = values<R>(size, 3);
  std::vector<R> plain = runPrimitive<T, R>(product, a, b, size);
  std::vector<double> expected;
  for (int64_t i = 0; i < size; ++i)
    expected.push_back(double(plain[i]) + double(addend[i]));
  std::vector<R> apart = runSum<T, R>(desc, a, b, addend, false);
  EXPECT_LT(worst(apart, expected), tolerance);
  EXPECT_EQ(apart, (runSum<T, R>(desc, a, b, addend, true)));
}

} // namespace

TEST(MatMul, EveryTransposeAndSize) {
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (bool tc : {false, true}) {
        both(dense(1, 33, 17, 21, ta, tb, tc));
        both(dense(1, 64, 128, 96, ta, tb, tc));
        both(dense(5, 16, 9, 31, ta, tb, tc));
      }
}

TEST(MatMul, SingleRowsColumnsAndDepth) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      both(dense(1, 1, 50, 30, ta, tb));
      both(dense(1, 50, 1, 30, ta, tb));
      both(dense(1, 50, 30, 1, ta, tb));
      both(dense(1, 1, 1, 100, ta, tb));
      both(dense(1, 1, 1, 1, ta, tb));
      both(dense(3, 1, 20, 7, ta, tb));
      both(dense(3, 20, 1, 7, ta, tb));
      both(dense(3, 20, 7, 1, ta, tb));
    }
}

TEST(MatMul, BroadcastBatches) {
  MatMulDesc d = dense(4, 8, 12, 10, false, false);
  d.bBatch[1] = 0;
  both(d);
  d = dense(4, 8, 12, 10, false, true);
  d.aBatch[1] = 0;
  both(d);
}

TEST(MatMul, HeadsStayWhereTheyAre) {
  // [B,T,H,D] x [B,T,H,D]^T -> [B,H,T,T], then times [B,T,H,D] into [B,T,H,D].
  const int64_t B = 2, T = 24, H = 3, D = 16;
  MatMulDesc scores;
  scores.batch[0] = B, scores.batch[1] = H;
  scores.m = T, scores.n = T, scores.k = D;
  scores.aBatch[0] = T * H * D, scores.aBatch[1] = D;
  scores.aRow = H * D, scores.aCol = 1;
  scores.bBatch[0] = T * H * D, scores.bBatch[1] = D;
  scores.bRow = 1, scores.bCol = H * D;
  scores.cBatch[0] = H * T * T, scores.cBatch[1] = T * T;
  scores.cRow = T, scores.cCol = 1;
  both(scores);
  scores.batch[0] = 1;
  both(scores);
  scores.bBatch[1] = 0;
  both(scores);
  MatMulDesc mix;
  mix.batch[0] = B, mix.batch[1] = H;
  mix.m = T, mix.n = D, mix.k = T;
  mix.aBatch[0] = H * T * T, mix.aBatch[1] = T * T;
  mix.aRow = T, mix.aCol = 1;
  mix.bBatch[0] = T * H * D, mix.bBatch[1] = D;
  mix.bRow = H * D, mix.bCol = 1;
  mix.cBatch[0] = T * H * D, mix.cBatch[1] = D;
  mix.cRow = H * D, mix.cCol = 1;
  both(mix);
  // The gradient of the second operand: the first one transposed.
  std::swap(mix.aRow, mix.aCol);
  both(mix);
  // Both batch dimensions, one operand shared along either.
  mix.bBatch[0] = 0;
  both(mix);
  mix.bBatch[0] = T * H * D, mix.bBatch[1] = 0;
  both(mix);
}

TEST(MatMul, PaddedRows) {
  MatMulDesc d = dense(1, 20, 30, 40, false, false);
  d.aRow = 48, d.bRow = 33, d.cRow = 37;
  both(d);
}

// Rows a multiple of 4 KiB apart: the operand is packed into the workspace,
// stored with gaps, too, and where the operands change places for a result
// that is stored transposed.
TEST(MatMul, RowsOfWholePages) {
  auto workspace = [](const MatMulDesc &m) {
    PrimitiveDesc desc;
    desc.dtype = DType::F32;
    desc.matmul = m;
    std::string error;
    return primitiveWorkspace(desc, 2, error);
  };
  // oneDNN's kernels for CPUs without AVX-512 want most operands as they lie.
  auto expectPacked = [&](const MatMulDesc &m, int64_t bytes) {
    if (__builtin_cpu_supports("avx512f"))
      EXPECT_GE(workspace(m), bytes);
  };
  MatMulDesc d = dense(1, 260, 1024, 70, false, false);
  expectPacked(d, 1024 * 70 * 4);
  check<float>(d, 2e-6);
  d = dense(1, 256, 100, 64, true, false);
  d.bRow = 2048;
  expectPacked(d, 100 * 64 * 4);
  check<float>(d, 2e-6);
  d = dense(1, 1024, 256, 64, true, true, true);
  expectPacked(d, 1024 * 64 * 4);
  check<float>(d, 2e-6);
  // Nothing is packed where too few rows would repay it, or where
  // the copy would take too much memory.
  EXPECT_LT(workspace(dense(1, 32, 1024, 70, false, false)), 1024 * 70 * 4);
  EXPECT_LT(workspace(dense(1, 256, 65536, 256, false, false)),
            int64_t(65536) * 256 * 4);
}

TEST(MatMul, NoUnitStride) {
  MatMulDesc d = dense(1, 5, 6, 7, false, false);
  d.aCol = 2, d.aRow = 14;
  both(d);
  d = dense(3, 5, 6, 7, false, true);
  d.bCol = 3, d.bRow = 100, d.bBatch[1] = 1000;
  both(d);
}

TEST(MatMul, RefusesWhatItCannotDo) {
  std::string error;
  PrimitiveDesc desc;
  desc.matmul = dense(1, 4, 4, 4, false, false);
  desc.dtype = DType::I32;
  EXPECT_EQ(Primitive::create(desc, 2, error), nullptr);
  EXPECT_NE(error.find("i32"), std::string::npos) << error;
  desc.dtype = DType::F32;
  desc.matmul.k = 0;
  EXPECT_EQ(primitiveWorkspace(desc, 2, error), -1);
  EXPECT_NE(error.find("positive"), std::string::npos) << error;
  desc.matmul.k = 4;
  desc.matmul.cRow = 0;
  EXPECT_EQ(primitiveWorkspace(desc, 2, error), -1);
}

// More than oneDNN can count: a plain loop in f32, a refusal in bf16.
TEST(MatMul, ExtentsBeyond32Bits) {
  std::string error;
  PrimitiveDesc desc;
  desc.matmul = dense(1, int64_t(1) << 38, 2, 2, false, false);
  auto primitive = Primitive::create(desc, 2, error);
  ASSERT_NE(primitive, nullptr) << error;
  EXPECT_EQ(primitive->implementation(), "plain loop");
  EXPECT_EQ(error, "") << "of the library that refused";
  desc.dtype = DType::BF16;
  EXPECT_EQ(Primitive::create(desc, 2, error), nullptr);
  EXPECT_NE(error.find("no extents above 2^30"), std::string::npos) << error;
}

// Sums of products of bf16, stored as they are: closer than a bf16 can say.
// With AMX a depth of 63 has ended the process, in oneDNN 2.6.
TEST(MatMul, SumsOfHalvesInF32) {
  bool compared = false;
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (const MatMulDesc &m :
           {dense(1, 33, 48, 65, ta, tb), dense(1, 33, 48, 65, ta, tb, true),
            dense(1, 197, 10, 63, ta, tb), dense(1, 257, 15, 63, ta, tb),
            dense(1, 77, 33, 63, ta, tb), dense(1, 77, 33, 127, ta, tb)}) {
        PrimitiveDesc desc;
        desc.dtype = DType::BF16;
        desc.wideResult = true;
        desc.matmul = m;
        SCOPED_TRACE(describe(desc));
        if (!multipliesHalves(desc))
          continue; // no such products here, or nobody vouches for them
        compared = true;
        auto a = halves(values<float>(m.m * m.k, 1));
        auto b = halves(values<float>(m.k * m.n, 2));
        std::vector<double> expected(m.m * m.n, 0.0);
        for (int64_t i = 0; i < m.m; ++i)
          for (int64_t j = 0; j < m.n; ++j)
            for (int64_t k = 0; k < m.k; ++k)
              expected[i * m.cRow + j * m.cCol] +=
                  double(ckopt::bfloat16ToFloat(a[i * m.aRow + k * m.aCol])) *
                  double(ckopt::bfloat16ToFloat(b[k * m.bRow + j * m.bCol]));
        EXPECT_LT(worst(runPrimitive<uint16_t, float>(desc, a, b, m.m * m.n),
                        expected),
                  1e-5);
      }
  std::string error;
  PrimitiveDesc wrong;
  wrong.matmul = dense(1, 2, 2, 2, false, false);
  wrong.wideResult = true;
  EXPECT_EQ(Primitive::create(wrong, 2, error), nullptr);
  EXPECT_NE(error.find("only products of f16 or bf16"), std::string::npos)
      << error;
  if (!compared)
    GTEST_SKIP() << "NOT compared: this CPU has no products of bf16";
}

TEST(MatMul, SumsInPlaceAndElsewhere) {
  for (const MatMulDesc &m :
       {dense(1, 33, 17, 21, true, false), dense(1, 128, 64, 96, false, true),
        dense(1, 1, 40, 9, false, false), dense(3, 16, 9, 31, false, false),
        dense(1, 20, 30, 10, false, false, true)}) {
    PrimitiveDesc desc;
    desc.matmul = m;
    desc.accumulate = true;
    int64_t left = m.batch[1] * m.m * m.k, right = m.batch[1] * m.k * m.n;
    auto a = values<float>(left, 1), b = values<float>(right, 2);
    checkSum<float>(desc, a, b, 1e-6);
    desc.dtype = DType::F64;
    checkSum<double>(desc, values<double>(left, 1), values<double>(right, 2),
                     1e-14);
    desc.dtype = DType::BF16;
    desc.wideResult = true;
    if (multipliesHalves(desc))
      checkSum<uint16_t, float>(desc, halves(a), halves(b), 1e-6);
  }
  PrimitiveDesc conv;
  conv.kind = PrimitiveKind::ConvForward;
  conv.accumulate = true;
  EXPECT_NE(check(conv).find("only matrix products are added"),
            std::string::npos);
}

// What only GPUs compute is no wrong number here.
TEST(MatMul, BiasesAreRefused) {
  PrimitiveDesc desc;
  desc.matmul = dense(1, 3, 4, 5, false, false);
  desc.accumulate = desc.hasBias = true;
  ASSERT_EQ(check(desc), "");
  std::string error;
  EXPECT_EQ(Primitive::create(desc, 1, error), nullptr);
  EXPECT_NE(error.find("a bias is added on GPUs alone"), std::string::npos)
      << error;
}
