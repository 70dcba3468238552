//===- Passes.h - the pass autodiff -----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_AUTODIFF_PASSES_H
#define CKOPT_AUTODIFF_PASSES_H

#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Support/Real.h"
#include "mlir/Pass/Pass.h"

namespace ckopt {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ckopt/Autodiff/Passes.h.inc"

} // namespace ckopt

#endif // CKOPT_AUTODIFF_PASSES_H
