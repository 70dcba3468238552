//===- TrainPage.h - a training run as one page -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRAIN_TRAINPAGE_H
#define CKOPT_LIB_TRAIN_TRAINPAGE_H

#include "ckopt/Compiler/Compile.h"

namespace ckopt {

/// Makes an HTML page that needs no other file: where the loss fell, what
/// evaluations found, memory over the step, the plan, the options of the run.
/// Equal runs give equal bytes, but for the section "times".
std::string trainPage(const Compilation &compilation, const DataOptions &data,
                      const TrainOptions &options, const TrainResult &result);

} // namespace ckopt

#endif // CKOPT_LIB_TRAIN_TRAINPAGE_H
