//===- Checkpoint.h - a training run on disk --------------------*- C++ -*-===//
//
// A safetensors file with every tensor that a step changes (parameters,
// running statistics, optimizer state) and, as metadata, where the run stands.
// A run resumed from it is bit-equal to an unbroken one. Written atomically:
// whatever happens while writing, the previous checkpoint stays whole.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAINING_CHECKPOINT_H
#define CKOPT_TRAINING_CHECKPOINT_H

#include "ckopt/Support/HostTensor.h"
#include "ckopt/Support/Safetensors.h"
#include "ckopt/Training/Dataset.h"

namespace ckopt {

struct TrainingState {
  int64_t step = 0; ///< steps done
  DataPosition data;
  uint64_t seed = 0;
  /// Options that the bits of the run depend on (optimizer, batch, loss, ...),
  /// compared when resuming; keys without "ckopt.".
  StringMetadata options;
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

/// Names all that differs, at once: tensors missing, not expected, of another
/// type or shape.
llvm::Error checkTensors(const TensorMap &tensors,
                         llvm::ArrayRef<TensorSpec> expected,
                         llvm::StringRef what);
/// Names every option whose value is another one than in the checkpoint.
llvm::Error checkOptions(const StringMetadata &saved,
                         const StringMetadata &current, llvm::StringRef what);

} // namespace ckopt

#endif // CKOPT_TRAINING_CHECKPOINT_H
