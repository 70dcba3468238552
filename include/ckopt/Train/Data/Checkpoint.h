//===- Checkpoint.h - a training run on disk --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A checkpoint is a safetensors file with every tensor that a step changes
// (parameters, running statistics, optimizer state); its metadata say how far
// the run is, and which frozen weights it had: their names, types, shapes and
// hashes, since their values are the model's. A run resumed from it has the
// bits of an uninterrupted one. The file is written atomically, so that the
// previous checkpoint stays whole on failure. In a run of several processes
// each writes a share, and the file is their index (ckopt/Base/ShardedFile.h).
// It is written last, and completes the checkpoint.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_DATA_CHECKPOINT_H
#define CKOPT_TRAIN_DATA_CHECKPOINT_H

#include "ckopt/Base/ShardedFile.h"
#include "ckopt/Support/StoredTensors.h"
#include "ckopt/Support/TensorParts.h"
#include "ckopt/Train/Data/Dataset.h"
#include <optional>

namespace ckopt {

/// The best evaluation of a run so far.
struct BestEvaluation {
  std::string metric; ///< the metric (Metric::name)
  double value = 0;
  int64_t step = 0;  ///< the step after which it was found
  int64_t since = 0; ///< evaluations since then, none of them better
  bool operator==(const BestEvaluation &) const = default;
};

/// A weight that a run reads and never changes, without its values.
struct FrozenTensor {
  TensorSpec spec;
  uint64_t hash = 0; ///< of its bytes, row-major and whole (ContentHash)
  /// A constant of the model's file, such as a weight in few bits. Those that
  /// both runs have under one name are compared.
  bool isConstant = false;
};

struct TrainingState {
  int64_t step = 0; ///< steps done
  DataPosition data;
  uint64_t seed = 0;
  /// Options that the bits of the run depend on (optimizer, batch, loss, ...),
  /// compared when resuming; keys without "ckopt.".
  StringMetadata options;
  std::optional<BestEvaluation> best = {};
  /// Weights that the checkpoint leaves out. Those of earlier versions hold
  /// frozen weights as other tensors.
  std::vector<FrozenTensor> frozen = {};
};

struct Checkpoint {
  TensorMap tensors;
  TrainingState state;
};

/// A checkpoint whose tensors are read on demand.
struct OpenCheckpoint {
  StoredTensors tensors;
  TrainingState state;
};

/// Writes a checkpoint of one process; it may replace one of several. One block
/// of a tensor is in memory at a time.
llvm::Error writeCheckpoint(llvm::StringRef path, TensorParts &tensors,
                            const TrainingState &state);
llvm::Error writeCheckpoint(llvm::StringRef path, const Checkpoint &checkpoint);
/// Opens a checkpoint of any number of processes.
llvm::Expected<OpenCheckpoint> openCheckpoint(llvm::StringRef path);
/// Reads the whole checkpoint.
llvm::Expected<Checkpoint> readCheckpoint(llvm::StringRef path);

//===----------------------------------------------------------------------===//
// Shares of several processes
//===----------------------------------------------------------------------===//

/// Makes the folder for shares of `path`, and returns a number of a save that
/// no file in it has.
llvm::Expected<int64_t> beginSave(llvm::StringRef path);
/// Writes one process's share. `read` returns the elements of a part; it is
/// called twice for each, first for the header's checksums. This function sets
/// the hashes.
llvm::Expected<ShardFile> writeShare(
    llvm::StringRef path, int64_t save, int64_t rank, int64_t ranks,
    std::vector<ShardPart> parts,
    llvm::function_ref<llvm::Expected<HostTensor>(const ShardPart &)> read);
/// Writes the index, which completes the checkpoint, and removes the shares of
/// others. An error if a share is not visible here.
llvm::Error finishSave(llvm::StringRef path, const TrainingState &state,
                       llvm::ArrayRef<ShardFile> shares);

/// Compares tensors with those that a step needs. One error lists all that are
/// missing, unexpected, or of another type or shape.
llvm::Error checkTensors(llvm::ArrayRef<TensorSpec> tensors,
                         llvm::ArrayRef<TensorSpec> expected,
                         llvm::StringRef what);
/// An option with different values in two runs.
struct OptionDifference {
  MessageText name;
  std::string was, is; ///< as users write them; "not set"
};

/// Returns the options that differ, by name.
std::vector<OptionDifference> compareOptions(const StringMetadata &saved,
                                             const StringMetadata &current);

/// Compares options. The error lists each one whose value differs from the
/// checkpoint's.
llvm::Error checkOptions(const StringMetadata &saved,
                         const StringMetadata &current, llvm::StringRef what);

} // namespace ckopt

#endif // CKOPT_TRAIN_DATA_CHECKPOINT_H
