//===- EmitPtx.cpp - PTX by the packaged LLVM, in process -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emits the same bytes on every machine: no toolkit is looked for, no library
// linked, no environment read. Nothing may change rounding: no contraction, no
// fast-math, no vectorizers; division and square root are correctly rounded.
// Only approximations that the block form names are made.
// The text is scanned before it is returned.
//
//===----------------------------------------------------------------------===//
#include "BlockToGPU.h"
#include "PtxText.h"
#include "ckopt/CodeGen/Optimize.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::blockform;

namespace {
/// The lowest PTX version that supports a GPU, and the driver that reads it.
struct Isa {
  unsigned sm, major, minor;
  int driverVersion;
  const char *oldestDriver;
};
} // namespace
static constexpr Isa kIsas[] = {{80, 7, 0, 11000, "450.36 (CUDA 11.0)"},
                                {90, 7, 8, 11080, "520.61 (CUDA 11.8)"}};

static LogicalResult lowerToLLVM(ModuleOp module, const PtxOptions &options) {
  PassManager pm(module->getContext());
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(createBoundUnrollingPass());
  kernels.addPass(createSCFToControlFlowPass());
  GPUToLLVMPassOptions conversion;
  conversion.keepDenormals = options.keepDenormals;
  conversion.programmatic = options.programmatic;
  kernels.addPass(createGPUToLLVMPass(conversion));
  kernels.addPass(createReconcileUnrealizedCastsPass());
  return pm.run(module);
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
makeTargetMachine(const Isa &isa) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return makeError(ExitInternal, "this LLVM has no code for GPUs: " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::string features =
      "+ptx" + std::to_string(isa.major) + std::to_string(isa.minor);
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, "sm_" + std::to_string(isa.sm), features, options, std::nullopt,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return makeError(ExitInternal,
                     "LLVM cannot make code for sm_" + llvm::Twine(isa.sm));
  return machine;
}

/// Counts vectors of 16 bytes in global memory whose alignment is not known to
/// be 16, because the target splits them.
static int64_t countSplitVectors(const llvm::Function &function) {
  const llvm::DataLayout &layout = function.getDataLayout();
  int64_t count = 0;
  for (const llvm::BasicBlock &block : function)
    for (const llvm::Instruction &instruction : block) {
      const llvm::Value *pointer =
          llvm::getLoadStorePointerOperand(&instruction);
      if (!pointer || pointer->getType()->getPointerAddressSpace() == 3)
        continue;
      llvm::Type *type = llvm::getLoadStoreType(&instruction);
      count += type->isVectorTy() && layout.getTypeStoreSize(type) >= 16 &&
               llvm::getLoadStoreAlignment(&instruction) < llvm::Align(16);
    }
  return count;
}

static llvm::Expected<std::string> printPtx(llvm::Module &module,
                                            llvm::TargetMachine &machine) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager codegen;
  if (machine.addPassesToEmitFile(codegen, stream, nullptr,
                                  llvm::CodeGenFileType::AssemblyFile))
    return makeError(ExitInternal, "LLVM cannot print PTX");
  codegen.run(module);
  return text.str().str();
}

/// Collects facts about each kernel from the text; fails if the text must not
/// be run.
static llvm::Error checkText(PtxModule &result, const PtxOptions &options) {
  llvm::StringMap<PtxKernel *> mayUseF64;
  for (PtxKernel &kernel : result.kernels)
    if (kernel.usesF64)
      mayUseF64[kernel.symbol] = &kernel;
  // LLVM may have folded vector accesses away.
  std::vector<std::string> approximating;
  for (PtxKernel &kernel : result.kernels) {
    kernel.usesF64 = false;
    if (kernel.approximates)
      approximating.push_back(kernel.symbol);
  }
  std::string problems;
  for (const PtxViolation &found :
       scanPtx(result.text, {}, options.tf32, approximating,
               options.programmatic)) {
    PtxKernel *wide = mayUseF64.lookup(found.kernel);
    if (wide && isAboutF64(found))
      wide->usesF64 = true;
    else
      problems += "\n  kernel '" + found.kernel + "', line " +
                  std::to_string(found.line) + ": " + found.reason + ": " +
                  found.text;
  }
  if (!problems.empty())
    return makeError(ExitInternal,
                     "generated PTX is not fit to run:" + problems);
  countAccesses(result.text, result.kernels);
  return llvm::Error::success();
}

llvm::Expected<PtxModule> ckopt::emitPtx(ModuleOp blockForm,
                                         const PtxOptions &options) {
  const Isa *isa = llvm::find_if(
      kIsas, [&](const Isa &isa) { return isa.sm == options.sm; });
  if (isa == std::end(kIsas))
    return usageError(Setting("sm") + ": no code for sm_" +
                      llvm::Twine(options.sm) + "; 80 and 90 are known");
  if (options.programmatic && isa->sm < 90)
    return usageError("kernels that wait by themselves need sm_90");
  MLIRContext *context = blockForm->getContext();
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  context->appendDialectRegistry(registry);
  context
      ->loadDialect<gpu::GPUDialect, LLVM::LLVMDialect, NVVM::NVVMDialect,
                    memref::MemRefDialect, arith::ArithDialect, scf::SCFDialect,
                    cf::ControlFlowDialect, vector::VectorDialect>();

  OwningOpRef<ModuleOp> copy = blockForm.clone();
  SmallVector<PtxKernel> kernels;
  if (failed(lowerToGPU(*copy, &kernels)))
    return makeError(ExitUnsupported,
                     "a kernel has no code on a GPU (see above)");
  if (failed(lowerToLLVM(*copy, options)))
    return makeError(ExitInternal, "kernels cannot be lowered to LLVM");
  auto machine = makeTargetMachine(*isa);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(
      *copy->getOps<gpu::GPUModuleOp>().begin(), llvmContext, kModuleName);
  if (!module)
    return makeError(ExitInternal, "translation to LLVM IR failed");
  module->setTargetTriple((*machine)->getTargetTriple());
  module->setDataLayout((*machine)->createDataLayout());
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(*module, &problems))
    return makeError(ExitInternal, "generated LLVM IR is invalid: " + problem);
  optimizeKernels(*module, **machine, /*level=*/3);

  PtxModule result;
  result.kernels.assign(kernels.begin(), kernels.end());
  for (PtxKernel &kernel : result.kernels)
    if (const llvm::Function *function = module->getFunction(kernel.symbol))
      kernel.splitVectors = countSplitVectors(*function);
  auto text = printPtx(*module, **machine);
  if (!text)
    return text.takeError();
  result.text = std::move(*text);
  result.sm = isa->sm;
  result.isaMajor = isa->major;
  result.isaMinor = isa->minor;
  result.driverVersion = isa->driverVersion;
  result.oldestDriver = isa->oldestDriver;
  if (llvm::Error error = checkText(result, options))
    return std::move(error);
  return result;
}
