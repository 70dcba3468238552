//===- Adapters.cpp - low-rank adapters of a model's products -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a model is fine-tuned by few numbers: LoRA (Hu et al. 2021) and DoRA
// (Liu et al. 2024) add trained matrices to products whose weights stay.
// Method: with x the input of a product, W its matrix as [outputs, inputs], s =
// alpha / rank and d a dropout,
//   LoRA  y = W x + s B A d(x)
//   DoRA  y = m / n (W x + s B A x),  n = |W + s B A| of each output,
// as PEFT computes them; n is a constant for gradients. With a dropout DoRA has
// it on both products of its difference to W x, as PEFT has. n needs no matrix
// of W's size:
//   n^2 = |W|^2 + 2 s <W A^T, B> + s^2 <B (A A^T), B>   of each output.
// A starts as PyTorch's linear layers do, uniform in +-1 / sqrt(inputs), B with
// zeros: numbers of (seed, name, element), lib/Runtime/Core/Init.cpp. Adapters
// of halves are computed in f32, and their sum is rounded once.
// Complexity: linear in ops.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Normalize/Adapters.h"
#include "ckopt/Base/MessageText.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"
#include "ckopt/Dialect/Ckopt/Utils/StopGradient.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Normalize/Passes.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/NameList.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/Regex.h"

namespace ckopt {
#define GEN_PASS_DEF_ADDADAPTERSPASS
#include "ckopt/Normalize/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

static llvm::Expected<std::vector<AdapterTarget>>
chooseTargets(ArrayRef<AdapterTarget> all, const AdapterOptions &options) {
  std::vector<AdapterTarget> chosen;
  llvm::Regex regex("^(.*\\.)?(" + options.targets + ")$");
  std::string problem;
  if (!regex.isValid(problem))
    return usageError("malformed regular expression '" + options.targets +
                      "': " + problem);
  std::vector<std::string> names, heads;
  for (const AdapterTarget &target : all) {
    bool isUsual = !target.isHead && !target.isBuffer;
    (target.isHead && !target.isBuffer ? heads : names).push_back(target.name);
    if (options.targets.empty() ? isUsual : regex.match(target.name))
      chosen.push_back(target);
  }
  if (!chosen.empty())
    return std::move(chosen);
  if (names.empty() && heads.empty())
    return inputError("the model has no product of activations with a weight "
                      "that could have an adapter");
  MessageText candidates = names.empty() ? "none" : listNames(names);
  if (!heads.empty())
    candidates +=
        "; output heads, which a name alone chooses: " + listNames(heads);
  if (options.targets.empty())
    return inputError(
        "no product but output heads could have an adapter; "
        "name them (" +
        Setting("lora-targets", heads.empty() ? names.front() : heads.front()) +
        "); products: " + candidates);
  return inputError(Setting("lora-targets", options.targets) +
                    " matches no product (a whole name has to match, or its "
                    "end behind a dot); products: " +
                    candidates);
}

namespace {
/// Adds the adapters of one function.
class AdapterBuilder {
public:
  AdapterBuilder(func::FuncOp function, const AdapterOptions &options)
      : function(function), options(options),
        scaling(options.alpha / double(options.rank)) {
    function.walk([&](Operation *op) {
      site = std::max(site, randomSite(op).value_or(-1) + 1);
    });
  }
  void add(const AdapterTarget &target);

private:
  Value parameter(const Twine &name, ArrayRef<int64_t> shape, StringRef init,
                  int64_t fanIn = 0);
  Value drop(TensorBuilder &b, Value value);
  Value ratioOf(TensorBuilder &b, const AdapterTarget &target);
  Value adapted(TensorBuilder &b, MatMulOp product,
                const AdapterTarget &target);

