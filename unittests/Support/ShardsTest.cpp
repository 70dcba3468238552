//===- ShardsTest.cpp - who has which part of a tensor --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/Shards.h"
#include "gtest/gtest.h"

using namespace ckopt;

static int64_t elementsOf(const std::vector<int64_t> &shape) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return elements;
}

/// The elements of a rank's chunk in this form.
static int64_t chunkOf(const std::vector<int64_t> &shape, int64_t ranks,
                       ShardForm form) {
  int64_t elements = elementsOf(shape);
  if (form == ShardForm::Flat)
    return (elements + ranks - 1) / ranks;
  return (shape[0] + ranks - 1) / ranks * (elements / shape[0]);
}

TEST(Shards, EveryElementIsInOneShard) {
  const std::vector<std::vector<int64_t>> shapes = {
      {1000},        {999, 7},      {3, 640},     {2, 5000},
      {64, 3, 7, 7}, {5, 64, 3, 3}, {1, 577, 768}};
  for (const auto &shape : shapes)
    for (int64_t ranks = 2; ranks <= 7; ++ranks)
      for (bool keepsRows : {false, true}) {
        ShardForm form = shardForm(shape, ranks, keepsRows);
        if (form == ShardForm::Whole)
          continue;
        EXPECT_FALSE(keepsRows && form == ShardForm::Flat);
        Shards shards{elementsOf(shape), ranks, chunkOf(shape, ranks, form)};
        int64_t next = 0;
        for (int64_t shard = 0; shard < ranks; ++shard) {
          EXPECT_EQ(shards.begin(shard), next);
          EXPECT_GE(shards.count(shard), 0);
          EXPECT_LE(shards.count(shard), shards.chunk);
          next += shards.count(shard);
        }
        EXPECT_EQ(next, shards.elements);
        // Ranks of other groups keep the same shards.
        EXPECT_EQ(shards.shardOf(ranks + 1), 1);
        if (!keepsRows) {
          EXPECT_LE(shards.chunk * ranks,
                    shards.elements + shards.elements / 8 + ranks);
        }
      }
}

TEST(Shards, FormFollowsFromTheShape) {
  EXPECT_EQ(shardForm({}, 2, false), ShardForm::Whole);
  EXPECT_EQ(shardForm({127}, 2, false), ShardForm::Whole);
  EXPECT_EQ(shardForm({128}, 2, false), ShardForm::Rows);
  EXPECT_EQ(shardForm({128}, 1, false), ShardForm::Whole);
  EXPECT_EQ(shardForm({10, 100}, 4, false), ShardForm::Flat);
  EXPECT_EQ(shardForm({10, 100}, 5, false), ShardForm::Rows);
  // Weights of convolutions have whole rows, or are whole.
  EXPECT_EQ(shardForm({10, 25, 2, 2}, 4, true), ShardForm::Rows);
  EXPECT_EQ(shardForm({2, 100, 2, 2}, 4, true), ShardForm::Whole);
}

TEST(Shards, GroupsOfRanks) {
  // Two groups of three neighbors.
  RankGroup shared{3, 1, 2};
  EXPECT_EQ(shared.world(), 6);
  EXPECT_EQ(shared.place(4), 1);
  EXPECT_EQ(shared.member(4, 0), 3);
  EXPECT_EQ(shared.member(4, 2), 5);
  // The ranks that have the same shard.
  RankGroup replicas{2, 3, 3};
  EXPECT_EQ(replicas.world(), 6);
  EXPECT_EQ(replicas.place(4), 1);
  EXPECT_EQ(replicas.member(4, 0), 1);
  EXPECT_EQ(replicas.member(1, 1), 4);
}
