//===- TestKernels.cpp - kernels against the reference, as a pass ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: tests of kernels are tests of IR, and IR is best read as IR.
//
// Method: `--test-kernels-against-reference` compiles every kernel of a module,
// runs it and compares it with the reference interpreter (KernelJit.h says what
// else it checks). A function with `ckopt.kernel` is a kernel; of any other
// function each op is a kernel of its own, with the constants that it reads
// inside, on the values that it has when the interpreter runs the function.
// Arguments are seeded random numbers.
//
//   on an argument   test.range = array<f64: LOW, HIGH>  (default -1 to 1, of
//                    integers 0 to 4; HIGH is left out), or
//                    test.value = dense<...> : tensor<...>
//   on a function    test.tolerance = array<f64: ABSOLUTE, RELATIVE>  (default
//                    1e-6, 2e-6; a millionth of that for f64), beside what
//                    storing f16 and bf16 rounds
//
// Guarantee: prints for each function how many kernels it has, all of which run
// in block form, and how many of these run as code of the CPU (not those that a
// library runs there) and as PTX (not those that a GPU has no code for); each
// difference is an error at its op. All
// kernels of a module are one program: a compilation a kernel would take most
// of the time. Block form is compiled without optimization, since nothing but
// this test runs it on a CPU.
//
//===----------------------------------------------------------------------===//
#include "TestKernels.h"
#include "KernelJit.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"
#include "ckopt/Interfaces/KernelInterface.h"
#include "ckopt/Reference/Interpreter.h"
#include "ckopt/Target/Targets.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;
using reference::Tensor;

namespace {

/// One kernel with its operands.
struct Case {
  func::FuncOp kernel;
  std::vector<Tensor> inputs;
  KernelOptions options;
  bool isLibrary() const {
    return kernel->getAttrOfType<StringAttr>(attrs::kKernel) == "library";
  }
};

/// The kernels of one function of the file.
struct Group {
  func::FuncOp function;
  std::vector<Case> cases;
};

} // namespace

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

/// The kind of the kernel that holds the op alone; empty: none does.
static StringRef kindOfKernel(Operation &op) {
  auto ofKernels = dyn_cast<KernelOpInterface>(op);
  if (!ofKernels)
    return "";
  switch (ofKernels.getKernelKind()) {
  case KernelKind::Constant:
    return "";
  case KernelKind::View:
  case KernelKind::Elementwise:
  case KernelKind::Indexed:
  case KernelKind::Update:
    return "elementwise";
  case KernelKind::Reduction:
    return "reduction";
  case KernelKind::RowWise:
    return "row";
  case KernelKind::Structured:
    return "structured";
  case KernelKind::Library:
    return "library";
  }
  llvm_unreachable("all kinds are handled");
}

static bool isConstant(Value value) {
  auto op = value.getDefiningOp<KernelOpInterface>();
  return op && op.getKernelKind() == KernelKind::Constant;
}

static KernelOptions optionsOf(func::FuncOp function) {
  KernelOptions options;
  if (auto tolerance =
          function->getAttrOfType<DenseF64ArrayAttr>("test.tolerance")) {
    options.absolute = tolerance[0];
    options.relative = tolerance[1];
  }
  return options;
}

static Tensor argumentOf(func::FuncOp function, unsigned number) {
  if (auto value =
          function.getArgAttrOfType<ElementsAttr>(number, "test.value"))
    return Tensor::fromAttr(value);
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[number]);
  bool isFloat = isa<FloatType>(type.getElementType());
  double low = isFloat ? -1 : 0, high = isFloat ? 1 : 4;
  if (auto range =
          function.getArgAttrOfType<DenseF64ArrayAttr>(number, "test.range")) {
    low = range[0];
    high = range[1];
  }
  Tensor result = Tensor::random(type, 100 + number, low, high);
  result.roundToType();
  return result;
}

