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

#include "ckopt/Training/BatchSource.h"
#include "ckopt/Training/Fields.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace ckopt {

/// "x=images": the model's name and the array's.
struct ArrayMapping {
  std::string name, array;
};

/// "x=images,mask=m"; "y" alone stands for "y=y". `flag` is named in errors.
llvm::Expected<std::vector<ArrayMapping>>
parseArrayMappings(llvm::StringRef text, llvm::StringRef flag);

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

  /// Returns the file that the samples are from, for messages.
  const std::string &name() const { return source; }
  /// Returns what the samples are, whatever file and arrays they came from:
  /// count, types, shapes and a hash of each field. O(bytes).
  std::string fingerprint() const;
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

private:
  llvm::Error check();

  std::string source;
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

/// The samples of a dataset, each epoch in a new order, or always in the order
/// of the file.
class DatasetSource : public BatchSource {
public:
  enum class Order { Shuffled, AsStored };
  explicit DatasetSource(Dataset data, Order order = Order::Shuffled);

  std::string name() const override { return data.name(); }
  llvm::ArrayRef<SourceField> fields() const override { return list; }
  std::optional<int64_t> numSamples() const override {
    return int64_t(samples.size());
  }
  bool canSeek() const override { return true; }
  llvm::Error seek(uint64_t seed, DataPosition place) override;
  llvm::Expected<int64_t> next(int64_t count,
                               llvm::ArrayRef<void *> to) override;
  std::string identity() const override { return data.fingerprint(); }
  bool isChecked() const override { return true; }
  int64_t bytesInMemory() const override;
  llvm::Expected<std::unique_ptr<BatchSource>> holdOut(double share,
                                                       uint64_t seed) override;

private:
  Dataset data;
  Order order;
  std::vector<SourceField> list;
  std::vector<int64_t> samples, sequence;
  size_t at = 0;
};

} // namespace ckopt

#endif // CKOPT_TRAINING_DATASET_H
