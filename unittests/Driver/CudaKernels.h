//===- CudaKernels.h - kernels of a network, one by one ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: whole steps on a stand-in show that results are about right; they do
// not show which kernel reads beside its operands, races, or rounds otherwise
// than the CPU's.
//
// Method: the reference interpreter runs the planned step. What each call gets
// there is what its kernel is checked on, so indices are in range, variances
// positive, the places that pooling kept are places, and gradients belong to
// what they are gradients of, without a word about any op here. Only arguments
// of the step are random, by their roles. Kernels with the same text are one.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_DRIVER_CUDAKERNELS_H
#define CKOPT_UNITTESTS_DRIVER_CUDAKERNELS_H

#include "ckopt/Runtime/Primitive.h"
#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace ckopt::test {

/// What kinds of code the kernels of a network have on a GPU.
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
  int64_t zeros = 0;       ///< of these: a result has nothing but zeros
};

/// Checks every kernel of the planned module's functions whose text is not in
/// `known`, and adds it there. The module stays as it is. Products other than
/// by f32: of products alone, and the interpreter's operands are rounded so.
KernelCensus checkKernels(
    mlir::ModuleOp module, std::set<std::string> &known,
    runtime::ProductPrecision precision = runtime::ProductPrecision::F32);

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_DRIVER_CUDAKERNELS_H
