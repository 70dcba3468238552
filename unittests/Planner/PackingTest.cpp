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

int64_t loadOf(const std::vector<Box> &boxes) {
  int32_t end = 0;
  for (const Box &box : boxes)
    end = std::max(end, box.last);
  std::vector<int64_t> delta(end + 2, 0);
  for (const Box &box : boxes) {
    delta[box.first] += box.bytes;
    delta[box.last + 1] -= box.bytes;
  }
  int64_t sum = 0, load = 0;
  for (int64_t d : delta)
    load = std::max(load, sum += d);
  return load;
}

/// Expects that any two boxes that overlap in time are disjoint in bytes,
/// except for in-place pairs at one offset.
void expectValid(const std::vector<Box> &boxes, int64_t alignment,
                 const std::vector<int64_t> &offsets, int64_t arena) {
  ASSERT_EQ(offsets.size(), boxes.size());
  for (size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_GE(offsets[i], 0);
    EXPECT_EQ(offsets[i] % alignment, 0);
    EXPECT_LE(offsets[i] + boxes[i].bytes, arena);
    for (size_t j = 0; j < i; ++j) {
      const Box &a = boxes[j], &b = boxes[i];
      int32_t from = b.first;
      if (b.inPlaceOf == int32_t(j) && offsets[i] == offsets[j])
        ++from;
      if (a.first > b.last || a.last < from || !a.bytes || !b.bytes)
        continue;
      EXPECT_TRUE(offsets[i] >= offsets[j] + a.bytes ||
                  offsets[j] >= offsets[i] + b.bytes)
          << "boxes " << j << " and " << i;
    }
  }
}

TEST(Packing, PlacesRandomBoxes) {
  std::mt19937_64 rng(3);
  for (int round = 0; round < 60; ++round) {
    std::vector<Box> boxes;
    int32_t steps = 5 + int32_t(rng() % 40);
    for (int32_t t = 0; t < steps; ++t)
      for (uint64_t k = rng() % 4; k > 0; --k)
        boxes.push_back({t, std::min(steps, t + int32_t(rng() % 12)),
                         int64_t(rng() % 500), -1});
    for (size_t i = 0; i < boxes.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (boxes[j].last == boxes[i].first &&
            boxes[j].first < boxes[i].first &&
            boxes[j].bytes >= boxes[i].bytes && rng() % 2)
          boxes[i].inPlaceOf = int32_t(j);
    std::vector<char> used(boxes.size(), 0);
    for (Box &box : boxes)
      if (box.inPlaceOf >= 0 && used[box.inPlaceOf]++)
        box.inPlaceOf = -1;
    int64_t alignment = round % 2 ? 64 : 1;
    std::vector<int64_t> offsets;
    int64_t arena = packBoxes(boxes, alignment, offsets);
    expectValid(boxes, alignment, offsets, arena);
  }
}

TEST(Packing, MeetsTheLoadOnStacks) {
  // Nested lifetimes always pack to the load.
  std::vector<Box> boxes;
  for (int32_t i = 0; i < 50; ++i)
    boxes.push_back({i, 100 - i, 64 * (1 + i % 7), -1});
  std::vector<int64_t> offsets;
  EXPECT_EQ(packBoxes(boxes, 64, offsets), loadOf(boxes));
}

TEST(Packing, EmptyAndZeroSized) {
  std::vector<int64_t> offsets;
  EXPECT_EQ(packBoxes({}, 64, offsets), 0);
  EXPECT_EQ(packBoxes({{0, 3, 0, -1}}, 64, offsets), 0);
  EXPECT_EQ(offsets.size(), 1u);
}

TEST(Packing, ChainsInPlaceShareOneBuffer) {
  std::vector<Box> boxes{{0, 1, 128, -1}, {1, 2, 128, 0}, {2, 3, 128, 1}};
  std::vector<int64_t> offsets;
  EXPECT_EQ(packBoxes(boxes, 64, offsets), 128);
  EXPECT_EQ(offsets, std::vector<int64_t>(3, 0));
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
    std::vector<Box> boxes;
    while (std::getline(file, line)) {
      for (char &c : line)
        if (c == ',')
          c = ' ';
      std::istringstream fields(line);
      int64_t id, first, end, bytes;
      if (fields >> id >> first >> end >> bytes)
        boxes.push_back({int32_t(first), int32_t(end) - 1, bytes, -1});
    }
    ASSERT_FALSE(boxes.empty()) << name;
    std::vector<int64_t> offsets;
    int64_t arena = packBoxes(boxes, 1, offsets), load = loadOf(boxes);
    expectValid(boxes, 1, offsets, arena);
    EXPECT_LE(double(arena), 1.35 * double(load)) << name;
    RecordProperty(name, std::to_string(double(arena) / double(load)));
  }
}

} // namespace
