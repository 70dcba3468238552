//===- Feeding.h - batches of a source for a session ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_FEEDING_H
#define CKOPT_TRAIN_FEEDING_H

#include "ckopt/Train/Training.h"

namespace ckopt {

/// Returns what the step expects of each input and target.
llvm::Expected<std::vector<FieldSpec>> describeFields(const Session &session,
                                                      const StepData &data);

/// One batch between a source and a session.
class Feeder {
public:
  /// What this rank reads of a batch.
  enum class Rows {
    All,    ///< a batch of its own
    Common, ///< that of all ranks, which must be equal on all; its part counts
    Own,    ///< its part of that, where the source can tell samples apart
  };
  /// Matches the source's fields with the step's inputs and targets. Those that
  /// are missing, not the step's, or of another shape are errors; without
  /// `needTargets` targets may be missing.
  static llvm::Expected<Feeder> create(Session &session, BatchSource &source,
                                       const StepData &data,
                                       bool needTargets = true,
                                       Rows rows = Rows::All);

  /// Returns the samples of a batch, of all ranks.
  int64_t batchSize() const { return batch; }
  /// Takes the next samples, up to a batch, and returns how many there were.
  /// A batch that is not full is filled up with copies of its first sample, or
  /// with zeros where its places have limits of their own.
  /// `at` is the place of the first one, for errors.
  llvm::Expected<int64_t> load(DataPosition at);
  /// Tells other ranks whether there is a batch (`found`), and compares them
  /// where each reads all of it. An error of one rank is one on all.
  llvm::Expected<bool> agree(llvm::Expected<bool> found);
  /// Writes the batch, or this rank's share of it, to the session; what
  /// agree() has not compared is compared before.
  llvm::Error write();
  /// Compares the first of the samples behind `at` with that of rank 0, where
  /// later ones are not: other files behind one name are mostly other ones from
  /// the start.
  llvm::Error compareFirst(uint64_t seed, DataPosition at);

  size_t numFields() const { return specs.size(); }
  const FieldSpec &spec(size_t field) const { return specs[field]; }
  /// Returns a field of the batch, in the source's type.
  const HostTensor &value(size_t field) const { return values[field]; }

private:
  Feeder(Session &session, BatchSource &source)
      : session(&session), source(&source) {}
  /// Returns the samples of a batch that `values` has room for.
  int64_t numHeld() const { return own ? own->count : batch; }
  void fillUp(int64_t valid);
  std::string nameSample(int64_t i) const;
  llvm::Error check() const;

  Session *session;
  BatchSource *source;
  int64_t batch = 1, ranks = 1;
  bool compared = false;        ///< the batch, with that of other ranks
  DataPosition loadedAt;        ///< of the batch's first sample
  std::optional<RowRange> own;  ///< all that `values` has of a batch
  std::vector<FieldSpec> specs; ///< in the order of the source's fields
  std::vector<int64_t> tensors; ///< of the session
  std::vector<HostTensor> values;
};

/// The batches of a training run: whole ones, epoch after epoch.
class BatchStream {
public:
  /// Begins at `start`; an error where no batch can begin there, or where the
  /// samples do not fill one.
  static llvm::Expected<BatchStream> create(Feeder feeder, BatchSource &source,
                                            uint64_t seed, DataPosition start);

  /// Writes the batch at position() to the session, and goes on to the next.
  llvm::Error feed();
  /// Finds out whether the epoch has ended, where the source cannot say how
  /// many samples it has.
  llvm::Error lookAhead();
  /// Returns the position of the batch that `feed` writes. The end of an epoch
  /// is the start of the following one.
  DataPosition position() const { return at; }
  /// Returns the samples of the last epoch that did not fill a batch.
  int64_t dropped() const { return rest; }

private:
  BatchStream(Feeder feeder, BatchSource &source, uint64_t seed)
      : feeder(std::move(feeder)), source(&source), seed(seed),
        count(source.numSamples()) {}
  llvm::Expected<bool> take();
  llvm::Expected<bool> load();
  llvm::Error checkEnd();
  void endEpoch(int64_t left);

  Feeder feeder;
  BatchSource *source;
  uint64_t seed;
  std::optional<int64_t> count;
  DataPosition at;
  int64_t rest = 0;
  bool placed = false; ///< the source stands at `at`
  bool loaded = false; ///< the feeder has the batch at `at`
};

} // namespace ckopt

#endif // CKOPT_TRAIN_FEEDING_H
