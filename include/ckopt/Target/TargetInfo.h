//===- TargetInfo.h - what steps are compiled for ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A target says which code kernels become, what it cannot do and how a planned
// step becomes code that the runtime loads. Phases, kernels and the driver ask
// this interface and know no target by its name; docs/tutorials/add-a-target.md
// says how to add one.
//
// Whoever compiles gives a name ("cpu"), which is looked up once, where a
// compilation or a pass begins (TargetRegistry.h).
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
// What is asked of a target
//===----------------------------------------------------------------------===//

/// The same, checked: what code for one kernel depends on.
struct CodegenOptions {
  const TargetInfo *target = nullptr; ///< never null where it is read
  unsigned threads = 1;
  /// Of a vector; where no two elements fit, code is of scalars alone.
  unsigned vectorBits = 512;
  int64_t libraryWorkspace = 0; ///< KernelSettings::libraryWorkspace
  int64_t multiprocessors = 1;  ///< KernelSettings::multiprocessors
  int64_t sharedBytes = 0;      ///< KernelSettings::sharedBytes
  bool ownBesideLibraries = false;
  ContractionVariant contractions = {};
  /// Of contractions and convolutions of f32 whose kernels round operands;
  /// other types as they are.
  runtime::ProductPrecision precision = runtime::ProductPrecision::F32;
  /// Which library of a CPU runs what; null: by the built-in table.
  std::shared_ptr<const runtime::LibraryTable> libraries = nullptr;
};

/// A flag of such settings: the name without dashes, the help's name of the
/// value, the help, and a function that stores or refuses a text.
struct TargetFlag {
  std::string name, value;
  MessageText help;
  std::function<llvm::Error(llvm::StringRef)> store;
  const std::string *file = nullptr; ///< where the name of a file is kept
  bool isWritten = false;            ///< that file; else it is read
};

/// All that a target may complete or refuse before anything is compiled.
struct TargetRequest {
  KernelSettings &kernels;
  const CpuOptions &cpu;
  const DeviceOptions &device;
  bool f64 = false; ///< the step computes in f64
  /// Flags that a command line had, by their names; empty for programs.
  std::set<std::string> flags = {};
  bool runsHere = false; ///< by a command that runs the step
};

/// What a planned step is emitted with.
struct EmitOptions {
  KernelSettings kernels; ///< as annotate-kernels was given them
  CpuOptions cpu;
  DeviceOptions device;
  bool instrument = false;    ///< for profiles and checks of each call
  bool keepDenormals = false; ///< an f64 step does, all others flush them
  bool verbose = false;       ///< say in a remark what was compiled
  std::string producer;       ///< compiler and version
  /// Adds first values of tensors to the data, and their places to the
  /// manifest.
  std::function<llvm::Error(runtime::Manifest &, std::vector<char> &)> addData;
};

//===----------------------------------------------------------------------===//
// What a target says
//===----------------------------------------------------------------------===//

/// What a generated kernel's stages are.
enum class StageForm {
  Ranges, ///< functions that do a range of the work, on vectors of lanes
  Blocks, ///< launches of blocks of threads (lib/Target/Cuda/BlockToPTX)
};

/// The most that one kernel may take; 0: any number.
struct KernelLimits {
  unsigned tensors = 0; ///< operands and results of a generated kernel
  unsigned joined = 0;  ///< operands of a concatenation, which gets split
  int64_t blocks = 0;   ///< of a launch
};

/// How many rows of a large classification loss are taken at once, unless a
/// number is given (chunk-vocab), and how they lie in memory.
struct LossChunks {
  int64_t mostBytes = int64_t(50) << 20; ///< of the logits of a chunk
  /// Products of fewer rows are slow, whatever the number of classes.
  int64_t leastRows = 128;
  int64_t rowStep = 32; ///< what rows are a multiple of
  /// Where operands of products are rounded, rows of a chunk's logits are
  /// padded to a multiple of it (decompose); 0: never.
  int64_t classGroup = 0;
};

