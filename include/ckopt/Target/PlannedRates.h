//===- PlannedRates.h - the rates that a module says ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans weigh kernels by the rates of the target that a module names. What
// plans needs the rates, not the target with its code: targets say theirs here
// when they are registered.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_PLANNEDRATES_H
#define CKOPT_TARGET_PLANNEDRATES_H

#include "ckopt/Target/MachineRates.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace ckopt {

/// On modules: the target that kernels were planned for.
inline constexpr llvm::StringLiteral kTargetAttr = "ckopt.target";

/// On modules: the rates that plans weigh kernels by, if they are not the
/// target's own.
inline constexpr llvm::StringLiteral kRatesAttr = "ckopt.rates";
mlir::DictionaryAttr ratesAttr(mlir::MLIRContext *context,
                               const MachineRates &rates);

/// Notes the rates of a target; as registerTarget(), before the first
/// compilation.
void nameRates(llvm::StringRef target, const MachineRates &rates);

/// Rates of the target that an op's module was planned for; otherwise the
/// defaults.
MachineRates ratesOf(mlir::Operation *op);

} // namespace ckopt

#endif // CKOPT_TARGET_PLANNEDRATES_H
