//===- Feeding.h - feeds batches of a source to a session -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_FEEDING_H
#define CKOPT_TRAIN_FEEDING_H

#include "ckopt/Train/Training.h"

namespace ckopt {

/// Returns the step's requirements on each input and target.
llvm::Expected<std::vector<FieldSpec>> describeFields(const Session &session,
                                                      const StepData &data);

/// One batch between a source and a session.
class Feeder {
public:
  /// The part of a batch that this rank reads.
  enum class Rows {
    All,    ///< a separate batch
    Common, ///< the batch of all ranks, which must be equal on all; the rank
            ///< uses its part
    Own,    ///< only its part of that, if the source can read single samples
  };
  /// Matches the source's fields with the step's inputs and targets. Fields
  /// that are missing, unknown or of another shape are errors; without
  /// `needTargets` targets may be missing.
  static llvm::Expected<Feeder> create(Session &session, BatchSource &source,
                                       const StepData &data,
                                       bool needTargets = true,
                                       Rows rows = Rows::All);

  /// Returns the number of samples of a batch of all ranks.
  int64_t batchSize() const { return batch; }
  /// Reads the next samples, up to a batch, and returns their number. An
  /// incomplete batch is filled with copies of its first sample, or with zeros
  /// if limits differ between places in the batch. `at` is the position of the
  /// first one, for errors.
  llvm::Expected<int64_t> load(DataPosition at);
  /// Tells other ranks whether there is a batch (`found`), and compares the
  /// batches if each rank reads all of it. An error of one rank is an error on
  /// all.
  llvm::Expected<bool> agree(llvm::Expected<bool> found);
  /// Writes the batch, or this rank's part of it, to the session; compares it
  /// before if agree() has not.
  llvm::Error write();
  /// Writes the batch's first samples to the session of a batch of that many.
  llvm::Error write(Session &smaller, int64_t samples);
  /// Compares the first sample behind `at` with rank 0's, if later ones are not
  /// compared: files that differ under one name usually differ from the start.
  llvm::Error compareFirst(uint64_t seed, DataPosition at);

  size_t numFields() const { return specs.size(); }
  const FieldSpec &spec(size_t field) const { return specs[field]; }
  /// Returns a field of the batch, in the source's type.
  const HostTensor &value(size_t field) const { return values[field]; }

private:
  Feeder(Session &session, BatchSource &source)
      : session(&session), source(&source) {}
  /// Returns the number of samples in `values`.
  int64_t numHeld() const { return own ? own->count : batch; }
  void fillUp(int64_t valid);
  llvm::Error writeField(Session &to, size_t field, const HostTensor &value,
                         int64_t first) const;
  std::string nameSample(int64_t i) const;
  llvm::Error check() const;

  Session *session;
  BatchSource *source;
  int64_t batch = 1, ranks = 1;
  bool compared = false;       ///< the batch was compared with the other ranks'
  DataPosition loadedAt;       ///< position of the batch's first sample
  std::optional<RowRange> own; ///< the part of a batch that `values` holds
  std::vector<FieldSpec> specs; ///< in the order of the source's fields
  std::vector<int64_t> tensors; ///< tensors of the session
  std::vector<HostTensor> values;
};

/// The batches of a training run, epoch after epoch: complete ones, and the
/// last of an epoch where smaller batches are taken.
class BatchStream {
public:
  /// Returns the session of a batch of fewer samples.
  using Smaller = llvm::function_ref<llvm::Expected<Session *>(int64_t)>;

  /// Begins at `start`; an error if no batch can begin there, or if the samples
  /// do not fill one.
  /// `least` is that of a last batch; 0: all are complete.
  static llvm::Expected<BatchStream> create(Feeder feeder, BatchSource &source,
                                            uint64_t seed, DataPosition start,
                                            int64_t least = 0);

  /// Writes the batch at position() to the session (or to one that `smaller`
  /// returns), goes on to the next, and returns its number of samples.
  llvm::Expected<int64_t> feed(Smaller smaller);
  /// Finds out whether the epoch has ended, if the source does not know its
  /// number of samples.
  llvm::Error lookAhead();
  /// Returns the position of the batch that `feed` writes. The end of an epoch
  /// is the start of the following one.
  DataPosition position() const { return at; }
  /// Returns the number of samples of the last epoch that did not fill a batch.
  int64_t dropped() const { return rest; }

private:
  BatchStream(Feeder feeder, BatchSource &source, uint64_t seed, int64_t least)
      : feeder(std::move(feeder)), source(&source), seed(seed), least(least),
        count(source.numSamples()) {}
  bool takes(int64_t samples) const { return least && samples >= least; }
  llvm::Expected<bool> take();
  llvm::Expected<bool> load();
  llvm::Error checkEnd();
  void endEpoch(int64_t left);

  Feeder feeder;
  BatchSource *source;
  uint64_t seed;
  int64_t least;
  std::optional<int64_t> count;
  DataPosition at;
  int64_t rest = 0;
  bool placed = false; ///< the source stands at `at`
  int64_t loaded = 0;  ///< the feeder has these samples of the batch at `at`
};

} // namespace ckopt

#endif // CKOPT_TRAIN_FEEDING_H
