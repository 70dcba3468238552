//===- PackingTest.cpp - offsets ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Packing.h"
#include "TestGraphs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace ckopt::planner;

namespace {

int64_t loadOf(const std::vector<Buffer> &buffers) {
  int64_t end = 0;
  for (const Buffer &buffer : buffers)
    end = std::max(end, buffer.lifespan.upper);
  std::vector<int64_t> delta(end + 1, 0);
  for (const Buffer &buffer : buffers) {
    delta[buffer.lifespan.lower] += buffer.size;
    delta[buffer.lifespan.upper] -= buffer.size;
  }
  int64_t sum = 0, load = 0;
  for (int64_t d : delta)
    load = std::max(load, sum += d);
  return load;
}

/// Expects that any two buffers that overlap in time are disjoint in bytes,
/// except for in-place pairs at one offset.
void expectValid(const PackProblem &problem, const PackResult &result) {
  const std::vector<Buffer> &buffers = problem.buffers;
  const std::vector<int64_t> &offsets = result.offsets;
  ASSERT_EQ(offsets.size(), buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_GE(offsets[i], 0);
    EXPECT_EQ(offsets[i] % problem.alignment, 0);
    EXPECT_LE(offsets[i] + buffers[i].size, result.height);
    for (size_t j = 0; j < i; ++j) {
      const Buffer &a = buffers[j], &b = buffers[i];
      int64_t from = b.lifespan.lower;
      if (b.inPlaceOf == int32_t(j) && offsets[i] == offsets[j])
        ++from;
      if (a.lifespan.lower >= b.lifespan.upper || a.lifespan.upper <= from ||
          !a.size || !b.size)
        continue;
      EXPECT_TRUE(offsets[i] >= offsets[j] + a.size ||
                  offsets[j] >= offsets[i] + b.size)
          << "buffers " << j << " and " << i;
    }
  }
}

PackResult packSteps(const PackProblem &problem) {
  return pack(problem, planPacking(problem));
}

/// Both with times as steps and with their ranks.
TEST(Packing, PlacesRandomBuffers) {
  std::mt19937_64 rng(3);
  for (int round = 0; round < 60; ++round) {
    PackProblem problem;
    problem.alignment = round % 2 ? 64 : 1;
    std::vector<Buffer> &buffers = problem.buffers;
    int32_t steps = 5 + int32_t(rng() % 40);
    for (int32_t t = 0; t < steps; ++t)
      for (uint64_t k = rng() % 4; k > 0; --k) {
        int32_t last = std::min(steps, t + int32_t(rng() % 12));
        buffers.push_back({{t, last + 1}, int64_t(rng() % 500)});
      }
    for (size_t i = 0; i < buffers.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (buffers[j].lifespan.upper - 1 == buffers[i].lifespan.lower &&
            buffers[j].lifespan.lower < buffers[i].lifespan.lower &&
            buffers[j].size >= buffers[i].size && rng() % 2)
          buffers[i].inPlaceOf = int32_t(j);
    std::vector<char> used(buffers.size(), 0);
    for (Buffer &buffer : buffers)
      if (buffer.inPlaceOf >= 0 && used[buffer.inPlaceOf]++)
        buffer.inPlaceOf = -1;
    PackOptions options = planPacking(problem);
    options.rankTimes = round % 3 == 0;
    expectValid(problem, pack(problem, options));
  }
}

TEST(Packing, MeetsTheLoadOnStacks) {
  // Nested lifetimes always pack to the load.
  PackProblem problem{{}, 64};
  for (int32_t i = 0; i < 50; ++i)
    problem.buffers.push_back({{i, 101 - i}, 64 * (1 + i % 7)});
  EXPECT_EQ(packSteps(problem).height, loadOf(problem.buffers));
}

TEST(Packing, EmptyAndZeroSized) {
  EXPECT_EQ(packSteps({}).height, 0);
  PackResult result = packSteps({{{{0, 4}, 0}}, 64});
  EXPECT_EQ(result.height, 0);
  EXPECT_EQ(result.offsets.size(), 1u);
}

TEST(Packing, ChainsInPlaceShareOneBuffer) {
  PackResult result =
      packSteps({{{{0, 2}, 128}, {{1, 3}, 128, 0}, {{2, 4}, 128, 1}}, 64});
  EXPECT_EQ(result.height, 128);
  EXPECT_EQ(result.offsets, std::vector<int64_t>(3, 0));
}

/// Without a search the load is known, and nothing else.
TEST(Packing, LoadAlone) {
  PackResult result = pack({{{{0, 5}, 50}, {{4, 9}, 50}}}, {.search = false});
  EXPECT_EQ(result.facts.load, 100);
  EXPECT_EQ(result.facts.lowerBound, 100);
  EXPECT_TRUE(result.offsets.empty());
}

/// Tests published packing problems if their files exist.
TEST(Packing, PublishedProblems) {
  std::filesystem::path folder =
      std::filesystem::path(CKOPT_SHARED_DIR) / "planbench" / "packing";
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "no " << folder << ": the published problems are not here";
  for (const char *name :
       {"minimalloc_A", "minimalloc_D", "minimalloc_J", "somas_resnet50"}) {
    std::ifstream file(folder / (std::string(name) + ".csv"));
    std::string line;
    std::getline(file, line);
    PackProblem problem;
    while (std::getline(file, line)) {
      for (char &c : line)
        if (c == ',')
          c = ' ';
      std::istringstream fields(line);
      int64_t id, first, end, bytes;
      if (fields >> id >> first >> end >> bytes)
        problem.buffers.push_back({{first, end}, bytes});
    }
    ASSERT_FALSE(problem.buffers.empty()) << name;
    PackResult result = packSteps(problem);
    int64_t arena = result.height, load = loadOf(problem.buffers);
    expectValid(problem, result);
    EXPECT_LE(double(arena), 1.35 * double(load)) << name;
    RecordProperty(name, std::to_string(double(arena) / double(load)));
  }
}

} // namespace
