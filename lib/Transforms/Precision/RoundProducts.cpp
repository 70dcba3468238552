//===- RoundProducts.cpp - products of f32 from operands of bf16 ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: machines multiply bf16 at twice the rate of f32 and more, and a user
// may ask for that while all tensors stay f32 (--matmul-precision=medium).
//
// Method: library kernels of products and convolutions of f32 take operands
// that are rounded to bf16; sums and results stay f32. A value that some
// product reads is rounded once, below views of it, by the elementwise kernel
// that makes it, in place of the value where none but products read that, else
// by a kernel of its own: a weight is rounded once a step, and forward and
// backward products share it. These are values of the step like others: the
// planner counts them and may make them again. Where the machine does not
// multiply bf16, they are stored as f32, whose products are exact.
//
// Guarantee: what is rounded depends on the program and the options alone,
// never on a budget. Complexity: O(ops), and one plan of each product.
//
//===----------------------------------------------------------------------===//
#include "NarrowKernel.h"
#include "StorageTypes.h"
#include "ckopt/CodeGen/Kernels.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Precision/Passes.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"

#include <map>

namespace ckopt {
#define GEN_PASS_DEF_ROUNDPRODUCTSPASS
#include "ckopt/Precision/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using runtime::ProductPrecision;

namespace {

class ProductRounder {
public:
  ProductRounder(ModuleOp module, const CodegenOptions &codegen, bool emulates)
      : module(module), symbols(module), codegen(codegen), emulates(emulates),
        half(BFloat16Type::get(module.getContext())) {}

  void run(func::FuncOp function);

private:
  func::FuncOp roundingKernel(RankedTensorType type);
  Value emitRounded(OpBuilder &builder, Value value);
  Value roundedOf(Value value, Operation *before);
  bool isOnlyMultiplied(Value value);
  void roundInMaker(KernelCallOp call, ArrayRef<unsigned> wanted);
  func::FuncOp makerVariant(func::FuncOp kernel, ArrayRef<unsigned> wanted,
                            const llvm::SmallBitVector &dropped);
  func::FuncOp productVariant(func::FuncOp kernel);
  void collect(func::FuncOp function);
  void rewrite(KernelCallOp call);

  /// Returns the type that a rounded value of this type is stored in.
  RankedTensorType roundedType(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return emulates ? tensor : RankedTensorType(tensor.clone(half));
  }

  ModuleOp module;
  SymbolTable symbols;
  const CodegenOptions &codegen;
  bool emulates; ///< rounded values are stored as f32
  Type half;
  /// Products by the kernel that they replace; null: there is none.
  DenseMap<Operation *, func::FuncOp> variants;
  DenseMap<Type, func::FuncOp> makers; ///< that round a tensor of a type
  std::map<std::string, func::FuncOp> makerVariants;
  llvm::SetVector<Operation *> products; ///< calls that are rewritten
  llvm::SetVector<Value> factors;        ///< that they read, below views
  DenseMap<Value, Value> rounded;
};

} // namespace

/// Returns whether the op is a product of f32 that the pass rewrites.
static bool isRewritten(Operation *op) {
  auto product = dyn_cast<ContractionOpInterface>(op);
  if (!product || product.getContractionKind() == ContractionKind::Attention)
    return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    bool isAlsoAdded = !product.isFactor(operand.getOperandNumber()) &&
                       llvm::count(op->getOperands(), operand.get()) > 1;
    return isF32(operand.get()) && !isAlsoAdded;
  });
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// Returns the rounded value in the body of a kernel.
Value ProductRounder::emitRounded(OpBuilder &builder, Value value) {
  Location loc = value.getLoc();
  Value result = CastOp::create(builder, loc, retyped(value, half), value);
  return emulates ? CastOp::create(builder, loc, value.getType(), result)
                  : result;
}

/// Returns the kernel that rounds a tensor.
func::FuncOp ProductRounder::roundingKernel(RankedTensorType type) {
  func::FuncOp &kernel = makers[type];
  if (kernel)
    return kernel;
  Location loc = UnknownLoc::get(module.getContext());
  OpBuilder builder(module.getContext());
  kernel =
      func::FuncOp::create(builder, loc, "k_round",
                           builder.getFunctionType(type, roundedType(type)));
  kernel.setPrivate();
  kernel->setAttr(attrs::kKernel, builder.getStringAttr("elementwise"));
  symbols.insert(kernel);
  builder.setInsertionPointToEnd(kernel.addEntryBlock());
  func::ReturnOp::create(builder, loc,
                         emitRounded(builder, kernel.getArgument(0)));
  return kernel;
}

