//===- CudaHarness.h - steps for CUDA on the stand-in driver ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The whole way of `ckopt train --device=cuda:0`, without a GPU: the driver is
// test/lib/CudaStandin, which runs each kernel as the CPU code that its block
// form was lowered to, threads and blocks in either order.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_STEPS_CUDAHARNESS_H
#define CKOPT_UNITTESTS_STEPS_CUDAHARNESS_H

#include "Harness.h"
#include "ckopt/Target/Cuda/CudaCode.h"

#include <map>

namespace ckopt::test {

/// A step that was compiled for CUDA, sm_90.
struct CudaStep {
  std::unique_ptr<Compilation> compilation;

  int64_t arena() const { return compilation->summary().figures.arena; }
  const CudaCode &code() const {
    return static_cast<const CudaCode &>(*compilation->code());
  }
  const std::string &ptx() const { return code().step.code.text; }
};

/// Compiles; optimizer and budget as the options say.
llvm::Expected<CudaStep> compileForCuda(CompileOptions options);

/// CPU code of kernels, made once for all steps with the same ones. The files
/// live as long as the object.
class CpuKernels {
public:
  CpuKernels();
  ~CpuKernels();
  CpuKernels(const CpuKernels &) = delete;
  CpuKernels &operator=(const CpuKernels &) = delete;

  /// The library with the step's kernels.
  llvm::Expected<std::string> library(const CudaStep &step);

private:
  std::string folder;
  std::map<std::string, std::string> known; ///< by PTX
};

/// A session on the stand-in driver, with the model's weights and
/// pattern-filled arena.
llvm::Expected<std::unique_ptr<Session>>
openOnStandin(CudaStep &step, CpuKernels &kernels, bool descending);

/// The same, but the PTX itself runs, in the stand-in's interpreter.
llvm::Expected<std::unique_ptr<Session>> openInterpreted(CudaStep &step);

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_STEPS_CUDAHARNESS_H
