//===- Kernels.cpp - code for kernels -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/CodeGen/Kernels.h"
#include "Kinds/GeneratedKernel.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

/// Returns the planned kernel; null with a diagnostic on failure.
static std::unique_ptr<GeneratedKernel> planned(func::FuncOp kernel,
                                                const CodegenOptions &options) {
  auto kind = kernel->getAttrOfType<StringAttr>(attrs::kKernel);
  if (!kind) {
    kernel.emitError("has no attribute ") << attrs::kKernel;
    return nullptr;
  }
  if (kernel.isExternal() || !kernel.getBody().hasOneBlock()) {
    kernel.emitError("a kernel must have a body of one block");
    return nullptr;
  }
  using Make = std::unique_ptr<GeneratedKernel> (*)(func::FuncOp,
                                                    const CodegenOptions &);
  auto make = llvm::StringSwitch<Make>(kind.getValue())
                  .Case("elementwise", makeElementwiseKernel)
                  .Case("joined", makeJoinedKernel)
                  .Case("reduction", makeReductionKernel)
                  .Case("row", makeRowKernel)
                  .Case("structured", makeStructuredKernel)
                  .Case("library", makeLibraryKernel)
                  .Default(nullptr);
  std::unique_ptr<GeneratedKernel> made =
      make ? make(kernel, options) : nullptr;
  if (!made) {
    kernel.emitError("cannot be a kernel of kind '") << kind.getValue() << "'";
    return nullptr;
  }
  if (failed(made->plan()))
    return nullptr;
  return made;
}

FailureOr<KernelCode> ckopt::planKernel(func::FuncOp kernel,
                                        const CodegenOptions &options) {
  std::unique_ptr<GeneratedKernel> made = planned(kernel, options);
  if (!made)
    return failure();
  return made->code;
}

LogicalResult ckopt::emitKernel(func::FuncOp kernel,
                                const CodegenOptions &options, ModuleOp into) {
  std::unique_ptr<GeneratedKernel> made = planned(kernel, options);
  return success(made && succeeded(made->emit(into)));
}

FailureOr<VectorReport>
ckopt::reportVectorization(func::FuncOp kernel, const CodegenOptions &options) {
  std::unique_ptr<GeneratedKernel> made = planned(kernel, options);
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(kernel.getLoc());
  if (!made || failed(made->emit(*scratch)))
    return failure();
  return made->report;
}

void ckopt::registerKernelDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, block::BlockDialect,
                  cf::ControlFlowDialect, func::FuncDialect, gpu::GPUDialect,
                  LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
                  scf::SCFDialect, vector::VectorDialect>();
}

void ckopt::eraseUnusedKernels(ModuleOp module) {
  llvm::StringSet<> used;
  module.walk([&](KernelCallOp call) { used.insert(call.getCallee()); });
  for (auto kernel : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (kernel->hasAttr(attrs::kKernel) && !used.contains(kernel.getSymName()))
      kernel.erase();
}
