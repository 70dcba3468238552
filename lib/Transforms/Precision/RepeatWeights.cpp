//===- RepeatWeights.cpp - narrow weights are wide for products alone -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a frozen weight that is stored in 16, 8 or 4 bits, or a trained one
// of bf16, is made wide for the products that read it. One copy for all of them
// lives from the forward to the backward pass, and all copies together take
// more bytes than a wide model.
//
// Method: what makes a factor of a product from such weights and constants
// alone becomes part of the product's kernel, which makes the factor block by
// block (StoredProduct.cpp, DeviceStoredProduct.cpp); that may be several
// kernels, one of which rounds to 16 bits and the next widens for a library
// that multiplies f32 alone. Where there is no such
// kernel, and for other readers, the factor is made just before its first
// reader, and again for a reader that lies more than a few products behind the
// last one, with the calls and views that lead to it.
//
// Guarantee: the rules depend on the program and the target alone, never on a
// budget; repeated calls give the same bits. Complexity: O(ops), one plan of
// each kernel, and one walk up the maker of each copy.
//
//===----------------------------------------------------------------------===//
#include "NarrowKernel.h"
#include "StorageTypes.h"
#include "ckopt/CodeGen/Kernels.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Precision/Passes.h"
#include "mlir/IR/IRMapping.h"

#include <map>

namespace ckopt {
#define GEN_PASS_DEF_REPEATWEIGHTSPASS
#include "ckopt/Precision/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

namespace {

class WeightRepeater {
public:
  WeightRepeater(ModuleOp module, const CodegenOptions &codegen)
      : module(module), symbols(module), codegen(codegen) {}
  void run(func::FuncOp function);

private:
  bool isFixed(Value value) const;
  bool isProduct(Operation *op) const;
  bool multiplies(OpOperand &use) const;
  void collect(func::FuncOp function);
  bool isNear(Value copy) const;
  Value copyFor(Value value, Operation *reader);

  /// Results of kernels and views that lead to a factor of a product, and what
  /// these read.
  struct Factor {
    SetVector<Value> made, leaves;
  };
  SmallVector<Value> operandsOf(OpResult value) const;
  void findMakers(Value value, bool whole, Factor &factor) const;
  std::string describe(const Factor &factor) const;
  void copyMakers(const Factor &factor, OpBuilder &builder,
                  IRMapping &mapping) const;
  func::FuncOp joinedKernel(KernelCallOp product, unsigned operand,
                            const Factor &factor);
  bool join(KernelCallOp product);

