//===- CollectiveTest.cpp -------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Cluster/Collective.h"

#include "gtest/gtest.h"

using namespace ckopt;
using namespace ckopt::cluster;

namespace {

using Counts = std::vector<std::pair<int64_t, int64_t>>;

Counts sent(const Collective &collective) {
  Counts counts;
  for (const Traffic &rank : sentTraffic(collective))
    counts.emplace_back(rank.messages, rank.bytes);
  return counts;
}

constexpr auto kSum = CollectiveKind::AllReduce;
constexpr auto kGather = CollectiveKind::AllGather;
constexpr auto kScatter = CollectiveKind::ReduceScatter;
constexpr auto kSend = CollectiveKind::Broadcast;

/// Of one tensor of f32, cut evenly.
Collective make(CollectiveKind kind, int64_t elements, RankGroup group) {
  return {kind, group, {{elements, (elements + group.size - 1) / group.size}}};
}

TEST(SentTraffic, AllReduceOfEvenShares) {
  // 12 numbers, 3 ranks: 4 to each of the 2 others, and 4 sums back to each.
  EXPECT_EQ(sent(make(kSum, 12, {3})), (Counts{{4, 64}, {4, 64}, {4, 64}}));
  // Tensors travel as if they were one.
  Collective c = make(kSum, 7, {3});
  c.parts.push_back({5, 2});
  EXPECT_EQ(sent(c), (Counts{{4, 64}, {4, 64}, {4, 64}}));
  EXPECT_EQ(c.bytes(), 48);
}

TEST(SentTraffic, AllReduceOfOneNumber) {
  // Rank 0 adds it: it gets a message of each and sends one to each.
  EXPECT_EQ(sent(make(kSum, 1, {4})),
            (Counts{{3, 12}, {1, 4}, {1, 4}, {1, 4}}));
}

TEST(SentTraffic, LastSharesAreSmallerOrEmpty) {
  // 5 numbers, 4 ranks: shares of 2, 2, 1, 0.
  EXPECT_EQ(sent(make(kSum, 5, {4})), (Counts{{2 + 3, 4 * (3 + 6)},
                                              {2 + 3, 4 * (3 + 6)},
                                              {2 + 3, 4 * (4 + 3)},
                                              {3, 4 * 5}}));
}

TEST(SentTraffic, PiecesOfFourMebibytes) {
  // 10 MiB: pieces of 4, 4 and 2 MiB, each in two rounds.
  EXPECT_EQ(sent(make(kSum, 10 << 18, {2})), Counts(2, {6, 10 << 20}));
  Collective c = make(kSum, 10 << 17, {2});
  c.elementBytes = 8;
  EXPECT_EQ(sent(c), Counts(2, {6, 10 << 20}));
}

TEST(SentTraffic, GatherOfChunks) {
  EXPECT_EQ(sent(make(kGather, 12, {3})), Counts(3, {2, 32}));
  // A second tensor of 5 elements in chunks of 4: 4, 1 and none.
  Collective c = make(kGather, 12, {3});
  c.parts.push_back({5, 4});
  EXPECT_EQ(sent(c), (Counts{{4, 64}, {4, 40}, {2, 32}}));
  // However large, one message to each.
  EXPECT_EQ(sent(make(kGather, 10 << 18, {2})), Counts(2, {1, 5 << 20}));
}

TEST(SentTraffic, ScatterOfChunks) {
  EXPECT_EQ(sent(make(kScatter, 12, {3})), Counts(3, {2, 32}));
  // Chunks of 4, of which the others have 1 and none, and of 4 each.
  Collective c = make(kScatter, 12, {3});
  c.parts.push_back({5, 4});
  EXPECT_EQ(sent(c),
            (Counts{{2 + 1, 32 + 4}, {2 + 1, 32 + 16}, {2 + 2, 32 + 20}}));
  // 10 MiB by 2 ranks: 5 MiB of each go in pieces of 2, 2 and 1 MiB.
  EXPECT_EQ(sent(make(kScatter, 10 << 18, {2})), Counts(2, {3, 5 << 20}));
  // A piece that holds the end of one tensor and the start of the next sends
  // both: 1.5 MiB each, then 0.5 and 1.
  c = make(kScatter, 3 << 18, {2});
  c.parts.push_back(c.parts.front());
  EXPECT_EQ(sent(c), Counts(2, {3, 3 << 20}));
}

TEST(SentTraffic, BroadcastOfTheRoot) {
  Collective c = make(kSend, 12, {3});
  c.root = 1;
  EXPECT_EQ(sent(c), (Counts{{0, 0}, {2, 96}, {0, 0}}));
}

TEST(SentTraffic, GroupsOfAMesh) {
  // 2 replicas of 3 shards: groups of 2, or of 3.
  EXPECT_EQ(sent(make(kSum, 12, {2, 3, 3})), Counts(6, {2, 48}));
  EXPECT_EQ(sent(make(kSum, 12, {3, 1, 2})), Counts(6, {4, 64}));
  // Nobody to talk to, or nothing to say.
  EXPECT_EQ(sent(make(kSum, 12, {1, 1, 2})), Counts(2, {0, 0}));
  EXPECT_EQ(sent(make(kSum, 0, {3, 1, 2})), Counts(6, {0, 0}));
}

/// Links of which nothing costs but what a test sets.
Cluster freeCluster(int64_t nodes, int64_t perNode) {
  Cluster cluster;
  cluster.nodes = nodes;
  cluster.ranksPerNode = perNode;
  cluster.inside.bandwidth = cluster.between.bandwidth = 1e30;
  cluster.inside.count = perNode;
  cluster.memoryBandwidth = 1e30;
  return cluster;
}

double network(const Collective &c, const Cluster &cluster) {
  return timeOf(c, cluster).network;
}

TEST(TimeOf, BandwidthOfARank) {
  // Each of 4 ranks sends 3/4 of the bytes, twice.
  Cluster cluster = freeCluster(1, 4);
  cluster.inside.bandwidth = 1000;
  EXPECT_NEAR(network(make(kSum, 1000, {4}), cluster), 6, 1e-9);
  EXPECT_NEAR(network(make(kGather, 1000, {4}), cluster), 3, 1e-9);
  EXPECT_NEAR(network(make(kScatter, 1000, {4}), cluster), 3, 1e-9);
  // One link for all 4: four times as long.
  cluster.inside.count = 1;
  EXPECT_NEAR(network(make(kGather, 1000, {4}), cluster), 12, 1e-9);
}

TEST(TimeOf, RanksShareTheLinkOfTheirNode) {
  // 2 nodes of 2: each rank sends 2 of its 3 shares of 1,000 bytes to the other
  // node, so 4,000 bytes leave a node in a round.
  Cluster cluster = freeCluster(2, 2);
  cluster.between.bandwidth = 1000;
  Collective c = make(kSum, 1000, {4});
  EXPECT_NEAR(network(c, cluster), 2 * 4, 1e-9);
  // With a link for each rank, only their own bytes count.
  cluster.between.count = 2;
  EXPECT_NEAR(network(c, cluster), 2 * 2, 1e-9);
}

TEST(TimeOf, LatencyOnceARound) {
  Cluster cluster = freeCluster(2, 2);
  cluster.inside.latency = 1;
  cluster.between.latency = 10;
  EXPECT_NEAR(network(make(kSum, 4, {2}), cluster), 2, 1e-9); // in one node
  EXPECT_NEAR(network(make(kSum, 4, {4}), cluster), 20, 1e-9);
  // Three pieces.
  EXPECT_NEAR(network(make(kSum, 10 << 18, {4}), cluster), 60, 1e-9);
}

TEST(TimeOf, ProcessorOfTheBusiestRank) {
  // A single number: rank 0 gets 3 messages and sends 3.
  Cluster cluster = freeCluster(1, 4);
  cluster.inside.messageSeconds = 1;
  EXPECT_NEAR(network(make(kSum, 1, {4}), cluster), 6, 1e-9);
  // In each of two rounds, each sends 3 and gets 3.
  EXPECT_NEAR(network(make(kSum, 4, {4}), cluster), 12, 1e-9);
}

TEST(TimeOf, GroupsLieInNodesOrAcross) {
  // 2 replicas of 2 shards on 2 nodes: shards are neighbours.
  Cluster cluster = freeCluster(2, 2);
  cluster.between.bandwidth = 1000;
  EXPECT_NEAR(network(make(kGather, 1000, {2, 1, 2}), cluster), 0, 1e-9);
  // 2 ranks of a node send 2,000 bytes each.
  EXPECT_NEAR(network(make(kGather, 1000, {2, 2, 2}), cluster), 4, 1e-9);
}

TEST(TimeOf, BroadcastLeavesTheRoot) {
  Cluster cluster = freeCluster(2, 2);
  cluster.inside.bandwidth = 2000;
  cluster.between.bandwidth = 1000;
  EXPECT_NEAR(network(make(kSend, 1000, {4}), cluster), 8, 1e-9);
  cluster.between.bandwidth = 1e30;
  EXPECT_NEAR(network(make(kSend, 1000, {4}), cluster), 2, 1e-9);
}

TEST(TimeOf, CopiesAndSums) {
  // all_reduce on 4 ranks: pack 2 B; sums 5/4 B; unpack 2 B.
  Cluster cluster = freeCluster(1, 4);
  cluster.memoryBandwidth = 1000;
  CollectiveTime time = timeOf(make(kSum, 1000, {4}), cluster);
  EXPECT_NEAR(time.pack, 8, 1e-9);
  EXPECT_NEAR(time.unpack, 5 + 8, 1e-9);
  // Chunks are received where they belong; sums are made there.
  EXPECT_NEAR(timeOf(make(kGather, 1000, {4}), cluster).total(), 2, 1e-9);
  EXPECT_NEAR(timeOf(make(kScatter, 1000, {4}), cluster).total(), 5, 1e-9);
  EXPECT_EQ(timeOf(make(kSum, 1000, {1}), cluster).total(), 0);
}

} // namespace
