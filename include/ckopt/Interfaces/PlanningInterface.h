//===- PlanningInterface.h - what remat asks other ops ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_INTERFACES_PLANNINGINTERFACE_H
#define CKOPT_INTERFACES_PLANNINGINTERFACE_H

#include "mlir/IR/OpDefinition.h"

#include <optional>

namespace ckopt {

/// Pairs (operand, result) of in-place reuse.
using PlanningReusePairs = llvm::SmallVector<std::pair<unsigned, unsigned>>;

} // namespace ckopt

#include "ckopt/Interfaces/PlanningInterface.h.inc"

#endif // CKOPT_INTERFACES_PLANNINGINTERFACE_H
