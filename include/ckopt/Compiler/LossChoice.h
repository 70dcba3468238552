//===- LossChoice.h - what is trained: the loss of a run --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_COMPILER_LOSSCHOICE_H
#define CKOPT_COMPILER_LOSSCHOICE_H

#include "ckopt/Compiler/Compile.h"

namespace ckopt {

/// Checks, before import, options against each other: settings of losses,
/// optimizers, groups, policies and searches that nothing would read, or that
/// mean nothing.
llvm::Error checkOptions(const CompileOptions &options);
/// Refuses phases that stop before there is a step to make code of.
llvm::Error checkAllPhases(const PhaseControl &phases);
/// Refuses numbers of threads that this machine can only have by mistake; a
/// step for another one may have them.
llvm::Error checkThreadsHere(int64_t threads);
/// Refuses to train without an optimizer.
llvm::Error checkUpdates(const OptimizerSettings &optimizer);
/// Refuses settings of losses that no loss reads. `isGiven` tells by the flag's
/// name whether one is asked for.
llvm::Error
checkLossSettings(const StepOptions &step,
                  llvm::function_ref<bool(llvm::StringRef flag)> isGiven);
/// Settles, after import, what the loss leaves open: outputs, kinds of targets,
/// the class axis.
llvm::Error settleLoss(Compilation &compilation, const DataOptions &data);
/// Returns how the losses of the planned step read samples from there.
StepData describeData(const Compilation &compilation, DataOptions from);

} // namespace ckopt

#endif // CKOPT_COMPILER_LOSSCHOICE_H
