//===- OpenMP.h - libgomp's own entry points --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares libgomp's stable entry points (ABI GOMP_4.0, OMP_1.0). oneDNN and
// OpenBLAS run on libgomp, and one process must hold only one OpenMP runtime;
// clang's pragmas would bring libomp as well, so the entry points are called by
// name.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CPU_OPENMP_H
#define CKOPT_LIB_RUNTIME_CPU_OPENMP_H

extern "C" {
void GOMP_parallel(void (*fn)(void *), void *data, unsigned threads,
                   unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);
int omp_get_dynamic(void);
void omp_set_dynamic(int on);
int omp_in_parallel(void);
}

#endif // CKOPT_LIB_RUNTIME_CPU_OPENMP_H
