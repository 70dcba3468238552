//===- AttentionTilesTest.cpp - attention of bf16 by tiles ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles the files themselves in: the library takes the widest instructions
// alone. Results may differ from those in double by what rounding to bf16
// takes, element by element (Expected).
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/Cpu/AttentionBlocks.h"
#include "AttentionFixture.h"

#include <cstdlib>
#include <random>

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;
using ckopt::BFloat16;
using ckopt::Half;

namespace {

class AttentionTiles : public testing::Test {
protected:
  void SetUp() override {
    if (widestInstructions() < Instructions::Amx)
      GTEST_SKIP()
          << "THIS CPU HAS NO TILES OF BF16: attention by tiles is NOT "
             "tested";
  }
};

template <typename S, typename From>
std::vector<S> to(const std::vector<From> &from) {
  std::vector<S> all;
  for (From x : from)
    all.push_back(S(double(x)));
  return all;
}

/// Attention of S and its gradient, of tensors of f32.
template <typename S> struct Results {
  using Blocks = AttentionBlocks<S>;
  std::vector<S> q, k, v, grad, o, dq, dk, dv;
  std::vector<RowLse<float>> lse;

  Results(const AttentionDesc &a, const Tensors<float> &t, Instructions with)
      : q(to<S>(t.q)), k(to<S>(t.k)), v(to<S>(t.v)), grad(to<S>(t.grad)),
        o(t.o.size(), S(7)), dq(q.size(), S(7)), dk(k.size(), S(7)),
        dv(v.size(), S(7)), lse(t.lse.size() / 2) {
    run(a, t, false, with);
    run(a, t, true, with);
  }

  void run(const AttentionDesc &a, const Tensors<float> &t, bool gradient,
           Instructions with) {
    Blocks blocks(a, gradient, with);
    EXPECT_EQ(blocks.multipliesByTiles(), with == Instructions::Amx);
    EXPECT_EQ(blocks.bytes(), Blocks(a, gradient, Instructions::Plain).bytes())
        << "the workspace depends on the machine";
    typename Blocks::Tensors args;
    args.q = q.data(), args.k = k.data(), args.v = v.data();
    if (a.hasBias)
      args.bias = t.bias.data();
    if (a.hasMask)
      args.mask = t.mask.data();
    if (a.hasSegments)
      args.segments = t.segments.data();
    args.o = o.data(), args.lse = lse.data(), args.grad = grad.data();
    args.qGrad = dq.data(), args.kGrad = dk.data(), args.vGrad = dv.data();
    if (a.hasDropout) {
      double least = std::ceil(std::ldexp(std::bit_cast<double>(a.ratio), 24));
      args.words = {{uint32_t(kSeed), uint32_t(kSeed >> 32)},
                    uint32_t(kStep),
                    uint32_t(kSite),
                    uint32_t(least),
                    0};
    }
    Guarded space(blocks.bytes());
    for (int64_t unit = 0; unit < a.batch * a.keyHeads; ++unit)
      for (int64_t key = 0; key < a.keys; key += blocks.keysOfBlock())
        blocks.keyBlock(args, unit / a.keyHeads, unit % a.keyHeads, key,
                        static_cast<float *>(space.data()));
    EXPECT_TRUE(space.intact()) << "workspace exceeded";
  }
};

/// Numbers that bf16 has.
Tensors<float> inHalves(const AttentionDesc &a) {
  Tensors<float> t(a);
  for (auto *all : {&t.q, &t.k, &t.v, &t.grad})
    *all = to<float>(to<BFloat16>(*all));
  return t;
}

std::string textOf(const AttentionDesc &a) {
  PrimitiveDesc desc;
  desc.kind = PrimitiveKind::Attention;
  desc.attention = a;
  return describe(desc) + ", scale " +
         std::to_string(std::bit_cast<double>(a.scale));
}

void expectNear(const char *name, const std::vector<BFloat16> &got,
                const std::vector<BFloat16> &plain,
                const std::vector<double> &all,
                const std::vector<double> &off) {
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::isnan(double(got[i])), std::isnan(double(plain[i])))
        << name << "[" << i << "]";
    // Rows without keys make NaN of others' gradients, unless dropped.
    if (!std::isnan(all[i]) && !std::isnan(double(got[i])))
      ASSERT_NEAR(double(got[i]), all[i], off[i] + 1e-37)
          << name << "[" << i << "]";
  }
}

