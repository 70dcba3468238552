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

} // namespace ckopt::benchmarks

#endif // CKOPT_BENCHMARKS_BENCHMARKS_H
