//===- LossChoice.h - what is trained: the loss of a run --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_DRIVER_LOSSCHOICE_H
#define CKOPT_LIB_DRIVER_LOSSCHOICE_H

#include "ckopt/Driver/Compile.h"

namespace ckopt {

/// Settles, after import, what the loss leaves open: outputs, kinds of targets,
/// the class axis.
llvm::Error settleLoss(Compilation &compilation, const DataOptions &data);
/// What data must be like for the planned step, and how its loss is evaluated.
void describeTargets(const Compilation &compilation, DataOptions &data);

} // namespace ckopt

#endif // CKOPT_LIB_DRIVER_LOSSCHOICE_H
