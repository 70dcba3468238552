//===- ReadAhead.h - the next batch while a step runs -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading and converting a batch takes time that a step could use. This source
// therefore has a thread that reads the next batch from another source during a
// step. Samples and their order are those of the other source.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_DATA_READAHEAD_H
#define CKOPT_TRAIN_DATA_READAHEAD_H

#include "ckopt/Train/Data/BatchSource.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <memory>

namespace ckopt {

class ReadAheadSource : public BatchSource {
public:
  explicit ReadAheadSource(std::unique_ptr<BatchSource> source);
  ~ReadAheadSource() override;

  std::string name() const override { return source->name(); }
  llvm::ArrayRef<SourceField> fields() const override {
    return source->fields();
  }
  std::optional<int64_t> numSamples() const override {
    return source->numSamples();
  }
  bool canSeek() const override { return source->canSeek(); }
  llvm::Error seek(uint64_t seed, DataPosition place) override;
  llvm::Expected<int64_t> next(int64_t count,
                               llvm::ArrayRef<void *> to) override;
  bool readsRows() const override { return source->readsRows(); }
  llvm::Expected<int64_t> nextRows(int64_t count, RowRange rows,
                                   llvm::ArrayRef<void *> to) override;
  llvm::Expected<int64_t>
  nextTensors(int64_t count, std::optional<RowRange> rows,
              llvm::MutableArrayRef<HostTensor> to) override;
  std::string identity() const override { return source->identity(); }
  bool isChecked() const override { return source->isChecked(); }
  std::string nameSample(int64_t i) const override;
  std::vector<std::string> classNames() const override {
    return source->classNames();
  }
  int64_t bytesInMemory() const override { return source->bytesInMemory(); }
  llvm::Expected<std::unique_ptr<BatchSource>> holdOut(double share,
                                                       uint64_t seed) override;

private:
  class Reader;
  /// A request for the next batch.
  struct Part {
    int64_t count = 0;
    std::optional<RowRange> rows; ///< nothing: all
    bool operator==(const Part &) const = default;
    int64_t within(int64_t samples) const {
      return rows ? rows->within(samples) : samples;
    }
  };
  /// Gives a field's samples, which are `bytes` at the front of `read`.
  using Give =
      llvm::function_ref<void(size_t field, HostTensor &read, size_t bytes)>;
  llvm::Expected<int64_t> next(const Part &part, Give give);

  std::unique_ptr<BatchSource> source;
  std::unique_ptr<Reader> reader;
};

} // namespace ckopt

#endif // CKOPT_TRAIN_DATA_READAHEAD_H
