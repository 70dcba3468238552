//===- Passes.h - evaluation form, decomposition ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_NORMALIZE_PASSES_H
#define CKOPT_NORMALIZE_PASSES_H

#include "mlir/Pass/Pass.h"

namespace ckopt {

#define GEN_PASS_DECL
#include "ckopt/Normalize/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "ckopt/Normalize/Passes.h.inc"

} // namespace ckopt

#endif // CKOPT_NORMALIZE_PASSES_H
