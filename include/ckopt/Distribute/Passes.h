//===- Passes.h - passes for several ranks ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DISTRIBUTE_PASSES_H
#define CKOPT_DISTRIBUTE_PASSES_H

#include "ckopt/Distribute/Distribute.h"
#include "ckopt/Support/Real.h"
#include "mlir/Pass/Pass.h"

namespace ckopt {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ckopt/Distribute/Passes.h.inc"

} // namespace ckopt

#endif // CKOPT_DISTRIBUTE_PASSES_H
