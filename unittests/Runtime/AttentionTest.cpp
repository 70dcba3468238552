//===- AttentionTest.cpp - attention against plain loops ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/Cpu/BlockProduct.h"
#include "AttentionFixture.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

/// Runs one of the two in a guarded workspace.
void execute(PrimitiveDesc desc, const std::vector<void *> &args,
             int32_t threads) {
  std::string error;
  int64_t planned = primitiveWorkspace(desc, threads, error);
  ASSERT_GE(planned, 0) << error;
  ckrt_env *env = ckrt_env_create(threads, desc.dtype == DType::F64);
  int64_t index = -1;
  ASSERT_EQ(ckrt_env_add_primitive(env, &desc, &index), CKRT_OK);
  Guarded workspace(planned);
  EXPECT_EQ(ckrt_execute(env, index, args.data(), workspace.data()), 0);
  EXPECT_TRUE(workspace.intact()) << "workspace exceeded";
  ckrt_env_destroy(env);
}

template <typename T>
Tensors<T> computed(const AttentionDesc &a, int32_t threads,
                    const std::vector<int64_t> &segments = {}) {
  Tensors<T> t(a);
  if (!segments.empty())
    t.segments = segments;
  PrimitiveDesc desc;
  desc.dtype = sizeof(T) == 8 ? DType::F64 : DType::F32;
  desc.attention = a;
  desc.kind = PrimitiveKind::Attention;
  execute(desc, t.args(a, false), threads);
  desc.kind = PrimitiveKind::AttentionGrad;
  execute(desc, t.args(a, true), threads);
  return t;
}

/// Infinite entries must agree; they leave the comparison.
template <typename T>
void dropInfinite(std::vector<T> &got, std::vector<double> &expected) {
  for (size_t i = 0; i < got.size(); ++i)
    if (std::isinf(expected[i]) && double(got[i]) == expected[i])
      got[i] = T(expected[i] = 0);
}

template <typename T>
void check(const AttentionDesc &a, double tolerance,
           const std::vector<int64_t> &segments = {}) {
  PrimitiveDesc desc;
  desc.kind = PrimitiveKind::Attention;
  desc.attention = a;
  SCOPED_TRACE(describe(desc));
  Tensors<T> t = computed<T>(a, 2, segments);
  Expected<T> e(a, t);
  std::vector<T> lse = t.rounded();
  dropInfinite(lse, e.lse);
  EXPECT_LT(worst(t.o, e.o), tolerance);
  EXPECT_LT(worst(lse, e.lse), tolerance);
  EXPECT_LT(worst(t.dq, e.dq), tolerance);
  EXPECT_LT(worst(t.dk, e.dk), tolerance);
  EXPECT_LT(worst(t.dv, e.dv), tolerance);
  // Any number of threads gives the same bits.
  for (int32_t threads : {1, 3}) {
    Tensors<T> other = computed<T>(a, threads, segments);
    EXPECT_EQ(other.o, t.o);
    EXPECT_EQ(other.dq, t.dq);
    EXPECT_EQ(other.dk, t.dk);
    EXPECT_EQ(other.dv, t.dv);
  }
}

void both(const AttentionDesc &a, const std::vector<int64_t> &segments = {}) {
  check<float>(a, 3e-6, segments);
  check<double>(a, 1e-13, segments);
}

} // namespace

TEST(Attention, Sizes) {
  both(sized(1, 1, 1, 1, 1, 1, 1));
  both(sized(2, 3, 3, 7, 5, 4, 3));
  both(sized(1, 2, 2, 130, 197, 64, 64));
  both(sized(1, 2, 2, 197, 33, 8, 16, /*between=*/true));
}

// Rows a multiple of 4 KiB apart.
TEST(Attention, HeadsBetweenManyOthers) {
  both(sized(1, 16, 16, 21, 19, 64, 64, /*between=*/true));
  both(causal(sized(1, 32, 16, 21, 35, 64, 64, /*between=*/true), 3));
}

