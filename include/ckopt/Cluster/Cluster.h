//===- Cluster.h - nodes and links ------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cluster has equal nodes, each with equal ranks. Ranks are numbered node by
// node. A link carries messages both ways at once; between nodes there is no
// other bottleneck than the links of the nodes. Described by a JSON file of the
// format ckopt-cluster/1 (docs/cluster.md).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_CLUSTER_CLUSTER_H
#define CKOPT_CLUSTER_CLUSTER_H

#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace ckopt::cluster {

/// The links inside of each node, or those that leave it.
struct Link {
  double latency = 0;   ///< seconds until the first byte of a message arrives
  double bandwidth = 0; ///< bytes a second, each way, the most of one rank
  /// Seconds of a rank's processor for a message that it sends or receives.
  double messageSeconds = 0;
  int64_t count = 1; ///< of a node; its ranks share them
};

struct Cluster {
  std::string name;
  int64_t nodes = 1, ranksPerNode = 1;
  Link inside, between;
  /// Bytes a second that one rank reads and writes where it packs and adds.
  double memoryBandwidth = 0;
  /// How many times faster kernels are than the cost model says.
  double speed = 1;

  int64_t ranks() const { return nodes * ranksPerNode; }
};

/// Parses a description; errors name the member and its defect.
llvm::Expected<Cluster> parseCluster(llvm::StringRef text);
/// The same of a file; errors name it, too.
llvm::Expected<Cluster> readCluster(llvm::StringRef path);

} // namespace ckopt::cluster

#endif // CKOPT_CLUSTER_CLUSTER_H
