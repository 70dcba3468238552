//===- Emit.h - from the LLVM dialect to running code -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The JIT and files share one way to machine code: LLVM IR, optimized for one
// CPU, to objects in memory. The JIT links these objects into this process; a
// shared library is the same objects linked by lld. So both run the same bytes.
//
// Each function of a kernel becomes a separate object, named by a hash of its
// content. Functions with equal content, in one step or in several, are
// compiled once and cached on disk (KernelCache.h).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_CPU_EMIT_H
#define CKOPT_TARGET_CPU_EMIT_H

#include "ckopt/Runtime/ckrt.h"
#include "ckopt/Target/Cpu/KernelCache.h"
#include "ckopt/Target/Cpu/StepToLLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace ckopt {

/// The features that generated code for a CPU may use, by LLVM's names. A usage
/// error if LLVM does not know the CPU.
llvm::Expected<std::vector<std::string>> cpuFeatures(const CpuOptions &cpu);

/// The architecture of a CPU if this machine cannot run its code ("aarch64"),
/// else "".
llvm::Expected<std::string> foreignArchitecture(const CpuOptions &cpu);

/// The class of a CPU by its features, one of runtime::kCpuClasses.
llvm::Expected<std::string> cpuClass(const CpuOptions &cpu);

/// The processor of one of several machines that will run the same code.
struct MachineCpu {
  std::string name; ///< of the machine, for errors
  std::string architecture;
  std::vector<std::string> features; ///< as LLVM names them

  /// Describes this machine.
  static MachineCpu own(std::string name);
  bool has(llvm::StringRef feature) const;
};

/// Restricts `options` to the CPU features that all ranks' machines have. An
/// error names a machine on which code for the CPU would not run. `own`
/// describes this machine.
llvm::Error settleCpu(CpuOptions &options, const MachineCpu &own,
                      llvm::ArrayRef<MachineCpu> all);

/// Object files in memory: the first one is loaded, and refers to the others.
struct StepObjects {
  std::vector<char> main;
  std::vector<std::vector<char>> kernels;

  int64_t bytes() const;
};

/// How many kernels were compiled, and how many came from the cache.
struct KernelCounts {
  int64_t functions = 0; ///< functions of kernels
  int64_t distinct = 0;  ///< functions with different content
  int64_t found = 0;     ///< distinct functions from the cache
};

/// Compiles to objects with the symbols that ckrt loads: the functions,
/// ckopt_manifest, ckopt_manifest_size, ckopt_data, ckopt_data_size. `data`
/// holds the initial bytes of tensors that the artifact contains. Kernels in
/// `cache` are not compiled again. Consumes `lowered.module`.
llvm::Expected<StepObjects>
emitObjects(LoweredStep &lowered, const std::vector<char> &data,
            const CpuOptions &target, KernelCache &cache, KernelCounts &counts);

/// Compiles a module of the LLVM dialect to one object; functions that are not
/// entries become private.
llvm::Expected<std::vector<char>>
emitFunctions(mlir::OwningOpRef<mlir::ModuleOp> module,
              llvm::function_ref<bool(llvm::StringRef)> isEntry,
              const CpuOptions &target);

/// A linker inside of the program: takes the arguments of ld.lld, prints to
/// standard error and returns the exit code.
using Linker = int (*)(llvm::ArrayRef<const char *> arguments);

/// Replaces the linker that is searched for on the PATH.
void setLinker(Linker linker);

/// Links the objects to a shared library at `path` (temporary name, renamed).
llvm::Error linkSharedLibrary(const StepObjects &objects,
                              const std::string &path);

/// Objects linked into this process, loaded as a program of the runtime.
class JitProgram {
public:
  static llvm::Expected<std::unique_ptr<JitProgram>>
  create(const StepObjects &objects);
  ~JitProgram();
  ckrt_program *program() const { return loaded; }

private:
  struct Impl;
  JitProgram();
  std::unique_ptr<Impl> impl;
  ckrt_program *loaded = nullptr;
};

} // namespace ckopt

#endif // CKOPT_TARGET_CPU_EMIT_H
