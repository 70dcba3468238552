//===- PlanningInterface.cpp - what remat asks other ops ------------------===//
#include "ckopt/Interfaces/PlanningInterface.h"

#include "ckopt/Interfaces/PlanningInterface.cpp.inc"
