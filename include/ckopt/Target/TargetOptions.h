//===- TargetOptions.h - what is asked of a target --------------*- C++ -*-===//
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

/// Overrules what code of our own for contractions chooses by shape, for tests
/// of small ones; 0: by shape. What a kernel cannot have (shared memory, 16
/// bytes at once) it does not get.
struct ContractionVariant {
  int64_t tile = 0;   ///< rows and columns of a block's tile: 64, 128, 256
  int64_t stages = 0; ///< buffers in shared memory: 1 to 4
  int64_t parts = 0;  ///< that k is cut into

  /// From "tile=64,stages=1"; "" is all by shape.
  static llvm::Expected<ContractionVariant> parse(llvm::StringRef text);
};

/// What activations are stored in, and products computed from.
enum class Precision { F32, BF16, F16 };
inline ChoiceNames choiceNames(Precision) {
  static constexpr const char *names[] = {"f32", "bf16", "f16"};
  return names;
}

/// The class of products of f32: by its name, or by how exact it has to be,
/// which is what the target has for that (TargetInfo::productPrecision).
enum class MatmulPrecision { F32, TF32, BF16, F16, Highest, High, Medium };
inline ChoiceNames choiceNames(MatmulPrecision) {
  static constexpr const char *names[] = {"f32",     "tf32", "bf16",  "f16",
                                          "highest", "high", "medium"};
  return names;
}

/// Reads one; the error lists the names.
llvm::Expected<MatmulPrecision> parseMatmulPrecision(llvm::StringRef name);

/// Attention by blocks of rows, without the matrix of scores.
enum class Attention { Auto, On, Off };
inline ChoiceNames choiceNames(Attention) {
  static constexpr const char *names[] = {"auto", "on", "off"};
  return names;
}

/// How activations of images lie in memory; None: as the model has them.
enum class ActivationLayout { ChannelsLast, None };
inline ChoiceNames choiceNames(ActivationLayout) {
  static constexpr const char *names[] = {"channels-last", "none"};
  return names;
}

/// What decides the arithmetic and the code of kernels, as users write it.
struct KernelSettings {
  std::string target = "cpu"; ///< a registered target's name
  ActivationLayout layout = ActivationLayout::ChannelsLast;
  int32_t threads = 1;
  unsigned vectorBits = 512;
  /// Bytes for each call of a library that kernels may be left to, where the
  /// target has code of its own for them, too; 0: they are not.
  int64_t libraryWorkspace = 0;
  /// Multiprocessors that contractions and sums of columns are divided for, on
  /// a device; 0: the target's default. The order of their sums depends on it.
  int32_t multiprocessors = 0;
  /// Shared memory that a block may have, on a device; 0: the target's default.
  /// Tiles, and so the order of sums, depend on it.
  int32_t sharedBytes = 0;
  /// Code of our own is made for what is left to libraries, too: it runs where
  /// they refuse. Workspaces are then no larger than a call's tensors.
  bool ownBesideLibraries = false;
  /// ContractionVariant::parse.
  std::string contractions;
  /// Whose rates plans weigh kernels by, as the target reads it; "": the
  /// target's.
  std::string deviceRates;
  MatmulPrecision matmulPrecision = MatmulPrecision::F32;
  Precision precision = Precision::F32;
  std::string keepF32; ///< with halves: nodes whose names match stay f32
  Attention attention = Attention::Auto;
  /// A file that says which library runs what (LibraryTableFile.h), for a class
  /// of processors; "": the built-in table, this machine's class.
  std::string libraryTable, cpuClass;
};

/// The processor that machine code is made for.
struct CpuOptions {
  std::string cpu = "native"; ///< an LLVM CPU name, or "native"
  /// Features of this machine that native code must not use, since it also runs
  /// on others.
  std::vector<std::string> without = {};
  unsigned optLevel = 2; ///< 0 to 3
  /// Where compiled kernels are kept: a folder, "off", or "" (KernelCache.h).
  std::string kernelCache;
};

/// Settings that one target alone has, which derives from this.
struct TargetOptions {
  explicit TargetOptions(std::string target) : target(std::move(target)) {}
  virtual ~TargetOptions();

  const std::string target; ///< the name of the one that reads them
};

/// What a step for a device is compiled for.
struct DeviceOptions {
  int32_t ordinal = 0; ///< where `train` and others run it: cuda:0
  std::string target;  ///< of --device; empty: none was given
  /// The target's own settings; null: their defaults.
  std::shared_ptr<const TargetOptions> own;
};

} // namespace ckopt

#endif // CKOPT_TARGET_TARGETOPTIONS_H
