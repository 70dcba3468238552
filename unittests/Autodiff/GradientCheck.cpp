//===- GradientCheck.cpp - gradients against central differences ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;
using ckopt::reference::Tensor;

Arg test::real(ArrayRef<int64_t> shape, double low, double high) {
  return {SmallVector<int64_t>(shape), low, high, false, {}};
}
Arg test::values(ArrayRef<int64_t> shape, std::vector<double> numbers) {
  return {SmallVector<int64_t>(shape), 0, 0, false, std::move(numbers)};
}
Arg test::ints(ArrayRef<int64_t> shape, int64_t low, int64_t high) {
  return {SmallVector<int64_t>(shape), double(low), double(high), true, {}};
}
Arg test::intValues(ArrayRef<int64_t> shape, std::vector<double> numbers) {
  return {SmallVector<int64_t>(shape), 0, 0, true, std::move(numbers)};
}

MLIRContext &test::testContext() {
  static MLIRContext *context = [] {
    DialectRegistry registry;
    registry.insert<CkoptDialect, func::FuncDialect>();
    registerAutodiffRules(registry);
    reference::registerReferenceModels(registry);
    auto *made = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
    made->loadAllAvailableDialects();
    return made;
  }();
  return *context;
}

TestFunction::TestFunction(const GradientCase &test, Type element)
    : module(ModuleOp::create(UnknownLoc::get(&testContext()))) {
  MLIRContext *context = &testContext();
  OpBuilder builder(context);
  builder.setInsertionPointToEnd(module->getBody());
  SmallVector<Type> types;
  for (const Arg &arg : test.args)
    types.push_back(RankedTensorType::get(
        arg.shape, arg.integer ? builder.getI64Type() : element));
  Location loc = module->getLoc();
  auto function = func::FuncOp::create(builder, loc, "forward",
                                       builder.getFunctionType(types, {}));
  function.setPrivate();
  builder.setInsertionPointToStart(function.addEntryBlock());
  for (auto [i, arg] : llvm::enumerate(test.args))
    if (!arg.integer)
      function.setArgAttr(i, kGradAttr, builder.getUnitAttr());
  TensorBuilder b(builder, loc);
  Value loss;
  SmallVector<Value> results = test.build(
      b, ValueRange(function.getArguments()).take_front(types.size()));
  for (auto [i, result] : llvm::enumerate(results)) {
    Value weight = addArgument(function, result.getType(),
                               ("weight" + Twine(i)).str(), roles::kInput);
    Value part = b.sumAll(b.mul(result, weight));
    loss = loss ? b.add(loss, b.cast(part, getElementTypeOrSelf(loss))) : part;
  }
  func::ReturnOp::create(builder, loc, loss);
  function.setFunctionType(
      builder.getFunctionType(function.getArgumentTypes(), loss.getType()));
}

TestFunction::TestFunction(const TestFunction &other)
    : module(other.module.get().clone()) {}

func::FuncOp TestFunction::get() const {
  return *module.get().getOps<func::FuncOp>().begin();
}

bool TestFunction::verify() const {
  return succeeded(mlir::verify(module.get()));
}

bool TestFunction::differentiate(ArrayRef<unsigned> wrt) {
  autodiff::AutodiffOptions options;
  for (unsigned index : wrt)
    options.wrt.push_back("arg" + std::to_string(index));
  return succeeded(autodiff::differentiate(get(), options));
}

std::vector<Tensor> TestFunction::evaluate(ArrayRef<Tensor> args) const {
  reference::Options options;
  options.roundToType = false;
  SmallVector<Tensor> results;
  if (failed(reference::evaluate(get(), args, results, options)))
    return {};
  return {results.begin(), results.end()};
}

