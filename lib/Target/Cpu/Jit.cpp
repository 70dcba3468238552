//===- Jit.cpp - objects linked into this process -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/LastFailure.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Cpu/Emit.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"

#include <dlfcn.h>

using namespace ckopt;

struct JitProgram::Impl {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

JitProgram::JitProgram() : impl(std::make_unique<Impl>()) {}

JitProgram::~JitProgram() {
  if (loaded)
    ckrt_program_destroy(loaded);
}

/// Returns the address of a symbol of the linked objects.
template <typename T>
static llvm::Expected<T> lookup(llvm::orc::LLJIT &jit, llvm::StringRef name) {
  auto address = jit.lookup(name);
  if (!address)
    return address.takeError();
  return address->toPtr<T>();
}

/// The library that this process has the runtime from, with what it depends on.
/// A host that opened it for itself alone, as Python opens its modules, keeps
/// its symbols out of the process's global ones.
static std::unique_ptr<llvm::orc::DefinitionGenerator>
runtimeSymbols(char prefix) {
  Dl_info info = {};
  if (!dladdr(reinterpret_cast<void *>(&ckrt_execute), &info))
    return nullptr;
  void *handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (!handle)
    return nullptr; // linked into the program itself
  return std::make_unique<llvm::orc::DynamicLibrarySearchGenerator>(
      llvm::sys::DynamicLibrary(handle), prefix);
}

llvm::Expected<std::unique_ptr<JitProgram>>
JitProgram::create(const StepObjects &objects) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  std::unique_ptr<JitProgram> result(new JitProgram);
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return jit.takeError();
  result->impl->jit = std::move(*jit);
  llvm::orc::LLJIT &lljit = *result->impl->jit;
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      lljit.getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  if (auto runtime = runtimeSymbols(lljit.getDataLayout().getGlobalPrefix()))
    lljit.getMainJITDylib().addGenerator(std::move(runtime));
  lljit.getMainJITDylib().addGenerator(std::move(*process));
  auto add = [&](const std::vector<char> &object) {
    return lljit.addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(
        llvm::StringRef(object.data(), object.size()), "ckopt_step"));
  };
  if (llvm::Error error = add(objects.main))
    return std::move(error);
  for (const std::vector<char> &kernel : objects.kernels)
    if (llvm::Error error = add(kernel))
      return std::move(error);

  auto manifest = lookup<const char *>(lljit, "ckopt_manifest");
  auto manifestSize = lookup<const uint64_t *>(lljit, "ckopt_manifest_size");
  auto data = lookup<const char *>(lljit, "ckopt_data");
  auto dataSize = lookup<const uint64_t *>(lljit, "ckopt_data_size");
  if (!manifest || !manifestSize || !data || !dataSize)
    return llvm::joinErrors(
        llvm::joinErrors(manifest.takeError(), manifestSize.takeError()),
        llvm::joinErrors(data.takeError(), dataSize.takeError()));
  runtime::Manifest parsed;
  std::string problem;
  if (!runtime::parse(*manifest, **manifestSize, parsed, problem))
    return makeError(ExitInternal, "own manifest does not parse: " + problem);
  std::vector<ckrt_fn> functions;
  for (const runtime::FunctionInfo &info : parsed.functions) {
    auto function = lookup<ckrt_fn>(lljit, info.symbol);
    if (!function)
      return function.takeError();
    functions.push_back(*function);
  }
  if (ckrt_program_load_memory(*manifest, **manifestSize, functions.data(),
                               functions.size(), *data, **dataSize,
                               &result->loaded) != CKRT_OK)
    return makeError(ExitInternal, runtime::lastFailure());
  return result;
}
