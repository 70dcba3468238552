//===- StepRunImpl.h - the state of a StepRun -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_DRIVER_STEPRUNIMPL_H
#define CKOPT_LIB_DRIVER_STEPRUNIMPL_H

#include "RunChecks.h"
#include "Updates.h"
#include "ckopt/Driver/StepRun.h"

namespace ckopt {

struct StepRun::Impl {
  Impl(CompiledStep step, const TrainOptions &train)
      : compiled(std::move(step)), train(train), data(compiled.data()) {}

  llvm::Error open(const LoadOptions &load);
  StringMetadata identity() const;
  llvm::Error checkArrays(const TensorMap &arrays) const;
  llvm::Error feedBatch(const TensorMap &batch);
  llvm::Expected<Dataset> readBatch(const TensorMap &arrays) const;
  llvm::Expected<double> runNext();
  llvm::Error check(double updateLoss);
  llvm::Expected<StepResult> step(const TensorMap &batch);

  CompiledStep compiled;
  TrainOptions train;
  DataOptions data;
  std::unique_ptr<Session> session;
  std::vector<FieldSpec> fields;
  int64_t batch = 1; ///< samples of all ranks
  int64_t updates = 0;
  int64_t epochs = 0;               ///< that fit() began
  std::vector<std::string> classes; ///< of the samples of the last fit()
  /// Batches of the current update that were added up, and their losses.
  int64_t pending = 0;
  double pendingLoss = 0;
  bool isSet = true; ///< weights were set since the last batch
  DivergenceWatch watch;
  SkipWatch skips;
};

} // namespace ckopt

#endif // CKOPT_LIB_DRIVER_STEPRUNIMPL_H
