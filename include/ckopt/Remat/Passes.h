//===- Passes.h - passes of Remat ----------------------*- C++ -*-===//
#ifndef CKOPT_REMAT_PASSES_H
#define CKOPT_REMAT_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ckopt {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "ckopt/Remat/Passes.h.inc"
} // namespace ckopt

#endif // CKOPT_REMAT_PASSES_H
