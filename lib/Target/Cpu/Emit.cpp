//===- Emit.cpp - from the LLVM dialect to objects ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles a step to object files: translates to LLVM IR, adds the manifest and
// the data as constant arrays, runs LLVM's standard pipeline for the target CPU
// and emits position independent objects. Nothing in the pipeline may change
// rounding: no fast-math flags are set anywhere, and FP contraction is off.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Target/Cpu/Emit.h"
#include "Machine.h"
#include "ckopt/CodeGen/Optimize.h"
#include "ckopt/Support/Error.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Target/TargetMachine.h"

#include <set>

using namespace ckopt;

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

/// The names of kernels' functions: in IR that is hashed all have one, in
/// objects the hash follows.
static constexpr llvm::StringLiteral kKernelName = "ckopt_k_";

using IsEntry = llvm::function_ref<bool(llvm::StringRef)>;

static void preferWideVectors(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      function.addFnAttr("prefer-vector-width", "512");
}

/// Makes everything but the entry points private to the object.
static void setLinkage(llvm::Module &module, IsEntry isEntry) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration() && !isEntry(function.getName()))
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
}

namespace {

/// Makes objects for one processor.
class ObjectMaker {
public:
  ObjectMaker(std::unique_ptr<llvm::TargetMachine> machine, unsigned level)
      : machine(std::move(machine)), level(level) {}

  /// Registers translations with the context of the modules.
  static void prepare(mlir::MLIRContext *context);

  llvm::Expected<std::unique_ptr<llvm::Module>>
  translate(mlir::ModuleOp lowered);
  llvm::Expected<std::vector<char>> compile(llvm::Module &module);

  /// A hash of all but the compiler that decides a module's code; hexadecimal.
  std::string hash(const llvm::Module &module) const;

private:
  std::unique_ptr<llvm::TargetMachine> machine;
  unsigned level;
  llvm::LLVMContext context;
};

} // namespace

void ObjectMaker::prepare(mlir::MLIRContext *context) {
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  context->appendDialectRegistry(registry);
}

llvm::Expected<std::unique_ptr<llvm::Module>>
ObjectMaker::translate(mlir::ModuleOp lowered) {
  auto module = mlir::translateModuleToLLVMIR(lowered, context, "ckopt_step");
  if (!module)
    return makeError(ExitInternal, "translation to LLVM IR failed");
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  preferWideVectors(*module);
  return std::move(module);
}

llvm::Expected<std::vector<char>> ObjectMaker::compile(llvm::Module &module) {
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(module, &problems))
    return makeError(ExitInternal, "generated LLVM IR is invalid: " + problem);
  optimizeKernels(module, *machine, level);
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager codegen;
  if (machine->addPassesToEmitFile(codegen, stream, nullptr,
                                   llvm::CodeGenFileType::ObjectFile))
    return makeError(ExitInternal, "this target cannot emit object files");
  codegen.run(module);
  return std::vector<char>(buffer.begin(), buffer.end());
}

