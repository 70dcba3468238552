//===- Results.h - comparing what a step made -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_RUN_RESULTS_H
#define CKOPT_TOOLS_CKOPT_RUN_RESULTS_H

#include "HostFiles.h"
#include "Loaded.h"

namespace ckopt::run {

/// Reads a tensor, in its own type (bf16, which numpy lacks: as f32). An exit
/// code.
int readTensor(Loaded &loaded, int64_t tensor, HostArray &array);

/// Compares outputs of the function with all tensors of
/// `options.expect` (.safetensors) and prints the largest error and that of all
/// gradients together. An exit code:
/// ExitInternal if one is above the tolerance, ExitInputError if the function
/// does not make one of them.
int compareOutputs(Loaded &loaded, const Options &options);

/// Prints one number for the bits of everything that the function left:
/// outputs, and all parameters and state. Where the arena has them plays no
/// part: equal for all budgets. An exit code.
int printHash(Loaded &loaded, const Options &options);

/// Gives inputs that `options.random` names numbers that depend on the seed
/// alone. An exit code.
int drawInputs(Loaded &loaded, const Options &options);

} // namespace ckopt::run

#endif // CKOPT_TOOLS_CKOPT_RUN_RESULTS_H
