//===- TrainLog.h - a training run, line by line ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRAIN_TRAINLOG_H
#define CKOPT_LIB_TRAIN_TRAINLOG_H

#include "ckopt/Train/Training.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <optional>
#include <string>

namespace ckopt {

/// A file with a line for each step: columns (.csv) or an object (.jsonl).
/// Lines are whole at any time, so that another program may read along.
class TrainLog {
public:
  /// Opens the file; null for "". A run that goes on behind step `after`
  /// appends to it, and takes lines of later steps away first: those were
  /// logged, and lost with what followed the checkpoint.
  /// With `scales` the loss's scale is one; `metrics` are columns beside loss
  /// and accuracy; a file with other columns is an error.
  static llvm::Expected<std::unique_ptr<TrainLog>>
  open(const std::string &path, llvm::ArrayRef<Metric> metrics, bool scales,
       std::optional<int64_t> after);
  llvm::Error add(const StepReport &step);

private:
  TrainLog() = default;
  llvm::Error write(const std::string &line);

  std::string path;
  bool isCsv = false, scales = false;
  std::vector<Metric> metrics;
  std::unique_ptr<llvm::raw_fd_ostream> stream;
};

} // namespace ckopt

#endif // CKOPT_LIB_TRAIN_TRAINLOG_H
