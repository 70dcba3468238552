//===- DifferentiableInterface.cpp - reverse mode by op -------------------===//
#include "ckopt/Interfaces/DifferentiableInterface.h"

#include "ckopt/Interfaces/DifferentiableInterface.cpp.inc"
