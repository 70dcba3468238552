//===- CollectiveTest.cpp -------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Cluster/Collective.h"

#include "gtest/gtest.h"

using namespace ckopt::cluster;

namespace {

using Counts = std::vector<std::pair<int64_t, int64_t>>;

Counts sent(const Collective &collective, const Mesh &mesh) {
  Counts counts;
  for (const Traffic &rank : sentTraffic(collective, mesh))
    counts.emplace_back(rank.messages, rank.bytes);
  return counts;
}

TEST(SentTraffic, AllReduceOfEvenShares) {
  // 12 numbers, 3 ranks: 4 to each of the 2 others, and 4 sums back to each.
  Collective c{CollectiveKind::AllReduce, Group::All, 48, 4};
  EXPECT_EQ(sent(c, {3, 1}), (Counts{{4, 64}, {4, 64}, {4, 64}}));
}

TEST(SentTraffic, AllReduceOfOneNumber) {
  // Rank 0 adds it: it gets a message of each and sends one to each.
  Collective c{CollectiveKind::AllReduce, Group::All, 4, 4};
  EXPECT_EQ(sent(c, {4, 1}), (Counts{{3, 12}, {1, 4}, {1, 4}, {1, 4}}));
}

TEST(SentTraffic, LastSharesAreSmallerOrEmpty) {
  // 5 numbers, 4 ranks: shares of 2, 2, 1, 0.
  Collective c{CollectiveKind::AllReduce, Group::All, 20, 4};
  EXPECT_EQ(sent(c, {4, 1}), (Counts{{2 + 3, 4 * (3 + 6)},
                                     {2 + 3, 4 * (3 + 6)},
                                     {2 + 3, 4 * (4 + 3)},
                                     {3, 4 * 5}}));
}

TEST(SentTraffic, PiecesOfFourMebibytes) {
  // 10 MiB: pieces of 4, 4 and 2 MiB, each in two rounds.
  Collective c{CollectiveKind::AllReduce, Group::All, 10 << 20, 4};
  EXPECT_EQ(sent(c, {2, 1}), (Counts{{6, 10 << 20}, {6, 10 << 20}}));
  c.elementBytes = 8;
  EXPECT_EQ(sent(c, {2, 1}), (Counts{{6, 10 << 20}, {6, 10 << 20}}));
}

TEST(SentTraffic, OtherKinds) {
  Collective c{CollectiveKind::ReduceScatter, Group::All, 48, 4};
  EXPECT_EQ(sent(c, {3, 1}), (Counts{{2, 32}, {2, 32}, {2, 32}}));
  c.kind = CollectiveKind::AllGather;
  EXPECT_EQ(sent(c, {3, 1}), (Counts{{2, 32}, {2, 32}, {2, 32}}));
  c.kind = CollectiveKind::Broadcast;
  EXPECT_EQ(sent(c, {3, 1}), (Counts{{2, 96}, {0, 0}, {0, 0}}));
}

TEST(SentTraffic, GroupsOfAMesh) {
  // 2 replicas of 3 shards: groups of 2, or of 3.
  Collective c{CollectiveKind::AllReduce, Group::Replicas, 48, 4};
  EXPECT_EQ(sent(c, {2, 3}), Counts(6, {2, 48}));
  c.group = Group::Shards;
  EXPECT_EQ(sent(c, {2, 3}), Counts(6, {4, 64}));
  // Nobody to talk to.
  EXPECT_EQ(sent(c, {2, 1}), Counts(2, {0, 0}));
  c.bytes = 0;
  EXPECT_EQ(sent(c, {2, 3}), Counts(6, {0, 0}));
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

double network(const Collective &c, const Mesh &mesh, const Cluster &cluster) {
  return timeOf(c, mesh, cluster).network;
}

TEST(TimeOf, BandwidthOfARank) {
  // Each of 4 ranks sends 3/4 of the bytes, twice.
  Cluster cluster = freeCluster(1, 4);
  cluster.inside.bandwidth = 1000;
  Collective c{CollectiveKind::AllReduce, Group::All, 4000, 4};
  EXPECT_NEAR(network(c, {4, 1}, cluster), 6, 1e-9);
  c.kind = CollectiveKind::AllGather;
  EXPECT_NEAR(network(c, {4, 1}, cluster), 3, 1e-9);
  // One link for all 4: four times as long.
  cluster.inside.count = 1;
  EXPECT_NEAR(network(c, {4, 1}, cluster), 12, 1e-9);
}

TEST(TimeOf, RanksShareTheLinkOfTheirNode) {
  // 2 nodes of 2: each rank sends 2 of its 3 shares of 1,000 bytes to the other
  // node, so 4,000 bytes leave a node in a round.
  Cluster cluster = freeCluster(2, 2);
  cluster.between.bandwidth = 1000;
  Collective c{CollectiveKind::AllReduce, Group::All, 4000, 4};
  EXPECT_NEAR(network(c, {4, 1}, cluster), 2 * 4, 1e-9);
  // With a link for each rank, only their own bytes count.
  cluster.between.count = 2;
  EXPECT_NEAR(network(c, {4, 1}, cluster), 2 * 2, 1e-9);
}

TEST(TimeOf, LatencyOnceARound) {
  Cluster cluster = freeCluster(2, 2);
  cluster.inside.latency = 1;
  cluster.between.latency = 10;
  Collective c{CollectiveKind::AllReduce, Group::All, 16, 4};
  EXPECT_NEAR(network(c, {2, 1}, cluster), 2, 1e-9); // ranks of one node
  EXPECT_NEAR(network(c, {4, 1}, cluster), 20, 1e-9);
  c.bytes = 10 << 20; // three pieces
  EXPECT_NEAR(network(c, {4, 1}, cluster), 60, 1e-9);
}

TEST(TimeOf, ProcessorOfTheBusiestRank) {
  // A single number: rank 0 gets 3 messages and sends 3.
  Cluster cluster = freeCluster(1, 4);
  cluster.inside.messageSeconds = 1;
  Collective c{CollectiveKind::AllReduce, Group::All, 4, 4};
  EXPECT_NEAR(network(c, {4, 1}, cluster), 6, 1e-9);
  c.bytes = 16; // of each round, each sends 3 and gets 3
  EXPECT_NEAR(network(c, {4, 1}, cluster), 12, 1e-9);
}

TEST(TimeOf, GroupsLieInNodesOrAcross) {
  // 2 replicas of 2 shards on 2 nodes: shards are neighbours.
  Cluster cluster = freeCluster(2, 2);
  cluster.between.bandwidth = 1000;
  Collective c{CollectiveKind::AllGather, Group::Shards, 4000, 4};
  EXPECT_NEAR(network(c, {2, 2}, cluster), 0, 1e-9);
  c.group = Group::Replicas; // 2 ranks of a node send 2,000 bytes each
  EXPECT_NEAR(network(c, {2, 2}, cluster), 4, 1e-9);
}

TEST(TimeOf, BroadcastLeavesTheRoot) {
  Cluster cluster = freeCluster(2, 2);
  cluster.inside.bandwidth = 2000;
  cluster.between.bandwidth = 1000;
  Collective c{CollectiveKind::Broadcast, Group::All, 4000, 4};
  EXPECT_NEAR(network(c, {4, 1}, cluster), 8, 1e-9);
  cluster.between.bandwidth = 1e30;
  EXPECT_NEAR(network(c, {4, 1}, cluster), 2, 1e-9);
}

TEST(TimeOf, CopiesAndSums) {
  // all_reduce on 4 ranks: pack 2 B; sums 5/4 B; unpack 2 B.
  Cluster cluster = freeCluster(1, 4);
  cluster.memoryBandwidth = 1000;
  Collective c{CollectiveKind::AllReduce, Group::All, 4000, 4};
  CollectiveTime time = timeOf(c, {4, 1}, cluster);
  EXPECT_NEAR(time.pack, 8, 1e-9);
  EXPECT_NEAR(time.unpack, 5 + 8, 1e-9);
  EXPECT_EQ(timeOf(c, {1, 1}, cluster).total(), 0);
}

} // namespace