/// Returns the rounded value: a view of one, where it is a view.
Value ProductRounder::roundedOf(Value value, Operation *before) {
  if (Value known = rounded.lookup(value))
    return known;
  OpBuilder builder(before);
  Value made;
  if (belowViews(value) != value) {
    Operation *view = value.getDefiningOp();
    Value source = roundedOf(view->getOperand(0), before);
    Operation *copy = builder.clone(*view);
    copy->setOperand(0, source);
    made = copy->getResult(0);
    made.setType(roundedType(value.getType()));
  } else {
    func::FuncOp kernel =
        roundingKernel(cast<RankedTensorType>(value.getType()));
    auto callee = FlatSymbolRefAttr::get(kernel.getSymNameAttr());
    made = KernelCallOp::create(builder, before->getLoc(),
                                kernel.getResultTypes(), ValueRange(value),
                                builder.getNamedAttr("callee", callee))
               .getResult(0);
  }
  return rounded[value] = made;
}

/// Returns whether nobody but rewritten products reads the value, as a factor.
bool ProductRounder::isOnlyMultiplied(Value value) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto call = dyn_cast<KernelCallOp>(user))
      return products.contains(call) &&
             !isAddend(symbols.lookup<func::FuncOp>(call.getCallee()),
                       use.getOperandNumber());
    return isa<KernelOpInterface>(user) && opKind(user) == KernelKind::View &&
           isOnlyMultiplied(user->getResult(0));
  });
}

/// Returns the kernel without the dropped results, and with the wanted ones,
/// rounded, behind the others.
func::FuncOp ProductRounder::makerVariant(func::FuncOp kernel,
                                          ArrayRef<unsigned> wanted,
                                          const llvm::SmallBitVector &dropped) {
  std::string key = kernel.getSymName().str();
  for (unsigned result : wanted)
    key += (dropped[result] ? "/" : "+") + std::to_string(result);
  func::FuncOp &variant = makerVariants[key];
  if (variant)
    return variant;
  variant = kernel.clone();
  variant.setSymName((kernel.getSymName() + "_round").str());
  symbols.insert(variant, std::next(Block::iterator(kernel)));
  Operation *terminator = variant.front().getTerminator();
  OpBuilder builder(terminator);
  SmallVector<Value> results;
  for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
    if (!dropped[i])
      results.push_back(value);
  for (unsigned result : wanted)
    results.push_back(emitRounded(builder, terminator->getOperand(result)));
  terminator->setOperands(results);
  settleType(variant);
  return variant;
}

