//===- CudaKernels.h - kernels of a network, one by one ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: whole steps on a stand-in show that results are about right; they do
// not show which kernel reads beside its operands, races, or rounds otherwise
// than the CPU's.
//
// Method: the reference interpreter runs the planned step. Each kernel is
// checked on the operands that its call has there, so indices are in range,
// variances positive, positions from pooling valid, and gradients consistent,
// without knowledge of any op here. Only arguments of the step are random, by
// their roles. Kernels with the same text are checked once.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_STEPS_CUDAKERNELS_H
#define CKOPT_UNITTESTS_STEPS_CUDAKERNELS_H

#include "ckopt/Runtime/Primitive.h"
#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace ckopt::test {

/// Counts the kinds of code that the kernels of a network have on a GPU.
struct KernelCensus {
  std::map<std::string, int64_t> kinds; ///< kernels of each `ckopt.kernel`
  int64_t wide = 0, narrow = 0;         ///< launches by width of accesses
  int64_t wholeBlocks = 0;   ///< elementwise: elements fill their blocks
  int64_t partialBlocks = 0; ///< they do not: the last block has a guard
  int64_t splitSums = 0;     ///< products whose k is cut into parts
  int64_t largeTiles = 0;    ///< products with tiles of 128
  int64_t dropouts = 0;
  int64_t checked = 0;     ///< kernels that were new
  int64_t interpreted = 0; ///< of these: as PTX, too
  int64_t zeros = 0;       ///< of these: a result has only zeros
};

/// Checks every kernel of the planned module's functions whose text is not in
/// `known`, and adds it there. The module is not changed. With a precision
/// other than f32, only products are checked, and the interpreter's operands
/// are rounded to it.
KernelCensus checkKernels(
    mlir::ModuleOp module, std::set<std::string> &known,
    runtime::ProductPrecision precision = runtime::ProductPrecision::F32);

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_STEPS_CUDAKERNELS_H
