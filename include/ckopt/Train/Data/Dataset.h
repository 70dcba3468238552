//===- Dataset.h - samples from a .npz file, checked ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A dataset turns arrays of files into the fields of samples. It finds every
// defect when loading, not in the middle of a training run: missing arrays,
// unequal sample counts, wrong shapes and types, values that are not finite,
// labels out of range. Files are mapped if possible
// (ckopt/Support/ArrayFile.h); fields keep the file's type and are converted
// batch by batch.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_DATA_DATASET_H
#define CKOPT_TRAIN_DATA_DATASET_H

#include "ckopt/Base/MessageText.h"
#include "ckopt/Support/ArrayFile.h"
#include "ckopt/Train/Data/BatchSource.h"
#include "ckopt/Train/Data/Fields.h"
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
parseArrayMappings(llvm::StringRef text, const MessageText &flag);

class Dataset {
public:
  /// Reads or maps the arrays of `fields` and checks them; one error lists all
  /// defects. The samples of several files are concatenated; `name` names the
  /// files together.
  static llvm::Expected<Dataset> fromFiles(llvm::StringRef name,
                                           llvm::ArrayRef<ArrayFile> files,
                                           llvm::ArrayRef<FieldSpec> fields);
  /// The same for tensors in memory; `what` names them in errors.
  static llvm::Expected<Dataset> fromTensors(const TensorMap &tensors,
                                             llvm::ArrayRef<FieldSpec> fields,
                                             llvm::StringRef what);

  /// Returns the file that the samples are from, for messages.
  const std::string &name() const { return source; }
  /// Returns a description of the samples that does not depend on names of
  /// files and arrays: count, types, shapes and a hash of each field in each
  /// file. O(bytes).
  std::string fingerprint() const;
  int64_t numSamples() const { return samples; }
  size_t numFields() const { return fields.size(); }
  const FieldSpec &spec(size_t field) const { return fields[field]; }
  /// Returns the type that the file has.
  DType storedType(size_t field) const { return arrays[field].front().dtype; }
  /// Returns the shape of one sample (of the array if not batched).
  llvm::ArrayRef<int64_t> sampleShape(size_t field) const;
  /// Returns the number of elements of one sample.
  int64_t sampleElements(size_t field) const;
  /// Returns the bytes of all arrays, or only of those that are not mapped.
  int64_t sizeInBytes(bool withMapped) const;

  /// Copies the samples `indices` one after another to `to`, converted to the
  /// field's type. A field that is not batched is copied whole.
  void gather(size_t field, llvm::ArrayRef<int64_t> indices, void *to) const;
  /// Names a sample: by its place in its file, which is named if there are
  /// several.
  std::string nameSample(int64_t sample) const;

private:
  size_t fileOf(int64_t sample) const;
  llvm::Error addFile(const ArrayFile &file);
  llvm::Error addPart(std::vector<HostArray> parts, llvm::StringRef file);

  std::string source;
  int64_t samples = 0;
  std::vector<FieldSpec> fields;
  /// One array for each file; only one if it is a constant.
  std::vector<std::vector<HostArray>> arrays;
  std::vector<int64_t> firsts; ///< the first sample of each file
  std::vector<std::string> files;
};

/// Opens a file of tokens, numbers without any header, as two arrays of
/// samples: `tokens` [n, sequence] holds consecutive sequences, `next` the
/// token that follows each token. Tokens at the end that do not fill a sequence
/// are left out.
llvm::Expected<ArrayFile> openTokenFile(llvm::StringRef path, DType type,
                                        int64_t sequence);

/// The samples of a dataset, in a new order each epoch, or always in the order
/// of the file.
class DatasetSource : public BatchSource {
public:
  enum class Order { Shuffled, AsStored };
  explicit DatasetSource(Dataset data, Order order = Order::Shuffled);

  std::string name() const override { return data.name(); }
  llvm::ArrayRef<SourceField> fields() const override { return list; }
  std::optional<int64_t> numSamples() const override {
    return samples ? int64_t(samples->size()) : data.numSamples();
  }
  bool canSeek() const override { return true; }
  llvm::Error seek(uint64_t seed, DataPosition place) override;
  llvm::Expected<int64_t> next(int64_t count,
                               llvm::ArrayRef<void *> to) override {
    return nextRows(count, {0, count}, to);
  }
  bool readsRows() const override { return true; }
  llvm::Expected<int64_t> nextRows(int64_t count, RowRange rows,
                                   llvm::ArrayRef<void *> to) override;
  std::string identity() const override { return data.fingerprint(); }
  bool isChecked() const override { return true; }
  std::string nameSample(int64_t i) const override;
  int64_t bytesInMemory() const override {
    return data.sizeInBytes(/*withMapped=*/false);
  }
  llvm::Expected<std::unique_ptr<BatchSource>> holdOut(double share,
                                                       uint64_t seed) override;

private:
  Dataset data;
  Order order;
  std::vector<SourceField> list;
  /// Nothing: all samples. The numbers have 32 bits to save memory in large
  /// data sets.
  std::optional<std::vector<uint32_t>> samples;
  std::vector<uint32_t> sequence; ///< empty: as stored
  int64_t at = 0;
  /// The samples of the last batch, and the place of the first one in it.
  std::vector<int64_t> last;
  int64_t lastFirst = 0;
};

} // namespace ckopt

#endif // CKOPT_TRAIN_DATA_DATASET_H
