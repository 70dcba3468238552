//===- Targets.h - the targets that ckopt has -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_TARGETS_H
#define CKOPT_TARGET_TARGETS_H

#include "ckopt/Target/TargetInfo.h"

namespace ckopt {

/// "cpu": functions over vectors, a shared library; contractions by oneDNN and
/// OpenBLAS.
const TargetInfo &cpuTarget();
/// "cuda": launches, PTX in a folder; contractions by our own code or by
/// cuBLASLt and cuDNN.
const TargetInfo &cudaTarget();

/// Who runs products and convolutions on a GPU.
enum class CudaLibraries {
  None, ///< code of our own
  Auto, ///< cuBLASLt and cuDNN where they are there and take the call, else
        ///< ours
  All,  ///< cuBLASLt and cuDNN alone
};

/// What target cuda alone has (DeviceOptions::own).
struct CudaOptions final : TargetOptions {
  CudaOptions() : TargetOptions("cuda") {}

  unsigned sm = 80; ///< least compute capability: 80, 90
  CudaLibraries libraries = CudaLibraries::Auto;
  int64_t workspace = int64_t(32) << 20; ///< of each call of theirs
  int32_t multiprocessors = 0; ///< sums are divided for so many; 0: by sm
  std::string rates;           ///< a100, h100, h200, l4 or a file; "": by sm
  std::string ratesFile;       ///< the file among them
  std::string emulation;       ///< write the kernels as CPU code, for tests
};

/// Registers both, once. Compilations and registerAllPasses() call it.
void registerAllTargets();

//===----------------------------------------------------------------------===//
// For targets that are processors, too
//===----------------------------------------------------------------------===//

/// A usage error if the request asks for products of rounded operands.
llvm::Error refuseNarrowProducts(const TargetRequest &request);

/// oneDNN's or OpenBLAS's primitive, by the table of the options, with the
/// workspace that it needs.
LibraryChoice chooseHostLibrary(const runtime::PrimitiveDesc &desc,
                                const CodegenOptions &options);

/// Machine code for this machine's kind of processor, whose kernels are made
/// with `codegen`, in ranges.
llvm::Expected<std::unique_ptr<StepCode>>
emitHostCode(mlir::ModuleOp planned, const CodegenOptions &codegen,
             const EmitOptions &options);

/// Inverse of StepCode::pack() for what emitHostCode() makes.
llvm::Expected<std::unique_ptr<StepCode>>
unpackHostCode(llvm::StringRef packed);

/// The products that a name asks for where a target has all of them; `high` is
/// what it has for that.
runtime::ProductPrecision productsNamed(MatmulPrecision name,
                                        runtime::ProductPrecision high);

} // namespace ckopt

#endif // CKOPT_TARGET_TARGETS_H
