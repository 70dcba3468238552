//===- CheckpointTensors.h - what a checkpoint has of a session -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRAIN_CHECKPOINTTENSORS_H
#define CKOPT_LIB_TRAIN_CHECKPOINTTENSORS_H

#include "ckopt/Train/Data/Checkpoint.h"
#include "ckopt/Train/Session.h"

namespace ckopt {

/// Returns the weights that no update touches, as a checkpoint names them. Each
/// is read once, in blocks, until something writes it. If ranks share weights,
/// all of them must call this.
llvm::Expected<std::vector<FrozenTensor>>
describeFrozen(const Session &session);

/// Writes the tensors of a checkpoint into a session. Before anything is
/// written, tensors that are missing, unexpected, or of another type or shape
/// are one error, and so are frozen weights with other values than those that
/// the checkpoint's run had. Checkpoints of earlier versions hold these values,
/// which are loaded: returns the name of the first one that was another in the
/// session, or "". If ranks share weights, all of them must call this.
llvm::Expected<std::string> restoreTensors(Session &session,
                                           const OpenCheckpoint &checkpoint,
                                           llvm::StringRef what);

} // namespace ckopt

#endif // CKOPT_LIB_TRAIN_CHECKPOINTTENSORS_H
