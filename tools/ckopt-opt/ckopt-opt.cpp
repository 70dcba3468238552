//===- ckopt-opt.cpp - the program ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Tool/Main.h"
#ifdef CKOPT_TEST_KERNELS
#include "TestKernels.h"
#endif

int main(int argc, char **argv) {
#ifdef CKOPT_TEST_KERNELS
  ckopt::test::registerTestKernelsPass();
#endif
  return ckopt::optMain(argc, argv);
}
