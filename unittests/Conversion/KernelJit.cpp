//===- KernelJit.cpp - runs one kernel against the interpreter ------------===//
#include "KernelJit.h"
#include "ckopt/Conversion/BlockToPTX/BlockToPTX.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

struct KernelJit::Impl {
  MLIRContext context{[] {
    DialectRegistry registry;
    reference::registerReferenceModels(registry);
    registry.insert<CkoptDialect, func::FuncDialect>();
    registerKernelToLLVMDialects(registry);
    registerBuiltinDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
    return registry;
  }()};
  OwningOpRef<ModuleOp> module;
  func::FuncOp kernel;
  CodegenOptions options;
  KernelCode code;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::vector<Fn> stages;
  using Launch = void (*)(void *const *);
  std::vector<Launch> launches;     ///< of a device; null: nothing to do
  std::vector<unsigned> numScalars; ///< parameters of each launch
  bool descending = false;
  bool ok = false;

  void compile(const std::string &text);
  bool optimizeAndAdd(std::unique_ptr<llvm::LLVMContext> llvmContext,
                      std::unique_ptr<llvm::Module> llvmModule);
};

void KernelJit::Impl::compile(const std::string &text) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  context.loadAllAvailableDialects();
  module = parseSourceString<ModuleOp>(text, &context);
  if (!module) {
    ADD_FAILURE() << "does not parse:\n" << text;
    return;
  }
  kernel = module->lookupSymbol<func::FuncOp>("k");
  FailureOr<KernelCode> planned = planKernel(kernel, options);
  ASSERT_TRUE(succeeded(planned)) << text;
  code = *planned;
  OwningOpRef<ModuleOp> into = ModuleOp::create(kernel.getLoc());
  ASSERT_TRUE(succeeded(emitKernel(kernel, options, *into))) << text;
  if (code.library) {
    ok = true;
    return;
  }
  ASSERT_TRUE(succeeded(verify(*into))) << text;
  PassManager manager(&context);
  if (options.onDevice()) {
    for (const KernelStage &stage : code.stages) {
      auto launch = into->lookupSymbol<func::FuncOp>(stage.symbol);
      numScalars.push_back(launch ? llvm::count(launch.getArgumentTypes(),
                                                IntegerType::get(&context, 64))
                                  : 0);
    }
    buildBlockToLoopsPipeline(manager, {descending});
  } else {
    buildKernelLoweringPipeline(manager);
  }
  ASSERT_TRUE(succeeded(manager.run(*into))) << text;
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  auto llvmModule = translateModuleToLLVMIR(*into, *llvmContext);
  ASSERT_TRUE(llvmModule) << text;
  ok = optimizeAndAdd(std::move(llvmContext), std::move(llvmModule));
}

bool KernelJit::Impl::optimizeAndAdd(
    std::unique_ptr<llvm::LLVMContext> llvmContext,
    std::unique_ptr<llvm::Module> llvmModule) {
  auto builder =
      llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
  builder.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  auto machine = llvm::cantFail(builder.createTargetMachine());
  llvmModule->setDataLayout(machine->createDataLayout());
  llvmModule->setTargetTriple(machine->getTargetTriple());
  llvm::PassBuilder passes(machine.get());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager cgscc;
  llvm::ModuleAnalysisManager modules;
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(cgscc);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, cgscc, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
      .run(*llvmModule, modules);
  if (const char *file = getenv("CKOPT_DUMP_KERNEL")) {
    std::error_code error;
    llvm::raw_fd_ostream out(file, error);
    llvmModule->print(out, nullptr);
  }
  jit = llvm::cantFail(
      llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(builder).create());
  jit->getMainJITDylib().addGenerator(llvm::cantFail(
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
          jit->getDataLayout().getGlobalPrefix())));
  llvm::cantFail(jit->addIRModule(llvm::orc::ThreadSafeModule(
      std::move(llvmModule), std::move(llvmContext))));
  for (const KernelStage &stage : code.stages) {
    if (options.onDevice() && stage.trip == 0) {
      launches.push_back(nullptr);
      continue;
    }
    auto address = jit->lookup(
        options.onDevice() ? emulationSymbol(stage.symbol) : stage.symbol);
    if (!address) {
      ADD_FAILURE() << llvm::toString(address.takeError());
      return false;
    }
    if (options.onDevice())
      launches.push_back(address->toPtr<Launch>());
    else
      stages.push_back(address->toPtr<Fn>());
  }
  return true;
}

