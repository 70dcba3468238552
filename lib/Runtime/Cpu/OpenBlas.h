//===- OpenBlas.h - a library that may be missing ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The small package of the runtime comes without OpenBLAS, of which few steps
// use anything: its functions are then null.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CPU_OPENBLAS_H
#define CKOPT_LIB_RUNTIME_CPU_OPENBLAS_H

#include <cblas.h>

#pragma weak cblas_dgemm
#pragma weak cblas_sgemm

#endif // CKOPT_LIB_RUNTIME_CPU_OPENBLAS_H
