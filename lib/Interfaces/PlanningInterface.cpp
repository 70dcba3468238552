//===- PlanningInterface.cpp - what remat asks other ops ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Interfaces/PlanningInterface.h"

#include "ckopt/Interfaces/PlanningInterface.cpp.inc"