/// A kernel of `op` and the constants that it reads, added to `into`. A random
/// op's site is a scalar of the call, as fusion has it.
static func::FuncOp kernelOf(Operation &op, ModuleOp into,
                             std::vector<int64_t> &scalars) {
  SmallVector<Value> inputs;
  for (Value operand : op.getOperands())
    if (!isConstant(operand) && !llvm::is_contained(inputs, operand))
      inputs.push_back(operand);
  OpBuilder b = OpBuilder::atBlockEnd(into.getBody());
  auto type =
      b.getFunctionType(ValueRange(inputs).getTypes(), op.getResultTypes());
  unsigned number = into.getBody()->getOperations().size();
  auto kernel = func::FuncOp::create(b, op.getLoc(),
                                     "op_" + std::to_string(number), type);
  kernel.setPrivate();
  kernel->setAttr(attrs::kKernel, b.getStringAttr(kindOfKernel(op)));
  b.setInsertionPointToEnd(kernel.addEntryBlock());
  IRMapping mapping;
  mapping.map(ValueRange(inputs), kernel.getArguments());
  for (Value operand : op.getOperands())
    if (isConstant(operand) && !mapping.contains(operand))
      b.clone(*operand.getDefiningOp(), mapping);
  Operation *body = b.clone(op, mapping);
  if (auto site = randomSite(&op)) {
    scalars = {*site};
    setRandomSite(body, 0);
  }
  func::ReturnOp::create(b, op.getLoc(), body->getResults());
  return kernel;
}

/// Runs the function in the interpreter: each op becomes a case.
static LogicalResult addOps(Group &group, ModuleOp into) {
  llvm::DenseMap<Value, Tensor> values;
  for (BlockArgument argument : group.function.getArguments())
    values[argument] = argumentOf(group.function, argument.getArgNumber());
  for (Operation &op : group.function.front().without_terminator()) {
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&values[operand]);
    SmallVector<Tensor> results;
    if (failed(reference::evaluateOp(&op, operands, results)))
      return failure();
    if (!kindOfKernel(op).empty()) {
      Case added{{}, {}, optionsOf(group.function)};
      added.kernel = kernelOf(op, into, added.options.scalars);
      std::set<const Tensor *> known;
      for (auto [value, operand] : llvm::zip(op.getOperands(), operands))
        if (!isConstant(value) && known.insert(operand).second)
          added.inputs.push_back(*operand);
      group.cases.push_back(std::move(added));
    }
    for (auto [value, result] : llvm::zip(op.getResults(), results))
      values[value] = std::move(result);
  }
  return success();
}

static void addKernel(Group &group) {
  Case added{group.function, {}, optionsOf(group.function)};
  for (unsigned i = 0; i < group.function.getNumArguments(); ++i)
    added.inputs.push_back(argumentOf(group.function, i));
  group.cases.push_back(std::move(added));
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct TestKernelsPass : PassWrapper<TestKernelsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestKernelsPass)
  TestKernelsPass() = default;
  TestKernelsPass(const TestKernelsPass &other) : PassWrapper(other) {}

  StringRef getArgument() const override {
    return "test-kernels-against-reference";
  }
  StringRef getDescription() const override {
    return "Run all kernels, or ops as kernels, and compare their results with "
           "the reference interpreter's";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registerJitDialects(registry);
  }
  Option<unsigned> vectorBits{*this, "vector-bits",
                              llvm::cl::desc("Of the CPU's vectors"),
                              llvm::cl::init(512)};
  Option<std::string> precision{
      *this, "precision",
      llvm::cl::desc("To which products in block form round operands of f32"),
      llvm::cl::init("f32")};
  Option<std::string> contractions{
      *this, "contractions",
      llvm::cl::desc("Variant of contractions in block form")};
  Option<int> multiprocessors{
      *this, "multiprocessors",
      llvm::cl::desc("That contractions in block form are divided for; blocks "
                     "of launches are printed"),
      llvm::cl::init(0)};

  LogicalResult collect(std::vector<Group> &groups, ModuleOp into);
  Failures check(Case &each, const KernelForms &forms);
  void check(std::vector<Group> &groups);
  void runOnOperation() override;

  JitOptions jit; ///< of the options
};

} // namespace

LogicalResult TestKernelsPass::collect(std::vector<Group> &groups,
                                       ModuleOp into) {
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    groups.push_back({function, {}});
    if (function->hasAttr(attrs::kKernel))
      addKernel(groups.back());
    else if (failed(addOps(groups.back(), into)))
      return failure();
  }
  return success();
}

