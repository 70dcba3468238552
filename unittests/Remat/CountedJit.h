//===- CountedJit.h - runs bufferized code and counts its bytes -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_REMAT_COUNTEDJIT_H
#define CKOPT_UNITTESTS_REMAT_COUNTEDJIT_H

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <vector>

namespace ckopt::test {

/// What a run of @main gave and took.
struct CountedRun {
  std::vector<float> result;
  /// Bytes of buffers that were there at once, each rounded up to 64.
  int64_t peak = 0;
};

/// Adds what lowering to LLVM needs in a context.
void registerJit(mlir::DialectRegistry &registry);

/// Lowers a bufferized module to machine code and runs its @main (see Sample)
/// once for each pair of branch and count; the first run tells the values.
/// Fails the test, and returns nothing, if it cannot.
std::vector<CountedRun> runCounted(mlir::ModuleOp module);

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_REMAT_COUNTEDJIT_H
