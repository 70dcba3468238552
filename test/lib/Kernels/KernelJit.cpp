//===- KernelJit.cpp - kernels, compiled by LLVM's JIT --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One program holds the kernels of one compilation: a context, a pipeline and a
// linker for each kernel alone would take most of the tests' time.
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include "ckopt/CodeGen/Optimize.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Reference/Interpreter.h"
#include "ckopt/Target/Cuda/BlockToPTX/BlockToPTX.h"
#include "ckopt/Target/Targets.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

using Jit = llvm::orc::LLJIT;

static llvm::orc::JITTargetMachineBuilder hostMachine(unsigned optLevel) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  auto builder =
      llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
  // Level None would use LLVM's fast instruction selection, which the drivers
  // never do: it folds the load of a scalar into a blend that reads 16 bytes,
  // beyond the end of a buffer.
  builder.setCodeGenOptLevel(optLevel ? llvm::CodeGenOptLevel::Default
                                      : llvm::CodeGenOptLevel::Less);
  return builder;
}

/// Lowers what emitKernel made and compiles it; null with an error.
static std::shared_ptr<Jit> compileProgram(ModuleOp into, KernelForm form,
                                           unsigned optLevel,
                                           std::string &error) {
  if (failed(verify(into))) {
    error = "emitted code is invalid";
    return nullptr;
  }
  PassManager manager(into.getContext());
  if (form == KernelForm::CPU)
    buildKernelLoweringPipeline(manager);
  else
    buildBlockToLoopsPipeline(manager);
  if (failed(manager.run(into))) {
    error = "emitted code cannot be lowered";
    return nullptr;
  }
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  auto llvmModule = translateModuleToLLVMIR(into, *llvmContext);
  if (!llvmModule) {
    error = "emitted code has no LLVM IR";
    return nullptr;
  }
  auto builder = hostMachine(optLevel);
  auto machine = llvm::cantFail(builder.createTargetMachine());
  llvmModule->setDataLayout(machine->createDataLayout());
  llvmModule->setTargetTriple(machine->getTargetTriple());
  optimizeKernels(*llvmModule, *machine, optLevel);
  if (const char *file = getenv("CKOPT_DUMP_KERNEL")) {
    std::error_code code;
    llvm::raw_fd_ostream out(file, code);
    llvmModule->print(out, nullptr);
  }
  std::shared_ptr<Jit> jit = llvm::cantFail(
      llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(builder).create());
  jit->getMainJITDylib().addGenerator(llvm::cantFail(
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
          jit->getDataLayout().getGlobalPrefix())));
  llvm::cantFail(jit->addIRModule(llvm::orc::ThreadSafeModule(
      std::move(llvmModule), std::move(llvmContext))));
  return jit;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

CodegenOptions test::launchOptions(runtime::ProductPrecision precision,
                                   const KernelSettings &device) {
  CodegenOptions options = llvm::cantFail(cudaTarget().codegen(device));
  options.precision = precision;
  return options;
}

static bool runsBlocks(const CodegenOptions &options) {
  return options.target->traits.form == StageForm::Blocks;
}

struct KernelJit::Impl {
  std::unique_ptr<MLIRContext> ownContext; ///< of kernels given as text
  OwningOpRef<ModuleOp> module;            ///< likewise
  func::FuncOp kernel;
  CodegenOptions options{&cpuTarget()};
  KernelCode code;
  std::shared_ptr<Jit> jit;
  std::vector<Fn> stages;
  using Launch = void (*)(void *const *);
  std::vector<Launch> launches;     ///< of a device; null: nothing to do
  std::vector<unsigned> numScalars; ///< parameters of each launch
  bool descending = false;          ///< of these
  bool approximates = false;        ///< likewise
  std::unique_ptr<KernelLauncher> launcher; ///< instead of code
  bool ok = false;
  std::string error;

  std::string launch(size_t number, void *const *args, const int64_t *scalars,
                     void *scratch);
  bool parse(const std::string &text);
  bool emit(ModuleOp into);
  bool resolve(std::shared_ptr<Jit> program);
  void compileAlone(KernelForm form, const MakeLauncher &make = {});
};

