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
// split_matmul of pieces. A value that some product reads is split once, below
// views of it, by the elementwise kernel that makes it, in place of the value
// where none but products read that, else by a kernel of its own: a weight is
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
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"

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

private:
  using Values = SmallVector<Value, 3>;

  func::FuncOp newKernel(func::FuncOp after, const Twine &name, StringRef kind,
                         Location loc, TypeRange operands, TypeRange results);
  func::FuncOp piecesKernel(RankedTensorType type);
  SmallVector<Value> emitPieces(OpBuilder &builder, Value value);
  Values piecesOf(Value value, Operation *before);
  bool isOnlyMultiplied(Value value);
  void splitInMaker(KernelCallOp call, ArrayRef<unsigned> wanted);
  func::FuncOp makerVariant(func::FuncOp kernel, ArrayRef<unsigned> wanted,
                            const llvm::SmallBitVector &dropped);
  func::FuncOp splitKernel(func::FuncOp kernel);
  func::FuncOp roundedKernel(func::FuncOp kernel);
  func::FuncOp productVariant(func::FuncOp kernel);
  void collect(func::FuncOp function);
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
  std::map<std::string, func::FuncOp> makerVariants;
  llvm::SetVector<Operation *> products; ///< calls that are rewritten
  llvm::SetVector<Value> factors;        ///< that they read, below views
  DenseMap<Value, Values> pieces;
};

} // namespace

/// Returns whether the op is a product of f32 that the pass rewrites: of
/// matrices, or a convolution, where operands are rounded alone.
static bool isRewritten(Operation *op, bool splits) {
  if (auto sum = dyn_cast<MatMulAddOp>(op);
      sum &&
      (sum.getAddend() == sum.getLhs() || sum.getAddend() == sum.getRhs()))
    return false;
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

/// Returns the pieces of a value in the body of a kernel.
SmallVector<Value> ProductSplitter::emitPieces(OpBuilder &builder,
                                               Value value) {
  Location loc = value.getLoc();
  Type low = retyped(value, half);
  SmallVector<Value> results;
  if (splits())
    llvm::append_range(
        results,
        SplitBF16Op::create(
            builder, loc, SmallVector<Type>(pieceCount(precision), low), value)
            .getPieces());
  else
    results.push_back(CastOp::create(builder, loc, low, value));
  for (Value &result : results)
    if (emulates)
      result = CastOp::create(builder, loc, value.getType(), result);
  return results;
}

/// Returns the kernel that makes the pieces of a tensor.
func::FuncOp ProductSplitter::piecesKernel(RankedTensorType type) {
  func::FuncOp &kernel = makers[type];
  if (kernel)
    return kernel;
  SmallVector<Type> stored(pieceCount(precision), pieceType(type));
  Location loc = UnknownLoc::get(module.getContext());
  kernel = newKernel(nullptr, splits() ? "k_split" : "k_round", "elementwise",
                     loc, type, stored);
  OpBuilder builder = OpBuilder::atBlockEnd(&kernel.front());
  func::ReturnOp::create(builder, loc,
                         emitPieces(builder, kernel.getArgument(0)));
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

/// Returns whether nobody but rewritten products reads the value, as a factor.
bool ProductSplitter::isOnlyMultiplied(Value value) {
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

/// Returns the kernel without the dropped results, and with the pieces of the
/// wanted ones behind the others.
func::FuncOp
ProductSplitter::makerVariant(func::FuncOp kernel, ArrayRef<unsigned> wanted,
                              const llvm::SmallBitVector &dropped) {
  std::string key = kernel.getSymName().str();
  for (unsigned result : wanted)
    key += (dropped[result] ? "/" : "+") + std::to_string(result);
  func::FuncOp &variant = makerVariants[key];
  if (variant)
    return variant;
  variant = kernel.clone();
  variant.setSymName(
      (kernel.getSymName() + (splits() ? "_split" : "_round")).str());
  symbols.insert(variant, std::next(Block::iterator(kernel)));
  Operation *terminator = variant.front().getTerminator();
  OpBuilder builder(terminator);
  SmallVector<Value> results;
  for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
    if (!dropped[i])
      results.push_back(value);
  for (unsigned result : wanted)
    llvm::append_range(results,
                       emitPieces(builder, terminator->getOperand(result)));
  terminator->setOperands(results);
  settleType(variant);
  return variant;
}

/// Returns how many results before this one are dropped.
static unsigned droppedBefore(const llvm::SmallBitVector &dropped,
                              unsigned result) {
  unsigned count = 0;
  for (unsigned i = 0; i < result; ++i)
    count += dropped[i];
  return count;
}

/// Lets an elementwise kernel make the pieces of these results. Results that
/// only products read go; the old call stays until these have the pieces.
void ProductSplitter::splitInMaker(KernelCallOp call,
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
  for (OpResult old : call.getResults())
    if (!dropped[old.getResultNumber()])
      old.replaceAllUsesWith(made.getResult(next++));
  for (unsigned result : wanted) {
    Value value = call.getResult(result);
    if (!dropped[result])
      value = made.getResult(result - droppedBefore(dropped, result));
    Values &parts = pieces[value];
    for (uint32_t i = 0; i < pieceCount(precision); ++i)
      parts.push_back(made.getResult(next++));
  }
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

/// Returns the product of pieces that replaces a kernel; null: there is none.
func::FuncOp ProductSplitter::productVariant(func::FuncOp kernel) {
  auto [known, isNew] = variants.try_emplace(kernel);
  if (!isNew)
    return known->second;
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
  return known->second;
}

/// Finds the products that are rewritten, and what they multiply.
void ProductSplitter::collect(func::FuncOp function) {
  for (auto call : function.front().getOps<KernelCallOp>()) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    if (kernelKind(kernel) != "library" ||
        !isRewritten(&kernel.front().front(), splits()) ||
        !productVariant(kernel))
      continue;
    products.insert(call);
    for (auto [i, arg] : llvm::enumerate(call.getArgs()))
      if (!isAddend(kernel, i))
        factors.insert(belowViews(arg));
  }
}

void ProductSplitter::rewrite(KernelCallOp call) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  Operation *op = &kernel.front().front();
  SmallVector<Value> args;
  if (splits()) {
    auto given = [&](unsigned operand) {
      return call.getArgs()[cast<BlockArgument>(op->getOperand(operand))
                                .getArgNumber()];
    };
    for (unsigned i = 0; i < 2; ++i)
      llvm::append_range(args, piecesOf(given(i), call));
    if (op->getNumOperands() > 2)
      args.push_back(given(2));
  } else {
    for (auto [i, arg] : llvm::enumerate(call.getArgs()))
      args.push_back(isAddend(kernel, i) ? arg : piecesOf(arg, call).front());
  }
  call.getArgsMutable().assign(args);
  call.setCallee(variants.lookup(kernel).getSymName());
}

void ProductSplitter::run(func::FuncOp function) {
  pieces.clear();
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
    splitInMaker(cast<KernelCallOp>(call), results);
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
    eraseUnusedKernels(getOperation());
    return success();
  }

  void runOnOperation() override {
    if (failed(split()))
      signalPassFailure();
  }
};
} // namespace