// The result is scaled where a later block of keys has a greater score.
TEST(Attention, ManyKeysTakeSeveralBlocks) {
  check<float>(sized(1, 1, 1, 70, 5000, 4, 4), 3e-6);
  both(sized(1, 2, 1, 9, 515, 24, 40));
  both(causal(sized(1, 2, 1, 300, 1030, 8, 8), 700));
  both(causal(sized(1, 1, 1, 700, 600, 8, 8), -40, /*zeros=*/true));
}

TEST(Attention, LaterBlocksMayBeMasked) {
  AttentionDesc a = sized(1, 2, 2, 5, 1100, 4, 4);
  a.hasMask = true;
  a.mask[3] = 1;
  a.zeroEmptyRows = true;
  for (int64_t open : {0, 3, 600, 1099}) {
    Tensors<float> t(a);
    std::fill(t.mask.begin(), t.mask.end(), 0);
    t.mask[size_t(open)] = 1; // one key of one block
    PrimitiveDesc desc;
    desc.kind = PrimitiveKind::Attention;
    desc.attention = a;
    execute(desc, t.args(a, false), 1);
    EXPECT_LT(worst(t.o, Expected<float>(a, t).o), 3e-6) << open;
  }
}

// A row whose keys are all masked by a large number gives all of them the same
// probability, which lse alone has no digits for.
TEST(Attention, RowsOfHugeScores) {
  for (double fill : {-1e9, -3e38, 1e9}) {
    both(masked(sized(2, 2, 2, 40, 3, 8, 5), fill));
    both(masked(sized(1, 1, 1, 30, 2, 70, 66), fill));
  }
}

TEST(Attention, Dropout) {
  both(dropped(sized(2, 3, 3, 7, 5, 4, 3), 0.5));
  both(dropped(sized(1, 2, 2, 130, 197, 16, 64), 0.1));
  both(dropped(causal(sized(1, 4, 2, 70, 70, 8, 8, true), 0), 0.25));
  both(dropped(causal(sized(1, 1, 1, 90, 1030, 4, 4), 940), 0.7));
  both(dropped(sized(1, 1, 1, 3, 3, 2, 2), 0));
  AttentionDesc a = sized(1, 2, 2, 9, 21, 4, 4);
  a.hasMask = true;
  a.mask[2] = 21, a.mask[3] = 1;
  a.zeroEmptyRows = true;
  both(dropped(a, 0.3));
}

TEST(Attention, Causality) {
  both(causal(sized(1, 2, 2, 150, 150, 8, 8), 0));
  both(causal(sized(1, 2, 2, 70, 150, 8, 8, true), 80));
  both(causal(sized(2, 1, 1, 40, 20, 8, 8), 3));
}

// From scores that it hardly changes to those that it makes all the same.
TEST(Attention, Caps) {
  for (double cap : {0.01, 0.3, 2.0, 50.0}) {
    both(capped(sized(2, 3, 3, 7, 5, 4, 3), cap));
    both(capped(causal(sized(1, 4, 2, 150, 150, 8, 8, true), 0), cap));
  }
  both(capped(windowed(causal(sized(1, 1, 1, 700, 700, 4, 4), 0), 100), 0.5));
  both(capped(causal(sized(1, 2, 1, 300, 1030, 8, 8), 700), 0.5));
}

TEST(Attention, CapsBesideTheRest) {
  AttentionDesc a = capped(sized(2, 4, 2, 70, 66, 8, 8), 0.7);
  a.hasBias = true; // added to what is capped
  a.bias[1] = 70 * 66, a.bias[2] = 66, a.bias[3] = 1;
  both(a);
  both(masked(a, kNone));
  both(masked(a, -1.5));
  both(dropped(causal(a, 0), 0.3));
  both(packed(causal(capped(sized(2, 2, 2, 150, 150, 8, 8), 1), 0)));
  both(masked(
      windowed(packed(causal(capped(sized(1, 2, 2, 140, 140, 8, 8), 1), 0)), 50,
               /*zeros=*/true),
      kNone));
  both(windowed(capped(sized(1, 1, 1, 300, 120, 8, 8), 1), 40, /*zeros=*/true));
}

