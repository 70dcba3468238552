//===- Collective.h - messages and time of a collective ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_CLUSTER_COLLECTIVE_H
#define CKOPT_CLUSTER_COLLECTIVE_H

#include "ckopt/Base/Shards.h"
#include "ckopt/Cluster/Cluster.h"

#include <optional>
#include <string_view>
#include <vector>

namespace ckopt::cluster {

enum class CollectiveKind { AllReduce, AllGather, ReduceScatter, Broadcast };
/// "all_reduce", as the op is called.
const char *nameOf(CollectiveKind kind);
/// Returns the kind of an op with this name, or nothing.
std::optional<CollectiveKind> findCollective(std::string_view name);

/// One of the tensors that travel together.
struct Part {
  int64_t elements = 0; ///< of the whole tensor
  int64_t chunk = 0; ///< that a rank keeps of it (all_gather, reduce_scatter)
};

/// What ranks of a group do together; all groups of the run do the same.
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  RankGroup group;
  std::vector<Part> parts;
  int64_t elementBytes = 4;
  int64_t root = 0; ///< of a broadcast, its place in the group

  /// Bytes of the whole tensors.
  int64_t bytes() const;
};

/// What a rank sends.
struct Traffic {
  int64_t messages = 0, bytes = 0;
};

/// Returns what each rank of the run sends. O(ranks * parts).
std::vector<Traffic> sentTraffic(const Collective &collective);

/// The seconds that a collective takes where all ranks come to it at once.
struct CollectiveTime {
  double pack = 0;    ///< copies before the first message
  double network = 0; ///< messages
  double unpack = 0;  ///< sums and copies of what came
  double total() const { return pack + network + unpack; }
};

/// The run must fit the cluster. O(ranks * parts).
CollectiveTime timeOf(const Collective &collective, const Cluster &cluster);

} // namespace ckopt::cluster

#endif // CKOPT_CLUSTER_COLLECTIVE_H