/// Both ways give what double gives, and NaN in the same places.
void check(const AttentionDesc &a, const Tensors<float> &t) {
  SCOPED_TRACE(textOf(a));
  Results<BFloat16> tiles(a, t, Instructions::Amx),
      plain(a, t, Instructions::Avx512);
  Expected<float> e(a, t);
  for (const auto &got : {tiles, plain}) {
    SCOPED_TRACE(&got == &plain ? "plain" : "tiles");
    expectNear("o", got.o, plain.o, e.o, e.oOff);
    expectNear("dq", got.dq, plain.dq, e.dq, e.dqOff);
    expectNear("dk", got.dk, plain.dk, e.dk, e.dkOff);
    expectNear("dv", got.dv, plain.dv, e.dv, e.dvOff);
    for (size_t i = 0; i < got.lse.size(); ++i) {
      double lse = double(got.lse[i].lse) + got.lse[i].lost;
      if (std::isfinite(e.lse[i]))
        ASSERT_NEAR(lse, e.lse[i], 3e-6 * (1 + std::abs(e.lse[i]))) << i;
      else
        ASSERT_EQ(std::isnan(lse), std::isnan(e.lse[i])) << i;
    }
  }
}

void check(const AttentionDesc &a) { check(a, inHalves(a)); }

AttentionDesc scaled(AttentionDesc a, double scale) {
  a.scale = bitsOf(scale);
  return a;
}

AttentionDesc biased(AttentionDesc a) {
  a.hasBias = true;
  a.bias[3] = 1, a.bias[2] = a.keys;
  a.bias[1] = a.bias[2] * a.queries, a.bias[0] = a.bias[1] * a.heads;
  return a;
}

TEST_F(AttentionTiles, Sizes) {
  check(sized(1, 1, 1, 1, 1, 1, 1));
  for (int64_t rows : {1, 15, 16, 17, 31, 32, 33, 197})
    for (int64_t keys : {1, 16, 17, 33, 197, 530}) {
      check(sized(1, 2, 2, rows, keys, 9, 20, rows % 2 == 0));
      check(causal(sized(1, 2, 1, rows, keys, 40, 8), keys - rows, true));
    }
  for (int64_t depth : {1, 3, 31, 33, 80, 96, 130, 256})
    for (int64_t width : {1, 2, 17, 32, 100, 256})
      check(causal(sized(1, 1, 1, 45, 40, depth, width), 3));
}

TEST_F(AttentionTiles, ManyKeysTakeSeveralBlocks) {
  check(sized(1, 1, 1, 70, 1500, 4, 4));
  check(causal(sized(1, 2, 1, 300, 1030, 8, 8), 700));
  check(causal(sized(1, 1, 1, 700, 600, 8, 8), -40, /*zeros=*/true));
  check(causal(sized(1, 2, 1, 521, 521, 64, 64, true), 0));
}

TEST_F(AttentionTiles, Features) {
  AttentionDesc square = sized(2, 4, 2, 150, 150, 24, 40, true);
  for (double scale : {0.125, 0.3, -0.7, 0.0})
    check(causal(scaled(square, scale), 0));
  for (int64_t window : {1, 17, 100})
    check(windowed(causal(square, 0), window));
  check(windowed(sized(1, 1, 1, 300, 600, 8, 8), 20));
  check(windowed(sized(1, 1, 1, 300, 120, 8, 8), 40, /*zeros=*/true));
  check(windowed(causal(sized(1, 1, 1, 300, 300, 8, 8), -9), 5, true));
  check(packed(causal(square, 0)));
  check(packed(square));
  check(packed(windowed(causal(sized(1, 2, 2, 300, 300, 8, 8), 0), 12)));
  for (double fill : {kNone, -1.5, -1e9})
    check(masked(biased(square), fill));
  for (double cap : {0.01, 0.5, 50.0})
    check(capped(causal(square, 0), cap));
  for (double ratio : {0.0, 0.1, 0.7})
    check(dropped(causal(square, 0), ratio));
  check(masked(dropped(capped(packed(causal(biased(square), 0)), 0.7), 0.3),
               kNone));
}

