//===- MixedPrecision.cpp - stored values and products in f16, bf16 -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: halve the bytes of activations and double the rate of products,
// without touching what training needs in f32.
//
// Method: fuse has decided what is stored between kernels; StorageTypes says
// which of these values are Low. Kernels are rewritten to read and write them
// as 16-bit floats (bf16 or f16): a product gets such operands, attention has
// kernels for bf16 (which compute in f32), any other kernel casts what it
// reads, computes in f32 as before, and casts what it stores. So nothing is
// rounded but what is stored and what products read. A value of f32 that a
// product reads is cast by its maker, as one more result, if that is an
// elementwise kernel, else by a kernel of its own. An argument (a parameter) is
// cast again for products far from the last cast, since keeping the copies of
// all parameters from the forward to the backward pass would cost half their
// bytes; so are 16-bit floats for products that are computed in f32.
//
// Guarantee: types of arguments and results stay. What is rounded depends on
// the program and the options alone, never on a budget: later phases repeat
// and move whole calls. Complexity: O(ops), and one plan of each product.
//
//===----------------------------------------------------------------------===//
#include "NarrowKernel.h"
#include "StorageTypes.h"
#include "ckopt/CodeGen/Kernels.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Precision/Passes.h"
#include "llvm/Support/Regex.h"

#include <map>

namespace ckopt {
#define GEN_PASS_DEF_MIXEDPRECISIONPASS
#include "ckopt/Precision/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

namespace {

class MixedPrecisionRewriter {
public:
  MixedPrecisionRewriter(ModuleOp module, const CodegenOptions &codegen,
                         Type half, bool lowProducts, llvm::Regex *keep)
      : module(module), symbols(module), codegen(codegen),
        lowProducts(lowProducts), keep(keep), half(half),
        suffix(half.isBF16() ? "_bf16" : "_f16"),
        single(Float32Type::get(module.getContext())) {}

  void run(func::FuncOp function);
  bool keptSome() const { return keptAny; }

private:
  bool keeps(KernelCallOp call);
  func::FuncOp cloned(func::FuncOp kernel, StringRef suffix);
  func::FuncOp narrowed(func::FuncOp kernel, const Narrowing &wanted);
  func::FuncOp narrowedProduct(func::FuncOp kernel, bool wide);
  func::FuncOp castKernel(RankedTensorType from, RankedTensorType to);
  Value castBefore(Value value, Type element, Operation *before);
  Value storedNarrow(Value value) const;
  Value coerce(Value value, Type element, Operation *before);
  KernelCallOp replaceCall(KernelCallOp call, func::FuncOp kernel);
  void rewriteProduct(KernelCallOp call, Storage storage);
  func::FuncOp narrowedAttention(func::FuncOp kernel);
  void rewriteAttention(KernelCallOp call);
  void rewriteCall(KernelCallOp call, Narrowing wanted);

  ModuleOp module;
  SymbolTable symbols;
  const CodegenOptions &codegen;
  bool lowProducts;
  llvm::Regex *keep;
  Type half;
  StringRef suffix; ///< of kernels that read or write 16-bit floats
  Type single;
  /// Kernels by what was asked of them; null: there is none.
  std::map<std::string, func::FuncOp> variants;
  DenseMap<std::pair<Type, Type>, func::FuncOp> castKernels;
  /// Copies of values in the other type, and the product before which they
  /// were made.
  DenseMap<std::pair<Value, Type>, std::pair<Value, int64_t>> copies;
  int64_t product = 0; ///< number of the product that is rewritten
  double lowFlops = 0, flops = 0;
  bool keptAny = false;
};

} // namespace

/// Returns whether a node's name in the location matches: that of any op of a
/// kernel counts.
static bool matches(Location loc, const llvm::Regex &pattern) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return pattern.match(name.getName());
  auto fused = dyn_cast<FusedLoc>(loc);
  return fused && llvm::any_of(fused.getLocations(), [&](Location part) {
           return matches(part, pattern);
         });
}

bool MixedPrecisionRewriter::keeps(KernelCallOp call) {
  bool kept = keep && matches(call.getLoc(), *keep);
  keptAny |= kept;
  return kept;
}

