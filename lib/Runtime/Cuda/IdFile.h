//===- IdFile.h - ranks that connect through a file -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: without MPI, rank 0 must give NCCL's id to the other ranks through a
// file that all can see; files of an earlier run, complete or not, must not be
// confused with this run's. Method: every rank but the first writes FILE.rank-R
// with a random number. Rank 0 writes FILE with the id and the numbers that it
// has seen, again whenever one changes. A rank accepts the id only if its own
// number is in the file, and then says so in its own file. When all have done
// so, rank 0 writes that they may start. Files appear whole (by rename), and
// are removed when all ranks are connected. Guarantee: all ranks return the
// same id, or each rank that waits too long names the rank that it waits for.
// O(ranks) for each check.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_IDFILE_H
#define CKOPT_LIB_RUNTIME_CUDA_IDFILE_H

#include "NcclComm.h"

namespace ckopt::runtime::cuda {

/// How the ranks of a run without MPI find each other.
struct IdFile {
  std::string path;
  int32_t rank = 0, ranks = 1;
  double timeout = 0; ///< seconds to wait for a rank
};

/// Returns, on all ranks, rank 0's id and all ranks' processes.
bool meet(const IdFile &file, NcclId &id, std::vector<RankProcess> &processes,
          std::string &error);

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_IDFILE_H
