//===- StepRunImpl.h - the state of a StepRun -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRAIN_STEPRUNIMPL_H
#define CKOPT_LIB_TRAIN_STEPRUNIMPL_H

#include "Updates.h"
#include "ckopt/Train/RunChecks.h"
#include "ckopt/Train/StepRun.h"
#include "ckopt/Train/TrainRanks.h"

namespace ckopt {

/// Where a run is; steps of one arena share it.
struct StepPlace {
  int64_t updates = 0;
  int64_t epochs = 0; ///< that fit() began
  /// Batches of the current update that were added up, and their losses.
  int64_t pending = 0;
  double pendingLoss = 0;
  DivergenceWatch watch;
  SkipWatch skips;
};

/// The arrays of a batch, on the host and on the step's device.
struct Batch {
  const TensorMap &host;
  llvm::ArrayRef<DeviceArray> onDevice;
};

/// A batch that was started, and whose loss was not taken.
struct StartedBatch {
  int64_t update = 0; ///< that it is a part of
  bool updates = true;
  int64_t loss = -1; ///< its tensor, which is copied to the host; -1: is known
  StepResult result;
};

struct StepRun::Impl {
  Impl(CompiledStep step, const TrainOptions &train,
       std::shared_ptr<StepPlace> shared)
      : compiled(std::move(step)), train(train), data(compiled.data()),
        place(std::move(shared)) {}

  llvm::Error open(const LoadOptions &load);
  StringMetadata identity() const;
  /// Whether ranks share weights: then they also make calls together that only
  /// look.
  bool isSharded() const { return session->isSharded(); }
  /// Ranks::meet() for calls that all ranks make in any case.
  llvm::Error meet(Meeting meeting, llvm::Error own) const;
  /// The same for calls that ranks with shards alone make together.
  llvm::Error meetSharing(const Meeting &meeting, llvm::Error own) const;
  /// Refuse arrays that no field has.
  llvm::Error checkArray(const std::string &name) const;
  llvm::Error checkArrays(const TensorMap &arrays) const;
  llvm::Error feedBatch(const Batch &batch, Call call);
  llvm::Error feedFromDevice(const Batch &arrays) const;
  bool copiesOnDevice(const FieldSpec &field) const;
  llvm::Error checkDeviceArray(const FieldSpec &field,
                               const DeviceArray &array) const;
  llvm::Error checkCount(int64_t samples) const;
  llvm::Expected<Dataset> readSamples(const TensorMap &arrays,
                                      llvm::ArrayRef<FieldSpec> wanted) const;
  llvm::Expected<Dataset> readBatch(const TensorMap &arrays) const;
  llvm::Error checkAveraged(bool averaged) const;
  llvm::Expected<TensorMap> collectWeights(bool averaged) const;
  llvm::Expected<double> runNext();
  llvm::Error check(double updateLoss, int64_t update);
  llvm::Expected<std::optional<StepResult>> stepLater(const Batch &batch);
  llvm::Expected<std::optional<StepResult>> settle();
  /// The same for calls to which its result is nothing.
  llvm::Error finish() { return settle().takeError(); }
  llvm::Error goOn(int64_t from);
  llvm::Error checkLike(const Impl &other) const;
  llvm::Expected<StepResult> step(const Batch &batch);

  CompiledStep compiled;
  TrainOptions train;
  StepData data;
  std::unique_ptr<Session> session;
  std::vector<FieldSpec> fields;
  int64_t number = 0; ///< in the order in which all ranks compiled, from 1
  int64_t batch = 1;  ///< samples of all ranks
  std::vector<std::string> classes; ///< of the samples of the last fit()
  bool isSet = true;                ///< weights were set since the last batch
  uint64_t given = 0;               ///< a hash of what they were set to
  std::optional<StartedBatch> started;
  std::shared_ptr<StepPlace> place;
  int64_t &updates = place->updates;
  int64_t &epochs = place->epochs;
  int64_t &pending = place->pending;
  double &pendingLoss = place->pendingLoss;
  DivergenceWatch &watch = place->watch;
  SkipWatch &skips = place->skips;
};

} // namespace ckopt

#endif // CKOPT_LIB_TRAIN_STEPRUNIMPL_H
