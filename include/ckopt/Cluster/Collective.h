//===- Collective.h - messages and time of a collective ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_CLUSTER_COLLECTIVE_H
#define CKOPT_CLUSTER_COLLECTIVE_H

#include "ckopt/Cluster/Cluster.h"

#include <vector>

namespace ckopt::cluster {

enum class CollectiveKind { AllReduce, AllGather, ReduceScatter, Broadcast };
/// "all_reduce", as the op is called.
const char *nameOf(CollectiveKind kind);

/// Ranks that train together: `replicas` groups of `shards` ranks, each of
/// which holds the whole state in parts. Rank = replica * shards + shard.
struct Mesh {
  int64_t replicas = 1, shards = 1;
  int64_t ranks() const { return replicas * shards; }
};

/// Who takes part: all ranks, those with one shard's number, or those of one
/// replica.
enum class Group { All, Replicas, Shards };

/// Of tensors that have `bytes` when they are whole: what is added (all_reduce,
/// reduce_scatter), gathered or sent to all.
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  Group group = Group::All;
  int64_t bytes = 0, elementBytes = 4;
};

/// What a rank sends.
struct Traffic {
  int64_t messages = 0, bytes = 0;
};

/// Returns what each rank of the mesh sends. O(ranks).
std::vector<Traffic> sentTraffic(const Collective &collective,
                                 const Mesh &mesh);

/// The seconds that a collective takes where all ranks come to it at once.
struct CollectiveTime {
  double pack = 0;    ///< copies before the first message
  double network = 0; ///< messages
  double unpack = 0;  ///< sums and copies of what came
  double total() const { return pack + network + unpack; }
};

/// The mesh must fit the cluster. O(ranks).
CollectiveTime timeOf(const Collective &collective, const Mesh &mesh,
                      const Cluster &cluster);

} // namespace ckopt::cluster

#endif // CKOPT_CLUSTER_COLLECTIVE_H
