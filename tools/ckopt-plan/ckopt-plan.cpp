//===- ckopt-plan.cpp - the program ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Tool/Main.h"

int main(int argc, char **argv) { return ckopt::planMain(argc, argv); }
