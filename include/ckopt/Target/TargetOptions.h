//===- TargetOptions.h - options of targets and kernels ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_TARGETOPTIONS_H
#define CKOPT_TARGET_TARGETOPTIONS_H

#include "ckopt/Support/Choice.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ckopt {

/// Overrides the tiles that are chosen by shape for our own code of
/// contractions, for tests of small ones; 0: by shape. A value that a kernel
/// cannot have (shared memory, 16 bytes at once) is ignored.
struct ContractionVariant {
  int64_t tile = 0;   ///< rows and columns of a block's tile: 64, 128, 256
  int64_t stages = 0; ///< buffers in shared memory: 1 to 4
  int64_t parts = 0;  ///< parts that k is cut into

  /// Parses "tile=64,stages=1"; "" means all by shape.
  static llvm::Expected<ContractionVariant> parse(llvm::StringRef text);
};

/// The storage type of activations, and of operands of matmuls.
enum class Precision { F32, BF16, F16 };
inline ChoiceNames choiceNames(Precision) {
  static constexpr const char *names[] = {"f32", "bf16", "f16"};
  return names;
}

/// The precision class of f32 matmuls: by its name, or by how exact it has to
/// be, for which the target has a class (TargetInfo::productPrecision).
enum class MatmulPrecision { F32, TF32, BF16, F16, Highest, High, Medium };
inline ChoiceNames choiceNames(MatmulPrecision) {
  static constexpr const char *names[] = {"f32",     "tf32", "bf16",  "f16",
                                          "highest", "high", "medium"};
  return names;
}

/// Parses a name; the error lists the names.
llvm::Expected<MatmulPrecision> parseMatmulPrecision(llvm::StringRef name);

/// Whether attention is computed by blocks of rows, without storing the scores.
enum class Attention { Auto, On, Off };
inline ChoiceNames choiceNames(Attention) {
  static constexpr const char *names[] = {"auto", "on", "off"};
  return names;
}

/// The layout of images' activations; None: the model's.
enum class ActivationLayout { ChannelsLast, None };
inline ChoiceNames choiceNames(ActivationLayout) {
  static constexpr const char *names[] = {"channels-last", "none"};
  return names;
}

/// Settings that decide the arithmetic and the code of kernels, as users write
/// them.
struct KernelSettings {
  std::string target = "cpu"; ///< a registered target's name
  ActivationLayout layout = ActivationLayout::ChannelsLast;
  int32_t threads = 1;
  unsigned vectorBits = 512;
  /// Bytes of workspace for each call that may be left to a library, if the
  /// target has its own code for it, too; 0: libraries are not used.
  int64_t libraryWorkspace = 0;
  /// The same for each call of attention, of which a library tells beforehand
  /// what it needs.
  int64_t attentionWorkspace = 0;
  /// Multiprocessors that contractions and column sums are divided for, on a
  /// device; 0: the target's default. The order of their sums depends on it.
  int32_t multiprocessors = 0;
  /// Shared memory that a block may have, on a device; 0: the target's default.
  /// Tiles, and so the order of sums, depend on it.
  int32_t sharedBytes = 0;
  /// Shared memory of all blocks on a multiprocessor; 0: the target's default.
  int32_t processorShared = 0;
  /// Also makes our own code for calls that are left to libraries: it runs if
  /// they refuse. Workspaces are then no larger than a call's tensors.
  bool ownBesideLibraries = false;
  /// With 16-bit floats: copies of trained weights live from step to step.
  bool keepCopies = false;
  /// parsed by ContractionVariant::parse
  std::string contractions;
  /// The rates that plans weigh kernels by, in the target's notation; "": the
  /// target's.
  std::string deviceRates;
  MatmulPrecision matmulPrecision = MatmulPrecision::F32;
  Precision precision = Precision::F32;
  std::string keepF32; ///< with 16-bit floats: nodes whose names match stay f32
  Attention attention = Attention::Auto;
  /// A file with the table of libraries and forms for a class of processors
  /// (LibraryTableFile.h); "": the built-in table, this machine's class.
  std::string libraryTable, cpuClass;
};

/// The processor that machine code is made for.
struct CpuOptions {
  std::string cpu = "native"; ///< an LLVM CPU name, or "native"
  /// Features of this machine that native code must not use, since it also runs
  /// on others.
  std::vector<std::string> without = {};
  unsigned optLevel = 2; ///< 0 to 3
  /// The cache of compiled kernels: a folder, "off", or "" (KernelCache.h).
  std::string kernelCache;
};

/// Settings of one target, whose struct derives from this.
struct TargetOptions {
  explicit TargetOptions(std::string target) : target(std::move(target)) {}
  virtual ~TargetOptions();

  const std::string target; ///< the name of the target that reads them
};

/// Settings of a step for a device.
struct DeviceOptions {
  int32_t ordinal = 0; ///< the device that `train` and others run it on: cuda:0
  std::string target;  ///< value of --device; empty: not given
  /// The target's own settings; null: their defaults.
  std::shared_ptr<const TargetOptions> own;
};

} // namespace ckopt

#endif // CKOPT_TARGET_TARGETOPTIONS_H
