//===- CudaCode.h - a step as PTX -------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_CUDA_CUDACODE_H
#define CKOPT_TARGET_CUDA_CUDACODE_H

#include "ckopt/Target/Cuda/StepToDevice.h"
#include "ckopt/Target/TargetInfo.h"

namespace ckopt {

/// The code that the target "cuda" emits.
class CudaCode final : public StepCode {
public:
  explicit CudaCode(LoweredDeviceStep lowered) : step(std::move(lowered)) {
    manifest = std::move(step.manifest);
  }
  /// Of code that has kernels of ours for `lowering.own` alone: what it was
  /// made of, so that others can be added.
  CudaCode(LoweredDeviceStep lowered, mlir::ModuleOp planned,
           LowerDeviceOptions lowering)
      : CudaCode(std::move(lowered)) {
    from = mlir::cast<mlir::ModuleOp>(planned->clone());
    this->lowering = std::move(lowering);
  }

  llvm::Expected<Program> load(llvm::ArrayRef<int64_t> refused) const override;
  llvm::Error write(const std::string &path) const override;
  void print(llvm::raw_ostream &os) const override;
  llvm::Error inspect(llvm::raw_ostream &os) const override;
  llvm::Error writeJson(llvm::json::OStream &json) const override;

  /// Writes the kernels as loops in a shared library, which the simulated
  /// driver runs without a GPU (BlockToPTX.h).
  llvm::Error writeEmulation(const std::string &path,
                             const CpuOptions &cpu) const;

  /// PTX and block form; the manifest is StepCode's.
  LoweredDeviceStep step;

private:
  /// Lowers again, with kernels of ours for these primitives or for all.
  llvm::Expected<LoweredDeviceStep>
  lowerWith(std::optional<llvm::ArrayRef<int64_t>> refused) const;

  mlir::OwningOpRef<mlir::ModuleOp> from; ///< null: the code is complete
  LowerDeviceOptions lowering;
};

} // namespace ckopt

#endif // CKOPT_TARGET_CUDA_CUDACODE_H