/// The kernels in one form. Those of a library have no code of the CPU.
static std::vector<std::unique_ptr<KernelJit>>
compileForm(const std::vector<Group> &groups, JitOptions options) {
  std::vector<func::FuncOp> kernels;
  for (const Group &group : groups)
    for (const Case &each : group.cases)
      if (options.form != KernelForm::CPU || !each.isLibrary())
        kernels.push_back(each.kernel);
  return KernelJit::compileAll(kernels, options);
}

Failures TestKernelsPass::check(Case &each, const KernelForms &forms) {
  Failures failures;
  for (const KernelJit *form : {forms.cpu, forms.up, forms.down, forms.ptx})
    if (form && !form->error().empty())
      failures.push_back(form->error());
  std::vector<Tensor> wanted,
      operands = roundedOperands(*forms.up, each.inputs, jit.precision);
  if (failed(
          evaluateKernel(each.kernel, operands, each.options.scalars, wanted)))
    failures.push_back("the interpreter failed");
  each.options.precision = jit.precision;
  if (failures.empty())
    checkForms(forms, each.inputs, wanted, each.options, failures);
  return failures;
}

/// Prints how many blocks each launch has.
static void printLaunches(const KernelJit &jit) {
  for (auto [i, stage] : llvm::enumerate(jit.code().stages))
    llvm::outs() << (i ? " + " : "") << stage.trip;
  llvm::outs() << " blocks\n";
}

void TestKernelsPass::check(std::vector<Group> &groups) {
  auto compile = [&](KernelForm form, unsigned optLevel) {
    JitOptions options = jit;
    options.form = form;
    options.optLevel = optLevel;
    return compileForm(groups, options);
  };
  auto cpu = compile(KernelForm::CPU, 2),
       blocks = compile(KernelForm::Blocks, 0);
  size_t next = 0, nextOnCpu = 0;
  for (Group &group : groups) {
    size_t onCpu = 0, asPtx = 0;
    for (Case &each : group.cases) {
      std::string text;
      llvm::raw_string_ostream(text) << each.kernel;
      llvm::PrettyStackTraceString crash(text.c_str());
      auto ptx = KernelJit::launchedBy(interpretPtx, each.kernel, jit.precision,
                                       jit.device);
      auto down = blocks[next]->reversed();
      bool hasPtx = ptx->ok() || !ptx->error().empty();
      KernelForms forms{each.isLibrary() ? nullptr : cpu[nextOnCpu++].get(),
                        blocks[next].get(), down.get(),
                        hasPtx ? ptx.get() : nullptr};
      ++next;
      onCpu += forms.cpu != nullptr;
      asPtx += forms.ptx != nullptr;
      if (multiprocessors)
        printLaunches(*forms.up);
      for (const std::string &failure : check(each, forms)) {
        each.kernel.emitError(failure);
        signalPassFailure();
      }
    }
    llvm::outs() << "@" << group.function.getSymName() << ": "
                 << group.cases.size() << " kernels, " << onCpu
                 << " as code of the CPU, " << asPtx << " as PTX\n";
  }
}

void TestKernelsPass::runOnOperation() {
  auto named = runtime::parseProductPrecision(precision.getValue());
  if (!named) {
    getOperation().emitError("unknown precision '") << precision << "'";
    return signalPassFailure();
  }
  jit.precision = *named;
  jit.vectorBits = vectorBits;
  jit.device.contractions = contractions;
  jit.device.multiprocessors = multiprocessors;
  if (auto options = cudaTarget().codegen(jit.device); !options) {
    getOperation().emitError(llvm::toString(options.takeError()));
    return signalPassFailure();
  }
  OwningOpRef<ModuleOp> own = ModuleOp::create(getOperation().getLoc());
  (*own)->setAttrs(getOperation()->getAttrDictionary());
  std::vector<Group> groups;
  if (failed(collect(groups, *own)))
    return signalPassFailure();
  check(groups);
  markAllAnalysesPreserved();
}

void test::registerTestKernelsPass() { PassRegistration<TestKernelsPass>(); }