KernelJit::KernelJit(const std::string &text, unsigned vectorBits)
    : impl(std::make_unique<Impl>()) {
  impl->options.vectorBits = vectorBits;
  impl->compile(text);
}
KernelJit::KernelJit() : impl(std::make_unique<Impl>()) {}
KernelJit::~KernelJit() = default;
std::unique_ptr<KernelJit> KernelJit::onDevice(const std::string &text,
                                               bool descending) {
  std::unique_ptr<KernelJit> jit(new KernelJit);
  jit->impl->options = CodegenOptions::cuda();
  jit->impl->descending = descending;
  jit->impl->compile(text);
  return jit;
}
void KernelJit::launch(size_t number, void *const *args, const int64_t *scalars,
                       void *scratch) const {
  if (!impl->launches[number])
    return;
  SmallVector<void *> values(args, args + impl->kernel.getNumArguments() +
                                       impl->kernel.getNumResults());
  SmallVector<void *> params;
  for (void *&value : values)
    params.push_back(&value);
  for (unsigned i = 0; i < impl->numScalars[number]; ++i)
    params.push_back(const_cast<int64_t *>(scalars + i));
  params.push_back(&scratch);
  impl->launches[number](params.data());
}
bool KernelJit::ok() const { return impl->ok; }
bool KernelJit::isOnDevice() const { return impl->options.onDevice(); }
const KernelCode &KernelJit::code() const { return impl->code; }
func::FuncOp KernelJit::kernel() const { return impl->kernel; }
MLIRContext &KernelJit::context() const { return impl->context; }
KernelJit::Fn KernelJit::stage(size_t number) const {
  return impl->stages[number];
}
VectorReport KernelJit::report() const {
  auto report = reportVectorization(impl->kernel, impl->options);
  return succeeded(report) ? *report : VectorReport();
}
void KernelJit::run(void *const *args, const int64_t *scalars,
                    void *scratch) const {
  for (size_t i = 0; i < impl->stages.size(); ++i)
    impl->stages[i](args, scalars, 0, impl->code.stages[i].trip, scratch);
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

namespace {

/// Bytes that end at an inaccessible page, or less than `align` bytes of a
/// pattern before it, and start after a pattern.
class Buffer {
public:
  explicit Buffer(int64_t bytes, int64_t align = 1)
      : bytes(bytes), room(int64_t(llvm::alignTo(bytes, align))) {
    int64_t pages = (room + kHead + 4095) / 4096 + 1;
    size = pages * 4096;
    base = static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base + size - 4096, 4096, PROT_NONE);
    memset(base, 0xA5, size - 4096);
  }
  ~Buffer() { munmap(base, size); }
  Buffer(const Buffer &) = delete;
  char *data() const { return base + size - 4096 - room; }
  /// Nothing was written before or behind the bytes.
  bool intact() const {
    auto isPattern = [](const char *begin, const char *end) {
      return std::all_of(begin, end, [](char c) { return c == char(0xA5); });
    };
    return isPattern(data() - kHead, data()) &&
           isPattern(data() + bytes, data() + room);
  }
  std::vector<char> copy() const { return {data(), data() + bytes}; }

private:
  static constexpr int64_t kHead = 256;
  int64_t bytes, room, size;
  char *base;
};

template <typename T> void put(char *p, T value) {
  memcpy(p, &value, sizeof(T));
}
template <typename T> T take(const char *p) {
  T value;
  memcpy(&value, p, sizeof(T));
  return value;
}

void writeElement(char *p, Type type, const reference::Tensor &t, int64_t i) {
  if (auto floating = dyn_cast<FloatType>(type)) {
    llvm::APFloat value(t.real(i));
    bool lost;
    value.convert(floating.getFloatSemantics(),
                  llvm::APFloat::rmNearestTiesToEven, &lost);
    uint64_t bits = value.bitcastToAPInt().getZExtValue();
    memcpy(p, &bits, floating.getWidth() / 8);
    return;
  }
  int64_t value = t.integer(i);
  memcpy(p, &value, std::max(1u, type.getIntOrFloatBitWidth() / 8));
}

void readElement(const char *p, Type type, reference::Tensor &t, int64_t i) {
  unsigned bytes = std::max(1u, type.getIntOrFloatBitWidth() / 8);
  uint64_t bits = 0;
  memcpy(&bits, p, bytes);
  if (auto floating = dyn_cast<FloatType>(type)) {
    llvm::APFloat value(floating.getFloatSemantics(),
                        llvm::APInt(bytes * 8, bits));
    t.real(i) = value.convertToDouble();
    return;
  }
  auto integer = cast<IntegerType>(type);
  if (type.isInteger(1))
    t.integer(i) = int64_t(bits);
  else if (integer.isUnsigned())
    t.integer(i) = int64_t(bits);
  else
    t.integer(i) = llvm::SignExtend64(bits, bytes * 8);
}

template <typename Fn> void forOffsets(RankedTensorType type, Fn fn) {
  SmallVector<int64_t> strides = getElementStrides(type);
  int64_t bytes = std::max(1u, type.getElementTypeBitWidth() / 8);
  reference::forEachIndex(type.getShape(),
                          [&](ArrayRef<int64_t> index, int64_t i) {
                            int64_t offset = 0;
                            for (size_t d = 0; d < index.size(); ++d)
                              offset += index[d] * strides[d];
                            fn(i, offset * bytes);
                          });
}

/// One execution: operands written, stages run, results as bytes.
struct Execution {
  Execution(const KernelJit &jit, ArrayRef<reference::Tensor> inputs,
            const KernelOptions &options)
      : jit(jit), options(options) {
    func::FuncOp kernel = jit.kernel();
    // Places in an arena of a device are aligned, and code relies on it.
    int64_t align = jit.isOnDevice() ? 64 : 1;
    for (const reference::Tensor &input : inputs) {
      auto type = input.getType();
      buffers.push_back(std::make_unique<Buffer>(getByteSize(type), align));
      char *data = buffers.back()->data();
      forOffsets(type, [&](int64_t i, int64_t offset) {
        writeElement(data + offset, type.getElementType(), input, i);
      });
      args.push_back(data);
    }
    for (Type type : kernel.getResultTypes()) {
      buffers.push_back(std::make_unique<Buffer>(
          getByteSize(cast<RankedTensorType>(type)), align));
      args.push_back(buffers.back()->data());
    }
    scratch =
        std::make_unique<Buffer>(llvm::alignTo(jit.code().workspaceBytes, 64));
  }

  /// Result `result` lies where operand `operand` does.
  void share(unsigned operand, unsigned result) {
    args[jit.kernel().getNumArguments() + result] = args[operand];
    shared = operand;
  }

  void runOnDevice() {
    for (size_t s = 0; s < jit.code().stages.size(); ++s)
      jit.launch(s, args.data(), options.scalars.data(), scratch->data());
  }

  void run(std::mt19937_64 *random) {
    for (size_t s = 0; s < jit.code().stages.size(); ++s) {
      const KernelStage &stage = jit.code().stages[s];
      std::vector<std::pair<int64_t, int64_t>> ranges;
      for (int64_t at = 0; at < stage.trip;) {
        int64_t steps = random ? 1 + int64_t((*random)() % 5) : stage.trip;
        int64_t next = std::min(stage.trip, at + steps * stage.grain);
        ranges.push_back({at, next});
        at = next;
      }
      if (random)
        std::shuffle(ranges.begin(), ranges.end(), *random);
      for (auto [begin, end] : ranges)
        jit.stage(s)(args.data(), options.scalars.data(), begin, end,
                     scratch->data());
    }
  }

  std::vector<char> result(unsigned r) const {
    auto type = cast<RankedTensorType>(jit.kernel().getResultTypes()[r]);
    const char *data =
        static_cast<char *>(args[jit.kernel().getNumArguments() + r]);
    return {data, data + getByteSize(type)};
  }

  const KernelJit &jit;
  const KernelOptions &options;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::unique_ptr<Buffer> scratch;
  std::vector<void *> args;
  int shared = -1;
};

} // namespace

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static std::vector<reference::Tensor> makeInputs(func::FuncOp kernel,
                                                 const KernelOptions &options) {
  std::vector<reference::Tensor> inputs;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    bool floating = isa<FloatType>(tensor.getElementType());
    reference::Tensor value = reference::Tensor::random(
        tensor, options.seed * 100 + i, floating ? options.low : options.intLow,
        floating ? options.high : options.intHigh);
    for (const auto &[number, given] : options.given)
      if (number == i)
        value = given;
    value.roundToType();
    inputs.push_back(value);
  }
  return inputs;
}

