//===- CountedJit.cpp - runs bufferized code and counts its bytes ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code allocates by functions that are defined here. New buffers and ended
// ones are filled with patterns, so that values that are read too early or too
// late differ.
//
//===----------------------------------------------------------------------===//
#include "CountedJit.h"
#include "Samples.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/BufferizationToMemRef/BufferizationToMemRef.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

using namespace mlir;
using namespace ckopt::test;

//===----------------------------------------------------------------------===//
// Allocation
//===----------------------------------------------------------------------===//

static std::map<void *, int64_t> live;
static int64_t liveBytes = 0, peakBytes = 0;

static void *allocate(uint64_t alignment, uint64_t bytes) {
  bytes = llvm::alignTo(bytes, 64);
  void *memory = std::aligned_alloc(std::max<uint64_t>(alignment, 64), bytes);
  std::memset(memory, 0xA5, bytes);
  live[memory] = int64_t(bytes);
  liveBytes += int64_t(bytes);
  peakBytes = std::max(peakBytes, liveBytes);
  return memory;
}

static void release(void *memory) {
  auto found = live.find(memory);
  ASSERT_NE(found, live.end()) << "a buffer ended twice, or is not ours";
  liveBytes -= found->second;
  std::memset(memory, 0x5A, size_t(found->second));
  std::free(memory);
  live.erase(found);
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {
/// A memory reference of one dimension, as lowered code has it.
struct Descriptor {
  float *allocated, *aligned;
  int64_t offset, size, stride;
};
} // namespace

void ckopt::test::registerJit(DialectRegistry &registry) {
  registry.insert<LLVM::LLVMDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

static LogicalResult toLLVM(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic())
      function->setAttr("llvm.emit_c_interface",
                        UnitAttr::get(module.getContext()));
  PassManager passes(module.getContext());
  passes.addPass(createConvertBufferizationToMemRefPass());
  passes.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertMathToLibmPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertIndexToLLVMPass());
  FinalizeMemRefToLLVMConversionPassOptions options;
  options.useAlignedAlloc = true;
  options.useGenericFunctions = true;
  passes.addPass(createFinalizeMemRefToLLVMConversionPass(options));
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

static std::unique_ptr<llvm::orc::LLJIT> compile(ModuleOp module) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  if (failed(toLLVM(module)))
    return nullptr;
  auto context = std::make_unique<llvm::LLVMContext>();
  auto code = translateModuleToLLVMIR(module, *context);
  if (!code)
    return nullptr;
  llvm::orc::JITTargetMachineBuilder machine =
      llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
  machine.setCodeGenOptLevel(llvm::CodeGenOptLevel::None);
  auto jit = llvm::cantFail(
      llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(machine).create());
  llvm::orc::SymbolMap symbols;
  auto define = [&](llvm::StringRef name, auto *function) {
    symbols[jit->mangleAndIntern(name)] =
        llvm::orc::ExecutorSymbolDef(llvm::orc::ExecutorAddr::fromPtr(function),
                                     llvm::JITSymbolFlags::Exported);
  };
  define("_mlir_memref_to_llvm_aligned_alloc", &allocate);
  define("_mlir_memref_to_llvm_free", &release);
  define("memcpy", &std::memcpy);
  define("memset", &std::memset);
  using Unary = float(float);
  define("expf", static_cast<Unary *>(&std::exp));
  define("tanhf", static_cast<Unary *>(&std::tanh));
  define("sinf", static_cast<Unary *>(&std::sin));
  define("cosf", static_cast<Unary *>(&std::cos));
  llvm::cantFail(jit->getMainJITDylib().define(
      llvm::orc::absoluteSymbols(std::move(symbols))));
  code->setDataLayout(jit->getDataLayout());
  llvm::cantFail(jit->addIRModule(
      llvm::orc::ThreadSafeModule(std::move(code), std::move(context))));
  return jit;
}

std::vector<CountedRun> ckopt::test::runCounted(ModuleOp module) {
  std::vector<CountedRun> runs;
  std::unique_ptr<llvm::orc::LLJIT> jit = compile(module);
  EXPECT_TRUE(jit);
  if (!jit)
    return runs;
  auto address = jit->lookup("_mlir_ciface_main");
  EXPECT_TRUE(bool(address)) << llvm::toString(address.takeError());
  if (!address)
    return runs;
  auto *main = address->toPtr<void(Descriptor *, Descriptor *, Descriptor *,
                                   bool, int64_t)>();
  for (auto [condition, count] :
       {std::pair(true, 3), std::pair(false, 0), std::pair(false, 7)}) {
    std::vector<float> x(kElements), y(kElements);
    for (int i = 0; i < kElements; ++i) {
      x[size_t(i)] = 0.001f * float(i);
      y[size_t(i)] = 0.9f - 0.003f * float(i);
    }
    Descriptor result{}, first{x.data(), x.data(), 0, kElements, 1},
        second{y.data(), y.data(), 0, kElements, 1};
    liveBytes = peakBytes = 0;
    main(&result, &first, &second, condition, count);
    const float *values = result.aligned + result.offset;
    runs.push_back({{values, values + kElements}, peakBytes});
    for (auto [memory, bytes] : live)
      std::free(memory);
    live.clear();
  }
  return runs;
}
