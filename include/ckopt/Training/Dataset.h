//===- Dataset.h - samples from a .npz file, checked ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A dataset makes the arrays of a file the fields of samples. It finds every
// defect when loading, not in the middle of a training run: missing arrays,
// unequal sample counts, shapes, types, values that are not finite, labels out
// of range. Fields keep the file's type in memory and are converted batch by
// batch.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAINING_DATASET_H
#define CKOPT_TRAINING_DATASET_H

#include "ckopt/Support/HostTensor.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

class NpzReader;

/// "x=images": the model's name and the array's.
struct ArrayMapping {
  std::string name, array;
};

/// "x=images,mask=m"; "y" alone stands for "y=y". `flag` is named in errors.
llvm::Expected<std::vector<ArrayMapping>>
parseArrayMappings(llvm::StringRef text, llvm::StringRef flag);

/// The properties that a step expects of one array.
struct FieldSpec {
  std::string name;  ///< the model's input, or "target"
  std::string array; ///< in the file
  DType dtype = DType::F32;
  /// Shape of one sample (without the batch); of the whole array if not
  /// `batched`. Nothing: whatever the array has.
  std::optional<std::vector<int64_t>> shape;
  /// False: one constant for all samples, no batch dimension.
  bool batched = true;
  /// Values are labels of this many classes.
  std::optional<int64_t> classes;
  std::optional<int64_t> ignoreIndex;
  /// Values are -1 or 1.
  bool signs = false;
};

class Dataset {
public:
  /// Reads the arrays of `fields` from the .npz at `path` and checks them; one
  /// error lists all defects.
  static llvm::Expected<Dataset> load(llvm::StringRef path,
                                      llvm::ArrayRef<FieldSpec> fields);
  /// The same from tensors in memory; `what` names them in errors.
  static llvm::Expected<Dataset> fromTensors(const TensorMap &tensors,
                                             llvm::ArrayRef<FieldSpec> fields,
                                             llvm::StringRef what);

  int64_t numSamples() const { return samples; }
  size_t numFields() const { return fields.size(); }
  const FieldSpec &spec(size_t field) const { return fields[field]; }
  /// Returns the array as the file has it.
  const HostTensor &tensor(size_t field) const { return arrays[field]; }
  /// Returns the number of elements of one sample (of the array if not
  /// batched).
  int64_t sampleElements(size_t field) const;

  /// Copies the samples `indices` one after another to `to`, converted to the
  /// field's type. A field that is not batched is copied whole.
  void gather(size_t field, llvm::ArrayRef<int64_t> indices, void *to) const;
  /// Returns these samples as a tensor [indices, sample shape...].
  HostTensor batch(size_t field, llvm::ArrayRef<int64_t> indices) const;

private:
  llvm::Error check(llvm::StringRef what);
  llvm::Error checkField(size_t field) const;

  int64_t samples = 0;
  std::vector<FieldSpec> fields;
  std::vector<HostTensor> arrays;
};

/// Sample indices, each part ascending.
struct DataSplit {
  std::vector<int64_t> train, holdout;
};

/// Holds out floor(count * fraction) samples, chosen by a seeded shuffle; 0
/// holds out none. An error where one part would be empty otherwise.
llvm::Expected<DataSplit> splitHoldout(int64_t count, double fraction,
                                       uint64_t seed);

/// The position of a training run in its data: all that resuming needs.
struct DataPosition {
  int64_t epoch = 0;
  int64_t position = 0; ///< samples of this epoch already used
  bool operator==(const DataPosition &) const = default;
};

/// Iterates over training batches. Every epoch is a new permutation of the
/// samples keyed by (seed, epoch); samples at its end that do not fill a batch
/// are dropped.
class BatchIterator {
public:
  /// Makes an iterator; an error if the samples do not fill one batch, or no
  /// batch can begin at `start`.
  static llvm::Expected<BatchIterator> create(std::vector<int64_t> samples,
                                              int64_t batchSize, uint64_t seed,
                                              DataPosition start = {});

  /// Returns the sample indices of the next batch, and begins a new epoch at
  /// the end of one. Valid until the next call.
  llvm::ArrayRef<int64_t> next();
  /// Returns the position of the batch that `next` gives. The end of an epoch
  /// is the start of the following one.
  DataPosition position() const { return at; }
  int64_t batchesPerEpoch() const {
    return int64_t(samples.size()) / batchSize;
  }
  int64_t droppedPerEpoch() const {
    return int64_t(samples.size()) % batchSize;
  }

private:
  BatchIterator() = default;
  void makeOrder();

  std::vector<int64_t> samples, order;
  int64_t batchSize = 1;
  uint64_t seed = 0;
  DataPosition at;
  int64_t orderEpoch = -1;
};

/// One batch of an evaluation. It is always full: the last one is filled up
/// with copies of its first sample, which `mask` leaves out.
struct EvalBatch {
  std::vector<int64_t> indices; ///< batchSize of them
  std::vector<uint8_t> mask;    ///< 1: counts
  int64_t valid = 0;
};
std::vector<EvalBatch> evaluationBatches(llvm::ArrayRef<int64_t> samples,
                                         int64_t batchSize);

} // namespace ckopt

#endif // CKOPT_TRAINING_DATASET_H
