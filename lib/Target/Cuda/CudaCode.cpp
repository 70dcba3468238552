//===- CudaCode.cpp - a step as PTX ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads and writes the code of a step. Where it runs in the process that made
// it, it was lowered without kernels of ours beside calls of libraries; those
// that libraries refuse are added by lowering the step again.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Target/Cuda/CudaCode.h"
#include "ckopt/Runtime/DeviceArtifact.h"
#include "ckopt/Runtime/LastFailure.h"
#include "ckopt/Runtime/ckrt.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Cpu/Emit.h"
#include "mlir/Pass/PassManager.h"

using namespace ckopt;

llvm::Expected<LoweredDeviceStep>
CudaCode::lowerWith(std::optional<llvm::ArrayRef<int64_t>> refused) const {
  LowerDeviceOptions options = lowering;
  options.own.reset();
  if (refused) {
    options.own.emplace();
    for (const runtime::CallInfo &call : manifest.calls)
      if (llvm::is_contained(*refused, manifest.libraryPrimitive(call)))
        options.own->insert(call.kernel);
  }
  auto lowered = lowerDeviceStep(*from, options);
  if (lowered)
    lowered->manifest.tensors = manifest.tensors; // with places of their data
  return lowered;
}

llvm::Expected<StepCode::Program>
CudaCode::load(llvm::ArrayRef<int64_t> refused) const {
  std::optional<LoweredDeviceStep> more;
  if (from && !refused.empty())
    if (llvm::Error error = lowerWith(refused).moveInto(more))
      return std::move(error);
  std::vector<uint8_t> blob =
      runtime::serialize(more ? more->manifest : manifest);
  const std::string &ptx = more ? more->code.text : step.code.text;
  ckrt_program *program = nullptr;
  if (ckrt_program_load_device(blob.data(), blob.size(), ptx.data(), ptx.size(),
                               data.data(), data.size(), &program))
    return makeError(ExitInternal, runtime::lastFailure());
  return Program{program,
                 std::shared_ptr<ckrt_program>(program, ckrt_program_destroy)};
}

llvm::Error CudaCode::write(const std::string &path) const {
  std::string problem;
  std::optional<LoweredDeviceStep> all;
  if (from)
    if (llvm::Error error = lowerWith(std::nullopt).moveInto(all))
      return error;
  if (!runtime::writeDeviceArtifact(path, all ? all->manifest : manifest,
                                    all ? all->code.text : step.code.text,
                                    data.data(), data.size(), problem))
    return ioError(problem);
  return llvm::Error::success();
}

llvm::Error CudaCode::writeEmulation(const std::string &path,
                                     const CpuOptions &cpu) const {
  mlir::OwningOpRef<mlir::ModuleOp> loops(
      mlir::cast<mlir::ModuleOp>(step.blockForm.get()->clone()));
  mlir::PassManager manager(loops->getContext());
  buildBlockToLoopsPipeline(manager);
  if (failed(manager.run(*loops)))
    return makeError(ExitInternal, "lowering to loops failed");
  auto isEntry = [](llvm::StringRef name) {
    return name.ends_with(emulationSymbol("")) ||
           name.ends_with(emulationSymbol("", /*descending=*/true));
  };
  auto object = emitFunctions(std::move(loops), isEntry, cpu);
  if (!object)
    return object.takeError();
  return linkSharedLibrary(StepObjects{std::move(*object), {}}, path);
}
