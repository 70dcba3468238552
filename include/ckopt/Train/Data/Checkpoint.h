//===- Checkpoint.h - a training run on disk --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A checkpoint is a safetensors file with every tensor that a step changes
// (parameters, running statistics, optimizer state); its metadata say how far
// the run is. A run resumed from it is bit-equal to an unbroken one. The file
// is written atomically, so that the previous checkpoint stays whole on
// failure. Of a run of several processes each writes a share, and the file is
// their index (ckopt/Base/ShardedFile.h): it is written last, and only then is
// the checkpoint there.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_DATA_CHECKPOINT_H
#define CKOPT_TRAIN_DATA_CHECKPOINT_H

#include "ckopt/Base/ShardedFile.h"
#include "ckopt/Support/StoredTensors.h"
#include "ckopt/Train/Data/Dataset.h"
#include <optional>

namespace ckopt {

/// The best evaluation of a run so far.
struct BestEvaluation {
  std::string metric; ///< what it was judged by (Metric::name)
  double value = 0;
  int64_t step = 0;  ///< after which it was found
  int64_t since = 0; ///< evaluations that were no better since
  bool operator==(const BestEvaluation &) const = default;
};

struct TrainingState {
  int64_t step = 0; ///< steps done
  DataPosition data;
  uint64_t seed = 0;
  /// Options that the bits of the run depend on (optimizer, batch, loss, ...),
  /// compared when resuming; keys without "ckopt.".
  StringMetadata options;
  std::optional<BestEvaluation> best;
};

struct Checkpoint {
  TensorMap tensors;
  TrainingState state;
};

/// A checkpoint whose tensors are read where they are asked for.
struct OpenCheckpoint {
  StoredTensors tensors;
  TrainingState state;
};

/// Writes a checkpoint of one process, in place of one of several, too.
llvm::Error writeCheckpoint(llvm::StringRef path, const Checkpoint &checkpoint);
/// Opens a checkpoint of any number of processes.
llvm::Expected<OpenCheckpoint> openCheckpoint(llvm::StringRef path);
/// Reads all of it.
llvm::Expected<Checkpoint> readCheckpoint(llvm::StringRef path);

//===----------------------------------------------------------------------===//
// Shares of several processes
//===----------------------------------------------------------------------===//

/// Makes the folder for shares of `path`, and returns the number of a save that
/// nothing in it has.
llvm::Expected<int64_t> beginSave(llvm::StringRef path);
/// Writes one process's share. `read` gives the elements of a part; it is asked
/// twice for each, first to sum up what the header says. The result's hashes
/// are left to it.
llvm::Expected<ShardFile> writeShare(
    llvm::StringRef path, int64_t save, int64_t rank, int64_t ranks,
    std::vector<ShardPart> parts,
    llvm::function_ref<llvm::Expected<HostTensor>(const ShardPart &)> read);
/// Writes the index, with which the checkpoint is complete, and removes the
/// shares of others. An error where a share cannot be seen here.
llvm::Error finishSave(llvm::StringRef path, const TrainingState &state,
                       llvm::ArrayRef<ShardFile> shares);

/// Compares tensors with those that a step needs. One error lists all that are
/// missing, unexpected, or of another type or shape.
llvm::Error checkTensors(llvm::ArrayRef<TensorSpec> tensors,
                         llvm::ArrayRef<TensorSpec> expected,
                         llvm::StringRef what);
/// An option whose value is another one in another run.
struct OptionDifference {
  MessageText name;
  std::string was, is; ///< as people write them; "not set"
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
