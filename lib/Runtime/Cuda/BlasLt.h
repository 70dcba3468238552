//===- BlasLt.h - declarations of cuBLASLt ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declarations of cuBLASLt's stable interface, versions 12 and 13; a test
// compares them with its header where that is installed.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_BLASLT_H
#define CKOPT_LIB_RUNTIME_CUDA_BLASLT_H

#include "Driver.h"

namespace ckopt::runtime::cuda {

struct LtAlgorithm {
  uint64_t data[8];
};
struct LtResult {
  LtAlgorithm algorithm;
  size_t workspace;
  int state; ///< 0: usable
  float waves;
  int reserved[4];
};

enum LtNumber : int {
  kLtTypeF32 = 0,
  kLtTypeF64 = 1,
  kLtTypeF16 = 2,
  kLtTypeBF16 = 14,
  kLtComputeF32 = 68, ///< no TF32
  kLtComputeF64 = 70,
  /// With these, operands of f32 may be rounded to half or TF32, to bfloat16 or
  /// TF32, or to TF32.
  kLtComputeFastF16 = 74,
  kLtComputeFastBF16 = 75,
  kLtComputeFastTF32 = 77,
  kLtDescTransA = 3,
  kLtDescTransB = 4,
  kLtDescEpilogue = 7,
  kLtDescBiasPointer = 8,
  kLtEpilogueBias = 4, ///< a vector over the rows of D, of its type, is added
  kLtLayoutBatchCount = 5,
  kLtLayoutBatchOffset = 6,
  kLtPrefMaxWorkspace = 1,
  kLtPrefReductionMask = 3,
  kLtPrefMinAlignmentA = 5, ///< B, C, D follow
  /// Partial sums have the compute type, lie in the workspace, and are added in
  /// a fixed order.
  kLtReductionComputeType = 2,
};

struct LtEntries {
#define CKOPT_ENTRY(member, symbol, result, parameters)                        \
  result(*member) parameters;
#include "BlasLtEntries.def"
#undef CKOPT_ENTRY
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_BLASLT_H
