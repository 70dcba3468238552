//===- Passes.h - reverse-mode differentiation and optimizers ---*- C++ -*-===//
#ifndef CKOPT_AUTODIFF_PASSES_H
#define CKOPT_AUTODIFF_PASSES_H

#include "mlir/Pass/Pass.h"

namespace ckopt {

#define GEN_PASS_DECL
#include "ckopt/Autodiff/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "ckopt/Autodiff/Passes.h.inc"

} // namespace ckopt

#endif // CKOPT_AUTODIFF_PASSES_H
