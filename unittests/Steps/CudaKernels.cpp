//===- CudaKernels.cpp - all kernels of a network, checked one by one -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CudaKernels.h"
#include "KernelJit.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"
#include "ckopt/Reference/Interpreter.h"

#include "gtest/gtest.h"

#include <csignal>
#include <cstring>
#include <immintrin.h>
#include <unistd.h>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;
using reference::Tensor;
using runtime::ProductPrecision;

//===----------------------------------------------------------------------===//
// Arguments of the step
//===----------------------------------------------------------------------===//

/// Numbers below this one are right wherever `value` is an index or a label.
static int64_t boundOf(Value value) {
  int64_t bound = int64_t(1) << 31;
  auto sizeAt = [](Value of, int64_t axis) {
    return cast<RankedTensorType>(of.getType()).getDimSize(axis);
  };
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto call = dyn_cast<KernelCallOp>(user)) {
      auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
          call, call.getCalleeAttr());
      bound =
          std::min(bound, boundOf(kernel.getArgument(use.getOperandNumber())));
    } else if (auto gather = dyn_cast<GatherOp>(user)) {
      if (gather.getIndices() == value)
        bound = std::min(bound,
                         sizeAt(gather.getData(), int64_t(gather.getAxis())));
    } else if (auto loss = dyn_cast<CrossEntropyOp>(user)) {
      bound = std::min(bound, loss.getNumClasses());
    } else if (isa<CastOp, ReshapeOp>(user)) {
      bound = std::min(bound, boundOf(user->getResult(0)));
    }
  }
  return bound;
}

