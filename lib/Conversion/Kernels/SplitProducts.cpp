//===- SplitProducts.cpp - products of f32 from pieces of bf16 ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: machines multiply bf16 many times as fast as f32. A number of f32
// is the sum of three of bf16 (split_bf16), so a product of f32 is one of bf16
// for each pair of pieces; three such products keep 16 bits of an operand, six
// keep all 24, one keeps 8.
//
// Method: a library kernel that multiplies matrices of f32 becomes one
// split_matmul of pieces. Pieces are made by kernels of their own, once for
// each value that some product reads, below views of it, so that a weight is
// split once a step, and forward and backward products share pieces. These are
// values of the step like others: the planner counts them and may make them
// again. Where the machine does not multiply bf16, pieces are stored as f32,
// whose products are exact.
//
// Guarantee: what is split depends on the program and the options alone, never
// on a budget. Complexity: O(ops), and one plan of each product.
//
//===----------------------------------------------------------------------===//
#include "Kinds/GeneratedKernel.h"
#include "NarrowKernel.h"
#include "StorageTypes.h"
#include "ckopt/Conversion/Kernels/Passes.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/TargetRegistry.h"
#include "llvm/ADT/StringSet.h"

#include <map>

namespace ckopt {
#define GEN_PASS_DEF_SPLITPRODUCTSPASS
#include "ckopt/Conversion/Kernels/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using runtime::ProductPrecision;

namespace {

class ProductSplitter {
public:
  ProductSplitter(ModuleOp module, const CodegenOptions &codegen,
                  ProductPrecision precision, bool emulates)
      : module(module), symbols(module), codegen(codegen), precision(precision),
        emulates(emulates), half(BFloat16Type::get(module.getContext())) {}

  void run(func::FuncOp function);
  void eraseUnused();

private:
  using Values = SmallVector<Value, 3>;

  func::FuncOp newKernel(func::FuncOp after, const Twine &name, StringRef kind,
                         Location loc, TypeRange operands, TypeRange results);
  func::FuncOp piecesKernel(RankedTensorType type);
  Values piecesOf(Value value, Operation *before);
  func::FuncOp splitKernel(func::FuncOp kernel);
  func::FuncOp roundedKernel(func::FuncOp kernel);
  void rewrite(KernelCallOp call);

  /// Returns the type of a piece of a value of this type.
  RankedTensorType pieceType(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return emulates ? tensor : RankedTensorType(tensor.clone(half));
  }
  bool splits() const { return pieceCount(precision) > 1; }