struct TargetTraits {
  std::string name;     ///< as users write it: "cpu"
  std::string machines; ///< in messages: "CPUs"
  StageForm form = StageForm::Ranges;
  KernelLimits limits;
  /// There is code of ours for contractions and convolutions that no library
  /// takes (in blocks); otherwise these are refused.
  bool ownContractions = false;
  /// Products and convolutions of f16 have code; otherwise they are widened.
  bool halfProducts = false;
  /// Products and convolutions of bf16 have instructions here; otherwise mixed
  /// precision computes them in f32.
  bool bf16Products = false;
  /// Convolutions whose operands are rounded load so many channels at once:
  /// where an input has a few less, it is padded (widen-channels); 0: never.
  int64_t channelGroup = 0;
  /// Operands of products of f32 are rounded by kernels of their own
  /// (round-products), not on their way into a product.
  bool roundsApart = false;
  /// Updates of several parameters are one launch (join-updates), with Blocks.
  bool joinsUpdates = false;
  LossChunks lossChunks;
  /// Attention ops of at least so many keys pay here; 0: there are none.
  int64_t leastAttentionKeys = 0;
  /// The most columns of a head that they may have; 0: any number.
  int64_t mostAttentionColumns = 0;
  int64_t arenaAlignment = 64; ///< 64; with Blocks a power of two up to 256
  MachineRates rates;
  /// Steps run on numbered devices: --device=NAME:0.
  bool hasDevices = false;
  /// Artifacts are folders rather than shared libraries.
  bool writesFolder = false;
};

/// Whether a library runs a contraction or convolution.
struct LibraryChoice {
  bool library = false;
  runtime::LibraryForm form = runtime::LibraryForm::Default;
  int64_t workspaceBytes = 0;
  MessageText reason; ///< why none does
};

/// A step's code and what describes it.
class StepCode {
public:
  virtual ~StepCode();

  /// A program of the runtime, and what it needs alive.
  struct Program {
    ckrt_program *program = nullptr;
    std::shared_ptr<void> keeper;
  };
  virtual llvm::Expected<Program> load() const = 0;
  /// Writes what ckopt-run loads.
  virtual llvm::Error write(const std::string &path) const = 0;

  /// Returns the code as bytes for another process, for TargetInfo::unpack();
  /// "", by default: each has to emit its own.
  virtual std::string pack() const;

  /// What `compile` says of the code beside the plan.
  virtual void print(llvm::raw_ostream &os) const;
  /// What `inspect` says of it beside plan and tensors.
  virtual llvm::Error inspect(llvm::raw_ostream &os) const = 0;
  /// Members of a report's current JSON object.
  virtual llvm::Error writeJson(llvm::json::OStream &json) const;

  runtime::Manifest manifest;
  /// First values of tensors that the artifact carries.
  std::vector<char> data;
};

class TargetInfo {
public:
  explicit TargetInfo(TargetTraits traits) : traits(std::move(traits)) {}
  virtual ~TargetInfo();
  TargetInfo(const TargetInfo &) = delete;

  const TargetTraits traits;
  const std::string &name() const { return traits.name; }

  /// Completes settings that this target decides; refuses flags that say
  /// nothing to it and settings that contradict each other (usage errors). Not
  /// changed by being called twice.
  virtual llvm::Error settle(TargetRequest &request) const = 0;

  /// The class of products that KernelSettings::matmulPrecision asks for; an
  /// error where the target has none. By default there is f32 alone.
  virtual llvm::Expected<runtime::ProductPrecision>
  productPrecision(MatmulPrecision name) const;

  /// What kernels are made with; refuses what it has no code for.
  virtual llvm::Expected<CodegenOptions>
  codegen(const KernelSettings &settings) const = 0;

  /// Rates that plans weigh kernels by; by default the traits' for all
  /// settings.
  virtual llvm::Expected<MachineRates>
  rates(const KernelSettings &settings) const;
  /// The device of a table whose rates these are, or replace in part; "": they
  /// are the traits'.
  virtual std::string ratedDevice(const KernelSettings &) const { return ""; }

  /// The target's own settings with their defaults; null: it has none.
  virtual std::shared_ptr<TargetOptions> makeOptions() const;
  /// The flags that set them, in the order of help. `options` is of
  /// makeOptions().
  virtual std::vector<TargetFlag> ownFlags(TargetOptions &options) const;

  /// Who computes a sound descriptor.
  virtual LibraryChoice chooseLibrary(const runtime::PrimitiveDesc &desc,
                                      const CodegenOptions &options) const = 0;

  /// Inverse of StepCode::pack(), which may be damaged; null, by default: each
  /// process has to emit its own.
  virtual llvm::Expected<std::unique_ptr<StepCode>>
  unpack(llvm::StringRef packed) const;

  /// Code for what plan-memory leaves, which stays as it is. Diagnostics name
  /// the ops that have none.
  virtual llvm::Expected<std::unique_ptr<StepCode>>
  emit(mlir::ModuleOp planned, const EmitOptions &options) const = 0;
};

} // namespace ckopt

#endif // CKOPT_TARGET_TARGETINFO_H
