//===- Checkpoint.h - a training run on disk --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A checkpoint is a safetensors file with every tensor that a step changes
// (parameters, running statistics, optimizer state); its metadata say how far
// the run is. A run resumed from it is bit-equal to an unbroken one. The file
// is written atomically, so that the previous checkpoint stays whole on
// failure.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAINING_CHECKPOINT_H
#define CKOPT_TRAINING_CHECKPOINT_H

#include "ckopt/Support/HostTensor.h"
#include "ckopt/Support/Safetensors.h"
#include "ckopt/Training/Dataset.h"
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

/// A tensor that the step needs.
struct TensorSpec {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
};

llvm::Error writeCheckpoint(llvm::StringRef path, const Checkpoint &checkpoint);
llvm::Expected<Checkpoint> readCheckpoint(llvm::StringRef path);

/// Compares tensors with those that a step needs. One error lists all that are
/// missing, unexpected, or of another type or shape.
llvm::Error checkTensors(const TensorMap &tensors,
                         llvm::ArrayRef<TensorSpec> expected,
                         llvm::StringRef what);
/// Compares options. The error lists each one whose value differs from the
/// checkpoint's.
llvm::Error checkOptions(const StringMetadata &saved,
                         const StringMetadata &current, llvm::StringRef what);

} // namespace ckopt

#endif // CKOPT_TRAINING_CHECKPOINT_H