void test::registerJitDialects(DialectRegistry &registry) {
  reference::registerReferenceModels(registry);
  registry.insert<CkoptDialect, func::FuncDialect>();
  registerKernelDialects(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

void test::loadKernelDialects(MLIRContext &context) {
  DialectRegistry registry;
  registerJitDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

bool KernelJit::Impl::parse(const std::string &text) {
  ownContext = std::make_unique<MLIRContext>();
  loadKernelDialects(*ownContext);
  module = parseSourceString<ModuleOp>(text, ownContext.get());
  if (module)
    kernel = module->lookupSymbol<func::FuncOp>("k");
  if (!kernel)
    error = "does not parse, or has no kernel @k:\n" + text;
  return bool(kernel);
}

/// Plans the kernel and adds its functions.
bool KernelJit::Impl::emit(ModuleOp into) {
  FailureOr<KernelCode> planned = planKernel(kernel, options);
  if (failed(planned) || failed(emitKernel(kernel, options, into))) {
    error = kernel.getSymName().str() + " has no code";
    return false;
  }
  code = *planned;
  if (runsBlocks(options))
    for (const KernelStage &stage : code.stages) {
      auto launch = into.lookupSymbol<func::FuncOp>(stage.symbol);
      Type scalar = IntegerType::get(kernel.getContext(), 64);
      numScalars.push_back(
          launch ? llvm::count(launch.getArgumentTypes(), scalar) : 0);
      if (launch)
        launch.walk(
            [&](Operation *op) { approximates |= block::isApproximate(op); });
    }
  return true;
}

/// Finds the kernel's functions in a program.
bool KernelJit::Impl::resolve(std::shared_ptr<Jit> program) {
  jit = std::move(program);
  for (const KernelStage &stage : code.stages) {
    if (runsBlocks(options) && stage.trip == 0) {
      launches.push_back(nullptr);
      continue;
    }
    auto address = jit->lookup(runsBlocks(options)
                                   ? emulationSymbol(stage.symbol, descending)
                                   : stage.symbol);
    if (!address) {
      error = llvm::toString(address.takeError());
      return false;
    }
    if (runsBlocks(options))
      launches.push_back(address->toPtr<Launch>());
    else
      stages.push_back(address->toPtr<Fn>());
  }
  return true;
}

void KernelJit::Impl::compileAlone(KernelForm form, const MakeLauncher &make) {
  OwningOpRef<ModuleOp> into = ModuleOp::create(kernel.getLoc());
  if (!emit(*into))
    return;
  if (make) {
    launcher = make(*into, error);
    ok = launcher != nullptr;
  } else if (!code.library) {
    auto program = compileProgram(*into, form, /*optLevel=*/2, error);
    ok = program && resolve(std::move(program));
  } else {
    ok = true;
  }
}

KernelJit::KernelJit(const std::string &text, unsigned vectorBits)
    : impl(std::make_unique<Impl>()) {
  impl->options.vectorBits = vectorBits;
  if (impl->parse(text))
    impl->compileAlone(KernelForm::CPU);
}
KernelJit::KernelJit() : impl(std::make_unique<Impl>()) {}
KernelJit::~KernelJit() = default;

std::unique_ptr<KernelJit>
KernelJit::onDevice(const std::string &text,
                    runtime::ProductPrecision precision) {
  std::unique_ptr<KernelJit> jit(new KernelJit);
  jit->impl->options = launchOptions(precision);
  if (jit->impl->parse(text))
    jit->impl->compileAlone(KernelForm::Blocks);
  return jit;
}

std::unique_ptr<KernelJit>
KernelJit::launchedBy(const MakeLauncher &make, const std::string &text,
                      runtime::ProductPrecision precision) {
  std::unique_ptr<KernelJit> jit(new KernelJit);
  jit->impl->options = launchOptions(precision);
  if (jit->impl->parse(text))
    jit->impl->compileAlone(KernelForm::Blocks, make);
  return jit;
}

std::unique_ptr<KernelJit>
KernelJit::launchedBy(const MakeLauncher &make, func::FuncOp kernel,
                      runtime::ProductPrecision precision,
                      const KernelSettings &device) {
  std::unique_ptr<KernelJit> jit(new KernelJit);
  jit->impl->options = launchOptions(precision, device);
  jit->impl->kernel = kernel;
  jit->impl->compileAlone(KernelForm::Blocks, make);
  return jit;
}

std::unique_ptr<KernelJit> KernelJit::reversed() const {
  std::unique_ptr<KernelJit> jit(new KernelJit);
  Impl &made = *jit->impl;
  made.kernel = impl->kernel;
  made.options = impl->options;
  made.code = impl->code;
  made.numScalars = impl->numScalars;
  made.descending = true;
  made.error = impl->error;
  made.ok = impl->ok && (made.code.library || made.resolve(impl->jit));
  return jit;
}

std::vector<std::unique_ptr<KernelJit>>
KernelJit::compileAll(ArrayRef<func::FuncOp> kernels,
                      const JitOptions &options) {
  std::vector<std::unique_ptr<KernelJit>> made;
  if (kernels.empty())
    return made;
  OwningOpRef<ModuleOp> into =
      ModuleOp::create(func::FuncOp(kernels.front()).getLoc());
  bool anyCode = false;
  for (func::FuncOp kernel : kernels) {
    made.emplace_back(new KernelJit);
    Impl &impl = *made.back()->impl;
    impl.kernel = kernel;
    if (options.form == KernelForm::CPU)
      impl.options.vectorBits = options.vectorBits;
    else
      impl.options = launchOptions(options.precision, options.device);
    impl.ok = impl.emit(*into);
    anyCode |= impl.ok && !impl.code.library;
  }
  if (!anyCode)
    return made;
  std::string error;
  auto program = compileProgram(*into, options.form, options.optLevel, error);
  for (const auto &jit : made) {
    if (!jit->impl->ok || jit->impl->code.library)
      continue;
    if (!program)
      jit->impl->error = error;
    jit->impl->ok = program && jit->impl->resolve(program);
  }
  return made;
}

std::string KernelJit::Impl::launch(size_t number, void *const *args,
                                    const int64_t *scalars, void *scratch) {
  SmallVector<Type> types(kernel.getArgumentTypes());
  llvm::append_range(types, kernel.getResultTypes());
  SmallVector<uint64_t> values;
  SmallVector<KernelLauncher::Range> memory;
  for (auto [i, type] : llvm::enumerate(types)) {
    values.push_back(reinterpret_cast<uint64_t>(args[i]));
    memory.push_back({args[i], getByteSize(cast<RankedTensorType>(type)),
                      "argument " + std::to_string(i)});
  }
  for (unsigned i = 0; i < numScalars[number]; ++i)
    values.push_back(static_cast<uint64_t>(scalars[i]));
  values.push_back(reinterpret_cast<uint64_t>(scratch));
  memory.push_back({scratch, code.workspaceBytes, "scratch"});
  if (launcher)
    return code.stages[number].trip == 0
               ? std::string()
               : launcher->launch(code.stages[number].symbol, values, memory);
  SmallVector<void *> params;
  for (uint64_t &value : values)
    params.push_back(&value);
  if (launches[number])
    launches[number](params.data());
  return {};
}
std::string KernelJit::launch(size_t number, void *const *args,
                              const int64_t *scalars, void *scratch) const {
  return impl->launch(number, args, scalars, scratch);
}
std::vector<std::string> KernelJit::launchOnZeros() const {
  std::vector<std::vector<std::byte>> buffers;
  auto add = [&](int64_t bytes) {
    buffers.emplace_back(size_t(bytes) + 64);
    auto begin = reinterpret_cast<uintptr_t>(buffers.back().data());
    return reinterpret_cast<void *>(llvm::alignTo(begin, 64));
  };
  std::vector<void *> arguments;
  for (TypeRange types : {TypeRange(kernel().getArgumentTypes()),
                          TypeRange(kernel().getResultTypes())})
    for (Type type : types)
      arguments.push_back(add(getByteSize(cast<RankedTensorType>(type))));
  void *scratch = add(code().workspaceBytes);
  std::vector<std::string> errors;
  for (size_t stage = 0; stage < code().stages.size(); ++stage)
    errors.push_back(launch(stage, arguments.data(), nullptr, scratch));
  return errors;
}
bool KernelJit::ok() const { return impl->ok; }
const std::string &KernelJit::error() const { return impl->error; }
bool KernelJit::isOnDevice() const { return runsBlocks(impl->options); }
bool KernelJit::approximates() const { return impl->approximates; }
const KernelCode &KernelJit::code() const { return impl->code; }
func::FuncOp KernelJit::kernel() const { return impl->kernel; }
MLIRContext &KernelJit::context() const { return *impl->kernel->getContext(); }
KernelJit::Fn KernelJit::stage(size_t number) const {
  return impl->stages[number];
}
void KernelJit::run(void *const *args, const int64_t *scalars,
                    void *scratch) const {
  for (size_t i = 0; i < impl->stages.size(); ++i)
    impl->stages[i](args, scalars, 0, impl->code.stages[i].trip, scratch);
}

std::string test::kernelText(const std::string &kind, const std::string &args,
                             const std::string &results,
                             const std::string &body) {
  return "func.func private @k(" + args + ") -> (" + results +
         ") attributes {ckopt.kernel = \"" + kind + "\"} {\n" + body + "}\n";
}