func::FuncOp MixedPrecisionRewriter::cloned(func::FuncOp kernel,
                                            StringRef suffix) {
  func::FuncOp variant = kernel.clone();
  variant.setSymName((kernel.getSymName() + suffix).str());
  symbols.insert(variant, std::next(Block::iterator(kernel)));
  return variant;
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

func::FuncOp MixedPrecisionRewriter::castKernel(RankedTensorType from,
                                                RankedTensorType to) {
  func::FuncOp &kernel = castKernels[{from, to}];
  if (kernel)
    return kernel;
  OpBuilder builder(module.getContext());
  Location loc = UnknownLoc::get(module.getContext());
  kernel = func::FuncOp::create(builder, loc, "k_cast",
                                builder.getFunctionType({from}, {to}));
  kernel.setPrivate();
  kernel->setAttr(attrs::kKernel, builder.getStringAttr("elementwise"));
  builder.setInsertionPointToEnd(kernel.addEntryBlock());
  Value result = CastOp::create(builder, loc, to, kernel.getArgument(0));
  func::ReturnOp::create(builder, loc, result);
  symbols.insert(kernel);
  return kernel;
}

Value MixedPrecisionRewriter::castBefore(Value value, Type element,
                                         Operation *before) {
  OpBuilder builder(before);
  auto to = retyped(value, element);
  func::FuncOp kernel = castKernel(cast<RankedTensorType>(value.getType()), to);
  return KernelCallOp::create(
             builder, before->getLoc(), TypeRange(to), ValueRange(value),
             builder.getNamedAttr(
                 "callee", FlatSymbolRefAttr::get(kernel.getSymNameAttr())))
      .getResult(0);
}

/// Returns the 16-bit floats that the value is the f32 form of, or null:
/// rounding it back would give the same bits.
Value MixedPrecisionRewriter::storedNarrow(Value value) const {
  auto call = value.getDefiningOp<KernelCallOp>();
  if (!call || call.getNumOperands() != 1 ||
      getElementTypeOrSelf(call.getOperand(0)) != half)
    return {};
  Block &body = symbols.lookup<func::FuncOp>(call.getCallee()).front();
  auto cast = dyn_cast<CastOp>(body.front());
  bool isCast = cast && body.getOperations().size() == 2 && isF32(value) &&
                cast.getInput() == body.getArgument(0) &&
                cast.getInput().getType() == call.getOperand(0).getType();
  return isCast ? call.getOperand(0) : Value();
}

/// Returns the value with this element type. Below views, so that all views of
/// a value share its cast.
Value MixedPrecisionRewriter::coerce(Value value, Type element,
                                     Operation *before) {
  if (getElementTypeOrSelf(value) == element)
    return value;
  if (belowViews(value) != value) {
    Operation *view = value.getDefiningOp();
    Value operand = coerce(view->getOperand(0), element, before);
    OpBuilder builder(before);
    Operation *copy = builder.clone(*view);
    copy->setOperand(0, operand);
    copy->getResult(0).setType(retyped(value, element));
    return copy->getResult(0);
  }
  if (Value stored = element == half ? storedNarrow(value) : Value())
    return stored;
  auto &[copy, made] = copies[{value, element}];
  bool again = isa<BlockArgument>(value) || element == single;
  if (!copy || (again && product - made > kKeptCasts))
    copy = castBefore(value, element, before);
  made = product;
  return copy;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Returns the product of operands of 16-bit floats, or null where the target
/// has none.
func::FuncOp MixedPrecisionRewriter::narrowedProduct(func::FuncOp kernel,
                                                     bool wide) {
  auto [known, isNew] = variants.try_emplace(kernel.getSymName().str() +
                                             (wide ? "/wide" : "/low"));
  if (!isNew || !lowProducts)
    return known->second;
  func::FuncOp variant = cloned(kernel, (suffix + (wide ? "_f32" : "")).str());
  narrowProduct(variant, wide, half);
  ScopedDiagnosticHandler quiet(module.getContext(),
                                [](Diagnostic &) { return success(); });
  if (succeeded(planKernel(variant, codegen)))
    return known->second = variant;
  symbols.erase(variant);
  return nullptr;
}

KernelCallOp MixedPrecisionRewriter::replaceCall(KernelCallOp call,
                                                 func::FuncOp kernel) {
  OpBuilder builder(call);
  OperationState state(call.getLoc(), KernelCallOp::getOperationName(),
                       call.getArgs(), kernel.getResultTypes(),
                       call->getAttrDictionary().getValue());
  auto made = cast<KernelCallOp>(builder.create(state));
  made.setCallee(kernel.getSymName());
  for (auto [old, result] : llvm::zip(call.getResults(), made.getResults()))
    old.replaceAllUsesWith(result);
  call.erase();
  return made;
}

void MixedPrecisionRewriter::rewriteProduct(KernelCallOp call,
                                            Storage storage) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  Value addend = addendOf(call, kernel);
  // What a product is added to has its result's type. Where that is f32, so is
  // a sum that grows.
  bool grows = !codegen.target->traits.addsToTensors &&
               isOnlyAddend(call.getResult(0), symbols);
  bool full = storage == Storage::Full || grows;
  bool wide = full || (addend && !codegen.target->traits.addsToTensors);
  func::FuncOp variant = narrowedProduct(kernel, wide);
  double work = cast<KernelOpInterface>(kernel.front().front()).getFlops();
  ++product;
  if (variant && variant.getNumArguments() > call.getNumOperands())
    call.getArgsMutable().append(addend);
  for (OpOperand &operand : call.getArgsMutable())
    operand.set(coerce(operand.get(),
                       variant ? getElementTypeOrSelf(variant.getArgument(
                                     operand.getOperandNumber()))
                               : single,
                       call));
  if (variant) {
    lowFlops += work;
    call = replaceCall(call, variant);
  }
  if (full || (variant && !wide))
    return;
  // The product is computed in f32, and its result stored as a half.
  Value result = call.getResult(0);
  Value narrow = castBefore(result, half, call->getNextNode());
  result.replaceAllUsesExcept(narrow, narrow.getDefiningOp());
}

/// Returns the attention, or gradient of one, on tensors of bf16.
func::FuncOp MixedPrecisionRewriter::narrowedAttention(func::FuncOp kernel) {
  auto [known, isNew] =
      variants.try_emplace(kernel.getSymName().str() + "/low");
  if (!isNew)
    return known->second;
  func::FuncOp variant = cloned(kernel, "_bf16");
  Operation &op = variant.front().front();
  for (OpOperand &operand : op.getOpOperands())
    if (isAttended(operand))
      operand.get().setType(retyped(operand.get(), half));
  for (OpResult result : op.getResults())
    if (!cast<KernelOpInterface>(op).isStatistic(result.getResultNumber()))
      result.setType(retyped(result, half));
  settleType(variant);
  return known->second = variant;
}

void MixedPrecisionRewriter::rewriteAttention(KernelCallOp call) {
  func::FuncOp variant =
      narrowedAttention(symbols.lookup<func::FuncOp>(call.getCallee()));
  ++product;
  for (OpOperand &operand : call.getArgsMutable())
    operand.set(coerce(
        operand.get(),
        getElementTypeOrSelf(variant.getArgument(operand.getOperandNumber())),
        call));
  replaceCall(call, variant);
}

//===----------------------------------------------------------------------===//
// Other kernels
//===----------------------------------------------------------------------===//

/// Returns the kernel with 16-bit floats where they are wanted and possible.
func::FuncOp MixedPrecisionRewriter::narrowed(func::FuncOp kernel,
                                              const Narrowing &wanted) {
  func::FuncOp &variant = variants[wanted.key(kernel.getSymName())];
  if (!variant) {
    variant = cloned(kernel, suffix);
    narrowKernel(variant, wanted, half);
  }
  return variant;
}

void MixedPrecisionRewriter::rewriteCall(KernelCallOp call, Narrowing wanted) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  StringRef kind = kernelKind(kernel);
  for (auto [argument, operand] :
       llvm::zip_equal(kernel.getArguments(), call.getArgs()))
    wanted.operands.push_back(argument.getType() != operand.getType());
  if (kind == "structured" || kind == "library")
    wanted.operands.assign(wanted.operands.size(), false);
  dropUnreadable(kernel, wanted);
  for (auto [i, argument] : llvm::enumerate(kernel.getArguments()))
    if (!wanted.operands[i])
      call->setOperand(
          i, coerce(call->getOperand(i), getElementTypeOrSelf(argument), call));
  if (!wanted.any())
    return;
  unsigned count = call.getNumResults();
  call = replaceCall(call, narrowed(kernel, wanted));
  for (unsigned i = 0; i < wanted.copies.size(); ++i)
    if (wanted.copies[i])
      copies[{call.getResult(i), half}] = {call.getResult(count++), product};
}