  ModuleOp module;
  SymbolTable symbols;
  const CodegenOptions &codegen;
  /// Kernels of products with what makes a factor; null: there is none.
  std::map<std::string, func::FuncOp> joined;
  /// Ops whose results follow from narrow weights and constants alone.
  DenseSet<Operation *> fixed;
  /// Those that products read, and what leads to them.
  DenseSet<Operation *> repeated;
  /// The last copy of a result, and the number of products before its last
  /// reader.
  DenseMap<Value, std::pair<Value, int64_t>> copies;
  int64_t product = 0;
};

} // namespace

/// Returns whether the value follows from weights alone: from frozen ones, or
/// from one that is stored in fewer bits and updated behind all who read it.
bool WeightRepeater::isFixed(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return fixed.contains(value.getDefiningOp());
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return isStoredForGood(argument) ||
         (argumentRole(function, argument.getArgNumber()) ==
              roles::kParameter &&
          getElementTypeOrSelf(argument).isBF16());
}

bool WeightRepeater::isProduct(Operation *op) const {
  auto call = dyn_cast<KernelCallOp>(op);
  if (!call)
    return false;
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  return isa<ContractionOpInterface>(kernel.front().front());
}

bool WeightRepeater::multiplies(OpOperand &use) const {
  if (!isProduct(use.getOwner()))
    return false;
  auto call = cast<KernelCallOp>(use.getOwner());
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  auto op = cast<ContractionOpInterface>(kernel.front().front());
  return op.getContractionKind() != ContractionKind::Attention &&
         !isAddend(kernel, use.getOperandNumber());
}

void WeightRepeater::collect(func::FuncOp function) {
  for (Operation &op : function.front().without_terminator()) {
    auto call = dyn_cast<KernelCallOp>(op);
    bool copies =
        call ? call.getUpdates().empty() &&
                   kernelKind(symbols.lookup<func::FuncOp>(call.getCallee())) ==
                       "elementwise"
             : opKind(&op) == KernelKind::View;
    if (copies && op.getNumOperands() &&
        llvm::all_of(op.getOperands(),
                     [&](Value operand) { return isFixed(operand); }))
      fixed.insert(&op);
  }
  for (Operation &op : llvm::reverse(function.front()))
    if (fixed.contains(&op) && llvm::any_of(op.getUses(), [&](OpOperand &use) {
          return repeated.contains(use.getOwner()) || multiplies(use);
        }))
      repeated.insert(&op);
}

/// Returns whether the copy may serve the next reader, too.
bool WeightRepeater::isNear(Value copy) const {
  auto found = copies.find(copy);
  return found != copies.end() && product - found->second.second <= kKeptCasts;
}

/// Returns what the reader reads in place of the value: the last copy, or a new
/// one just before it.
Value WeightRepeater::copyFor(Value value, Operation *reader) {
  Operation *op = value.getDefiningOp();
  if (!op || !repeated.contains(op))
    return value;
  if (!isNear(value)) {
    OpBuilder builder(reader);
    IRMapping operands;
    for (Value operand : op->getOperands())
      operands.map(operand, copyFor(operand, reader));
    Operation *copy = builder.clone(*op, operands);
    for (auto [old, made] :
         llvm::zip_equal(op->getResults(), copy->getResults()))
      copies[old] = {made, product};
  }
  auto &[copy, last] = copies[value];
  last = product;
  return copy;
}

/// Returns what of a kernel makes one of its results, in order.
static SmallVector<Operation *> opsOf(func::FuncOp kernel, unsigned result) {
  Operation *end = kernel.front().getTerminator();
  DenseSet<Value> needed = {end->getOperand(result)};
  SmallVector<Operation *> ops;
  for (Operation &op : llvm::reverse(kernel.front().without_terminator()))
    if (llvm::any_of(op.getResults(),
                     [&](Value made) { return needed.contains(made); })) {
      needed.insert_range(op.getOperands());
      ops.push_back(&op);
    }
  std::reverse(ops.begin(), ops.end());
  return ops;
}

/// Returns what the value follows from: of a kernel that makes several, as
/// small ones are merged, what this result does.
SmallVector<Value> WeightRepeater::operandsOf(OpResult value) const {
  auto call = dyn_cast<KernelCallOp>(value.getOwner());
  if (!call)
    return llvm::to_vector(value.getOwner()->getOperands());
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  DenseSet<Value> read;
  for (Operation *op : opsOf(kernel, value.getResultNumber()))
    read.insert_range(op->getOperands());
  SmallVector<Value> operands;
  for (auto [argument, operand] :
       llvm::zip_equal(kernel.getArguments(), call.getArgs()))
    if (read.contains(argument))
      operands.push_back(operand);
  return operands;
}

/// Adds what makes the value to `made`, each behind what it follows from, and
/// what these read to `leaves`. With `whole` that is all that follows from
/// weights, else one kernel's result and its views.
void WeightRepeater::findMakers(Value value, bool whole, Factor &factor) const {
  auto call = belowViews(value).getDefiningOp<KernelCallOp>();
  if (!call || !repeated.contains(call)) {
    factor.leaves.insert(value);
    return;
  }
  if (factor.made.contains(value))
    return;
  for (Value operand : operandsOf(cast<OpResult>(value)))
    if (value.getDefiningOp() != call || whole)
      findMakers(operand, whole, factor);
    else
      factor.leaves.insert(operand);
  factor.made.insert(value);
}

/// Describes what makes a factor, so that equal factors share a kernel.
std::string WeightRepeater::describe(const Factor &factor) const {
  std::string key;
  llvm::raw_string_ostream text(key);
  for (Value value : factor.made) {
    auto result = cast<OpResult>(value);
    auto call = dyn_cast<KernelCallOp>(result.getOwner());
    text << "/"
         << (call ? call.getCallee()
                  : result.getOwner()->getName().getStringRef())
         << "#" << result.getResultNumber() << value.getType();
    for (Value operand : operandsOf(result))
      if (auto *leaf = llvm::find(factor.leaves, operand);
          leaf != factor.leaves.end())
        text << " leaf " << leaf - factor.leaves.begin();
      else
        text << " " << llvm::find(factor.made, operand) - factor.made.begin();
  }
  return key;
}

/// Copies what makes a factor to the builder's point; `mapping` knows the
/// leaves.
void WeightRepeater::copyMakers(const Factor &factor, OpBuilder &builder,
                                IRMapping &mapping) const {
  for (Value value : factor.made) {
    auto result = cast<OpResult>(value);
    auto call = dyn_cast<KernelCallOp>(result.getOwner());
    if (!call) {
      builder.clone(*result.getOwner(), mapping);
      continue;
    }
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    IRMapping inner;
    for (auto [argument, operand] :
         llvm::zip_equal(kernel.getArguments(), call.getArgs()))
      inner.map(argument, mapping.lookupOrNull(operand));
    unsigned number = result.getResultNumber();
    for (Operation *op : opsOf(kernel, number))
      builder.clone(*op, inner);
    mapping.map(value, inner.lookup(
                           kernel.front().getTerminator()->getOperand(number)));
  }
}

/// Tells whether two kernels differ at most in their names.
static bool isSameKernel(func::FuncOp a, func::FuncOp b) {
  return a.getFunctionType() == b.getFunctionType() &&
         kernelKind(a) == kernelKind(b) &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}

/// Returns the kernel of the product and of what makes its operand; null where
/// the target has none. Its arguments are the other operands, then the leaves.
func::FuncOp WeightRepeater::joinedKernel(KernelCallOp call, unsigned operand,
                                          const Factor &factor) {
  auto product = symbols.lookup<func::FuncOp>(call.getCallee());
  std::string key =
      (product.getSymName() + "/" + Twine(operand) + describe(factor)).str();
  auto [known, isNew] = joined.try_emplace(key);
  if (!isNew)
    return known->second;
  OpBuilder builder(module.getContext());
  SmallVector<Type> types(call.getArgs().getTypes());
  types.erase(types.begin() + operand);
  for (Value leaf : factor.leaves)
    types.push_back(leaf.getType());
  auto kernel = func::FuncOp::create(
      builder, product.getLoc(), (product.getSymName() + "_stored").str(),
      builder.getFunctionType(types, product.getResultTypes()));
  kernel.setPrivate();
  kernel->setDiscardableAttrs(product->getDiscardableAttrDictionary());
  Block *block = kernel.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  IRMapping mapping;
  unsigned next = 0;
  for (BlockArgument argument : product.getArguments())
    if (argument.getArgNumber() != operand)
      mapping.map(argument, block->getArgument(next++));
  for (Value leaf : factor.leaves)
    mapping.map(leaf, block->getArgument(next++));
  copyMakers(factor, builder, mapping);
  mapping.map(product.getArgument(operand),
              mapping.lookup(call.getArgs()[operand]));
  for (Operation &op : product.front())
    builder.clone(op, mapping);
  for (const auto &[other, same] : joined) // of merged kernels' other results
    if (same && isSameKernel(same, kernel)) {
      kernel.erase();
      return known->second = same;
    }
  symbols.insert(kernel);
  ScopedDiagnosticHandler quiet(module.getContext(),
                                [](Diagnostic &) { return success(); });
  if (succeeded(planKernel(kernel, codegen)))
    return known->second = kernel;
  symbols.erase(kernel);
  return nullptr;
}

/// Makes what makes the product's factor part of its kernel, if the target has
/// one for that: all of it, or the last kernel alone.
bool WeightRepeater::join(KernelCallOp call) {
  std::optional<unsigned> number;
  for (OpOperand &use : call->getOpOperands()) {
    auto maker = belowViews(use.get()).getDefiningOp<KernelCallOp>();
    if (!maker || !repeated.contains(maker) || !multiplies(use))
      continue;
    if (number)
      return false;
    number = use.getOperandNumber();
  }
  if (!number)
    return false;
  for (bool whole : {true, false}) {
    Factor factor;
    findMakers(call.getArgs()[*number], whole, factor);
    func::FuncOp kernel = joinedKernel(call, *number, factor);
    if (!kernel)
      continue;
    SmallVector<Value> operands(call.getArgs());
    operands.erase(operands.begin() + *number);
    for (Value leaf : factor.leaves)
      operands.push_back(copyFor(leaf, call));
    call.getArgsMutable().assign(operands);
    call.setCallee(kernel.getSymName());
    return true;
  }
  return false;
}

void WeightRepeater::run(func::FuncOp function) {
  fixed.clear();
  repeated.clear();
  copies.clear();
  product = 0;
  collect(function);
  if (repeated.empty())
    return;
  SmallVector<Operation *> readers;
  for (Operation &op : function.front())
    if (!repeated.contains(&op))
      readers.push_back(&op);
  for (Operation *reader : readers) {
    bool multiplies = isProduct(reader);
    product += multiplies;
    if (multiplies && join(cast<KernelCallOp>(reader)))
      continue;
    for (OpOperand &operand : reader->getOpOperands())
      operand.set(copyFor(operand.get(), reader));
  }
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(function.front())))
    if (repeated.contains(&op) && op.use_empty())
      op.erase();
}

namespace {
struct RepeatWeights : ckopt::impl::RepeatWeightsPassBase<RepeatWeights> {
  using RepeatWeightsPassBase::RepeatWeightsPassBase;

  /// Of the code that is tried to see how it vectorizes.
  void getDependentDialects(DialectRegistry &registry) const override {
    RepeatWeightsPassBase::getDependentDialects(registry);
    registerKernelDialects(registry);
  }

  LogicalResult repeat() {
    KernelSettings settings;
    settings.target = target;
    settings.threads = int32_t(threads);
    settings.libraryWorkspace = libraryWorkspace;
    settings.cpuClass = cpuClass;
    settings.libraryTable = libraryTable;
    auto codegen = codegenOptions(getOperation(), settings);
    if (failed(codegen))
      return failure();
    WeightRepeater repeater(getOperation(), *codegen);
    for (func::FuncOp function : findCallers(getOperation()))
      repeater.run(function);
    eraseUnusedKernels(getOperation());
    return success();
  }

  void runOnOperation() override {
    if (failed(repeat()))
      signalPassFailure();
  }
};
} // namespace