TEST(Attention, Windows) {
  for (int64_t window : {1, 2, 17, 100, 700}) {
    both(windowed(causal(sized(1, 2, 2, 150, 150, 8, 8), 0), window));
    both(windowed(causal(sized(1, 1, 1, 700, 700, 4, 4), 0), window));
  }
  both(windowed(causal(sized(1, 4, 2, 70, 150, 8, 8, true), 80), -20));
  both(windowed(causal(sized(1, 1, 1, 600, 1100, 4, 4), 40), 30)); // both sides
  both(windowed(sized(1, 1, 1, 300, 600, 8, 8), 20));
  both(dropped(windowed(causal(sized(1, 2, 2, 200, 200, 8, 8), 0), 33), 0.3));
}

TEST(Attention, WindowsBesideMasks) {
  AttentionDesc a = windowed(causal(sized(2, 2, 1, 170, 170, 8, 8), 0), 60);
  a.hasBias = true;
  a.bias[1] = 170 * 170, a.bias[2] = 170, a.bias[3] = 1;
  both(a);
  both(masked(windowed(a, 60, /*zeros=*/true), kNone));
}

TEST(Attention, WindowsLeaveRowsWithoutKeys) {
  both(windowed(sized(1, 1, 1, 300, 120, 8, 8), 40, /*zeros=*/true));
  both(windowed(causal(sized(1, 1, 1, 300, 300, 8, 8), -9), 5, /*zeros=*/true));
  Tensors<float> t =
      computed<float>(windowed(sized(1, 1, 1, 9, 3, 2, 2), 1), 1);
  EXPECT_TRUE(std::isnan(t.o[6]) && std::isnan(t.lse[6]));
  EXPECT_FALSE(std::isnan(t.o[2]) || std::isnan(t.lse[2]));
}

TEST(Attention, Segments) {
  for (bool own : {false, true}) {
    both(packed(causal(sized(2, 2, 2, 150, 150, 8, 8), 0), own));
    both(packed(sized(2, 2, 1, 290, 290, 8, 8, true), own));
  }
  both(packed(causal(sized(1, 2, 1, 1100, 1100, 4, 4), 0)));
  both(packed(windowed(causal(sized(1, 2, 2, 300, 300, 8, 8), 0), 12)));
  both(dropped(packed(causal(sized(2, 2, 2, 200, 200, 8, 8), 0)), 0.3));
  both(masked(windowed(packed(causal(sized(1, 2, 2, 140, 140, 8, 8), 0)), 50,
                       /*zeros=*/true),
              kNone));
}

// Any numbers are right, in whatever order.
TEST(Attention, SegmentsInAnyOrder) {
  std::vector<int64_t> back, mixed, single(600, -3);
  for (int64_t i = 0; i < 600; ++i) {
    back.push_back((int64_t(1) << 40) - i / 70);
    mixed.push_back(i * i / 50 % 4);
  }
  for (const auto &segments : {back, mixed, single}) {
    both(packed(causal(sized(1, 2, 2, 600, 600, 4, 4), 0)), segments);
    both(packed(sized(1, 1, 1, 600, 600, 4, 4)), segments);
    both(packed(windowed(causal(sized(1, 1, 1, 600, 600, 4, 4), -1), 90, true)),
         segments);
  }
}