/// What a call's results become, before any type changes.
static Narrowing wantedOf(KernelCallOp call, func::FuncOp kernel,
                          const StorageTypes &types, bool lowProducts) {
  Narrowing wanted;
  StringRef kind = kernelKind(kernel);
  bool narrows = kind == "elementwise" || kind == "row";
  bool copies =
      kind == "elementwise" && call.getUpdates().empty() && lowProducts;
  for (auto [made, result] : llvm::zip_equal(
           kernel.front().getTerminator()->getOperands(), call.getResults())) {
    bool low = types.of(result) == Storage::Low;
    Operation *maker = made.getDefiningOp();
    wanted.results.push_back(narrows && low && maker && isF32(result) &&
                             call.getUpdates().empty());
    wanted.copies.push_back(copies && !low && isF32(result) && maker &&
                            types.isMultiplied(result));
  }
  return wanted;
}

void MixedPrecisionRewriter::run(func::FuncOp function) {
  StorageTypes types(function, symbols,
                     [&](KernelCallOp call) { return keeps(call); });
  Block &block = function.front();
  DenseMap<Operation *, Narrowing> wanted;
  DenseMap<Operation *, Storage> products;
  DenseSet<Operation *> attentions;
  copies.clear();
  lowFlops = flops = 0;
  for (auto call : block.getOps<KernelCallOp>()) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    if (kernelKind(kernel) == "library" && !isOfRanks(kernel))
      flops += cast<KernelOpInterface>(kernel.front().front()).getFlops();
    if (types.isProduct(call))
      products[call] = types.of(call.getResult(0));
    else if (types.isAttention(call))
      attentions.insert(call);
    else
      wanted[call] = wantedOf(call, kernel, types, lowProducts);
  }
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    if (auto found = products.find(&op); found != products.end())
      rewriteProduct(cast<KernelCallOp>(op), found->second);
    else if (attentions.contains(&op))
      rewriteAttention(cast<KernelCallOp>(op));
    else if (op.getNumResults() == 1 && storedNarrow(op.getResult(0)))
      continue; // readers take the one or the other
    else if (auto call = dyn_cast<KernelCallOp>(op); call)
      rewriteCall(call, wanted.lookup(call));
    else if (!op.getNumOperands() || isF32(op.getOperand(0)) ||
             !isF32(op.getResult(0)))
      continue;
    else // a view
      op.getResult(0).setType(
          retyped(op.getResult(0), getElementTypeOrSelf(op.getOperand(0))));
  }
  Operation *terminator = block.getTerminator();
  for (auto [operand, type] :
       llvm::zip_equal(terminator->getOpOperands(), function.getResultTypes()))
    operand.set(coerce(operand.get(), getElementTypeOrSelf(type), terminator));
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (!op.hasTrait<OpTrait::IsTerminator>() && op.use_empty() &&
        (!isa<KernelCallOp>(op) ||
         (op.getNumResults() == 1 && storedNarrow(op.getResult(0)))))
      op.erase();
  function->setAttr(
      half.isBF16() ? attrs::kBF16Products : attrs::kF16Products,
      Builder(module.getContext()).getF64ArrayAttr({lowFlops, flops}));
}

