//===- Results.h - data for a step, and what it made ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_RUN_RESULTS_H
#define CKOPT_TOOLS_CKOPT_RUN_RESULTS_H

#include "HostFiles.h"
#include "Loaded.h"

namespace ckopt::run {

/// Reads a whole tensor in its own type (bf16 as f32, because numpy lacks it);
/// one that ranks share by all of them together. Returns an exit code.
int readTensor(Loaded &loaded, int64_t tensor, HostArray &array);

/// Prints a hash of the bits that the function left in outputs, parameters and
/// state. It does not depend on their places in the arena, so it is equal for
/// all budgets. Returns an exit code.
int printHash(Loaded &loaded, const Options &options);

/// Fills the inputs that `options.random` names with numbers that depend on the
/// seed alone. Returns an exit code.
int drawInputs(Loaded &loaded, const Options &options);

} // namespace ckopt::run

#endif // CKOPT_TOOLS_CKOPT_RUN_RESULTS_H
