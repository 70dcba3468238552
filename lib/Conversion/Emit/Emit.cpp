//===- Emit.cpp - from the LLVM dialect to an object ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles a step to an object file: translates to LLVM IR, adds the manifest
// and the data as constant arrays, runs LLVM's standard pipeline for the target
// CPU and emits a position independent object. Nothing in the pipeline may
// change rounding: no fast-math flags are set anywhere, and FP contraction is
// off.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Conversion/Emit/Emit.h"
#include "ckopt/Conversion/Kernels/Optimize.h"
#include "ckopt/Support/Error.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Host.h"

using namespace ckopt;

/// LLVM's names of the features that its code generator can use for what the
/// emitter writes. The runtime knows what /proc/cpuinfo calls them.
static constexpr llvm::StringLiteral usedFeatures[] = {"sse3",
                                                       "ssse3",
                                                       "sse4.1",
                                                       "sse4.2",
                                                       "popcnt",
                                                       "lzcnt",
                                                       "movbe",
                                                       "bmi",
                                                       "bmi2",
                                                       "adx",
                                                       "avx",
                                                       "f16c",
                                                       "fma",
                                                       "avx2",
                                                       "avxvnni",
                                                       "avxifma",
                                                       "avxneconvert",
                                                       "avxvnniint8",
                                                       "gfni",
                                                       "vaes",
                                                       "vpclmulqdq",
                                                       "avx512f",
                                                       "avx512cd",
                                                       "avx512bw",
                                                       "avx512dq",
                                                       "avx512vl",
                                                       "avx512ifma",
                                                       "avx512vbmi",
                                                       "avx512vbmi2",
                                                       "avx512vnni",
                                                       "avx512bitalg",
                                                       "avx512vpopcntdq",
                                                       "avx512bf16",
                                                       "avx512fp16",
                                                       "avx512vp2intersect"};

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
makeTargetMachine(const CpuOptions &options) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string error, features;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return makeError(ExitInternal,
                     "no code generator for this machine: " + error);
  std::string cpu = options.cpu;
  if (cpu == "native") {
    // The CPU's name only tunes; the features decide what code may use, since a
    // virtual machine may hide some features of its CPU.
    cpu = llvm::sys::getHostCPUName().str();
    std::vector<std::string> list;
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      list.push_back((feature.second ? "+" : "-") + feature.first().str());
    llvm::sort(list);
    features = llvm::join(list, ",");
  }
  llvm::TargetOptions targetOptions;
  targetOptions.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, cpu, features, targetOptions, llvm::Reloc::PIC_, std::nullopt,
      options.optLevel >= 3 ? llvm::CodeGenOptLevel::Aggressive
                            : llvm::CodeGenOptLevel::Default));
  if (!machine)
    return makeError(ExitInternal,
                     "cannot generate code for CPU '" + cpu + "'");
  const llvm::MCSubtargetInfo &info = *machine->getMCSubtargetInfo();
  if (!info.isCPUStringValid(cpu) ||
      (triple.isX86() && !info.checkFeatures("+64bit")))
    return usageError("--cpu: '" + cpu + "' is no " + triple.getArchName() +
                      " processor that LLVM knows");
  return machine;
}

llvm::Expected<std::vector<std::string>>
ckopt::cpuFeatures(const CpuOptions &options) {
  auto machine = makeTargetMachine(options);
  if (!machine)
    return machine.takeError();
  std::vector<std::string> result;
  if (!(*machine)->getTargetTriple().isX86())
    return result;
  for (llvm::StringRef feature : usedFeatures)
    if ((*machine)->getMCSubtargetInfo()->checkFeatures(("+" + feature).str()))
      result.push_back(feature.str());
  return result;
}

/// Adds a constant array of bytes and its size as `name` and `name`_size.
static void addBlob(llvm::Module &module, llvm::StringRef name,
                    llvm::ArrayRef<char> bytes) {
  llvm::LLVMContext &context = module.getContext();
  auto *data = llvm::ConstantDataArray::getString(
      context, llvm::StringRef(bytes.data(), bytes.size()), false);
  auto *blob =
      new llvm::GlobalVariable(module, data->getType(), true,
                               llvm::GlobalValue::ExternalLinkage, data, name);
  blob->setAlignment(llvm::Align(64));
  auto *size =
      llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), bytes.size());
  new llvm::GlobalVariable(module, size->getType(), true,
                           llvm::GlobalValue::ExternalLinkage, size,
                           name + "_size");
}

/// Makes everything but the entry points private to the object.
static void setLinkage(llvm::Module &module,
                       llvm::function_ref<bool(llvm::StringRef)> isEntry) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    if (!isEntry(function.getName()))
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.addFnAttr("prefer-vector-width", "512");
  }
}

/// Translates and compiles the module; `lowered` is erased early, since it is
/// the largest part of the memory. `addData` adds globals that are not in the
/// module.
static llvm::Expected<std::vector<char>>
emit(mlir::OwningOpRef<mlir::ModuleOp> &lowered, const CpuOptions &target,
     llvm::function_ref<bool(llvm::StringRef)> isEntry,
     llvm::function_ref<void(llvm::Module &)> addData) {
  auto machine = makeTargetMachine(target);
  if (!machine)
    return machine.takeError();
  mlir::MLIRContext *context = lowered->getContext();
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  context->appendDialectRegistry(registry);
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> module =
      mlir::translateModuleToLLVMIR(*lowered, llvmContext, "ckopt_step");
  if (!module)
    return makeError(ExitInternal, "translation to LLVM IR failed");
  lowered = nullptr;
  module->setTargetTriple((*machine)->getTargetTriple());
  module->setDataLayout((*machine)->createDataLayout());
  setLinkage(*module, isEntry);
  addData(*module);
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(*module, &problems))
    return makeError(ExitInternal, "generated LLVM IR is invalid: " + problem);
  optimizeKernels(*module, **machine, target.optLevel);
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager codegen;
  if ((*machine)->addPassesToEmitFile(codegen, stream, nullptr,
                                      llvm::CodeGenFileType::ObjectFile))
    return makeError(ExitInternal, "this target cannot emit object files");
  codegen.run(*module);
  return std::vector<char>(buffer.begin(), buffer.end());
}

llvm::Expected<std::vector<char>>
ckopt::emitObject(LoweredStep &lowered, const std::vector<char> &data,
                  const CpuOptions &target) {
  auto isEntry = [&](llvm::StringRef name) {
    return llvm::any_of(lowered.manifest.functions,
                        [&](const auto &info) { return name == info.symbol; });
  };
  return emit(lowered.module, target, isEntry, [&](llvm::Module &module) {
    std::vector<uint8_t> manifest = runtime::serialize(lowered.manifest);
    addBlob(module, "ckopt_manifest",
            {reinterpret_cast<const char *>(manifest.data()), manifest.size()});
    addBlob(module, "ckopt_data", data);
  });
}

llvm::Expected<std::vector<char>>
ckopt::emitFunctions(mlir::OwningOpRef<mlir::ModuleOp> module,
                     llvm::function_ref<bool(llvm::StringRef)> isEntry,
                     const CpuOptions &target) {
  return emit(module, target, isEntry, [](llvm::Module &) {});
}
