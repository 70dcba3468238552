//===- OldDriver.cpp - a CUDA driver that lacks most entries --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
extern "C" {
int cuInit(unsigned);
int cuDriverGetVersion(int *version);
}

int cuInit(unsigned) { return 0; }

int cuDriverGetVersion(int *version) {
  *version = 10000;
  return 0;
}