std::string ObjectMaker::hash(const llvm::Module &module) const {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  os << machine->getTargetTriple().str() << "\n"
     << machine->getTargetCPU() << "\n"
     << machine->getTargetFeatureString() << "\nO" << level << "\n";
  llvm::WriteBitcodeToFile(module, os);
  auto digest = llvm::SHA256::hash(llvm::ArrayRef(
      reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  return llvm::toHex(digest, /*LowerCase=*/true);
}

namespace {

/// Compiles the functions of kernels, each by itself, and leaves declarations.
/// Internal functions are parts of the step.
class KernelSplitter {
public:
  KernelSplitter(mlir::ModuleOp module, ObjectMaker &maker, KernelCache &cache,
                 KernelCounts &counts)
      : module(module), maker(maker), cache(cache), counts(counts) {}

  llvm::Error run(IsEntry isEntry, std::vector<std::vector<char>> &objects);

private:
  llvm::Error compile(mlir::LLVM::LLVMFuncOp kernel,
                      std::vector<std::vector<char>> &objects);
  /// Moves a function into a module with declarations of what it calls.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  isolate(mlir::LLVM::LLVMFuncOp kernel);

  mlir::ModuleOp module;
  ObjectMaker &maker;
  KernelCache &cache;
  KernelCounts &counts;
  llvm::StringMap<std::string> symbols; ///< by the names in the module
  std::set<std::string> made;           ///< symbols of objects
};

} // namespace

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
KernelSplitter::isolate(mlir::LLVM::LLVMFuncOp kernel) {
  mlir::OwningOpRef<mlir::ModuleOp> alone =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(module.getContext()));
  llvm::SetVector<mlir::Operation *> used;
  if (auto uses = mlir::SymbolTable::getSymbolUses(kernel))
    for (const mlir::SymbolTable::SymbolUse &use : *uses)
      used.insert(
          mlir::SymbolTable::lookupSymbolIn(module, use.getSymbolRef()));
  mlir::OpBuilder builder(alone->getBodyRegion());
  for (mlir::Operation *op : used) {
    auto function = llvm::dyn_cast_or_null<mlir::LLVM::LLVMFuncOp>(op);
    if (!op || (function && !function.isExternal()))
      return makeError(ExitInternal, "kernel '" + kernel.getSymName() +
                                         "' refers to another's code");
    builder.clone(*op);
  }
  kernel->remove();
  builder.insert(kernel);
  kernel.setSymName(kKernelName);
  return std::move(alone);
}

llvm::Error KernelSplitter::compile(mlir::LLVM::LLVMFuncOp kernel,
                                    std::vector<std::vector<char>> &objects) {
  ++counts.functions;
  std::string name = kernel.getSymName().str();
  auto alone = isolate(kernel);
  if (!alone)
    return alone.takeError();
  auto translated = maker.translate(**alone);
  if (!translated)
    return translated.takeError();
  std::string key = maker.hash(**translated);
  std::string symbol = kKernelName.str() + key.substr(0, 32);
  symbols[name] = symbol;
  if (!made.insert(symbol).second)
    return llvm::Error::success();
  ++counts.distinct;
  if (auto found = cache.find(key)) {
    ++counts.found;
    objects.push_back(std::move(*found));
    return llvm::Error::success();
  }
  llvm::Function *function = (*translated)->getFunction(kKernelName);
  function->setName(symbol);
  function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  auto object = maker.compile(**translated);
  if (!object)
    return object.takeError();
  cache.store(key, *object);
  objects.push_back(std::move(*object));
  return llvm::Error::success();
}

llvm::Error KernelSplitter::run(IsEntry isEntry,
                                std::vector<std::vector<char>> &objects) {
  llvm::SmallVector<mlir::LLVM::LLVMFuncOp> kernels;
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>())
    if (!function.isExternal() && !isEntry(function.getSymName()) &&
        function.getLinkage() != mlir::LLVM::Linkage::Internal)
      kernels.push_back(function);
  if (kernels.empty())
    return llvm::Error::success();
  auto type = kernels.front().getFunctionType();
  for (mlir::LLVM::LLVMFuncOp kernel : kernels)
    if (llvm::Error error = compile(kernel, objects))
      return error;
  mlir::OpBuilder builder(module.getBodyRegion());
  for (const std::string &symbol : made)
    mlir::LLVM::LLVMFuncOp::create(builder, module.getLoc(), symbol, type);
  module.walk([&](mlir::LLVM::AddressOfOp address) {
    auto found = symbols.find(address.getGlobalName());
    if (found != symbols.end())
      address.setGlobalName(found->second);
  });
  return llvm::Error::success();
}

int64_t StepObjects::bytes() const {
  int64_t total = int64_t(main.size());
  for (const std::vector<char> &kernel : kernels)
    total += int64_t(kernel.size());
  return total;
}

llvm::Expected<StepObjects> ckopt::emitObjects(LoweredStep &lowered,
                                               const std::vector<char> &data,
                                               const CpuOptions &target,
                                               KernelCache &cache,
                                               KernelCounts &counts) {
  auto machine = makeTargetMachine(target);
  if (!machine)
    return machine.takeError();
  auto isEntry = [&](llvm::StringRef name) {
    return llvm::any_of(lowered.manifest.functions,
                        [&](const auto &info) { return name == info.symbol; });
  };
  ObjectMaker::prepare(lowered.module->getContext());
  ObjectMaker maker(std::move(*machine), target.optLevel);
  StepObjects objects;
  if (llvm::Error error = KernelSplitter(*lowered.module, maker, cache, counts)
                              .run(isEntry, objects.kernels))
    return std::move(error);
  auto module = maker.translate(*lowered.module);
  if (!module)
    return module.takeError();
  lowered.module = nullptr; // early, since it is large
  std::vector<uint8_t> manifest = runtime::serialize(lowered.manifest);
  addBlob(**module, "ckopt_manifest",
          {reinterpret_cast<const char *>(manifest.data()), manifest.size()});
  addBlob(**module, "ckopt_data", data);
  auto main = maker.compile(**module);
  if (!main)
    return main.takeError();
  objects.main = std::move(*main);
  return std::move(objects);
}

llvm::Expected<std::vector<char>>
ckopt::emitFunctions(mlir::OwningOpRef<mlir::ModuleOp> module, IsEntry isEntry,
                     const CpuOptions &target) {
  auto machine = makeTargetMachine(target);
  if (!machine)
    return machine.takeError();
  ObjectMaker::prepare(module->getContext());
  ObjectMaker maker(std::move(*machine), target.optLevel);
  auto translated = maker.translate(*module);
  if (!translated)
    return translated.takeError();
  module = nullptr;
  setLinkage(**translated, isEntry);
  return maker.compile(**translated);
}
