//===- Step.h - compile, load and train from a program ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs compile a model file to a step, load the step as a session, and
// train the session. The driver `ckopt` makes the same calls, so a program gets
// its checks, its defaults and its bits.
//
//   CompileOptions options;
//   options.model = "model.onnx";
//   options.step.loss = *parseLoss("cross_entropy");
//   options.step.remat.budget = *parseMemoryBudget("64MiB");
//   DataOptions where;
//   where.path = "train.npz";
//   auto step = compile(options, where);
//   auto session = step->load();
//   auto samples = openSource(**session, step->data());
//   auto result = step->train(**session, **samples, TrainOptions());
//   auto error = step->writeWeights(**session, "trained.onnx");
//
// For samples that are in no file, the caller writes a class
// (ckopt/Train/Data/BatchSource.h):
//
//   MySource samples;
//   auto step = compile(options, samples);
//   auto session = step->load();
//   auto result = step->train(**session, samples, TrainOptions());
//
// Ownership: a session keeps the code that it runs alive; a step may be
// destroyed before its sessions. Threads: a step and its sessions are used by
// one thread at a time. Errors carry exit codes (Support/Error.h).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_STEP_H
#define CKOPT_TRAIN_STEP_H

#include "ckopt/Compiler/CompileOptions.h"
#include "ckopt/Compiler/PlanSummary.h"
#include "ckopt/Train/Session.h"
#include "ckopt/Train/Training.h"

#include <memory>
#include <string>

namespace ckopt {

class Compilation;

struct LoadOptions {
  SessionOptions session;
  /// Initial weights by name, instead of the model's own. It is an error if the
  /// model has none of them; those that it does not have are a warning.
  TensorMap weights;
  std::string weightsFile = "the given weights"; ///< what messages call them
  std::string weightsFolder; ///< where they came from, if that is a folder's
  /// Seed of initial values that neither of them has.
  uint64_t seed = 0;
};

/// Loads the emitted code of a compilation; the content of its arena is
/// arbitrary. Needs Compilation::emit(); without it, or with options that the
/// code was not made for, it is a usage error.
llvm::Expected<std::unique_ptr<Session>> open(const Compilation &compilation,
                                              const SessionOptions &options);

/// Loads the emitted code of a compilation, on the CPU or on the device of
/// `options.session.device`, with weights in place and optimizer state at its
/// start. Needs what open() needs.
llvm::Expected<std::unique_ptr<Session>> load(const Compilation &compilation,
                                              const LoadOptions &options = {});

/// Imports and plans. It chooses the loss's class axis by the targets in
/// `data.path` (if given), and refuses files that lack parameters. If no plan
/// fits the budget, compilation.summary() still has the known figures.
/// describeData() says how the planned step reads the samples.
llvm::Error plan(Compilation &compilation, const DataOptions &data);

/// Returns the options that the bits of a run depend on, by name; a run that is
/// resumed must share them. `data` is a source's identity(); `options.seed` and
/// the optimizer's settings are among them, the budget is not.
StringMetadata runIdentity(const CompileOptions &compile,
                           const TrainOptions &options, const Session &session,
                           llvm::StringRef data);

/// Which weights a file gets.
struct WrittenWeights {
  bool averaged = false; ///< parameters are their averages
  /// What was trained, without frozen weights and running statistics; adapters
  /// of PEFT by its names. Adapters of `--lora` are always written so.
  bool trainedOnly = false;
  int64_t shardBytes = 5'000'000'000; ///< of a file in a folder, at most
};

/// Writes parameters, running statistics and frozen weights to FILE.onnx, the
/// model's file with new values, to FILE.safetensors, or to a FOLDER that
/// Transformers' from_pretrained() loads: in several files with an index
/// where they are large, by the names of the weights that the session began
/// with. One block of a tensor is in memory at a time. Rank 0 writes; if ranks
/// share weights, all of them must call this.
llvm::Error writeWeights(const Compilation &compilation, const Session &session,
                         const std::string &path, WrittenWeights which = {},
                         const StringMetadata &metadata = {});

/// Trains `session`, which load() made of `compilation`, from `options.resume`
/// if that names a checkpoint; one of a run with another identity is an error.
llvm::Expected<TrainResult> train(const Compilation &compilation,
                                  Session &session, const StepData &where,
                                  BatchSource &source, TrainOptions options);

/// A step in machine code, with its plan; copies share it. A step that
/// compile() did not make has no code, and functions that need it return a
/// usage error.
class CompiledStep {
public:
  CompiledStep();
  CompiledStep(const CompiledStep &) = default; // a move leaves what it was
  CompiledStep &operator=(const CompiledStep &) = default;

  const Compilation &compilation() const { return *compiled; }
  const PlanSummary &plan() const;
  /// Returns the source of samples, and how the losses read them.
  const StepData &data() const { return stepData; }

  llvm::Expected<std::unique_ptr<Session>>
  load(const LoadOptions &options = {}) const;
  /// Compilation::releaseWeights(), for all copies.
  void releaseWeights();
  llvm::Expected<TrainResult> train(Session &session, BatchSource &source,
                                    TrainOptions options) const;
  /// Writes parameters and running statistics: to FILE.onnx, the model's file
  /// with new values, or FILE.safetensors.
  llvm::Error writeWeights(const Session &session,
                           const std::string &path) const;
  /// Writes a shared library, or a folder for a GPU, which ckopt-run and
  /// ckrt_program_load accept.
  llvm::Error write(const std::string &path) const;

private:
  friend llvm::Expected<CompiledStep> compile(CompileOptions, DataOptions);
  std::shared_ptr<Compilation> compiled;
  StepData stepData;
};

/// Compiles a model file to code. Errors, warnings and remarks that belong to
/// nodes of the model go to `options.messages`.
llvm::Expected<CompiledStep> compile(CompileOptions options,
                                     DataOptions data = {});
/// Compiles a model file to code for the samples of a source, whose fields must
/// be inputs and targets of the step.
inline llvm::Expected<CompiledStep> compile(CompileOptions options,
                                            const BatchSource &source) {
  DataOptions data;
  data.fields = source.fields().vec();
  return compile(std::move(options), std::move(data));
}

/// Returns the metadata on samples for files of weights: the names of the
/// classes, as a JSON array "ckopt.classes"; nothing if there are none.
StringMetadata weightsMetadata(llvm::ArrayRef<std::string> classes);

} // namespace ckopt

#endif // CKOPT_TRAIN_STEP_H