  func::FuncOp function;
  const AdapterOptions &options;
  double scaling;
  int64_t site = 0; ///< of the next dropout
  // Of the target:
  Type element;
  Value down, up, magnitude;
  Value ratio; ///< m / n, broadcast to results
};
} // namespace

Value AdapterBuilder::parameter(const Twine &name, ArrayRef<int64_t> shape,
                                StringRef init, int64_t fanIn) {
  BlockArgument argument =
      addArgument(function, RankedTensorType::get(shape, element), name.str(),
                  roles::kParameter);
  Builder b(function.getContext());
  unsigned number = argument.getArgNumber();
  function.setArgAttr(number, attrs::kInit, b.getStringAttr(init));
  if (fanIn)
    function.setArgAttr(number, attrs::kFanIn, b.getI64IntegerAttr(fanIn));
  return argument;
}

Value AdapterBuilder::drop(TensorBuilder &b, Value value) {
  if (options.dropout <= 0)
    return value;
  return b.make<DropoutOp>(value,
                           findOrAddNumber(function, "seed", roles::kSeed),
                           findOrAddNumber(function, "step", roles::kStep),
                           b.builder.getF64FloatAttr(options.dropout),
                           b.builder.getI64IntegerAttr(site++));
}

/// Returns m / n of each output; 0 where a row of zeros has no direction.
Value AdapterBuilder::ratioOf(TensorBuilder &b, const AdapterTarget &target) {
  bool flipped = !target.outputsFirst;
  Value w = b.cast(target.weight, element);
  Value wa = b.make<MatMulOp>(w, down, /*transpose_lhs=*/flipped,
                              /*transpose_rhs=*/true);
  Value aa = b.make<MatMulOp>(down, down, false, true);
  Value baa = b.make<MatMulOp>(up, aa, false, false);
  Value squared =
      b.add(b.sum(b.mul(w, w), {flipped ? 0 : 1}),
            b.add(b.mul(b.sum(b.mul(wa, up), {1}), 2 * scaling),
                  b.mul(b.sum(b.mul(baa, up), {1}), scaling * scaling)));
  Value positive = b.compare(ComparePredicate::GT, squared, 0);
  // Apart from zeros, since 0 / 0 is computed where it is not chosen, too.
  Value norm =
      b.make<SqrtOp>(b.select(positive, squared, b.number(squared, 1)));
  auto pin = PinOp::create(
      b.builder, b.loc,
      b.where(positive, b.div(b.splat(tensorType(norm), 1), norm)));
  pin->setAttr(kStopGradientAttr, b.builder.getUnitAttr());
  Value result = b.mul(magnitude, pin.getOutput());
  return target.weightFirst ? b.reshape(result, {target.outputs(), 1}) : result;
}

/// Returns the product's result with its adapter.
Value AdapterBuilder::adapted(TensorBuilder &b, MatMulOp product,
                              const AdapterTarget &target) {
  Value x = target.weightFirst ? product.getRhs() : product.getLhs();
  bool flipped = target.weightFirst ? product.getTransposeRhs()
                                    : product.getTransposeLhs();
  Value dropped = drop(b, b.cast(x, element));
  Value added;
  if (target.weightFirst) {
    added = b.make<MatMulOp>(down, dropped, false, flipped);
    added = b.make<MatMulOp>(up, added, false, false);
  } else {
    added = b.make<MatMulOp>(dropped, down, flipped, true);
    added = b.make<MatMulOp>(added, up, false, true);
  }
  added = b.mul(added, scaling);
  Value plain = b.cast(product.getOutput(), element);
  if (!options.dora)
    return b.add(plain, added);
  if (!ratio)
    ratio = ratioOf(b, target);
  if (options.dropout <= 0)
    return b.mul(ratio, b.add(plain, added));
  IRMapping toDropped;
  toDropped.map(x, b.cast(dropped, tensorType(x).getElementType()));
  Value base =
      b.cast(cast<MatMulOp>(b.builder.clone(*product, toDropped)).getOutput(),
             element);
  return b.add(plain, b.sub(b.mul(ratio, b.add(base, added)), base));
}

void AdapterBuilder::add(const AdapterTarget &target) {
  element = tensorType(target.weight).getElementType();
  if (!element.isF64())
    element = Float32Type::get(function.getContext());
  std::string name = (kAdapterPrefix + target.name).str();
  // He's rule, +-sqrt(6 / n), with six times the inputs: PEFT's bounds.
  down = parameter(name + kDownSuffix, {options.rank, target.inputs()},
                   "kaiming", 6 * target.inputs());
  up = parameter(name + kUpSuffix, {target.outputs(), options.rank}, "zeros");
  if (options.dora)
    magnitude = parameter(name + kMagnitudeSuffix, {target.outputs()}, "ones");
  ratio = {};
  for (MatMulOp product : target.products) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : product.getOutput().getUses())
      uses.push_back(&use);
    OpBuilder builder(product->getContext());
    builder.setInsertionPointAfter(product);
    TensorBuilder b(builder, product.getLoc());
    Value result =
        b.cast(adapted(b, product, target), product.getType().getElementType());
    for (OpOperand *use : uses)
      use->set(result);
  }
}

llvm::Expected<std::vector<AdapterTarget>>
ckopt::addAdapters(func::FuncOp function, ArrayRef<AdapterTarget> all,
                   const AdapterOptions &options) {
  auto targets = chooseTargets(all, options);
  if (!targets)
    return targets;
  for (unsigned i = 0; options.freezes && i < function.getNumArguments(); ++i)
    if (argumentRole(function, i) == roles::kParameter)
      function.setArgAttr(
          i, attrs::kRole,
          StringAttr::get(function.getContext(), roles::kFrozen));
  AdapterBuilder builder(function, options);
  for (const AdapterTarget &target : *targets)
    builder.add(target);
  return targets;
}

namespace {
struct AddAdapters : ckopt::impl::AddAdaptersPassBase<AddAdapters> {
  using AddAdaptersPassBase::AddAdaptersPassBase;
  void runOnOperation() override {
    if (failed(checkStraightLine(getOperation())))
      return signalPassFailure();
    AdapterOptions options;
    options.rank = rank;
    options.alpha = alpha;
    options.targets = targets;
    options.dropout = dropout;
    options.dora = dora;
    auto added = addAdapters(getOperation(), findAdapterTargets(getOperation()),
                             options);
    if (!added) {
      getOperation().emitError() << takeErrorText(added.takeError()).text;
      signalPassFailure();
    }
  }
};
} // namespace