/// A random value for an argument, by its role.
static Tensor makeArgument(func::FuncOp function, unsigned number) {
  Value value = function.getArgument(number);
  auto type = cast<RankedTensorType>(value.getType());
  auto role = function.getArgAttrOfType<StringAttr>(number, attrs::kRole);
  auto init = function.getArgAttrOfType<StringAttr>(number, attrs::kInit);
  auto fanIn = function.getArgAttrOfType<IntegerAttr>(number, attrs::kFanIn);
  StringRef is = role ? role.getValue() : StringRef();
  if (is == roles::kSeed)
    return Tensor::splat(type, 123456789012.0);
  if (is == roles::kStep)
    return Tensor::splat(type, 3);
  if (is == roles::kLearningRate)
    return Tensor::splat(type, 0.01);
  auto classes = function.getArgAttrOfType<IntegerAttr>(number, kClassesAttr);
  double low = -1, high = 1;
  if (classes) // kernels may take labels apart before they are read
    low = 0, high = double(classes.getInt());
  else if (!isa<FloatType>(type.getElementType()))
    low = 0, high = double(std::min<int64_t>(boundOf(value), 1000000));
  else if (is == roles::kOptimizerState) // second moments are not negative
    low = 0.01, high = 0.5;
  else if (init ? init.getValue() == "ones" : is == roles::kState)
    low = 0.5, high = 1.5; // scales, variances
  else if (is != roles::kInput && is != roles::kTarget)
    high = fanIn ? std::sqrt(3.0 / double(fanIn.getInt())) : 0.5, low = -high;
  Tensor result = Tensor::random(type, 1000 + number, low, high);
  result.roundToType();
  return result;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The kernel's text under the name @k.
static std::string textOf(func::FuncOp kernel) {
  std::string text, name = ("@" + kernel.getSymName() + "(").str();
  llvm::raw_string_ostream(text) << *kernel;
  if (size_t at = text.find(name); at != std::string::npos)
    text.replace(at, name.size(), "@k(");
  return text;
}

static void count(func::FuncOp kernel, KernelCensus &census) {
  FailureOr<KernelCode> code = planKernel(kernel, launchOptions());
  ASSERT_TRUE(succeeded(code));
  auto kind = kernel->getAttrOfType<StringAttr>(attrs::kKernel).getValue();
  ++census.kinds[kind.str()];
  kernel.walk([&](DropoutOp) { ++census.dropouts; });
  for (const KernelStage &stage : code->stages)
    ++(stage.scalarReason.empty() ? census.wide : census.narrow);
  int64_t elements =
      cast<RankedTensorType>(kernel.getResultTypes()[0]).getNumElements();
  const KernelStage &first = code->stages.front();
  if (kind == "elementwise")
    ++(elements % first.block ? census.partialBlocks : census.wholeBlocks);
  if (kind == "library") {
    census.splitSums += code->stages.size() > 1;
    census.largeTiles += elements > 64 * 64 * first.trip;
  }
}

static double largest(const Tensor &tensor) {
  double most = 0;
  for (double value : tensor.getReals())
    if (std::isfinite(value))
      most = std::max(most, std::abs(value));
  return most;
}

/// Results must say something: numbers, infinite ones only where the kernel
/// writes them itself. Returns whether all of one are zero.
static bool checkWanted(ArrayRef<Tensor> wanted, const std::string &text) {
  bool masks = StringRef(text).contains("0xFF800000"), anyZero = false;
  for (const Tensor &result : wanted) {
    bool anyNaN = false, anyInfinite = false;
    for (double value : result.getReals()) {
      anyNaN |= std::isnan(value);
      anyInfinite |= std::isinf(value);
    }
    EXPECT_FALSE(anyNaN) << "not a number";
    EXPECT_FALSE(anyInfinite && !masks) << "infinite";
    anyZero |= result.isFloat() && largest(result) == 0;
  }
  return anyZero;
}

/// Sums of f32 differ from the interpreter's by rounding errors of their
/// largest terms, which may cancel. So errors are bounded relative to results
/// and operands, and by the number of elements in a sum.
static KernelOptions tolerance(ArrayRef<Tensor> inputs,
                               ArrayRef<Tensor> wanted) {
  KernelOptions options;
  options.relative = 1e-5;
  options.reuseRounds = 2;
  double operands = 0, elements = 0;
  for (const Tensor &input : inputs) {
    operands = std::max(operands, largest(input));
    elements = std::max(elements, double(input.size()));
  }
  for (const Tensor &result : wanted) {
    double terms = std::max(elements / double(result.size()), 1.0);
    options.absolutes.push_back(1e-5 * largest(result) +
                                1e-6 * operands * std::sqrt(terms));
  }
  return options;
}

/// An access of an inaccessible page ends the program: say whose it was.
static std::string running;
static void nameKernel(int signal) {
  const char *what = "\naccess outside of all buffers (or of the stack), in\n";
  (void)!write(STDERR_FILENO, what, strlen(what));
  (void)!write(STDERR_FILENO, running.data(), running.size());
  std::signal(signal, SIG_DFL);
  raise(signal);
}

namespace {

/// Runs functions of the module in the interpreter and checks on the way.
class Walk {
public:
  Walk(ModuleOp module, std::set<std::string> &known,
       ProductPrecision precision)
      : module(module), known(known), precision(precision) {}
  KernelCensus run();

private:
  struct Forms {
    std::string text;
    std::unique_ptr<KernelJit> cpu, up, down;
  };
  void compile();
  void runFunction(func::FuncOp function);
  bool hasUnchecked(func::FuncOp function);
  LogicalResult call(KernelCallOp op, ArrayRef<const Tensor *> given,
                     SmallVectorImpl<Tensor> &results);
  void check(const Forms &forms, ArrayRef<Tensor> inputs,
             ArrayRef<Tensor> wanted, ArrayRef<int64_t> scalars);

  ModuleOp module;
  std::set<std::string> &known;
  ProductPrecision precision;
  std::map<std::string, Forms> unchecked; ///< by name in the module
  KernelCensus census;
};

} // namespace

void Walk::compile() {
  std::vector<func::FuncOp> kernels;
  for (auto kernel : module.getOps<func::FuncOp>()) {
    if (!kernel->hasAttr(attrs::kKernel))
      continue;
    count(kernel, census);
    auto kind = kernel->getAttrOfType<StringAttr>(attrs::kKernel).getValue();
    if (precision != ProductPrecision::F32 && kind != "library")
      continue;
    std::string text = textOf(kernel);
    if (!known.insert(std::to_string(int(precision)) + text).second)
      continue;
    unchecked[kernel.getSymName().str()].text = std::move(text);
    kernels.push_back(kernel);
  }
  census.checked = int64_t(kernels.size());
  auto forms = [&](KernelForm form, ArrayRef<func::FuncOp> kernels) {
    JitOptions options;
    options.form = form;
    options.optLevel = 0;
    options.precision = precision;
    return KernelJit::compileAll(kernels, options);
  };
  // Joined updates are kernels of devices alone.
  std::vector<func::FuncOp> onCpu;
  for (func::FuncOp kernel : kernels)
    if (kernel->getAttrOfType<StringAttr>(attrs::kKernel) != "joined")
      onCpu.push_back(kernel);
  auto cpu = forms(KernelForm::CPU, onCpu),
       up = forms(KernelForm::Blocks, kernels);
  for (auto [i, kernel] : llvm::enumerate(onCpu))
    unchecked[kernel.getSymName().str()].cpu = std::move(cpu[i]);
  for (auto [i, kernel] : llvm::enumerate(kernels)) {
    Forms &made = unchecked[kernel.getSymName().str()];
    made.up = std::move(up[i]);
    made.down = made.up->reversed();
  }
}

void Walk::check(const Forms &forms, ArrayRef<Tensor> inputs,
                 ArrayRef<Tensor> wanted, ArrayRef<int64_t> scalars) {
  SCOPED_TRACE(forms.text);
  running = forms.text;
  census.zeros += checkWanted(wanted, forms.text);
  KernelOptions options = tolerance(inputs, wanted);
  options.scalars.assign(scalars.begin(), scalars.end());
  options.precision = precision;
  KernelJit *cpu = forms.cpu.get();
  bool isLibrary = cpu && cpu->ok() && cpu->code().library;
  // CPUs without AVX-512 have no products of bf16, which are a library's on
  // others, and not compared.
  StringRef kind =
      forms.up->kernel()->getAttrOfType<StringAttr>(attrs::kKernel).getValue();
  if (cpu && !cpu->ok() && kind == "library")
    cpu = nullptr;
  auto ptx = KernelJit::launchedBy(interpretPtx, forms.up->kernel(), precision);
  Failures failures;
  for (const KernelJit *form :
       {cpu, forms.up.get(), forms.down.get(), ptx.get()})
    if (form && !form->error().empty())
      failures.push_back(form->error());
  if (!failures.empty()) {
    ADD_FAILURE() << failures.front();
    return;
  }
  census.interpreted += ptx->ok();
  // Steps run so, and PTX has .ftz: subnormal numbers are zeros.
  unsigned control = _mm_getcsr();
  _mm_setcsr(control | 0x8040);
  checkForms({isLibrary ? nullptr : cpu, forms.up.get(), forms.down.get(),
              ptx->ok() ? ptx.get() : nullptr},
             inputs, wanted, options, failures);
  _mm_setcsr(control);
  for (const std::string &failure : failures)
    ADD_FAILURE() << failure;
}

LogicalResult Walk::call(KernelCallOp op, ArrayRef<const Tensor *> given,
                         SmallVectorImpl<Tensor> &results) {
  auto kernel = module.lookupSymbol<func::FuncOp>(op.getCallee());
  std::vector<Tensor> inputs, made;
  for (auto [operand, type] : llvm::zip(given, kernel.getArgumentTypes()))
    inputs.push_back(operand->withType(cast<RankedTensorType>(type)));
  auto found = unchecked.find(op.getCallee().str());
  std::vector<Tensor> operands = inputs;
  if (found != unchecked.end())
    operands = roundedOperands(*found->second.up, inputs, precision);
  if (failed(evaluateKernel(kernel, operands, op.getScalars(), made)))
    return failure();
  if (found != unchecked.end()) {
    check(found->second, inputs, made, op.getScalars());
    unchecked.erase(found);
  }
  for (auto [value, result] : llvm::zip(made, op.getOuts())) {
    results.push_back(value.withType(cast<RankedTensorType>(result.getType())));
    results.back().roundToType();
  }
  return success();
}

bool Walk::hasUnchecked(func::FuncOp function) {
  return function
      .walk([&](KernelCallOp call) {
        return unchecked.count(call.getCallee().str()) ? WalkResult::interrupt()
                                                       : WalkResult::advance();
      })
      .wasInterrupted();
}

void Walk::runFunction(func::FuncOp function) {
  llvm::DenseMap<Value, Tensor> values;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    values[function.getArgument(i)] = makeArgument(function, i);
  for (Operation &op : function.front().without_terminator()) {
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&values[operand]);
    SmallVector<Tensor> results;
    auto kernelCall = dyn_cast<KernelCallOp>(op);
    ASSERT_TRUE(succeeded(kernelCall
                              ? call(kernelCall, operands, results)
                              : reference::evaluateOp(&op, operands, results)));
    for (auto [value, result] : llvm::zip(op.getResults(), results))
      values[value] = std::move(result);
  }
}

KernelCensus Walk::run() {
  compile();
  for (const char *name : {"step", "accumulate", "eval"})
    if (auto function = module.lookupSymbol<func::FuncOp>(name))
      if (hasUnchecked(function))
        runFunction(function);
  for (const auto &left : unchecked)
    ADD_FAILURE() << "never called: " << left.first;
  return std::move(census);
}

KernelCensus ckopt::test::checkKernels(ModuleOp module,
                                       std::set<std::string> &known,
                                       ProductPrecision precision) {
  loadKernelDialects(*module.getContext());
  std::signal(SIGSEGV, nameKernel);
  return Walk(module, known, precision).run();
}