// Among them rows whose keys are all masked by a large number.
TEST_F(AttentionTiles, RowsOfHugeScores) {
  for (double fill : {-1e9, -3e38, 1e9}) {
    check(masked(sized(2, 2, 2, 40, 3, 8, 5), fill));
    check(masked(sized(1, 1, 1, 30, 2, 70, 66), fill));
  }
  AttentionDesc a = scaled(causal(sized(1, 2, 2, 90, 90, 64, 64), 0), 11);
  check(a); // differences of some hundred
}

TEST_F(AttentionTiles, RowsWithoutKeys) {
  for (bool zeros : {false, true}) {
    check(causal(sized(1, 2, 2, 150, 150, 8, 8), -1, zeros));
    check(causal(sized(1, 2, 1, 150, 20, 40, 8), -130, zeros));
    check(windowed(sized(1, 1, 1, 90, 33, 8, 33), 1, zeros));
  }
}

TEST_F(AttentionTiles, RandomAttentions) {
  constexpr int64_t kLengths[] = {1,  2,  15, 16,  17,  31,  32,
                                  33, 48, 65, 100, 129, 197, 270};
  constexpr int64_t kColumns[] = {1, 2, 7, 8, 16, 17, 24, 32, 33, 48, 64, 80};
  std::mt19937 random(1);
  auto any = [&](int64_t count) { return int64_t(random() % uint64_t(count)); };
  int count = std::getenv("CKOPT_LONG_TESTS") ? 3000 : 120;
  for (int i = 0; i < count && !HasFailure(); ++i) {
    int64_t keyHeads = 1 + any(2), queries = kLengths[any(14)],
            keys = kLengths[any(14)];
    bool isPacked = any(4) == 0;
    AttentionDesc a = sized(1 + any(2), keyHeads * (1 + any(3)), keyHeads,
                            queries, isPacked ? queries : keys,
                            kColumns[any(12)], kColumns[any(12)], any(2));
    if (isPacked)
      a = packed(a, any(2));
    bool zeros = any(2);
    if (any(2))
      a = causal(a, any(3) ? a.keys - queries : any(40) - 20, zeros);
    if (any(4) == 0)
      a = windowed(a, 1 + any(90), zeros);
    if (any(4) == 0)
      a = masked(a, any(2) ? kNone : -1.5);
    if (any(4) == 0)
      a = biased(a);
    if (any(4) == 0)
      a = capped(a, 0.8);
    if (any(4) == 0)
      a = dropped(a, 0.25);
    a.zeroEmptyRows = zeros;
    constexpr double kScales[] = {0.125, 0.3, 1.7, -0.4};
    check(scaled(a, kScales[any(4)]));
  }
}

template <typename S>
void expectSameBits(const Results<S> &x, const Results<S> &y) {
  auto same = [](const auto &a, const auto &b) {
    return a.size() == b.size() &&
           std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
  };
  EXPECT_TRUE(same(x.o, y.o));
  EXPECT_TRUE(same(x.lse, y.lse));
  EXPECT_TRUE(same(x.dq, y.dq));
  EXPECT_TRUE(same(x.dk, y.dk));
  EXPECT_TRUE(same(x.dv, y.dv));
}

/// Some of a head's numbers are not finite: others of its tiles, and other
/// heads, know nothing of it.
TEST_F(AttentionTiles, NumbersThatAreNotFinite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  AttentionDesc a = causal(sized(1, 2, 2, 150, 150, 24, 40), 0);
  for (float value : {NAN, infinity, -infinity})
    for (int which = 0; which < 4; ++which) {
      Tensors<float> t = inHalves(a);
      Results<BFloat16> before(a, t, Instructions::Amx);
      auto *all = which == 0   ? &t.q
                  : which == 1 ? &t.k
                  : which == 2 ? &t.v
                               : &t.grad;
      size_t columns = which < 2 ? 24 : 40;
      (*all)[columns * 77 + 5] = value; // of the first head
      Results<BFloat16> tiles(a, t, Instructions::Amx),
          plain(a, t, Instructions::Avx512);
      size_t half = before.o.size() / 2;
      for (size_t i = 0; i < half; ++i) {
        ASSERT_EQ(std::isnan(double(tiles.o[i])),
                  std::isnan(double(plain.o[i])));
        ASSERT_EQ(double(tiles.o[half + i]), double(before.o[half + i]));
        ASSERT_EQ(double(tiles.dv[half + i]), double(before.dv[half + i]));
      }
      for (auto [x, y] : {std::pair{&tiles.dq, &plain.dq},
                          {&tiles.dk, &plain.dk},
                          {&tiles.dv, &plain.dv}})
        for (size_t i = 0; i < x->size(); ++i)
          ASSERT_EQ(std::isnan(double((*x)[i])), std::isnan(double((*y)[i])));
    }
}

