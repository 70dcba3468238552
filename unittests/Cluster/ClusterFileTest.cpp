//===- ClusterFileTest.cpp ------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Cluster/Cluster.h"

#include "ckopt/Support/Error.h"
#include "gtest/gtest.h"

using namespace ckopt;
using namespace ckopt::cluster;

namespace {

std::string errorOf(llvm::StringRef text) {
  auto cluster = parseCluster(text);
  return cluster ? "" : takeErrorText(cluster.takeError()).text;
}

TEST(ClusterFile, ReadsAllMembers) {
  auto cluster = parseCluster(R"({
    "format": "ckopt-cluster/1", "name": "two racks", "nodes": 128,
    "ranks_per_node": 8, "memory_bandwidth": 1e11, "speed": 2.5,
    "inside": {"bandwidth": 5e10, "latency": 1e-6, "links": 4},
    "between": {"bandwidth": 2.5e10, "latency": 5e-6,
                "message_seconds": 1e-7}})");
  ASSERT_TRUE(bool(cluster)) << llvm::toString(cluster.takeError());
  EXPECT_EQ(cluster->name, "two racks");
  EXPECT_EQ(cluster->ranks(), 1024);
  EXPECT_EQ(cluster->memoryBandwidth, 1e11);
  EXPECT_EQ(cluster->speed, 2.5);
  EXPECT_EQ(cluster->inside.bandwidth, 5e10);
  EXPECT_EQ(cluster->inside.latency, 1e-6);
  EXPECT_EQ(cluster->inside.messageSeconds, 0);
  EXPECT_EQ(cluster->inside.count, 4);
  EXPECT_EQ(cluster->between.bandwidth, 2.5e10);
  EXPECT_EQ(cluster->between.latency, 5e-6);
  EXPECT_EQ(cluster->between.messageSeconds, 1e-7);
  EXPECT_EQ(cluster->between.count, 1);
}

TEST(ClusterFile, NeedsTheLinksThatThereAre) {
  auto one = parseCluster(R"({"format": "ckopt-cluster/1", "nodes": 1,
    "ranks_per_node": 2, "memory_bandwidth": 1,
    "inside": {"bandwidth": 1, "latency": 0}})");
  ASSERT_TRUE(bool(one)) << llvm::toString(one.takeError());
  EXPECT_EQ(one->inside.count, 2);
  EXPECT_EQ(errorOf(R"({"format": "ckopt-cluster/1", "nodes": 2,
    "ranks_per_node": 2, "memory_bandwidth": 1,
    "inside": {"bandwidth": 1, "latency": 0}})"),
            "\"between\" is missing");
}

TEST(ClusterFile, NamesWhatIsWrong) {
  EXPECT_EQ(errorOf("[]"), "not a JSON object");
  EXPECT_NE(errorOf("{\n  \"nodes\": }").find("[2:"), std::string::npos);
  EXPECT_EQ(errorOf("{}"), "\"format\" must be \"ckopt-cluster/1\"");
  EXPECT_EQ(errorOf(std::string(100, '[')), "brackets nest more than 64 deep");
  auto with = [](llvm::StringRef members) {
    return errorOf((R"({"format": "ckopt-cluster/1", )" + members + "}").str());
  };
  EXPECT_EQ(with(R"("nodes": 0)"),
            "\"nodes\" must be an integer from 1 to 1048576");
  EXPECT_EQ(with(R"("nodes": 1, "ranks_per_node": 1.5)"),
            "\"ranks_per_node\" must be an integer from 1 to 1048576");
  EXPECT_EQ(with(R"("nodes": 1, "ranks_per_node": 1)"),
            "\"memory_bandwidth\" is missing");
  EXPECT_EQ(
      with(
          R"("nodes": 1, "ranks_per_node": 1, "memory_bandwidth": 1, "Speed": 1)"),
      "\"Speed\" is not known; there are format, name, nodes, ranks_per_node, "
      "memory_bandwidth, speed, inside, between");
  const std::string two =
      R"("nodes": 1, "ranks_per_node": 2, "memory_bandwidth": 1, )";
  EXPECT_EQ(with(two + R"("inside": 5)"), "\"inside\" must be an object");
  EXPECT_EQ(with(two + R"("inside": {"latency": 0})"),
            "\"inside.bandwidth\" is missing");
  EXPECT_EQ(with(two + R"("inside": {"bandwidth": 0, "latency": 0})"),
            "\"inside.bandwidth\" must be a positive number");
  EXPECT_EQ(with(two + R"("inside": {"bandwidth": 1, "latency": -1})"),
            "\"inside.latency\" must be a number that is not negative");
  EXPECT_EQ(
      with(two + R"("inside": {"bandwidth": 1, "latency": 0, "lanes": 2})"),
      "\"inside.lanes\" is not known; there are bandwidth, latency, "
      "message_seconds, links");
}

TEST(ClusterFile, NamesTheFile) {
  auto cluster = readCluster("/nowhere/c.json");
  ASSERT_FALSE(bool(cluster));
  EXPECT_EQ(takeErrorText(cluster.takeError()).text,
            "/nowhere/c.json: No such file or directory");
}

} // namespace
