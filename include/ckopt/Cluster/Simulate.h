//===- Simulate.h - a step on a cluster -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_CLUSTER_SIMULATE_H
#define CKOPT_CLUSTER_SIMULATE_H

#include "ckopt/Cluster/Collective.h"

namespace ckopt::cluster {

/// What a rank does next. All ranks do the same.
struct RankEvent {
  enum class Kind {
    Kernel,     ///< takes `seconds` of the rank's threads
    Collective, ///< begins `collective` and waits for its end
    Start,      ///< begins it, under a number
    Wait,       ///< waits for the end of the one with this number
  };
  Kind kind = Kind::Kernel;
  double seconds = 0;
  Collective collective;
  int64_t number = 0;

  static RankEvent kernel(double seconds);
  static RankEvent blocking(const Collective &collective);
  static RankEvent start(int64_t number, const Collective &collective);
  static RankEvent wait(int64_t number);
};

struct CollectiveResult {
  Collective collective;
  double begin = 0, end = 0; ///< of its messages, seconds from the step's start
  double seconds = 0;        ///< that it would take alone
  Traffic first;             ///< what rank 0 sends
};

struct Prediction {
  double seconds = 0;                        ///< of the step
  double kernels = 0;                        ///< of them in kernels
  double communication = 0;                  ///< all collectives, each alone
  std::vector<CollectiveResult> collectives; ///< as they begin
  std::vector<Traffic> sent;                 ///< by rank

  /// Seconds of communication that no kernel hides.
  double exposed() const { return seconds - kernels; }
};

/// Refuses more ranks than the cluster has.
llvm::Error checkFits(int64_t ranks, const Cluster &cluster);

/// Follows the step of one of `ranks` ranks. Errors: those of checkFits(), a
/// collective of another number of ranks, a wait for what
/// was not started, a start that nothing waits for.
llvm::Expected<Prediction> simulate(const Cluster &cluster, int64_t ranks,
                                    const std::vector<RankEvent> &events);

} // namespace ckopt::cluster

#endif // CKOPT_CLUSTER_SIMULATE_H
