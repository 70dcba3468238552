//===- Targets.h - the built-in targets -------------------------*- C++ -*-===//
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

/// Which code runs matmuls and convolutions on a GPU.
enum class CudaLibraries {
  None, ///< code of our own
  Auto, ///< cuBLASLt and cuDNN if they are installed and take the call, else
        ///< ours
  All,  ///< only cuBLASLt and cuDNN
};

/// Settings of the target cuda (DeviceOptions::own).
struct CudaOptions final : TargetOptions {
  CudaOptions() : TargetOptions("cuda") {}

  /// Compute capability of the devices that code is for: 80, 86, 89, 90 or
  /// 120; 0: that of the device that it runs on, or 80.
  unsigned sm = 0;
  CudaLibraries libraries = CudaLibraries::Auto;
  int64_t workspace = int64_t(32) << 20; ///< for each of their calls
  /// The same limit for attention, of which it is known what it takes.
  bool limitsAttention = false;
  int32_t multiprocessors = 0; ///< sums are divided for this number; 0: the
                               ///< device's, or by sm
  std::string rates; ///< name of a device or a file; "": the device, or by sm
  std::string ratesFile;     ///< the file that `rates` names
  bool programmatic = false; ///< PtxOptions::programmatic
  bool weightCopies = false; ///< KernelSettings::keepCopies
  std::string emulation;     ///< write the kernels as CPU code, for tests
};

/// Registers both, once. Compilations and registerAllPasses() call this.
void registerAllTargets();

//===----------------------------------------------------------------------===//
// For targets that are processors
//===----------------------------------------------------------------------===//

/// A usage error if the request asks for rounded operands of matmuls.
llvm::Error refuseNarrowProducts(const TargetRequest &request);

/// Chooses oneDNN's or OpenBLAS's primitive, by the table of the options, with
/// its workspace.
LibraryChoice chooseHostLibrary(const runtime::PrimitiveDesc &desc,
                                const CodegenOptions &options);

/// Makes machine code for this machine's kind of processor; kernels are made
/// with `codegen`, as ranges.
llvm::Expected<std::unique_ptr<StepCode>>
emitHostCode(mlir::ModuleOp planned, const CodegenOptions &codegen,
             const EmitOptions &options);

/// Inverse of StepCode::pack() for the code of emitHostCode().
llvm::Expected<std::unique_ptr<StepCode>>
unpackHostCode(llvm::StringRef packed);

/// The precision class for a name, if a target has all of them; `high` is the
/// target's class for it.
runtime::ProductPrecision productsNamed(MatmulPrecision name,
                                        runtime::ProductPrecision high);

} // namespace ckopt

#endif // CKOPT_TARGET_TARGETS_H