// Keys that bounds leave out add nothing: the bits are those of a mask.
TEST(Attention, BoundsHaveTheBitsOfMasks) {
  AttentionDesc a = windowed(causal(sized(1, 2, 2, 700, 700, 8, 8), 0), 90);
  AttentionDesc b = masked(sized(1, 2, 2, 700, 700, 8, 8), kNone);
  Tensors<float> bounded = computed<float>(packed(a), 1), t(b);
  for (size_t i = 0; i < t.mask.size(); ++i) {
    int64_t row = int64_t(i) / 700 % 700, key = int64_t(i) % 700;
    t.mask[i] = key <= row && key > row - 90 &&
                t.segments[size_t(row)] == t.segments[size_t(key)];
  }
  PrimitiveDesc desc;
  desc.attention = b;
  desc.kind = PrimitiveKind::Attention;
  execute(desc, t.args(b, false), 1);
  desc.kind = PrimitiveKind::AttentionGrad;
  execute(desc, t.args(b, true), 1);
  EXPECT_EQ(bounded.o, t.o);
  EXPECT_EQ(bounded.dq, t.dq);
  EXPECT_EQ(bounded.dk, t.dk);
  EXPECT_EQ(bounded.dv, t.dv);
}

TEST(Attention, RowsWithoutKeys) {
  both(causal(sized(1, 2, 2, 150, 150, 8, 8), -1, /*zeros=*/true));
  both(causal(sized(1, 2, 2, 150, 20, 8, 8), -130, /*zeros=*/true));
  Tensors<float> t = computed<float>(causal(sized(1, 1, 1, 3, 3, 2, 2), -1), 1);
  EXPECT_TRUE(std::isnan(t.o[0]) && std::isnan(t.lse[0]));
  EXPECT_FALSE(std::isnan(t.o[2]) || std::isnan(t.lse[2]));
  for (float value : t.dk)
    EXPECT_TRUE(std::isnan(value));
}

TEST(Attention, GroupsOfHeads) {
  both(sized(2, 4, 2, 20, 30, 8, 6));
  both(causal(sized(1, 6, 1, 70, 70, 8, 8, true), 0));
}

TEST(Attention, BiasAndMask) {
  AttentionDesc a = sized(2, 3, 3, 9, 21, 4, 4);
  a.hasBias = true;
  a.bias[1] = 9 * 21, a.bias[2] = 21, a.bias[3] = 1; // the same for a batch
  both(a);
  a.hasMask = true;
  a.mask[0] = 21, a.mask[3] = 1; // by sample and key
  both(a);
  a.zeroEmptyRows = true;
  a.mask[0] = 9, a.mask[2] = 1, a.mask[3] = 0; // whole rows
  both(a);
  a.bias[3] = 0;
  a.mask[3] = 1;
  a.zeroEmptyRows = false;
  a.fill = bitsOf(-0.5);
  both(a);
}

/// Halves: computed in f32, rounded where they are stored.
template <typename S> void checkHalves(const AttentionDesc &a, double epsilon) {
  Tensors<float> t(a);
  auto narrow = [](std::vector<float> &from) {
    std::vector<S> to;
    for (float &x : from) {
      to.emplace_back(x);
      x = float(double(to.back()));
    }
    return to;
  };
  std::vector<S> q = narrow(t.q), k = narrow(t.k), v = narrow(t.v),
                 grad = narrow(t.grad), o = narrow(t.o), dq = narrow(t.dq),
                 dk = narrow(t.dk), dv = narrow(t.dv);
  PrimitiveDesc desc;
  desc.dtype = std::is_same_v<S, ckopt::Half> ? DType::F16 : DType::BF16;
  desc.attention = a;
  SCOPED_TRACE(describe(desc));
  auto run = [&](int32_t threads) {
    for (bool gradient : {false, true}) {
      desc.kind =
          gradient ? PrimitiveKind::AttentionGrad : PrimitiveKind::Attention;
      std::vector<void *> args = t.args(a, gradient);
      for (auto [wide, half] :
           std::vector<std::pair<void *, void *>>{{t.q.data(), q.data()},
                                                  {t.k.data(), k.data()},
                                                  {t.v.data(), v.data()},
                                                  {t.o.data(), o.data()},
                                                  {t.grad.data(), grad.data()},
                                                  {t.dq.data(), dq.data()},
                                                  {t.dk.data(), dk.data()},
                                                  {t.dv.data(), dv.data()}})
        std::replace(args.begin(), args.end(), wide, half);
      execute(desc, args, threads);
    }
  };
  run(1);
  auto alone = std::vector{o, dq, dk, dv};
  run(3);
  int i = 0;
  for (const auto *all : {&o, &dq, &dk, &dv}) // any number has the same bits
    EXPECT_EQ(std::memcmp(all->data(), alone[size_t(i++)].data(),
                          all->size() * sizeof(S)),
              0);
  Expected<float> e(a, t);
  auto error = [&](const std::vector<S> &got, const std::vector<double> &all) {
    double worst = 0, scale = 1e-3;
    for (size_t i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::abs(double(got[i]) - all[i]));
      scale = std::max(scale, std::abs(all[i]));
    }
    return worst / scale;
  };
  // Tiles take probabilities that are rounded, too.
  bool isRoundedTwice =
      desc.dtype == DType::BF16 && widestInstructions() == Instructions::Amx;
  EXPECT_LT(error(o, e.o), isRoundedTwice ? 2 * epsilon : epsilon);
  EXPECT_LT(worst(t.rounded(), e.lse), 3e-6);
  EXPECT_LT(error(dq, e.dq), 3 * epsilon);
  EXPECT_LT(error(dk, e.dk), 3 * epsilon);
  EXPECT_LT(error(dv, e.dv), 3 * epsilon);
}

