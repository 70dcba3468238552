//===- Emit.h - from the LLVM dialect to running code -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The JIT and files share one way to machine code: LLVM IR, optimized for one
// CPU, to an object in memory. The JIT links that object into this process; a
// shared library is the same object linked by lld. So both run the same bytes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_CONVERSION_EMIT_EMIT_H
#define CKOPT_CONVERSION_EMIT_EMIT_H

#include "ckopt/Conversion/StepToLLVM/StepToLLVM.h"
#include "ckopt/Runtime/ckrt.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace ckopt {

/// The features that generated code for a CPU may use, as LLVM names them. A
/// usage error where LLVM knows no such CPU.
llvm::Expected<std::vector<std::string>> cpuFeatures(const CpuOptions &cpu);

/// Compiles to an object file in memory with the symbols that ckrt loads: the
/// functions, ckopt_manifest, ckopt_manifest_size, ckopt_data, ckopt_data_size.
/// `data` holds the initial bytes of tensors that the artifact contains.
/// Consumes `lowered.module`.
llvm::Expected<std::vector<char>> emitObject(LoweredStep &lowered,
                                             const std::vector<char> &data,
                                             const CpuOptions &target);

/// Compiles a module of the LLVM dialect; functions that are not entries become
/// private.
llvm::Expected<std::vector<char>>
emitFunctions(mlir::OwningOpRef<mlir::ModuleOp> module,
              llvm::function_ref<bool(llvm::StringRef)> isEntry,
              const CpuOptions &target);

/// Links the object to a shared library at `path` (temporary name, renamed).
llvm::Error linkSharedLibrary(const std::vector<char> &object,
                              const std::string &path);

/// An object linked into this process, loaded as a program of the runtime.
class JitProgram {
public:
  static llvm::Expected<std::unique_ptr<JitProgram>>
  create(const std::vector<char> &object);
  ~JitProgram();
  ckrt_program *program() const { return loaded; }

private:
  struct Impl;
  JitProgram();
  std::unique_ptr<Impl> impl;
  ckrt_program *loaded = nullptr;
};

} // namespace ckopt

#endif // CKOPT_CONVERSION_EMIT_EMIT_H
