//===- SimulateTest.cpp ---------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Cluster/Simulate.h"

#include "ckopt/Support/Error.h"
#include "gtest/gtest.h"

using namespace ckopt;
using namespace ckopt::cluster;

namespace {

/// 2 ranks, 1,000 bytes a second between them; copies cost nothing.
Cluster twoRanks() {
  Cluster cluster;
  cluster.ranksPerNode = 2;
  cluster.inside = {0, 1000, 0, 2};
  cluster.memoryBandwidth = 1e30;
  return cluster;
}

/// Takes so many seconds there: each rank sends half, twice.
Collective sum(int64_t seconds) {
  return {CollectiveKind::AllReduce, {2}, {{250 * seconds, 0}}};
}

Prediction predict(const std::vector<RankEvent> &events,
                   const Cluster &cluster = twoRanks()) {
  auto prediction = simulate(cluster, 2, events);
  if (!prediction) {
    ADD_FAILURE() << llvm::toString(prediction.takeError());
    return {};
  }
  return *prediction;
}

TEST(Simulate, BlockingCollectivesAreExposed) {
  Prediction p = predict({RankEvent::kernel(3), RankEvent::blocking(sum(2)),
                          RankEvent::kernel(4), RankEvent::blocking(sum(1))});
  EXPECT_NEAR(p.seconds, 10, 1e-9);
  EXPECT_NEAR(p.kernels, 7, 1e-9);
  EXPECT_NEAR(p.communication, 3, 1e-9);
  EXPECT_NEAR(p.exposed(), 3, 1e-9);
  ASSERT_EQ(p.collectives.size(), 2u);
  EXPECT_NEAR(p.collectives[0].begin, 3, 1e-9);
  EXPECT_NEAR(p.collectives[0].end, 5, 1e-9);
  EXPECT_NEAR(p.collectives[1].begin, 9, 1e-9);
  EXPECT_EQ(p.collectives[1].collective.bytes(), 1000);
  ASSERT_EQ(p.sent.size(), 2u);
  EXPECT_EQ(p.sent[1].messages, 4);
  EXPECT_EQ(p.sent[1].bytes, 3000);
}

TEST(Simulate, KernelsHideWhatWasStarted) {
  // 2 of 5 seconds are left when the kernels are done.
  Prediction p = predict({RankEvent::start(7, sum(5)), RankEvent::kernel(3),
                          RankEvent::wait(7), RankEvent::kernel(1)});
  EXPECT_NEAR(p.seconds, 6, 1e-9);
  EXPECT_NEAR(p.exposed(), 2, 1e-9);
  // All of it.
  p = predict(
      {RankEvent::start(7, sum(5)), RankEvent::kernel(8), RankEvent::wait(7)});
  EXPECT_NEAR(p.seconds, 8, 1e-9);
  EXPECT_NEAR(p.exposed(), 0, 1e-9);
  EXPECT_NEAR(p.communication, 5, 1e-9);
}

TEST(Simulate, OneCollectiveAfterTheOther) {
  // The second begins when the first is done, at 4, and ends at 7; a number can
  // be used again.
  Prediction p = predict({RankEvent::start(0, sum(4)), RankEvent::kernel(1),
                          RankEvent::start(1, sum(3)), RankEvent::kernel(1),
                          RankEvent::wait(0), RankEvent::wait(1),
                          RankEvent::start(0, sum(1)), RankEvent::wait(0)});
  ASSERT_EQ(p.collectives.size(), 3u);
  EXPECT_NEAR(p.collectives[1].begin, 4, 1e-9);
  EXPECT_NEAR(p.collectives[1].end, 7, 1e-9);
  EXPECT_NEAR(p.seconds, 8, 1e-9);
  // A blocking one waits for those before it, too.
  p = predict({RankEvent::start(0, sum(4)), RankEvent::blocking(sum(1)),
               RankEvent::wait(0)});
  EXPECT_NEAR(p.seconds, 5, 1e-9);
}

TEST(Simulate, CopiesTakeTheThreads) {
  // Pack 2 s, network 2 s under a kernel of 5, sums and unpack 1.5 + 2 s.
  Cluster cluster = twoRanks();
  cluster.memoryBandwidth = 2000;
  Prediction p = predict(
      {RankEvent::start(0, sum(2)), RankEvent::kernel(5), RankEvent::wait(0)},
      cluster);
  EXPECT_NEAR(p.seconds, 2 + 5 + 3.5, 1e-9);
  EXPECT_NEAR(p.exposed(), 5.5, 1e-9);
  EXPECT_NEAR(p.communication, 7.5, 1e-9);
}

TEST(Simulate, SpeedIsThatOfKernels) {
  Cluster cluster = twoRanks();
  cluster.speed = 2;
  Prediction p =
      predict({RankEvent::kernel(3), RankEvent::blocking(sum(2))}, cluster);
  EXPECT_NEAR(p.seconds, 3.5, 1e-9);
}

std::string errorOf(int64_t ranks, const std::vector<RankEvent> &events) {
  auto prediction = simulate(twoRanks(), ranks, events);
  return prediction ? "" : takeErrorText(prediction.takeError()).text;
}

TEST(Simulate, RefusesWhatHasNoMeaning) {
  EXPECT_EQ(errorOf(4, {}),
            "the cluster has 2 ranks (1 x 2), and the step takes 4");
  EXPECT_EQ(
      errorOf(2, {RankEvent::start(0, sum(1)), RankEvent::start(0, sum(1))}),
      "collective 0 is started twice");
  EXPECT_EQ(errorOf(2, {RankEvent::wait(3)}),
            "nothing started collective 3, which is waited for");
  EXPECT_EQ(errorOf(2, {RankEvent::start(3, sum(1))}),
            "nothing waits for collective 3");
  EXPECT_EQ(errorOf(1, {RankEvent::blocking(sum(1))}),
            "a collective is one of 2 ranks, and the step takes 1");
}

TEST(Simulate, AThousandRanks) {
  // 128 nodes of 8, hundreds of buckets of 25 MiB: what ranks share is a number
  // that was computed by hand. A rank of 1,023 peers sends 7 of its shares
  // inside and 1,016 out; 8 ranks share the node's link.
  Cluster cluster;
  cluster.nodes = 128;
  cluster.ranksPerNode = 8;
  cluster.inside = {0, 1e12, 0, 8};
  cluster.between = {1e-6, 1e9, 0, 1};
  cluster.memoryBandwidth = 1e30;
  Collective bucket{CollectiveKind::AllReduce, {1024}, {{24 << 18, 0}}};
  std::vector<RankEvent> events(500, RankEvent::blocking(bucket));
  auto p = simulate(cluster, 1024, events);
  ASSERT_TRUE(bool(p)) << llvm::toString(p.takeError());
  double share = double(4 << 20) / 1024; // of a piece, bytes
  double round = 8 * 1016 * share / 1e9 + 1e-6;
  EXPECT_NEAR(p->seconds, 500 * 6 * 2 * round, 1e-6);
  EXPECT_EQ(p->sent[0].messages, 500 * 6 * 2 * 1023);
  EXPECT_EQ(p->sent[1023].bytes, 500 * 6 * 2 * 1023 * int64_t(share));
}

} // namespace
