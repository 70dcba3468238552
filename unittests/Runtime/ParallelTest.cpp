//===- ParallelTest.cpp - the parallel-for, modes and random numbers ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/ckrt.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

namespace {

std::atomic<int> ranges{0};
std::atomic<int> badBounds{0};

/// args[0]: one counter an iteration; scalars: trip, grain.
void countKernel(void *const *args, const int64_t *scalars, int64_t begin,
                 int64_t end, void *) {
  ++ranges;
  if (begin % scalars[1] != 0 || (end % scalars[1] != 0 && end != scalars[0]))
    ++badBounds;
  auto *counts = static_cast<int *>(args[0]);
  for (int64_t i = begin; i < end; ++i)
    ++counts[i];
}

void halveKernel(void *const *args, const int64_t *, int64_t begin, int64_t end,
                 void *) {
  auto *x = static_cast<volatile float *>(args[0]);
  for (int64_t i = begin; i < end; ++i)
    x[i] = x[i] * 0.5f;
}

struct Env {
  explicit Env(int threads, int keep = 0)
      : env(ckrt_env_create(threads, keep)) {}
  ~Env() { ckrt_env_destroy(env); }
  ckrt_env *env;
};

} // namespace

TEST(ParallelFor, CoversEveryIterationOnceInMultiplesOfTheGrain) {
  for (int threads : {1, 2, 3, 7})
    for (int64_t trip : {1, 2, 5, 16, 63, 64, 65, 1000})
      for (int64_t grain : {1, 2, 7, 16, 64, 2000}) {
        Env env(threads);
        std::vector<int> counts(trip + 2, 0);
        void *args[] = {counts.data() + 1};
        int64_t scalars[] = {trip, grain};
        ranges = 0, badBounds = 0;
        ckrt_parallel_for(env.env, countKernel, args, scalars, trip, grain,
                          nullptr);
        EXPECT_EQ(counts.front(), 0);
        EXPECT_EQ(counts.back(), 0);
        for (int64_t i = 1; i <= trip; ++i)
          EXPECT_EQ(counts[i], 1) << threads << " " << trip << " " << grain;
        EXPECT_EQ(badBounds, 0);
        EXPECT_LE(ranges, threads);
        if (trip <= grain) {
          EXPECT_EQ(ranges, 1);
        } else if (threads > 1) {
          EXPECT_GT(ranges, 1);
        }
      }
}

TEST(ParallelFor, NothingToDo) {
  Env env(2);
  ranges = 0;
  ckrt_parallel_for(env.env, countKernel, nullptr, nullptr, 0, 4, nullptr);
  ckrt_parallel_for(env.env, countKernel, nullptr, nullptr, -3, 4, nullptr);
  EXPECT_EQ(ranges, 0);
}

TEST(ParallelFor, FlushesDenormalsOnEveryThreadUnlessKept) {
  const float smallest = std::numeric_limits<float>::min();
  for (int keep : {0, 1}) {
    Env env(2, keep);
    std::vector<float> x(64, smallest);
    void *args[] = {x.data()};
    ckrt_parallel_for(env.env, halveKernel, args, nullptr, 64, 1, nullptr);
    for (float value : x)
      EXPECT_EQ(value, keep ? smallest / 2 : 0.0f);
    // The caller's own mode is as before.
    volatile float own = smallest;
    own = own * 0.5f;
    EXPECT_GT(own, 0.0f);
  }
}

TEST(Philox, KnownAnswers) {
  // From the authors' library (Random123, kat_vectors).
  struct {
    uint32_t counter[4], key[2], expected[4];
  } cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const auto &c : cases) {
    uint32_t out[4];
    ckrt_philox4x32_10(c.counter, c.key, out);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(out[i], c.expected[i]);
  }
}

TEST(Philox, DropoutNumbersFollowTheirDefinition) {
  const uint64_t seed = 0x123456789ABCDEF0ull, step = 41, site = 7;
  for (uint64_t element :
       {0ull, 1ull, 2ull, 3ull, 4ull, 1000003ull, (1ull << 35) + 5}) {
    uint32_t counter[4] = {uint32_t(element / 4), uint32_t(element / 4 >> 32),
                           uint32_t(step), uint32_t(site)};
    uint32_t key[2] = {uint32_t(seed), uint32_t(seed >> 32)}, out[4];
    ckrt_philox4x32_10(counter, key, out);
    EXPECT_EQ(ckrt_dropout_uniform(seed, step, site, element),
              float(out[element % 4] >> 8) / 16777216.0f);
  }
  double sum = 0;
  for (uint64_t i = 0; i < 100000; ++i) {
    float u = ckrt_dropout_uniform(seed, step, site, i);
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    sum += u;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
  EXPECT_NE(ckrt_dropout_uniform(seed, 1, site, 0),
            ckrt_dropout_uniform(seed, 2, site, 0));
  EXPECT_NE(ckrt_dropout_uniform(seed, 1, 1, 0),
            ckrt_dropout_uniform(seed, 1, 2, 0));
}
