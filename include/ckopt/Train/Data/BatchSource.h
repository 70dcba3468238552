//===- BatchSource.h - the source of a run's samples ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Training pulls its batches from a source: a file (Dataset.h), or a program's
// own class. A source describes the fields of a sample, seeks to a place in an
// epoch, and writes the following samples into buffers of the caller. The order
// of an epoch depends only on (seed, epoch), so that a resumed run sees the
// samples of an uninterrupted one. An example that makes its samples:
//
//   class Waves : public BatchSource {
//   public:
//     std::string name() const override { return "waves"; }
//     llvm::ArrayRef<SourceField> fields() const override { return list; }
//     std::optional<int64_t> numSamples() const override { return 1000; }
//     bool canSeek() const override { return true; }
//     llvm::Error seek(uint64_t seed, DataPosition place) override {
//       order = epochPermutation(1000, seed, place.epoch);
//       at = place.position;
//       return llvm::Error::success();
//     }
//     llvm::Expected<int64_t> next(int64_t count,
//                                  llvm::ArrayRef<void *> to) override {
//       count = std::min(count, 1000 - at);
//       for (int64_t i = 0; i < count; ++i, ++at) {
//         static_cast<float *>(to[0])[i] = float(order[at]) / 1000;
//         static_cast<float *>(to[1])[i] = std::sin(float(order[at]));
//       }
//       return count;
//     }
//   private:
//     std::vector<SourceField> list = {{"x", DType::F32, {1}},
//                                      {"target", DType::F32, {1}}};
//     std::vector<int64_t> order;
//     int64_t at = 0;
//   };
//
// Threads: a source is used by one thread at a time.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_DATA_BATCHSOURCE_H
#define CKOPT_TRAIN_DATA_BATCHSOURCE_H

#include "ckopt/Base/DType.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

class HostTensor;

/// The position of a training run in its data; resuming needs nothing else.
struct DataPosition {
  int64_t epoch = 0;
  int64_t position = 0; ///< samples of this epoch already used
  bool operator==(const DataPosition &) const = default;
};

/// One tensor of a sample.
struct SourceField {
  std::string name; ///< the step's name: an input of the model, or "target"
  DType dtype = DType::F32;
  std::vector<int64_t> shape; ///< shape of one sample, without the batch
  /// False: one constant for all samples, of this shape.
  bool batched = true;
};

/// A range of a batch's samples, counted from the first one.
struct RowRange {
  int64_t first = 0, count = 0;
  bool operator==(const RowRange &) const = default;
  /// Returns how many of these samples are in a batch of `samples`.
  int64_t within(int64_t samples) const {
    return std::clamp(samples - first, int64_t(0), count);
  }
};

class BatchSource {
public:
  virtual ~BatchSource() = default;

  /// Returns the source's name in messages: a file, "standard input".
  virtual std::string name() const = 0;
  /// Returns the fields, which never change. Types that differ from the step's
  /// are converted: floats are rounded, other values must fit.
  virtual llvm::ArrayRef<SourceField> fields() const = 0;
  /// Returns the number of samples of an epoch, or nothing if it is known only
  /// at the end.
  virtual std::optional<int64_t> numSamples() const { return std::nullopt; }
  /// Tells whether `seek` can go to any place. Else it can only go to the start
  /// of the next epoch, and a run cannot be resumed.
  virtual bool canSeek() const { return false; }
  /// Seeks to a place in the order of (seed, epoch). It is called before the
  /// first `next`, and after the end of an epoch.
  virtual llvm::Error seek(uint64_t seed, DataPosition place) = 0;
  /// Writes the next `count` samples, one after another, to the buffer `to[i]`
  /// of each field `i` (a constant once), and returns their number: fewer than
  /// `count` only at the end of the epoch.
  virtual llvm::Expected<int64_t> next(int64_t count,
                                       llvm::ArrayRef<void *> to) = 0;

  /// Tells whether `nextRows` reads only the requested samples.
  virtual bool readsRows() const { return false; }
  /// Advances by `count` samples as `next` does, and returns their number, but
  /// only writes those of `rows`: other processes read the others.
  virtual llvm::Expected<int64_t> nextRows(int64_t count, RowRange rows,
                                           llvm::ArrayRef<void *> to);

  /// Does the same with tensors of the caller, of all of the batch's samples or
  /// of `rows`. A source may exchange them for its own of the same types and
  /// shapes, so that what it has read ahead is not copied.
  virtual llvm::Expected<int64_t>
  nextTensors(int64_t count, std::optional<RowRange> rows,
              llvm::MutableArrayRef<HostTensor> to);

  /// Returns a description of the samples: a resumed run must have the same
  /// text. The default is the name, and the number of samples if it is known.
  virtual std::string identity() const;
  /// Tells whether every value was checked already. Otherwise each batch is
  /// checked for values that are not finite, and for labels and indices out of
  /// range.
  virtual bool isChecked() const { return false; }
  /// Names a sample of the last batch in errors ("a.npz: sample 12"); "":
  /// errors use its place in the epoch.
  virtual std::string nameSample(int64_t) const { return ""; }
  /// Returns the names of the classes, in the order of their labels, if the
  /// samples have classes.
  virtual std::vector<std::string> classNames() const { return {}; }
  /// Returns the bytes of samples that the source holds in memory.
  virtual int64_t bytesInMemory() const { return 0; }
  /// Removes a share of the samples from `next`, and returns these samples in
  /// their own order, which is always the same. Each call starts from all
  /// samples; a share of 0 gives null. Sources that cannot do it refuse.
  virtual llvm::Expected<std::unique_ptr<BatchSource>> holdOut(double share,
                                                               uint64_t seed);
};

/// The request of a CallbackSource for samples.
struct BatchRequest {
  uint64_t seed = 0;
  DataPosition at; ///< of the first sample
  int64_t count = 0;
  llvm::ArrayRef<void *> to; ///< a buffer for each field
};

/// A source that calls a function for each batch.
class CallbackSource : public BatchSource {
public:
  /// Returns how many samples it wrote: fewer than requested at the end of the
  /// epoch.
  using Function = std::function<llvm::Expected<int64_t>(const BatchRequest &)>;
  struct Options {
    std::string name = "callback";
    std::vector<SourceField> fields;
    std::optional<int64_t> numSamples;
    /// The function's samples depend only on the request.
    bool canSeek = false;
    std::string identity; ///< "": the default's
  };
  CallbackSource(Options options, Function function)
      : options(std::move(options)), function(std::move(function)) {}

  std::string name() const override { return options.name; }
  llvm::ArrayRef<SourceField> fields() const override { return options.fields; }
  std::optional<int64_t> numSamples() const override {
    return options.numSamples;
  }
  bool canSeek() const override { return options.canSeek; }
  std::string identity() const override {
    return options.identity.empty() ? BatchSource::identity()
                                    : options.identity;
  }
  llvm::Error seek(uint64_t seed, DataPosition place) override;
  llvm::Expected<int64_t> next(int64_t count,
                               llvm::ArrayRef<void *> to) override;

private:
  Options options;
  Function function;
  uint64_t seed = 0;
  DataPosition at;
};

} // namespace ckopt

#endif // CKOPT_TRAIN_DATA_BATCHSOURCE_H
