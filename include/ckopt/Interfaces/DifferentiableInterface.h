//===- DifferentiableInterface.h - reverse mode by op -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_INTERFACES_DIFFERENTIABLEINTERFACE_H
#define CKOPT_INTERFACES_DIFFERENTIABLEINTERFACE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

#include "ckopt/Interfaces/DifferentiableInterface.h.inc"

#endif // CKOPT_INTERFACES_DIFFERENTIABLEINTERFACE_H
