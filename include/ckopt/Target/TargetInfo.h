//===- TargetInfo.h - the interface of targets ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A target decides what code kernels become, what is not supported, and how a
// planned step becomes loadable code. Phases, kernels and the driver ask this
// interface and do not test for names; docs/tutorials/add-a-target.md says how
// to add one.
//
// A compilation gets a name ("cpu"), which is looked up once, when it or a pass
// begins (TargetRegistry.h).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_TARGETINFO_H
#define CKOPT_TARGET_TARGETINFO_H

#include "ckopt/Base/MessageText.h"
#include "ckopt/Runtime/LibraryTable.h"
#include "ckopt/Runtime/Manifest.h"
#include "ckopt/Target/MachineRates.h"
#include "ckopt/Target/TargetOptions.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

struct ckrt_program;

namespace ckopt {

class TargetInfo;

//===----------------------------------------------------------------------===//
// Requests to a target
//===----------------------------------------------------------------------===//

/// The same, checked: the settings that code for one kernel depends on.
struct CodegenOptions {
  const TargetInfo *target = nullptr; ///< never null when it is read
  unsigned threads = 1;
  /// Bits of a vector; if no two elements fit, code is scalar.
  unsigned vectorBits = 512;
  int64_t libraryWorkspace = 0; ///< KernelSettings::libraryWorkspace
  int64_t attentionWorkspace = 0;
  int64_t multiprocessors = 1; ///< KernelSettings::multiprocessors
  int64_t sharedBytes = 0;     ///< KernelSettings::sharedBytes
  int64_t processorShared = 0; ///< KernelSettings::processorShared
  bool ownBesideLibraries = false;
  ContractionVariant contractions = {};
  /// For f32 contractions and convolutions whose kernels round operands; other
  /// types are not rounded.
  runtime::ProductPrecision precision = runtime::ProductPrecision::F32;
  /// The CPU's table of libraries; null: the built-in one.
  std::shared_ptr<const runtime::LibraryTable> libraries = nullptr;
};

/// A flag of such settings: the name without dashes, the help's name of the
/// value, the help, and a function that stores or refuses a text.
struct TargetFlag {
  std::string name, value;
  MessageText help;
  std::function<llvm::Error(llvm::StringRef)> store;
  const std::string *file = nullptr; ///< where the name of a file is stored
  bool isWritten = false;            ///< that file is written; else it is read
};

/// Everything that a target may complete or refuse before a compilation.
struct TargetRequest {
  KernelSettings &kernels;
  const CpuOptions &cpu;
  const DeviceOptions &device;
  bool f64 = false; ///< the step computes in f64
  /// Names of the flags on a command line; empty for programs.
  std::set<std::string> flags = {};
  bool runsHere = false; ///< set by a command that runs the step
};

/// A plan at several sizes of a dimension, for one code that runs at all of a
/// range: the planned module is that of the largest, the others have its calls
/// and places with tensors of their own sizes.
struct PlannedSizes {
  runtime::OpenSize range;
  std::vector<std::pair<SizePoint, mlir::OwningOpRef<mlir::ModuleOp>>> others;
};

/// Options for emitting a planned step.
struct EmitOptions {
  KernelSettings kernels; ///< as annotate-kernels was given them
  CpuOptions cpu;
  DeviceOptions device;
  bool instrument = false;       ///< for profiles and checks of each call
  bool keepDenormals = false;    ///< for f64 steps; all others flush denormals
  bool verbose = false;          ///< report in a remark what was compiled
  std::string producer;          ///< compiler and version
  PlannedSizes *sizes = nullptr; ///< null: of one size alone
  /// Adds initial values of tensors to the data, and their places to the
  /// manifest.
  std::function<llvm::Error(runtime::Manifest &, std::vector<char> &)> addData;
};

//===----------------------------------------------------------------------===//
// Properties of a target
//===----------------------------------------------------------------------===//

/// The form of a generated kernel's stages.
enum class StageForm {
  Ranges, ///< functions over a range of the work, on vectors of lanes
  Blocks, ///< launches of blocks of threads (lib/Target/Cuda/BlockToPTX)
};

/// Limits of one kernel; 0: none.
struct KernelLimits {
  unsigned tensors = 0; ///< operands and results of a generated kernel
  unsigned joined = 0;  ///< operands of a concatenation; larger ones are split
  int64_t blocks = 0;   ///< blocks of a launch
};

/// The rows of a chunk of a large classification loss, unless a number is given
/// (chunk-vocab), and their padding.
struct LossChunks {
  int64_t mostBytes = int64_t(50) << 20; ///< bytes of the logits of a chunk
  /// Matmuls with fewer rows are slow, whatever the number of classes.
  int64_t leastRows = 128;
  int64_t rowStep = 32; ///< rows are a multiple of it
  /// Of 16-bit matmuls that libraries run: chunks are not made smaller than
  /// this to have more than four; 0: they are.
  int64_t enoughRows = 0;
  /// If operands of matmuls are rounded, rows of a chunk's logits are padded to
  /// a multiple of it (decompose); 0: never.
  int64_t classGroup = 0;
};

/// How regions that work row by row are tiled, unless rows are given
/// (tile-rows).
struct RowTiles {
  int64_t leastBytes = int64_t(128) << 20; ///< of a region's largest value
  int64_t mostBytes = int64_t(64) << 20;   ///< of a block's
  /// Each is a copy of the region's kernels for the planner to place.
  int64_t mostBlocks = 8;
  int64_t rowStep = 32;
};

struct TargetTraits {
  std::string name;     ///< the name that users write: "cpu"
  std::string machines; ///< in messages: "CPUs"
  StageForm form = StageForm::Ranges;
  KernelLimits limits;
  /// There is code of ours for contractions and convolutions that no library
  /// takes (in blocks); otherwise they are refused.
  bool ownContractions = false;
  /// Matmuls and convolutions of f16 have code; otherwise they are widened.
  bool halfProducts = false;
  /// There are instructions for bf16 matmuls and convolutions; otherwise mixed
  /// precision computes them in f32.
  bool bf16Products = false;
  /// A matmul reads a tensor of its result's type and adds to it as it stores;
  /// otherwise that tensor is copied first, and sums of 16-bit floats are f32.
  bool addsToTensors = false;
  /// Convolutions whose operands are rounded load this number of channels at
  /// once; an input with a few less is padded (widen-channels); 0: never.
  int64_t channelGroup = 0;
  /// Operands of f32 matmuls are rounded by separate kernels (round-products),
  /// not when the matmul reads them.
  bool roundsApart = false;
  /// What is fed to a step has a second place in the arena, so that it may be
  /// copied while the step before runs.
  bool feedsAhead = false;
  /// Updates of several parameters are horizontally fused into one launch
  /// (join-updates), with Blocks.
  bool joinsUpdates = false;
  LossChunks lossChunks;
  RowTiles rowTiles;
  /// Attention ops pay with at least this number of keys; 0: there are none.
  int64_t leastAttentionKeys = 0;
  /// The two numbers of a row that attention keeps lie in two planes (layout),
  /// as libraries write and read the first one.
  bool planesOfRows = false;
  /// The most columns of a head in attention ops; 0: no limit.
  int64_t mostAttentionColumns = 0;
  int64_t arenaAlignment = 64; ///< 64; with Blocks a power of two up to 256
  MachineRates rates;
  /// Steps run on numbered devices: --device=NAME:0.
  bool hasDevices = false;
  /// Artifacts are folders rather than shared libraries.
  bool writesFolder = false;
};

/// The choice of a library for a contraction or convolution.
struct LibraryChoice {
  bool library = false;
  runtime::LibraryForm form = runtime::LibraryForm::Default;
  int64_t workspaceBytes = 0;
  MessageText reason; ///< why no library runs it
};

/// A step's code and its description.
class StepCode {
public:
  virtual ~StepCode();

