//===- StepToLLVM.h - planned functions to code over the arena --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers what plan-memory leaves, functions that are straight lines of kernel
// calls with an offset for every value, to LLVM functions
//
//   i32 ckopt_fn_<name>(ptr env, ptr arena)
//
// that fill an array of pointers into the arena and call the runtime once for
// each kernel stage or library primitive. Nothing is allocated, moved or
// merged here: what was planned is what runs.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_CONVERSION_STEPTOLLVM_STEPTOLLVM_H
#define CKOPT_CONVERSION_STEPTOLLVM_STEPTOLLVM_H

#include "ckopt/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace ckopt {

struct LowerStepOptions {
  CodegenOptions codegen; ///< of kernels; in ranges
  /// Call ckrt_call_done after each kernel call (profiles, --check-finite,
  /// --verify-remat).
  bool instrument = false;
  /// An f64 step keeps denormals, all others flush them.
  bool keepDenormals = false;
  /// CPU features that the code needs, as in /proc/cpuinfo.
  std::vector<std::string> cpuFeatures;
  std::string producer;
  /// Functions to lower, in the order of Manifest::functions.
  std::vector<std::string> functions = {"step", "eval", "accumulate"};
};

/// LLVM-dialect module and the manifest that describes it.
struct LoweredStep {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  runtime::Manifest manifest;
};

/// Lowers the functions of `planned` (which it leaves alone) that it has.
/// Failure: an error has been emitted.
mlir::FailureOr<LoweredStep> lowerStep(mlir::ModuleOp planned,
                                       const LowerStepOptions &options);

} // namespace ckopt

#endif // CKOPT_CONVERSION_STEPTOLLVM_STEPTOLLVM_H
