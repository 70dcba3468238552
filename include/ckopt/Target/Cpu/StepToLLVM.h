//===- StepToLLVM.h - planned functions to code over the arena --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers a module after plan-memory, whose functions are sequences of kernel
// calls with an offset for every value, to LLVM functions
//
//   i32 ckopt_fn_<name>(ptr env, ptr arena)
//
// that fill an array of pointers into the arena and call the runtime once for
// each kernel stage or library primitive. Nothing is allocated, moved or
// merged here: the plan is what runs.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_CPU_STEPTOLLVM_H
#define CKOPT_TARGET_CPU_STEPTOLLVM_H

#include "ckopt/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace ckopt {

struct LowerStepOptions {
  CodegenOptions codegen; ///< kernel options; stages are ranges
  /// Call ckrt_call_done after each kernel call (profiles, --check-finite,
  /// --verify-remat).
  bool instrument = false;
  /// Set for f64 steps; all others flush denormals.
  bool keepDenormals = false;
  /// CPU features that the code needs, as in /proc/cpuinfo.
  std::vector<std::string> cpuFeatures;
  std::string producer;
  /// Functions to lower, in the order of Manifest::functions.
  std::vector<std::string> functions = {"step", "eval", "accumulate"};
};

/// The place of the open size, relative to a call's scalars.
inline constexpr int32_t kSizeScalar = -1;

/// LLVM-dialect module and the manifest that describes it.
struct LoweredStep {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  runtime::Manifest manifest;
};

/// Lowers the given functions of a plan that holds for a range of sizes: the
/// code gets the size from the session, and the manifest says what it changes.
/// `largest` is the planned step that the manifest describes. Fails
/// (ExitUnsupported) where code or plan differ in more than sizes.
llvm::Expected<LoweredStep> lowerSizes(mlir::ModuleOp largest,
                                       const PlannedSizes &sizes,
                                       const LowerStepOptions &options);

/// Lowers the given functions of `planned`, which is not changed; missing ones
/// are skipped. Fails after an error was emitted.
mlir::FailureOr<LoweredStep> lowerStep(mlir::ModuleOp planned,
                                       const LowerStepOptions &options);

} // namespace ckopt

#endif // CKOPT_TARGET_CPU_STEPTOLLVM_H