TEST(Attention, Halves) {
  AttentionDesc grouped = sized(2, 4, 2, 20, 30, 17, 6);
  grouped.hasBias = true; // of f32
  grouped.bias[2] = 30, grouped.bias[3] = 1;
  for (const AttentionDesc &a :
       {sized(1, 2, 2, 130, 197, 64, 64, true),
        causal(sized(1, 2, 1, 150, 530, 8, 24), 380), grouped,
        capped(causal(sized(1, 2, 1, 150, 530, 8, 24), 380), 0.5),
        packed(windowed(causal(sized(1, 2, 1, 530, 530, 8, 24), 0), 99))}) {
    checkHalves<ckopt::BFloat16>(a, 0x1p-8);
    checkHalves<ckopt::Half>(a, 0x1p-10);
  }
}

TEST(Attention, NaNStays) {
  AttentionDesc a = sized(1, 1, 1, 2, 40, 4, 4);
  Tensors<float> t(a);
  t.q[4] = NAN; // the second row
  PrimitiveDesc desc;
  desc.kind = PrimitiveKind::Attention;
  desc.attention = a;
  execute(desc, t.args(a, false), 1);
  EXPECT_FALSE(std::isnan(t.o[0]));
  EXPECT_TRUE(std::isnan(t.o[4]) && std::isnan(t.lse[2]));
}

TEST(Attention, DescriptorsAreChecked) {
  PrimitiveDesc desc;
  desc.kind = PrimitiveKind::AttentionGrad;
  desc.attention = sized(1, 4, 2, 8, 8, 4, 4);
  EXPECT_EQ(check(desc), "");
  EXPECT_EQ(describe(desc), "attention gradient f32 1x4: 8x8, heads of 4, 2 "
                            "key heads");
  desc.attention.keyHeads = 3;
  EXPECT_NE(check(desc).find("not a multiple of key heads"), std::string::npos);
  desc.attention.keyHeads = 4;
  desc.attention.ratio = bitsOf(1);
  EXPECT_NE(check(desc).find("ratio of a dropout"), std::string::npos);
  desc.attention.ratio = 0;
  desc.attention = capped(desc.attention, -1);
  EXPECT_NE(check(desc).find("capped at a positive"), std::string::npos);
  desc.attention = capped(desc.attention, 50);
  EXPECT_EQ(describe(desc),
            "attention gradient f32 1x4: 8x8, heads of 4, capped");
  EXPECT_EQ(check(desc), "");
  desc.dtype = DType::I64;
  EXPECT_NE(check(desc).find("floating-point"), std::string::npos);
}
