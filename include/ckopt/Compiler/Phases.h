//===- Phases.h - the named phases of a compilation -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compilation is a list of phases. Each is a pass pipeline that is made from
// option structs, and prints as text that ckopt-opt runs, so that every phase
// of the driver can be repeated and inspected by itself. docs/architecture.md
// describes what holds after each.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_COMPILER_PHASES_H
#define CKOPT_COMPILER_PHASES_H

#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Compiler/CompileOptions.h"
#include "ckopt/Losses/Loss.h"
#include "ckopt/Optimizers/Optimizers.h"
#include "ckopt/Remat/Remat.h"
#include "ckopt/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ckopt {

/// Returns whether there is code for the attention ops that `normalize` may
/// make.
bool hasAttention(const StepOptions &options, const TargetInfo &target);
/// Returns whether kernels of the step overlap communication between ranks.
bool overlaps(const StepOptions &options);
/// Returns the value of --parallel for the step: "dp:2", "fsdp:4",
/// "dp:2,fsdp:4".
std::string parallelText(const StepOptions &options);

struct Phase {
  std::string name; ///< "autodiff"
  std::string summary;
  /// Adds the phase's passes to a pipeline on modules.
  std::function<void(mlir::OpPassManager &)> build;

  /// Returns the pipeline as text: "builtin.module(...)".
  std::string pipeline() const;
};

/// Returns the phases after import and before lowering, in order. Registers
/// `target`, since the phases' text has its name, and fails if registerTarget()
/// does. The phases put the plans into `result` if given, which must outlive
/// their runs.
llvm::Expected<std::vector<Phase>> buildPhases(const StepOptions &options,
                                               const TargetInfo &target,
                                               RematResult *result = nullptr);

/// Adds the last pass of the phase "fuse", which notes costs and workspaces.
void addAnnotation(mlir::OpPassManager &passes, const StepOptions &options,
                   const TargetInfo &target);

/// Refuses unknown names of phases, and an end before the start (usage errors).
llvm::Error checkPhases(llvm::ArrayRef<Phase> phases,
                        const PhaseControl &control);

/// Runs the phases on the module. On failure diagnostics have been emitted, and
/// the returned error names the phase and has the first diagnostic's exit code.
/// A dumped module begins with the pipeline that made it.
llvm::Error runPhases(mlir::ModuleOp module, const std::vector<Phase> &phases,
                      const PhaseControl &control);

/// Passes a diagnostic and its notes to the handler, with the node or the line
/// that it belongs to.
void handOn(mlir::Diagnostic &diagnostic, const MessageHandler &messages);

/// Registers all passes, pipelines and targets of ckopt, and upstream passes
/// that the phases use, for textual pipelines.
void registerAllPasses();
/// Adds the dialects and external models that the phases need.
void registerAllDialects(mlir::DialectRegistry &registry);

} // namespace ckopt

#endif // CKOPT_COMPILER_PHASES_H