/// Reference results, in double.
static LogicalResult evaluateKernel(func::FuncOp kernel,
                                    ArrayRef<reference::Tensor> inputs,
                                    const KernelOptions &options,
                                    std::vector<reference::Tensor> &results) {
  reference::Options wide;
  wide.roundToType = false;
  llvm::DenseMap<Value, reference::Tensor> values;
  for (auto [arg, input] : llvm::zip(kernel.getArguments(), inputs))
    values[arg] = input;
  for (Operation &op : kernel.front()) {
    if (isa<func::ReturnOp>(op)) {
      for (Value result : op.getOperands())
        results.push_back(values[result]);
      return success();
    }
    SmallVector<const reference::Tensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&values[operand]);
    SmallVector<reference::Tensor> made;
    reference::Environment environment{wide, ArrayRef(options.scalars)};
    if (failed(reference::evaluateOp(&op, operands, made, environment)))
      return failure();
    for (auto [value, tensor] : llvm::zip(op.getResults(), made))
      values[value] = tensor;
  }
  return failure();
}

/// Compares what `run` left with the interpreter's results; reads it.
static std::vector<reference::Tensor>
checkResults(const Execution &run, ArrayRef<reference::Tensor> wanted,
             const KernelOptions &options) {
  func::FuncOp kernel = run.jit.kernel();
  std::vector<reference::Tensor> results;
  for (unsigned r = 0; r < kernel.getNumResults(); ++r) {
    auto type = cast<RankedTensorType>(kernel.getResultTypes()[r]);
    reference::Tensor got(type);
    std::vector<char> bytes = run.result(r);
    forOffsets(type, [&](int64_t i, int64_t offset) {
      readElement(bytes.data() + offset, type.getElementType(), got, i);
    });
    double scale = type.getElementType().isF64()    ? 1e-6
                   : type.getElementType().isF16()  ? 4096
                   : type.getElementType().isBF16() ? 65536
                                                    : 1;
    EXPECT_TRUE(reference::allClose(got, wanted[r], options.absolute * scale,
                                    options.relative * scale))
        << "result " << r << ": " << reference::compare(got, wanted[r]).str()
        << "\n got " << got.str(24) << "\nwant " << wanted[r].str(24);
    results.push_back(got);
  }
  for (const auto &buffer : run.buffers)
    EXPECT_TRUE(buffer->intact()) << "wrote outside of a buffer";
  EXPECT_TRUE(run.scratch->intact()) << "wrote outside of the scratch";
  return results;
}

