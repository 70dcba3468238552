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
// block (StoredProduct.cpp, DeviceStoredProduct.cpp). Where there is no such
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

  func::FuncOp joinedKernel(KernelCallOp product, unsigned operand);
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

/// Returns the kernel of the product and of what makes its operand; null where
/// the target has none. Its arguments are the other operands, then those of the
/// maker.
func::FuncOp WeightRepeater::joinedKernel(KernelCallOp call, unsigned operand) {
  auto product = symbols.lookup<func::FuncOp>(call.getCallee());
  SmallVector<Operation *> views;
  Value value = call.getArgs()[operand];
  for (; value != belowViews(value); value = views.back()->getOperand(0))
    views.push_back(value.getDefiningOp());
  auto makerCall = value.getDefiningOp<KernelCallOp>();
  auto maker = symbols.lookup<func::FuncOp>(makerCall.getCallee());
  std::string key =
      (product.getSymName() + "/" + Twine(operand) + "/" + maker.getSymName())
          .str();
  llvm::raw_string_ostream text(key);
  for (Operation *view : views)
    text << "/" << view->getName() << view->getResult(0).getType();
  auto [known, isNew] = joined.try_emplace(key);
  if (!isNew)
    return known->second;
  OpBuilder builder(module.getContext());
  SmallVector<Type> types(call.getArgs().getTypes());
  types.erase(types.begin() + operand);
  llvm::append_range(types, makerCall.getArgs().getTypes());
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
  for (BlockArgument argument : maker.getArguments())
    mapping.map(argument, block->getArgument(next++));
  for (Operation &op : maker.front().without_terminator())
    builder.clone(op, mapping);
  Value made = mapping.lookup(maker.front().getTerminator()->getOperand(0));
  for (Operation *view : llvm::reverse(views)) {
    Operation *copy = builder.clone(*view);
    copy->setOperand(0, made);
    made = copy->getResult(0);
  }
  mapping.map(product.getArgument(operand), made);
  for (Operation &op : product.front())
    builder.clone(op, mapping);
  symbols.insert(kernel);
  ScopedDiagnosticHandler quiet(module.getContext(),
                                [](Diagnostic &) { return success(); });
  if (succeeded(planKernel(kernel, codegen)))
    return known->second = kernel;
  symbols.erase(kernel);
  return nullptr;
}

/// Makes what makes the product's factor part of its kernel, if the target has
/// one for that.
bool WeightRepeater::join(KernelCallOp call) {
  std::optional<unsigned> factor;
  for (OpOperand &use : call->getOpOperands()) {
    auto maker = belowViews(use.get()).getDefiningOp<KernelCallOp>();
    if (!maker || !repeated.contains(maker) || !multiplies(use))
      continue;
    if (factor || maker.getNumResults() != 1)
      return false;
    factor = use.getOperandNumber();
  }
  func::FuncOp kernel = factor ? joinedKernel(call, *factor) : func::FuncOp();
  if (!kernel)
    return false;
  SmallVector<Value> operands(call.getArgs());
  Value made = belowViews(operands[*factor]);
  operands.erase(operands.begin() + *factor);
  for (Value operand : made.getDefiningOp()->getOperands())
    operands.push_back(copyFor(operand, call));
  call.getArgsMutable().assign(operands);
  call.setCallee(kernel.getSymName());
  return true;
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
