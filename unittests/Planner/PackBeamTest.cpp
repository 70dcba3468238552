//===- PackBeamTest.cpp - packing by beam search --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Packing/PackBeam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace ckopt::planner;

namespace {

/// A rectangle of `sections` times `height`, cut into shapes at random: it is
/// full everywhere, so a packing must not waste any byte.
std::vector<SearchShape> cutRectangle(std::mt19937 &rng, int cuts,
                                      int32_t sections, int32_t height) {
  struct Part {
    int32_t first, last, size;
  };
  std::vector<Part> parts{{0, sections - 1, height}};
  for (int i = 0; i < cuts; ++i) {
    size_t at = rng() % parts.size();
    Part part = parts[at], rest = part;
    if (rng() % 2 && part.last > part.first) {
      part.last = part.first + int32_t(rng() % (part.last - part.first));
      rest.first = part.last + 1;
    } else if (part.size > 1) {
      part.size = 1 + int32_t(rng() % (part.size - 1));
      rest.size -= part.size;
    } else {
      continue;
    }
    parts[at] = part;
    parts.push_back(rest);
  }
  std::vector<SearchShape> shapes;
  for (const Part &part : parts)
    shapes.push_back({{part.first, part.last, part.size}});
  return shapes;
}

void expectPacked(const std::vector<SearchShape> &shapes, int32_t capacity,
                  const std::vector<int32_t> &offsets) {
  ASSERT_EQ(offsets.size(), shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    const SearchPiece &a = shapes[i][0];
    EXPECT_GE(offsets[i], 0);
    EXPECT_LE(offsets[i] + a.size, capacity);
    for (size_t j = 0; j < i; ++j) {
      const SearchPiece &b = shapes[j][0];
      EXPECT_TRUE(a.first > b.last || b.first > a.last ||
                  offsets[i] >= offsets[j] + b.size ||
                  offsets[j] >= offsets[i] + a.size)
          << j << " and " << i << " overlap";
    }
  }
}

TEST(PackBeam, FillsCutRectangles) {
  std::mt19937 rng(5);
  for (int round = 0; round < 20; ++round) {
    std::vector<SearchShape> shapes = cutRectangle(rng, 25, 20, 200);
    PackBeam beam(shapes, 200, 1);
    Deadline deadline(0, 4000000);
    std::vector<int32_t> offsets;
    EXPECT_EQ(beam.run(deadline, offsets), SearchOutcome::Found);
    expectPacked(shapes, 200, offsets);
  }
}

TEST(PackBeam, GoesOnWhereALimitStruck) {
  // However a search is cut into slices, in the end there is a packing.
  std::mt19937 rng(7);
  std::vector<SearchShape> shapes = cutRectangle(rng, 40, 30, 300);
  PackBeam beam(shapes, 300, 1);
  std::vector<int32_t> offsets;
  SearchOutcome outcome = SearchOutcome::Limit;
  int slices = 0;
  for (; outcome == SearchOutcome::Limit && slices < 100000; ++slices) {
    Deadline slice(0, 400);
    outcome = beam.run(slice, offsets);
  }
  EXPECT_EQ(outcome, SearchOutcome::Found);
  EXPECT_GT(slices, 1);
  expectPacked(shapes, 300, offsets);
}

TEST(PackBeam, AgreesWithTheExactSearch) {
  std::mt19937 rng(9);
  int fits = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<SearchShape> shapes;
    std::vector<int32_t> load(6, 0);
    for (int i = 0; i < 12; ++i) {
      int32_t first = int32_t(rng() % 5), size = 1 + int32_t(rng() % 9);
      int32_t last = std::min(5, first + int32_t(rng() % 3));
      shapes.push_back({{first, last, size}});
      for (int32_t s = first; s <= last; ++s)
        load[s] += size;
    }
    for (int32_t s = 0; s < 6; ++s) // No section is empty.
      shapes.push_back({{s, s, 1}}), ++load[s];
    int32_t capacity = *std::max_element(load.begin(), load.end());
    std::vector<int32_t> offsets;
    Deadline one(0, 2000000), other(0, 2000000);
    SearchOutcome exact = searchPacking(shapes, capacity, 1, one, offsets);
    SearchOutcome outcome = PackBeam(shapes, capacity, 1).run(other, offsets);
    ASSERT_NE(exact, SearchOutcome::Limit);
    EXPECT_EQ(outcome, exact);
    if (outcome == SearchOutcome::Found)
      expectPacked(shapes, capacity, offsets);
    fits += outcome == SearchOutcome::Found;
    EXPECT_EQ(PackBeam(shapes, capacity - 1, 1).run(other, offsets),
              SearchOutcome::Exhausted)
        << "below the load";
  }
  EXPECT_GT(fits, 10);
}

} // namespace