static void expectSameBits(const Execution &one, const Execution &other,
                           const char *what) {
  for (unsigned r = 0; r < one.jit.kernel().getNumResults(); ++r)
    EXPECT_EQ(one.result(r), other.result(r)) << what << ", result " << r;
}

/// The block form's checks; `onCpu`: an execution whose bits it must give;
/// `up`: the kernel with threads ascending.
static std::vector<reference::Tensor>
checkBlockForm(const std::string &text, ArrayRef<reference::Tensor> inputs,
               ArrayRef<reference::Tensor> wanted, const KernelOptions &options,
               const Execution *onCpu, std::unique_ptr<KernelJit> up) {
  SCOPED_TRACE("in block form");
  auto down = KernelJit::onDevice(text, /*descending=*/true);
  if (!up->ok() || !down->ok())
    return {};
  Execution first(*up, inputs, options), second(*down, inputs, options);
  std::vector<std::vector<char>> before;
  for (size_t i = 0; i < inputs.size(); ++i)
    before.push_back(first.buffers[i]->copy());
  first.runOnDevice();
  second.runOnDevice();
  std::vector<reference::Tensor> results = checkResults(first, wanted, options);
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_EQ(first.buffers[i]->copy(), before[i]) << "operand changed: " << i;
  expectSameBits(first, second, "threads race");
  if (onCpu)
    expectSameBits(*onCpu, first, "bits differ from the CPU's");
  for (auto [operand, result] : up->code().reuse)
    for (const KernelJit *jit : {up.get(), down.get()}) {
      Execution inPlace(*jit, inputs, options);
      inPlace.share(operand, result);
      inPlace.runOnDevice();
      expectSameBits(first, inPlace, "bits depend on sharing bytes");
    }
  return results;
}

