//===- DifferentiableInterface.cpp - reverse mode by op -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Interfaces/DifferentiableInterface.h"

#include "ckopt/Interfaces/DifferentiableInterface.cpp.inc"