  /// A program of the runtime, and the object that keeps it alive.
  struct Program {
    ckrt_program *program = nullptr;
    std::shared_ptr<void> keeper;
  };
  /// Libraries may have refused some of the manifest's primitives in a session
  /// of this code; then it has kernels of ours for these.
  virtual llvm::Expected<Program>
  load(llvm::ArrayRef<int64_t> refused = {}) const = 0;
  /// The same at another size of a step that has an open one.
  virtual llvm::Expected<Program> loadAt(int64_t size) const;
  /// Writes the artifact that ckopt-run loads.
  virtual llvm::Error write(const std::string &path) const = 0;

  /// Returns the code as bytes for another process, for TargetInfo::unpack();
  /// "", by default: each has to emit its own.
  virtual std::string pack() const;

  /// Prints the code's part of `compile`, after the plan.
  virtual void print(llvm::raw_ostream &os) const;
  /// Prints the code's part of `inspect`, after plan and tensors.
  virtual llvm::Error inspect(llvm::raw_ostream &os) const = 0;
  /// Writes members of a report's current JSON object.
  virtual llvm::Error writeJson(llvm::json::OStream &json) const;

  runtime::Manifest manifest;
  /// Initial values of tensors for the artifact.
  std::vector<char> data;
};

class TargetInfo {
public:
  explicit TargetInfo(TargetTraits traits) : traits(std::move(traits)) {}
  virtual ~TargetInfo();
  TargetInfo(const TargetInfo &) = delete;