std::vector<Tensor> TestFunction::arguments(const GradientCase &test) const {
  std::vector<Tensor> made;
  Builder builder(&testContext());
  for (auto [i, type] : llvm::enumerate(get().getArgumentTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    bool isArg = i < test.args.size();
    if (isa<FloatType>(tensor.getElementType()))
      tensor = tensor.clone(builder.getF64Type());
    double low = isArg ? test.args[i].low : -1;
    double high = isArg ? test.args[i].high : 1;
    made.push_back(Tensor::random(tensor, 17 + i, low, high));
    if (isArg)
      for (auto [j, value] : llvm::enumerate(test.args[i].values))
        made.back().set(int64_t(j), value);
  }
  return made;
}

/// d loss / d args[index], one central difference an element.
static std::vector<double> differences(const TestFunction &function,
                                       std::vector<Tensor> args,
                                       unsigned index) {
  constexpr double step = 1e-5;
  std::vector<double> slopes;
  for (int64_t i = 0; i < args[index].size(); ++i) {
    double value = args[index].real(i);
    args[index].real(i) = value + step;
    std::vector<Tensor> above = function.evaluate(args);
    args[index].real(i) = value - step;
    std::vector<Tensor> below = function.evaluate(args);
    args[index].real(i) = value;
    if (above.empty() || below.empty())
      return {};
    slopes.push_back((above[0].real(0) - below[0].real(0)) / (2 * step));
  }
  return slopes;
}

/// The gradient results of a differentiated function: argument -> values.
static std::map<unsigned, Tensor> gradients(const TestFunction &function,
                                            ArrayRef<Tensor> args) {
  std::map<unsigned, Tensor> found;
  std::vector<Tensor> results = function.evaluate(args);
  for (size_t i = 0; i < results.size(); ++i)
    if (auto index = function.get().getResultAttrOfType<IntegerAttr>(
            unsigned(i), kGradientAttr))
      found[unsigned(index.getInt())] = results[i];
  return found;
}

static void expectNear(const std::vector<double> &want, const Tensor &got,
                       double tolerance, const std::string &what) {
  ASSERT_EQ(int64_t(want.size()), got.size()) << what;
  double largest = 1;
  for (double value : want)
    largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(want[i], got.real(int64_t(i)), tolerance * largest)
        << what << ", element " << i;
}

static std::vector<double> numbers(const Tensor &tensor) {
  return {tensor.getReals().begin(), tensor.getReals().end()};
}

void test::checkGradients(const GradientCase &test) {
  Builder types(&testContext());
  TestFunction forward(test, types.getF64Type());
  ASSERT_TRUE(forward.verify());
  std::vector<Tensor> args = forward.arguments(test);
  TestFunction all(forward);
  ASSERT_TRUE(all.differentiate());
  ASSERT_TRUE(all.verify());
  std::map<unsigned, Tensor> found = gradients(all, args);
  for (unsigned i = 0; i < test.args.size(); ++i) {
    if (test.args[i].integer)
      continue;
    std::string what = "argument " + std::to_string(i);
    std::vector<double> want = differences(forward, args, i);
    ASSERT_EQ(int64_t(want.size()), args[i].size()) << what;
    if (!found.count(i)) { // no gradient: it must be zero
      for (double value : want)
        EXPECT_EQ(value, 0) << what;
      continue;
    }
    ASSERT_EQ(found[i].getShape(), args[i].getShape()) << what;
    expectNear(want, found[i], test.tolerance, what);
    TestFunction alone(forward);
    ASSERT_TRUE(alone.differentiate(i));
    ASSERT_TRUE(alone.verify());
    std::map<unsigned, Tensor> one = gradients(alone, args);
    ASSERT_EQ(one.size(), 1u) << what;
    expectNear(numbers(found[i]), one[i], 1e-13, what + " alone");
  }
  decompose(all.get());
  ASSERT_TRUE(all.verify());
  for (auto &[i, tensor] : gradients(all, args))
    expectNear(numbers(found[i]), tensor, 1e-10, "decomposed");
  for (Type element : {Type(types.getF32Type()), Type(types.getBF16Type())}) {
    TestFunction narrow(test, element);
    ASSERT_TRUE(narrow.differentiate());
    ASSERT_TRUE(narrow.verify());
    if (!element.isF32())
      continue;
    for (auto &[i, tensor] : gradients(narrow, args))
      expectNear(numbers(found[i]), tensor, 1e-5, "f32");
  }
}

std::vector<std::vector<double>> test::gradientsOf(const GradientCase &test) {
  TestFunction function(test, Builder(&testContext()).getF64Type());
  std::vector<Tensor> args = function.arguments(test);
  for (size_t i = test.args.size(); i < args.size(); ++i)
    args[i] = Tensor::splat(args[i].getType(), 1);
  EXPECT_TRUE(function.differentiate());
  EXPECT_TRUE(function.verify());
  std::vector<std::vector<double>> found;
  for (auto &[i, tensor] : gradients(function, args))
    found.push_back(numbers(tensor));
  return found;
}