namespace {
struct MixedPrecision : ckopt::impl::MixedPrecisionPassBase<MixedPrecision> {
  using MixedPrecisionPassBase::MixedPrecisionPassBase;

  LogicalResult narrow(llvm::Regex *keep) {
    KernelSettings settings;
    settings.target = target;
    settings.threads = int32_t(threads);
    settings.libraryWorkspace = libraryWorkspace;
    settings.cpuClass = cpuClass;
    settings.libraryTable = libraryTable;
    auto codegen = codegenOptions(getOperation(), settings);
    if (failed(codegen))
      return failure();
    bool brain = type == "bf16";
    if (!brain && type != "f16")
      return getOperation().emitError("16-bit floats of type '")
             << type << "': they are bf16 or f16";
    if (products != "auto" && products != type && products != "f32")
      return getOperation().emitError("products by '")
             << products << "': they are by auto, " << type << " or f32";
    const TargetTraits &traits = codegen->target->traits;
    bool low = products == type ||
               (products == "auto" &&
                (brain ? traits.bf16Products : traits.halfProducts));
    SmallVector<func::FuncOp> functions = findCallers(getOperation());
    Type half = brain ? Type(BFloat16Type::get(&getContext()))
                      : Type(Float16Type::get(&getContext()));
    MixedPrecisionRewriter rewriter(getOperation(), *codegen, half, low, keep);
    for (func::FuncOp function : functions)
      rewriter.run(function);
    if (keepCopies && !keepWeightCopies(getOperation(), functions))
      getOperation().emitWarning()
          << Setting("cuda-weight-copies") +
                 ": no weight that is updated is rounded to 16 bits and "
                 "nothing else, so none has a copy";
    eraseUnusedKernels(getOperation());
    getOperation()->setAttr(kApproximatesAttr, UnitAttr::get(&getContext()));
    if (keep && !rewriter.keptSome())
      getOperation().emitWarning()
          << Setting("keep-f32") + ": no node is named '" + keepF32 + "'";
    return success();
  }

  void runOnOperation() override {
    llvm::Regex keep("^(" + keepF32 + ")$");
    std::string problem;
    if (!keep.isValid(problem)) {
      getOperation().emitError("keep-f32: ") << problem;
      return signalPassFailure();
    }
    if (failed(narrow(keepF32.empty() ? nullptr : &keep)))
      signalPassFailure();
  }
};
} // namespace