// Where the CPU has tiles the rest has the bits that it has elsewhere: bf16
// those of f32, rounded.
TEST_F(AttentionTiles, OthersKeepTheirBits) {
  AttentionDesc a = causal(sized(1, 4, 2, 197, 530, 24, 40, true), 333);
  for (const AttentionDesc &b : {a, dropped(a, 0.3), masked(a, -1.5)}) {
    Tensors<float> t = inHalves(b);
    Results<BFloat16> narrow(b, t, Instructions::Avx512);
    Results<float> wide(b, t, Instructions::Avx512);
    auto rounded = to<BFloat16>(wide.o);
    EXPECT_EQ(to<float>(narrow.o), to<float>(rounded));
    wide.o = to<float>(rounded);
    wide.run(b, t, true, Instructions::Avx512);
    EXPECT_EQ(to<float>(narrow.dq), to<float>(to<BFloat16>(wide.dq)));
    EXPECT_EQ(to<float>(narrow.dk), to<float>(to<BFloat16>(wide.dk)));
    EXPECT_EQ(to<float>(narrow.dv), to<float>(to<BFloat16>(wide.dv)));
  }
  AttentionBlocks<float> wide(a, false), wideGradient(a, true);
  AttentionBlocks<Half> half(a, false);
  AttentionBlocks<double> longer(a, false);
  EXPECT_FALSE(wide.multipliesByTiles() || wideGradient.multipliesByTiles() ||
               half.multipliesByTiles() || longer.multipliesByTiles());
}

// What a sample's rows have depends on no other sample.
TEST_F(AttentionTiles, SamplesKeepTheirBitsInABatch) {
  AttentionDesc two = causal(sized(2, 4, 2, 150, 270, 24, 40), 120), one = two;
  one.batch = 1;
  Tensors<float> t = inHalves(two), first = t;
  for (auto *all :
       {&first.q, &first.k, &first.v, &first.grad, &first.o, &first.lse})
    all->resize(all->size() / 2);
  Results<BFloat16> both(two, t, Instructions::Amx),
      alone(one, first, Instructions::Amx);
  for (auto *all : {&both.o, &both.dq, &both.dk, &both.dv})
    all->resize(all->size() / 2);
  both.lse.resize(both.lse.size() / 2);
  expectSameBits(both, alone);
}

// Keys that bounds leave out add nothing.
TEST_F(AttentionTiles, BoundsHaveTheBitsOfMasks) {
  AttentionDesc a = windowed(causal(sized(1, 2, 2, 700, 700, 8, 8), 0), 90);
  AttentionDesc b = masked(sized(1, 2, 2, 700, 700, 8, 8), kNone);
  Tensors<float> t = inHalves(b);
  for (size_t i = 0; i < t.mask.size(); ++i) {
    int64_t row = int64_t(i) / 700 % 700, key = int64_t(i) % 700;
    t.mask[i] = key <= row && key > row - 90 &&
                t.segments[size_t(row)] == t.segments[size_t(key)];
  }
  Results<BFloat16> bounded(packed(a), t, Instructions::Amx),
      other(b, t, Instructions::Amx);
  EXPECT_EQ(to<float>(bounded.o), to<float>(other.o));
  EXPECT_EQ(to<float>(bounded.dq), to<float>(other.dq));
  EXPECT_EQ(to<float>(bounded.dk), to<float>(other.dk));
  EXPECT_EQ(to<float>(bounded.dv), to<float>(other.dv));
}

} // namespace
