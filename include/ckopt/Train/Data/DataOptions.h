//===- DataOptions.h - where samples come from ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_DATA_DATAOPTIONS_H
#define CKOPT_TRAIN_DATA_DATAOPTIONS_H

#include "ckopt/Support/Choice.h"
#include "ckopt/Support/Messages.h"
#include "ckopt/Train/Data/Dataset.h"
#include "ckopt/Train/Data/ImageFolder.h"
#include "ckopt/Train/Data/Metrics.h"

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace ckopt {

/// Where samples come from.
struct DataOptions {
  /// A file or folder of arrays, or a pattern of files
  /// (ckopt/Support/ArrayFile.h); "-": standard input
  /// (ckopt/Train/Data/ArrayStream.h).
  std::string path;
  /// A folder that compressed arrays are unpacked to once; "": into memory.
  std::string cache;
  /// Or a file of tokens (openTokenFile), whose arrays are `tokens` and `next`.
  std::string tokens;
  DType tokenType = DType::U16;
  int64_t sequence = 0; ///< tokens of a sample
  /// Or a folder of images by class.
  std::string images;
  ImageOptions imageOptions;
  /// The classes that its labels count, in order; empty: those of the folder.
  std::vector<std::string> classNames;
  /// The fields of a source of the caller's own, instead of a path. The type of
  /// targets settles what the loss leaves open.
  std::vector<SourceField> fields;
  std::string inputs;  ///< "x=images,mask=m": model input = array
  std::string targets; ///< array, or "depth=d,class=c": output = array
  /// What evaluations compute beside the loss, and the accuracy of labels.
  std::vector<Metric> metrics;
  /// Gets what is left out of files, and which classes there are; null: the
  /// step's own handler, or standard error.
  MessageHandler messages;

  /// The array of targets where none is named.
  std::string usualTargets() const { return tokens.empty() ? "y" : "next"; }
  bool isStream() const { return path == "-"; }
  /// Tells whether files are named.
  bool namesFiles() const {
    return !path.empty() || !tokens.empty() || !images.empty();
  }
};

/// The attached losses that the host evaluates; None: the evaluation function
/// returns the loss.
enum class HostLoss { None, CrossEntropy, SquaredError };
inline ChoiceNames choiceNames(HostLoss) {
  static constexpr const char *names[] = {"", "cross_entropy", "mse"};
  return names;
}

/// The samples of a compiled step: where they come from, and how its losses
/// read them.
struct StepData : DataOptions {
  HostLoss loss = HostLoss::None;
  std::string scores;    ///< the output that it is of; "": the first
  bool classify = false; ///< its targets are labels: accuracy makes sense
  std::optional<int64_t> classAxis;
  /// Gets the first target that should be a probability, and is none.
  std::function<void(const std::string &)> warn;
  /// The output of the model that each target of an attached loss is for.
  std::map<std::string, std::string> targetOutputs;
};

/// Tells whether an evaluation has an accuracy.
bool classifies(const StepData &data);

/// Opens the files that `options` name.
llvm::Expected<std::vector<ArrayFile>> openFiles(const DataOptions &options);
/// Returns the array that holds the targets of a loss attached to this output.
llvm::Expected<std::string> targetArrayOf(const DataOptions &options,
                                          llvm::StringRef output);

/// Returns what `--inputs` says of inputs and arrays.
llvm::Expected<std::vector<ArrayMapping>>
inputMappings(const DataOptions &options);
/// Returns the array of a tensor: the one that is mapped to it, else `usual`.
std::string arrayOf(llvm::StringRef tensor,
                    llvm::ArrayRef<ArrayMapping> mappings,
                    llvm::StringRef usual);

/// Tells whether a file of tokens has the array.
bool takesTokens(llvm::StringRef array);
/// Refuses samples of another number of tokens than an input of shape [batch,
/// ...] takes.
llvm::Error checkSequence(llvm::StringRef input, llvm::ArrayRef<int64_t> shape,
                          const DataOptions &options);

} // namespace ckopt

#endif // CKOPT_TRAIN_DATA_DATAOPTIONS_H
