//===- IdFile.h - ranks that meet by a file ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: without MPI the ranks must be given NCCL's id by rank 0, through a
// file that all can see; files that an earlier run left behind, whole or not,
// must not be taken for those of this run. Method: every rank but the first
// writes FILE.rank-R with a number that it drew; rank 0 writes FILE with the
// id and the numbers that it has seen, anew whenever one changes; a rank takes
// the id only beside its own number, and says so in its file; when all have,
// rank 0 writes that they may start. Files appear whole (by rename) and are
// gone when all ranks have met. Guarantee: all ranks return the same id, or
// each that waits too long says for which rank. O(ranks) a look.
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
  double timeout = 0; ///< seconds that a rank is waited for
};

/// Returns, on all ranks, rank 0's id and all ranks' processes.
bool meet(const IdFile &file, NcclId &id, std::vector<RankProcess> &processes,
          std::string &error);

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_IDFILE_H
