//===- CudaHarness.cpp - steps for CUDA on the stand-in driver ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CudaHarness.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Targets.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

#include <cstdlib>

using namespace ckopt;
using namespace ckopt::test;

llvm::Expected<CudaStep> ckopt::test::compileForCuda(CompileOptions options) {
  options.step.target = "cuda";
  options.step.threads = 1;
  auto own = std::make_shared<CudaOptions>();
  own->sm = 90;
  own->libraries = CudaLibraries::None;
  options.device.own = own;
  // For the kernels on the CPU: they run on few numbers.
  options.target.optLevel = 0;
  CudaStep step;
  step.compilation = std::make_unique<Compilation>(std::move(options));
  Compilation &compilation = *step.compilation;
  if (llvm::Error error = compilation.import())
    return std::move(error);
  if (llvm::Error error = compilation.plan())
    return std::move(error);
  if (llvm::Error error = compilation.emit())
    return std::move(error);
  return std::move(step);
}

CpuKernels::CpuKernels() {
  llvm::SmallString<128> path;
  if (!llvm::sys::fs::createUniqueDirectory("ckopt-cuda", path))
    folder = path.str().str();
}

CpuKernels::~CpuKernels() {
  if (!folder.empty())
    (void)llvm::sys::fs::remove_directories(folder);
}

llvm::Expected<std::string> CpuKernels::library(const CudaStep &step) {
  if (folder.empty())
    return ioError("cannot make a temporary folder");
  std::string &path = known[step.ptx()];
  if (!path.empty())
    return path;
  path = folder + "/" + std::to_string(known.size()) + ".so";
  if (llvm::Error error =
          step.code().writeEmulation(path, step.compilation->options().target))
    return std::move(error);
  return path;
}

/// Opens a session on the stand-in driver; `kernels` selects the code that it
/// runs, `descending` its order.
static llvm::Expected<std::unique_ptr<Session>>
openSession(CudaStep &step, const std::string &kernels, bool descending) {
  setenv("CKOPT_CUDA_DRIVER", CKOPT_STANDIN, /*overwrite=*/1);
  setenv("CKOPT_STANDIN_KERNELS", kernels.c_str(), /*overwrite=*/1);
  setenv("CKOPT_STANDIN_DESCENDING", descending ? "1" : "0", /*overwrite=*/1);
  LoadOptions options;
  options.seed = 1;
  return load(*step.compilation, options);
}

llvm::Expected<std::unique_ptr<Session>>
ckopt::test::openOnStandin(CudaStep &step, CpuKernels &kernels,
                           bool descending) {
  auto library = kernels.library(step);
  if (!library)
    return library.takeError();
  return openSession(step, *library, descending);
}

llvm::Expected<std::unique_ptr<Session>>
ckopt::test::openInterpreted(CudaStep &step) {
  return openSession(step, "ptx", /*descending=*/false);
}