std::vector<reference::Tensor> test::checkKernel(const std::string &text,
                                                 const KernelOptions &options) {
  KernelJit jit(text, options.vectorBits);
  if (!jit.ok() || jit.code().library)
    return {};
  SCOPED_TRACE(text);
  func::FuncOp kernel = jit.kernel();
  std::vector<reference::Tensor> inputs = makeInputs(kernel, options), wanted;
  if (failed(evaluateKernel(kernel, inputs, options, wanted))) {
    ADD_FAILURE() << "the interpreter failed";
    return {};
  }
  std::mt19937_64 random(options.seed);
  Execution first(jit, inputs, options);
  std::vector<std::vector<char>> before;
  for (size_t i = 0; i < inputs.size(); ++i)
    before.push_back(first.buffers[i]->copy());
  first.run(nullptr);
  std::vector<reference::Tensor> results = checkResults(first, wanted, options);
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_EQ(first.buffers[i]->copy(), before[i]) << "operand changed: " << i;
  for (int round = 0; round < 2; ++round) {
    Execution cut(jit, inputs, options);
    cut.run(&random);
    expectSameBits(first, cut, "bits depend on the ranges");
  }
  for (auto [operand, result] : jit.code().reuse) {
    Execution inPlace(jit, inputs, options);
    inPlace.share(operand, result);
    inPlace.run(&random);
    expectSameBits(first, inPlace, "bits depend on sharing bytes");
  }
  auto kind = kernel->getAttrOfType<StringAttr>(attrs::kKernel).getValue();
  bool pointwise = kind == "elementwise" || kind == "structured";
  checkBlockForm(text, inputs, wanted, options, pointwise ? &first : nullptr,
                 KernelJit::onDevice(text, /*descending=*/false));
  return results;
}

std::vector<reference::Tensor>
test::checkDeviceKernel(const std::string &text, const KernelOptions &options) {
  SCOPED_TRACE(text);
  auto jit = KernelJit::onDevice(text, /*descending=*/false);
  if (!jit->ok())
    return {};
  std::vector<reference::Tensor> inputs = makeInputs(jit->kernel(), options),
                                 wanted;
  if (failed(evaluateKernel(jit->kernel(), inputs, options, wanted))) {
    ADD_FAILURE() << "the interpreter failed";
    return {};
  }
  return checkBlockForm(text, inputs, wanted, options, nullptr, std::move(jit));
}

std::string test::kernelText(const std::string &kind, const std::string &args,
                             const std::string &results,
                             const std::string &body) {
  return "func.func private @k(" + args + ") -> (" + results +
         ") attributes {ckopt.kernel = \"" + kind + "\"} {\n" + body + "}\n";
}
