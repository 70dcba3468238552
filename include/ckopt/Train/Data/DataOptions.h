//===- DataOptions.h - options of the samples -------------------*- C++ -*-===//
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
  /// A folder for unpacked compressed arrays, which later runs use again; "":
  /// they are unpacked into memory.
  std::string cache;
  /// Or a file of tokens (openTokenFile), whose arrays are `tokens` and `next`.
  std::string tokens;
  DType tokenType = DType::U16;
  int64_t sequence = 0; ///< tokens of a sample
  /// Or a folder of images by class.
  std::string images;
  ImageOptions imageOptions;
  /// The classes that labels stand for, in order; empty: those of the folder.
  std::vector<std::string> classNames;
  /// The fields of the caller's own source, instead of a path. The type of
  /// targets decides what the loss leaves open.
  std::vector<SourceField> fields;
  std::string inputs;  ///< "x=images,mask=m": model input = array
  std::string targets; ///< array, or "depth=d,class=c": output = array
  /// Further metrics of evaluations, in addition to the loss, and the accuracy
  /// of labels.
  std::vector<Metric> metrics;
  /// Gets messages on ignored parts of files and on classes; null: the step's
  /// own handler, or standard error.
  MessageHandler messages;

  /// The array of targets if none is named.
  std::string usualTargets() const { return tokens.empty() ? "y" : "next"; }
  bool isStream() const { return path == "-"; }
  /// Tells whether the options name files.
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

/// The samples of a compiled step: their source, and how its losses read them.
struct StepData : DataOptions {
  HostLoss loss = HostLoss::None;
  std::string scores;    ///< the output that it evaluates; "": the first
  bool classify = false; ///< its targets are labels, so there is an accuracy
  std::optional<int64_t> classAxis;
  /// Gets a message on the first target that should be a probability and is
  /// not.
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

/// Returns the pairs of inputs and arrays in `--inputs`.
llvm::Expected<std::vector<ArrayMapping>>
inputMappings(const DataOptions &options);
/// Returns the array of a tensor: the one that is mapped to it, else `usual`.
std::string arrayOf(llvm::StringRef tensor,
                    llvm::ArrayRef<ArrayMapping> mappings,
                    llvm::StringRef usual);

/// Tells whether a file of tokens has the array.
bool takesTokens(llvm::StringRef array);
/// Refuses samples whose number of tokens differs from that of an input of
/// shape [batch, ...].
llvm::Error checkSequence(llvm::StringRef input, llvm::ArrayRef<int64_t> shape,
                          const DataOptions &options);

} // namespace ckopt

#endif // CKOPT_TRAIN_DATA_DATAOPTIONS_H
