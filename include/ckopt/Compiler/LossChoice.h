//===- LossChoice.h - choices and checks of losses --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_COMPILER_LOSSCHOICE_H
#define CKOPT_COMPILER_LOSSCHOICE_H

#include "ckopt/Compiler/Compile.h"

namespace ckopt {

/// Checks options before import: settings of losses, optimizers, groups,
/// policies and searches that are never read, or contradict each other.
llvm::Error checkOptions(const CompileOptions &options);
/// Refuses phases that stop before there is a step to compile.
llvm::Error checkAllPhases(const PhaseControl &phases);
/// Refuses numbers of threads that are surely a mistake on this machine; a step
/// for another machine may have them.
llvm::Error checkThreadsHere(int64_t threads);
/// Refuses to train without an optimizer.
llvm::Error checkUpdates(const OptimizerSettings &optimizer);
/// Refuses settings of losses that no loss reads. `isGiven` tells by the flag's
/// name whether one is asked for.
llvm::Error
checkLossSettings(const StepOptions &step,
                  llvm::function_ref<bool(llvm::StringRef flag)> isGiven);
/// Decides, after import, the loss's open choices: outputs, kinds of targets,
/// the class axis.
llvm::Error settleLoss(Compilation &compilation, const DataOptions &data);
/// Returns how the losses of the planned step read samples from `data`.
StepData describeData(const Compilation &compilation, DataOptions from);

} // namespace ckopt

#endif // CKOPT_COMPILER_LOSSCHOICE_H
