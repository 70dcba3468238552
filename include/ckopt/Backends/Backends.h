//===- Backends.h - the targets that ckopt has ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BACKENDS_BACKENDS_H
#define CKOPT_BACKENDS_BACKENDS_H

#include "ckopt/Target/TargetInfo.h"

namespace ckopt {

/// "cpu": functions over vectors, a shared library; contractions by oneDNN and
/// OpenBLAS.
const TargetInfo &cpuTarget();
/// "cuda": launches, PTX in a folder; contractions by our own code or by
/// cuBLASLt and cuDNN.
const TargetInfo &cudaTarget();

/// Registers both, once. Compilations and registerAllPasses() call it.
void registerAllTargets();

//===----------------------------------------------------------------------===//
// For targets that are processors, too
//===----------------------------------------------------------------------===//

/// A usage error if the request has flags that only a GPU reads.
llvm::Error refuseGpuFlags(const TargetRequest &request);

/// oneDNN's or OpenBLAS's primitive, with the workspace that it needs.
LibraryChoice chooseHostLibrary(const runtime::PrimitiveDesc &desc,
                                unsigned threads);

/// Machine code for this machine's kind of processor, whose kernels are made
/// with `codegen`, in ranges.
llvm::Expected<std::unique_ptr<StepCode>>
emitHostCode(mlir::ModuleOp planned, const CodegenOptions &codegen,
             const EmitOptions &options);

/// CodegenOptions::precision from text; an error that lists the names.
llvm::Expected<runtime::ProductPrecision>
parsePrecision(const std::string &name);

} // namespace ckopt

#endif // CKOPT_BACKENDS_BACKENDS_H