  ModuleOp module;
  SymbolTable symbols;
  const CodegenOptions &codegen;
  ProductPrecision precision;
  bool emulates; ///< pieces are stored as f32
  Type half;
  /// Products by the kernel that they replace; null: there is none.
  DenseMap<Operation *, func::FuncOp> variants;
  DenseMap<Type, func::FuncOp> makers; ///< of pieces of a type
  DenseMap<Value, Values> pieces;
};

} // namespace

/// Returns whether the op is a product of f32 that the pass rewrites: of
/// matrices, or a convolution, where operands are rounded alone.
static bool isRewritten(Operation *op, bool splits) {
  return llvm::all_of(op->getOperands(), isF32) &&
         (isa<MatMulOp, MatMulAddOp>(op) ||
          (!splits && isa<ConvOp, ConvInputGradOp, ConvWeightGradOp>(op)));
}

func::FuncOp ProductSplitter::newKernel(func::FuncOp after, const Twine &name,
                                        StringRef kind, Location loc,
                                        TypeRange operands, TypeRange results) {
  OpBuilder builder(module.getContext());
  auto kernel = func::FuncOp::create(
      builder, loc, name.str(), builder.getFunctionType(operands, results));
  kernel.setPrivate();
  kernel->setAttr(attrs::kKernel, builder.getStringAttr(kind));
  kernel.addEntryBlock();
  if (after)
    symbols.insert(kernel, std::next(Block::iterator(after)));
  else
    symbols.insert(kernel);
  return kernel;
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

/// Returns the kernel that makes the pieces of a tensor.
func::FuncOp ProductSplitter::piecesKernel(RankedTensorType type) {
  func::FuncOp &kernel = makers[type];
  if (kernel)
    return kernel;
  auto low = cast<RankedTensorType>(type.clone(half));
  SmallVector<Type> made(pieceCount(precision), low);
  SmallVector<Type> stored(made.size(), pieceType(type));
  Location loc = UnknownLoc::get(module.getContext());
  kernel = newKernel(nullptr, splits() ? "k_split" : "k_round", "elementwise",
                     loc, type, stored);
  OpBuilder builder = OpBuilder::atBlockEnd(&kernel.front());
  Value input = kernel.getArgument(0);
  SmallVector<Value> results;
  if (splits())
    llvm::append_range(
        results, SplitBF16Op::create(builder, loc, made, input).getPieces());
  else
    results.push_back(CastOp::create(builder, loc, low, input));
  for (Value &result : results)
    if (emulates)
      result = CastOp::create(builder, loc, type, result);
  func::ReturnOp::create(builder, loc, results);
  return kernel;
}

/// Returns the pieces of a value: views of pieces, where it is a view.
ProductSplitter::Values ProductSplitter::piecesOf(Value value,
                                                  Operation *before) {
  if (auto known = pieces.find(value); known != pieces.end())
    return known->second;
  OpBuilder builder(before);
  Values made;
  if (belowViews(value) != value) {
    Operation *view = value.getDefiningOp();
    for (Value piece : piecesOf(view->getOperand(0), before)) {
      Operation *copy = builder.clone(*view);
      copy->setOperand(0, piece);
      copy->getResult(0).setType(pieceType(value.getType()));
      made.push_back(copy->getResult(0));
    }
  } else {
    func::FuncOp kernel = piecesKernel(cast<RankedTensorType>(value.getType()));
    auto call = KernelCallOp::create(
        builder, before->getLoc(), kernel.getResultTypes(), ValueRange(value),
        builder.getNamedAttr("callee",
                             FlatSymbolRefAttr::get(kernel.getSymNameAttr())));
    llvm::append_range(made, call.getResults());
  }
  pieces[value] = made;
  return made;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Returns a kernel of a split_matmul of the same product.
func::FuncOp ProductSplitter::splitKernel(func::FuncOp kernel) {
  Operation *op = &kernel.front().front();
  size_t count = pieceCount(precision);
  auto sum = dyn_cast<MatMulAddOp>(op);
  SmallVector<Type> types;
  for (unsigned i = 0; i < 2; ++i)
    types.append(count, pieceType(op->getOperand(i).getType()));
  if (sum)
    types.push_back(sum.getAddend().getType());
  func::FuncOp variant = newKernel(
      kernel,
      kernel.getSymName() + "_" + StringRef(productPrecisionName(precision)),
      "library", kernel.getLoc(), types, op->getResultTypes());
  OpBuilder builder = OpBuilder::atBlockEnd(&variant.front());
  ValueRange arguments = variant.getArguments();
  auto transposed = [&](StringRef name) {
    return op->hasAttr(name) ? builder.getUnitAttr() : UnitAttr();
  };
  Value result = SplitMatMulOp::create(
      builder, op->getLoc(), op->getResult(0).getType(),
      arguments.take_front(count), arguments.slice(count, count),
      sum ? arguments.back() : Value(), transposed("transpose_lhs"),
      transposed("transpose_rhs"));
  func::ReturnOp::create(builder, op->getLoc(), result);
  return variant;
}

/// Returns the kernel for operands of bf16, or for f32 that were rounded to it.
func::FuncOp ProductSplitter::roundedKernel(func::FuncOp kernel) {
  func::FuncOp variant = kernel.clone();
  variant.setSymName((kernel.getSymName() + "_by_bf16").str());
  symbols.insert(variant, std::next(Block::iterator(kernel)));
  for (BlockArgument argument : variant.getArguments())
    if (!isAddend(variant, argument.getArgNumber()))
      argument.setType(pieceType(argument.getType()));
  settleType(variant);
  return variant;
}

void ProductSplitter::rewrite(KernelCallOp call) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  Operation *op = &kernel.front().front();
  auto [known, isNew] = variants.try_emplace(kernel);
  if (isNew) {
    func::FuncOp made = splits() ? splitKernel(kernel) : roundedKernel(kernel);
    made->setAttr(
        attrs::kProducts,
        StringAttr::get(module.getContext(), productPrecisionName(precision)));
    ScopedDiagnosticHandler quiet(module.getContext(),
                                  [](Diagnostic &) { return success(); });
    if (succeeded(planKernel(made, codegen)))
      known->second = made;
    else
      symbols.erase(made);
  }
  func::FuncOp variant = known->second;
  if (!variant)
    return;
  auto given = [&](Value operand) {
    return call.getArgs()[cast<BlockArgument>(operand).getArgNumber()];
  };
  SmallVector<Value> args;
  if (splits()) {
    for (unsigned i = 0; i < 2; ++i)
      llvm::append_range(args, piecesOf(given(op->getOperand(i)), call));
    if (op->getNumOperands() > 2)
      args.push_back(given(op->getOperand(2)));
  } else {
    for (auto [i, arg] : llvm::enumerate(call.getArgs()))
      args.push_back(isAddend(kernel, i) ? arg : piecesOf(arg, call).front());
  }
  call.getArgsMutable().assign(args);
  call.setCallee(variant.getSymName());
}

void ProductSplitter::run(func::FuncOp function) {
  pieces.clear();
  SmallVector<KernelCallOp> products;
  for (auto call : function.front().getOps<KernelCallOp>()) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    if (kernelKind(kernel) == "library" &&
        isRewritten(&kernel.front().front(), splits()))
      products.push_back(call);
  }
  for (KernelCallOp call : products)
    rewrite(call);
}

void ProductSplitter::eraseUnused() {
  llvm::StringSet<> used;
  module.walk([&](KernelCallOp call) { used.insert(call.getCallee()); });
  for (auto kernel : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (kernel->hasAttr(attrs::kKernel) && !used.contains(kernel.getSymName()))
      symbols.erase(kernel);
}

namespace {
struct SplitProducts : ckopt::impl::SplitProductsPassBase<SplitProducts> {
  using SplitProductsPassBase::SplitProductsPassBase;

  LogicalResult split() {
    auto fail = [&](llvm::Error error) {
      return getOperation().emitError(takeErrorText(std::move(error)).text);
    };
    auto found = findTarget(target);
    if (!found)
      return fail(found.takeError());
    KernelSettings settings;
    settings.target = target;
    settings.threads = int32_t(threads);
    settings.matmulPrecision = precision;
    auto kind = (*found)->productPrecision(precision);
    if (!kind)
      return fail(kind.takeError());
    auto codegen = (*found)->codegen(settings);
    if (!codegen)
      return fail(codegen.takeError());
    if (pieces != "auto" && pieces != "bf16" && pieces != "f32")
      return getOperation().emitError("pieces of '")
             << pieces << "': they are of auto, bf16 or f32";
    if (*kind == ProductPrecision::F32)
      return success();
    bool emulates =
        pieces == "f32" || (pieces == "auto" && !(*found)->traits.bf16Products);
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isDeclaration() && !function->hasAttr(attrs::kKernel))
        functions.push_back(function);
    ProductSplitter splitter(getOperation(), *codegen, *kind, emulates);
    for (func::FuncOp function : functions)
      splitter.run(function);
    splitter.eraseUnused();
    return success();
  }

  void runOnOperation() override {
    if (failed(split()))
      signalPassFailure();
  }
};
} // namespace
