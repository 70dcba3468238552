//===- StepToDevice.h - planned functions to launches -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers a module after plan-memory to a device artifact: PTX for all kernels
// and a manifest in which each function is a list of launches at fixed
// addresses of the arena. There is no host code: the runtime captures the list
// once and replays it. Nothing is allocated, moved or merged here: the plan is
// what runs.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_CUDA_STEPTODEVICE_H
#define CKOPT_TARGET_CUDA_STEPTODEVICE_H

#include "ckopt/Target/Cuda/BlockToPTX/BlockToPTX.h"
#include "ckopt/Target/MachineRates.h"
#include "ckopt/Target/TargetInfo.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringSet.h"

#include <optional>
#include <string>
#include <vector>

namespace ckopt {

struct LowerDeviceOptions {
  /// The options of annotate-kernels; stages are blocks.
  CodegenOptions codegen;
  unsigned sm = 80; ///< 80 or 90
  /// Set for f64 steps; all others flush denormals.
  bool keepDenormals = false;
  bool programmatic = false; ///< PtxOptions::programmatic
  std::string producer;
  /// The kernels that get code of ours beside a library's call, which takes
  /// most of the time; nothing: all of them.
  std::optional<llvm::StringSet<>> own;
  /// Functions to lower, in the order of Manifest::functions.
  std::vector<std::string> functions = {"step", "eval", "accumulate",
                                        "refresh"};
};

/// A launch that does not load and store 16 bytes at once, and why.
struct ScalarLaunch {
  std::string kernel, reason;
};

/// A matmul or convolution that was meant for a library which has no kernel for
/// it, with the reason; generated code computes it.
struct RefusedPrimitive {
  std::string kernel, primitive, reason;
};

/// The work of one call of a kernel as counted for rates, and the time that
/// plans expect, so that a run on a device can be compared with both.
struct CallWork {
  std::string kernel, what; ///< `what`: the primitive, or ""
  double flops = 0; ///< operations of matmuls and convolutions; else of all ops
  double bytes = 0; ///< bytes read and written at least
  double seconds = 0; ///< seconds in plans, by the rates of the module
  KernelWork work;    ///< work by kind of rate, for fitting rates
};

struct LoweredDeviceStep {
  PtxModule code;
  runtime::Manifest manifest;
  /// All kernels in block form, for running them on the CPU.
  mlir::OwningOpRef<mlir::ModuleOp> blockForm;
  std::vector<ScalarLaunch> scalarLaunches;
  std::vector<RefusedPrimitive> refusedPrimitives;
  std::vector<CallWork> work; ///< of each distinct kernel
  MachineRates rates;         ///< those of the module
};

/// Lowers the given functions of `planned`, which is not changed; missing ones
/// are skipped. Their kernels must have been annotated for CUDA. Fails with
/// ExitUnsupported if ops have no code on a GPU; diagnostics name all of them.
llvm::Expected<LoweredDeviceStep>
lowerDeviceStep(mlir::ModuleOp planned, const LowerDeviceOptions &options);

} // namespace ckopt

#endif // CKOPT_TARGET_CUDA_STEPTODEVICE_H