/// Lets an elementwise kernel round these results. Results that only products
/// read go; the old call stays until these have the rounded ones.
void ProductRounder::roundInMaker(KernelCallOp call,
                                  ArrayRef<unsigned> wanted) {
  llvm::SmallBitVector dropped(call.getNumResults());
  for (unsigned result : wanted)
    dropped[result] = isOnlyMultiplied(call.getResult(result));
  func::FuncOp variant = makerVariant(
      symbols.lookup<func::FuncOp>(call.getCallee()), wanted, dropped);
  OpBuilder builder(call);
  OperationState state(call.getLoc(), KernelCallOp::getOperationName(),
                       call.getArgs(), variant.getResultTypes(),
                       call->getAttrDictionary().getValue());
  auto made = cast<KernelCallOp>(builder.create(state));
  made.setCallee(variant.getSymName());
  unsigned next = 0;
  SmallVector<Value> read(call.getResults());
  for (auto [i, value] : llvm::enumerate(read))
    if (!dropped[i]) {
      Value kept = made.getResult(next++);
      value.replaceAllUsesWith(kept);
      value = kept;
    }
  for (unsigned result : wanted)
    rounded[read[result]] = made.getResult(next++);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Returns the kernel for operands of bf16, or for f32 that were rounded to it;
/// null: the library has none.
func::FuncOp ProductRounder::productVariant(func::FuncOp kernel) {
  auto [known, isNew] = variants.try_emplace(kernel);
  if (!isNew)
    return known->second;
  func::FuncOp made = kernel.clone();
  made.setSymName((kernel.getSymName() + "_by_bf16").str());
  symbols.insert(made, std::next(Block::iterator(kernel)));
  for (BlockArgument argument : made.getArguments())
    if (!isAddend(made, argument.getArgNumber()))
      argument.setType(roundedType(argument.getType()));
  settleType(made);
  made->setAttr(attrs::kProducts,
                StringAttr::get(module.getContext(),
                                productPrecisionName(ProductPrecision::BF16)));
  ScopedDiagnosticHandler quiet(module.getContext(),
                                [](Diagnostic &) { return success(); });
  if (succeeded(planKernel(made, codegen)))
    known->second = made;
  else
    symbols.erase(made);
  return known->second;
}

/// Finds the products that are rewritten, and what they multiply.
void ProductRounder::collect(func::FuncOp function) {
  for (auto call : function.front().getOps<KernelCallOp>()) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    if (kernelKind(kernel) != "library" ||
        !isRewritten(&kernel.front().front()) || !productVariant(kernel))
      continue;
    products.insert(call);
    for (auto [i, arg] : llvm::enumerate(call.getArgs()))
      if (!isAddend(kernel, i))
        factors.insert(belowViews(arg));
  }
}

void ProductRounder::rewrite(KernelCallOp call) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  SmallVector<Value> args;
  for (auto [i, arg] : llvm::enumerate(call.getArgs()))
    args.push_back(isAddend(kernel, i) ? arg : roundedOf(arg, call));
  call.getArgsMutable().assign(args);
  call.setCallee(variants.lookup(kernel).getSymName());
}

void ProductRounder::run(func::FuncOp function) {
  rounded.clear();
  products.clear();
  factors.clear();
  collect(function);
  llvm::MapVector<Operation *, SmallVector<unsigned>> wanted;
  for (Value factor : factors) {
    auto call = factor.getDefiningOp<KernelCallOp>();
    if (call && call.getUpdates().empty() &&
        kernelKind(symbols.lookup<func::FuncOp>(call.getCallee())) ==
            "elementwise")
      wanted[call.getOperation()].push_back(
          cast<OpResult>(factor).getResultNumber());
  }
  for (auto &[call, results] : wanted)
    roundInMaker(cast<KernelCallOp>(call), results);
  for (Operation *call : products)
    rewrite(cast<KernelCallOp>(call));
  // Views and makers of values that none but products read.
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(function.front())))
    if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>() &&
        (!isa<KernelCallOp>(op) || wanted.contains(&op)))
      op.erase();
}

namespace {
struct RoundProducts : ckopt::impl::RoundProductsPassBase<RoundProducts> {
  using RoundProductsPassBase::RoundProductsPassBase;

  LogicalResult round() {
    KernelSettings settings;
    settings.target = target;
    settings.threads = int32_t(threads);
    auto codegen = codegenOptions(getOperation(), settings, precision);
    if (failed(codegen))
      return failure();
    auto kind = codegen->target->productPrecision(settings.matmulPrecision);
    if (!kind)
      return getOperation().emitError()
             << takeErrorText(kind.takeError()).message;
    if (storage != "auto" && storage != "bf16" && storage != "f32")
      return getOperation().emitError("storage '")
             << storage << "': it is auto, bf16 or f32";
    if (*kind == ProductPrecision::F32)
      return success();
    if (*kind != ProductPrecision::BF16)
      return getOperation().emitError("products by ")
             << StringRef(productPrecisionName(*kind))
             << " round in their kernels";
    bool emulates = storage == "f32" || (storage == "auto" &&
                                         !codegen->target->traits.bf16Products);
    SmallVector<func::FuncOp> functions = findCallers(getOperation());
    ProductRounder rounder(getOperation(), *codegen, emulates);
    for (func::FuncOp function : functions)
      rounder.run(function);
    eraseUnusedKernels(getOperation());
    return success();
  }

  void runOnOperation() override {
    if (failed(round()))
      signalPassFailure();
  }
};
} // namespace
