//===- StepToDevice.h - planned functions to launches -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers what plan-memory leaves to a device artifact: PTX for all kernels and
// a manifest in which each function is a list of launches over fixed places of
// the arena. There is no host code: the runtime captures the list once and
// replays it. Nothing is allocated, moved or merged here: what was planned is
// what runs.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_CONVERSION_STEPTODEVICE_STEPTODEVICE_H
#define CKOPT_CONVERSION_STEPTODEVICE_STEPTODEVICE_H

#include "ckopt/Conversion/BlockToPTX/BlockToPTX.h"
#include "ckopt/Target/TargetInfo.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace ckopt {

struct LowerDeviceOptions {
  CodegenOptions codegen; ///< as annotate-kernels was given it; in blocks
  unsigned sm = 80;       ///< 80 or 90
  /// An f64 step keeps denormals, all others flush them.
  bool keepDenormals = false;
  std::string producer;
  /// Functions to lower, in the order of Manifest::functions.
  std::vector<std::string> functions = {"step", "eval", "accumulate"};
};

/// A launch that does not load and store 16 bytes at once, and why.
struct ScalarLaunch {
  std::string kernel, reason;
};

/// A product or convolution that was to be left to libraries, that these have
/// no kernel for, and why; it is our own code.
struct RefusedPrimitive {
  std::string kernel, primitive, reason;
};

struct LoweredDeviceStep {
  PtxModule code;
  runtime::Manifest manifest;
  /// All kernels in block form, for running them on the CPU.
  mlir::OwningOpRef<mlir::ModuleOp> blockForm;
  std::vector<ScalarLaunch> scalarLaunches;
  std::vector<RefusedPrimitive> refusedPrimitives;
};

/// Lowers the functions of `planned` (which it leaves alone) that it has. Their
/// kernels must have been annotated for CUDA. Errors: what has no code on a GPU
/// (ExitUnsupported), all of it at once; diagnostics name the ops.
llvm::Expected<LoweredDeviceStep>
lowerDeviceStep(mlir::ModuleOp planned, const LowerDeviceOptions &options);

} // namespace ckopt

#endif // CKOPT_CONVERSION_STEPTODEVICE_STEPTODEVICE_H
