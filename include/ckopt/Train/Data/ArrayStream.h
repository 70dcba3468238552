//===- ArrayStream.h - samples from a pipe ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program can write samples to a pipe while it makes them, as .npy arrays in
// the form of numpy.save to an open file. One array for each field makes a
// record, in the order of the fields. Any number of records follow each other,
// with any number of samples each, and are checked one by one. Memory: one
// record.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_DATA_ARRAYSTREAM_H
#define CKOPT_TRAIN_DATA_ARRAYSTREAM_H

#include "ckopt/Support/ArrayFile.h"
#include "ckopt/Train/Data/BatchSource.h"
#include "ckopt/Train/Data/Fields.h"
#include <cstdio>
#include <string>
#include <vector>

namespace ckopt {

class ArrayStreamSource : public BatchSource {
public:
  /// Reads from `stream`, which stays the caller's. All fields must be data of
  /// each sample, of known shapes.
  static llvm::Expected<std::unique_ptr<ArrayStreamSource>>
  create(std::FILE *stream, std::string name, std::vector<FieldSpec> fields);

  std::string name() const override { return streamName; }
  llvm::ArrayRef<SourceField> fields() const override { return list; }
  /// Cannot seek: a second epoch has no samples.
  llvm::Error seek(uint64_t seed, DataPosition place) override;
  llvm::Expected<int64_t> next(int64_t count,
                               llvm::ArrayRef<void *> to) override;
  bool isChecked() const override { return true; }
  int64_t bytesInMemory() const override { return mostBytes; }

private:
  ArrayStreamSource() = default;
  std::string place(size_t field) const;
  llvm::Expected<bool> readExactly(void *to, size_t bytes, const char *what);
  llvm::Expected<bool> readArray(size_t field, HostArray &array);
  llvm::Expected<bool> readRecord();

  std::FILE *stream = nullptr;
  std::string streamName;
  std::vector<FieldSpec> specs;
  std::vector<SourceField> list;
  std::vector<HostArray> record;
  int64_t number = 0;          ///< number of the record, from 1
  int64_t samples = 0, at = 0; ///< samples of the record, and the next one
  int64_t mostBytes = 0;       ///< most bytes of a record so far
};

} // namespace ckopt

#endif // CKOPT_TRAIN_DATA_ARRAYSTREAM_H
