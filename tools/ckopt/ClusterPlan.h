//===- ClusterPlan.h - a planned step on a cluster --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_CLUSTERPLAN_H
#define CKOPT_TOOLS_CKOPT_CLUSTERPLAN_H

#include "ckopt/Cluster/Simulate.h"
#include "ckopt/Compiler/Compile.h"
#include "llvm/Support/JSON.h"

namespace ckopt {

struct ClusterPlan {
  cluster::Cluster cluster;
  int64_t ranks = 1;
  cluster::Prediction prediction;
  int64_t samples = 0; ///< of all ranks, in an update; 0: not known
  int64_t peak = 0;    ///< planned bytes of a rank
};

/// Reads a cluster and refuses one that is too small for the step's ranks.
llvm::Expected<ClusterPlan> readClusterPlan(llvm::StringRef path,
                                            const StepOptions &step);
/// Predicts the planned step on the cluster.
llvm::Error predictOnCluster(const Compilation &compilation, ClusterPlan &plan);

/// Returns what a rank does in an update.
std::vector<cluster::RankEvent> rankEvents(const Compilation &compilation);

void printClusterPlan(const ClusterPlan &plan, llvm::raw_ostream &os);
/// Writes the member "cluster" of the current JSON object.
void writeClusterPlan(llvm::json::OStream &json, const ClusterPlan &plan);

} // namespace ckopt

#endif // CKOPT_TOOLS_CKOPT_CLUSTERPLAN_H
