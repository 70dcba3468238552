//===- CheckpointParts.h - what both forms of checkpoints share -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRAIN_DATA_CHECKPOINTPARTS_H
#define CKOPT_LIB_TRAIN_DATA_CHECKPOINTPARTS_H

#include "ckopt/Train/Data/Checkpoint.h"

namespace ckopt {

/// The metadata that say how far a run is.
StringMetadata describeState(const TrainingState &state);
/// Removes the shares of a path, and what killed processes left of some, but
/// for those of the save `keep`. What cannot be removed stays.
void removeShares(llvm::StringRef path, int64_t keep);

} // namespace ckopt

#endif // CKOPT_LIB_TRAIN_DATA_CHECKPOINTPARTS_H
