//===- OpenSizes.h - one code for a range of sizes --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TARGET_CPU_OPENSIZES_H
#define CKOPT_LIB_TARGET_CPU_OPENSIZES_H

#include "ckopt/Target/Cpu/StepToLLVM.h"
#include "llvm/Support/Error.h"

#include <vector>

namespace ckopt {

/// Merges functions that were made at several sizes of the open dimension
/// into those of the first module: constants that differ follow the size that
/// the session has (ckrt_open_size). Kernels may be before or behind their
/// lowering. Fails (ExitUnsupported) where code differs in more than
/// polynomials of the size.
llvm::Error mergeCode(llvm::ArrayRef<SizePoint> points,
                      llvm::ArrayRef<mlir::ModuleOp> modules,
                      const runtime::OpenSize &open);

/// Notes in the manifest of the largest size what the others change in it:
/// `open` has the range, `manifests` those of `points`.
llvm::Error mergeManifests(llvm::ArrayRef<SizePoint> points,
                           llvm::MutableArrayRef<runtime::Manifest> manifests,
                           runtime::Manifest &largest,
                           const runtime::OpenSize &open);

} // namespace ckopt

#endif // CKOPT_LIB_TARGET_CPU_OPENSIZES_H