  const TargetTraits traits;
  const std::string &name() const { return traits.name; }

  /// Completes settings that this target decides; refuses flags that do not
  /// apply to it and settings that contradict each other (usage errors). A
  /// second call changes nothing.
  virtual llvm::Error settle(TargetRequest &request) const = 0;

  /// The precision class of matmuls that KernelSettings::matmulPrecision asks
  /// for; an error if the target has none. By default there is only f32.
  virtual llvm::Expected<runtime::ProductPrecision>
  productPrecision(MatmulPrecision name) const;

  /// Options of kernel code; refuses settings without code.
  virtual llvm::Expected<CodegenOptions>
  codegen(const KernelSettings &settings) const = 0;

  /// Rates that plans weigh kernels by; by default the traits' for all
  /// settings.
  virtual llvm::Expected<MachineRates>
  rates(const KernelSettings &settings) const;
  /// The device of a table that these rates come from, or replace in part; "":
  /// they are the traits'.
  virtual std::string ratedDevice(const KernelSettings &) const { return ""; }

  /// The bytes that an arena may have on a device of this machine, which is
  /// asked; an error if the target has no devices.
  virtual llvm::Expected<int64_t> roomOn(const DeviceOptions &device,
                                         const KernelSettings &settings) const;

  /// The target's own settings with their defaults; null: there are none.
  virtual std::shared_ptr<TargetOptions> makeOptions() const;
  /// The flags that set them, in the order of help. `options` comes from
  /// makeOptions().
  virtual std::vector<TargetFlag> ownFlags(TargetOptions &options) const;

  /// Chooses the library that computes a valid descriptor.
  virtual LibraryChoice chooseLibrary(const runtime::PrimitiveDesc &desc,
                                      const CodegenOptions &options) const = 0;

  /// Names the settings that give libraries less workspace; empty, by default:
  /// there are none.
  virtual MessageText lessWorkspace() const { return {}; }

  /// Inverse of StepCode::pack(), for bytes that may be damaged; null, by
  /// default: each process has to emit its own.
  virtual llvm::Expected<std::unique_ptr<StepCode>>
  unpack(llvm::StringRef packed) const;

  /// Makes code for the result of plan-memory, which stays unchanged.
  /// Diagnostics name ops without code.
  virtual llvm::Expected<std::unique_ptr<StepCode>>
  emit(mlir::ModuleOp planned, const EmitOptions &options) const = 0;
};

} // namespace ckopt

#endif // CKOPT_TARGET_TARGETINFO_H
