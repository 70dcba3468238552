//===- Benchmarks.h - what ckopt-benchmarks times ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BENCHMARKS_BENCHMARKS_H
#define CKOPT_BENCHMARKS_BENCHMARKS_H

namespace ckopt::benchmarks {

/// "kernel/NAME": every kernel of kernels.mlir on one thread, bytes read and
/// written a second; "memcpy/BYTES" beside them.
void registerKernels();
/// "phase/NETWORK/PHASE": each phase of a compilation; "import/NETWORK".
void registerPhases();
/// "plan/..." and "pack/...": plans of random training graphs.
void registerPlanner();

/// "product/MxNxK/CLASS": products of f32 by each class, on one thread;
/// "items" are operations of the product of f32.
void registerProducts();

} // namespace ckopt::benchmarks

#endif // CKOPT_BENCHMARKS_BENCHMARKS_H
