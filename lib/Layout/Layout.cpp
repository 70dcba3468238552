//===- Layout.cpp - what convolutions touch becomes channels-last ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: library convolutions run at about twice the speed on channels-last
// activations, forward and backward; every change of layout in between costs a
// copy.
// Method: union-find connects the values that one op reads and writes point by
// point (elementwise ops, pooling, normalization, concat, pad, slice). A class
// with an activation of a convolution becomes channels-last as a whole. Then
// one pass over the ops sets result types and puts a copy where an op needs
// another order than its operand has; each copy is made once.
// Transposes of products' operands and results become views: a product reads
// and writes any strides.
// Guarantee: logical shapes and values stay; signatures stay row-major. The
// decision looks at the program alone.
// Complexity: near linear.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Layout/Passes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace ckopt;

namespace ckopt {
#define GEN_PASS_DEF_LAYOUTPASS
#include "ckopt/Layout/Passes.h.inc"
} // namespace ckopt

namespace {

class LayoutAssigner {
public:
  explicit LayoutAssigner(func::FuncOp function) : function(function) {}
  void run();

private:
  void connect(Operation *op);
  void rewrite(Operation *op);
  Value inOrderOf(Value value, RankedTensorType type, Operation *user);
  RankedTensorType wanted(Value value) const;
  void placeTransposes();

  func::FuncOp function;
  llvm::EquivalenceClasses<Value> classes;
  DenseSet<Value> lastLeaders;
  SmallVector<Value> activations;
  DenseMap<std::pair<Value, Type>, Value> converted;
};

} // namespace

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Returns whether the value is a tensor with channels and spatial dimensions.
static bool hasChannels(Value value) {
  int64_t rank = tensorType(value).getRank();
  return rank >= 3 && rank <= 5;
}

/// Returns the type in channels-last order; row-major where the two are the
/// same.
static RankedTensorType channelsLast(RankedTensorType type) {
  SmallVector<int64_t> order{0};
  for (int64_t d = 2; d < type.getRank(); ++d)
    order.push_back(d);
  order.push_back(1);
  SmallVector<int64_t> moved;
  for (int64_t d : order)
    if (type.getDimSize(d) != 1)
      moved.push_back(d);
  if (llvm::is_sorted(moved))
    return withOrder(type, llvm::to_vector(llvm::seq<int64_t>(type.getRank())));
  return withOrder(type, order);
}

static RankedTensorType rowMajor(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

static LayoutRole roleOf(Operation *op) {
  return cast<KernelOpInterface>(op).getLayoutRole();
}

/// Returns the values of a uniform op that share a layout: those with as many
/// elements as its largest value with channels, or, where shapes differ by
/// design (pooling, concat, pad, slice), those of the result's rank.
static SmallVector<Value> uniformValues(Operation *op) {
  SmallVector<Value> values;
  bool sameShape =
      cast<KernelOpInterface>(op).getKernelKind() == KernelKind::Elementwise;
  Value largest;
  for (Value value : llvm::concat<Value>(
           llvm::to_vector(llvm::map_range(
               op->getResults(), [](OpResult r) { return Value(r); })),
           llvm::to_vector(op->getOperands())))
    if (hasChannels(value) &&
        (!largest || tensorType(value).getNumElements() >
                         tensorType(largest).getNumElements()))
      largest = value;
  if (!largest)
    return values;
  auto fits = [&](Value value) {
    auto type = tensorType(value), best = tensorType(largest);
    return sameShape ? type.getShape() == best.getShape()
                     : type.getRank() == best.getRank();
  };
  for (Value result : op->getResults())
    if (fits(result))
      values.push_back(result);
  for (Value operand : op->getOperands())
    if (fits(operand))
      values.push_back(operand);
  return values;
}

/// Returns the operands and results of a convolution that are activations.
static SmallVector<Value> convActivations(Operation *op) {
  if (auto conv = dyn_cast<ConvOp>(op))
    return {conv.getInput(), conv.getOutput()};
  if (auto conv = dyn_cast<ConvInputGradOp>(op))
    return {conv.getGrad(), conv.getOutput()};
  auto conv = cast<ConvWeightGradOp>(op);
  return {conv.getGrad(), conv.getInput()};
}

void LayoutAssigner::connect(Operation *op) {
  switch (roleOf(op)) {
  case LayoutRole::Convolution:
    for (Value value : convActivations(op)) {
      classes.insert(value);
      activations.push_back(value);
    }
    break;
  case LayoutRole::Uniform: {
    SmallVector<Value> values = uniformValues(op);
    for (Value value : values)
      classes.unionSets(values.front(), value);
    break;
  }
  case LayoutRole::Any:
  case LayoutRole::RowMajor:
  case LayoutRole::Matrices:
    break;
  }
}

/// Returns the value's type in the layout that its class has.
RankedTensorType LayoutAssigner::wanted(Value value) const {
  auto type = rowMajor(tensorType(value));
  auto leader = classes.findLeader(value);
  return leader != classes.member_end() && lastLeaders.contains(*leader)
             ? channelsLast(type)
             : type;
}

Value LayoutAssigner::inOrderOf(Value value, RankedTensorType type,
                                Operation *user) {
  // Generated kernels compute a constant's elements where they need them; a
  // library reads them.
  auto kernel = dyn_cast<KernelOpInterface>(user);
  bool isRead = kernel && kernel.getLayoutRole() == LayoutRole::Convolution;
  bool isComputed = matchPattern(value, m_Constant()) && !isRead;
  if (value.getType() == type || isComputed)
    return value;
  Value &copy = converted[{value, type}];
  if (!copy) {
    OpBuilder builder(user);
    copy = RelayoutOp::create(builder, value.getLoc(), type, value);
  }
  return copy;
}

void LayoutAssigner::rewrite(Operation *op) {
  LayoutRole role = roleOf(op);
  SmallVector<Value> values;
  if (role == LayoutRole::Convolution)
    values = convActivations(op);
  else if (role == LayoutRole::Uniform)
    values = uniformValues(op);
  // All values of an op are in one class, so the layout of its largest one
  // decides.
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (llvm::is_contained(values, value))
      operand.set(inOrderOf(value, wanted(value), op));
    else if (role == LayoutRole::RowMajor || role == LayoutRole::Matrices ||
             role == LayoutRole::Convolution)
      operand.set(inOrderOf(value, rowMajor(tensorType(value)), op));
  }
  for (Value result : op->getResults()) {
    if (llvm::is_contained(values, result))
      result.setType(wanted(result));
    else if (role == LayoutRole::Any && !matchPattern(op, m_Constant()))
      result.setType(wanted(result));
  }
}

/// Returns whether the user reads the operand in place with these strides.
static bool readsInPlace(OpOperand &use, ArrayRef<int64_t> strides) {
  auto kernel = dyn_cast<KernelOpInterface>(use.getOwner());
  return kernel && kernel.getLayoutRole() == LayoutRole::Matrices &&
         kernel.acceptsStrides(/*isResult=*/false, use.getOperandNumber(),
                               strides);
}

/// Turns a transpose between a product (or attention) and another op into a
/// view, where the product can read (or write) its operand (or result) with the
/// other side's strides. Attention heads, for example, are then never copied.
static void placeTranspose(TransposeOp op) {
  auto type = op.getType(), input = tensorType(op.getInput());
  if (!isRowMajor(type) || !isRowMajor(input))
    return;
  ArrayRef<int64_t> permutation = op.getPermutation();
  SmallVector<int64_t> inverse(permutation.size());
  for (auto [i, dim] : llvm::enumerate(permutation))
    inverse[dim] = i;
  auto product = op.getInput().getDefiningOp<KernelOpInterface>();
  RankedTensorType written = withOrder(input, permutation);
  SmallVector<int64_t> strides = getElementStrides(written);
  if (product && product.getLayoutRole() == LayoutRole::Matrices &&
      product.acceptsStrides(/*isResult=*/true,
                             cast<OpResult>(op.getInput()).getResultNumber(),
                             strides) &&
      llvm::all_of(op.getInput().getUses(), [&](OpOperand &use) {
        return use.getOwner() == op || readsInPlace(use, strides);
      })) {
    op.getInput().setType(written);
    return;
  }
  RankedTensorType read = withOrder(type, inverse);
  strides = getElementStrides(read);
  if (!op->use_empty() && llvm::all_of(op->getUses(), [&](OpOperand &use) {
        return readsInPlace(use, strides);
      }))
    op.getOutput().setType(read);
}

void LayoutAssigner::placeTransposes() {
  for (auto op : function.getOps<TransposeOp>())
    placeTranspose(op);
}

void LayoutAssigner::run() {
  Block &block = function.front();
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  for (Operation *op : ops)
    connect(op);
  if (activations.empty()) {
    placeTransposes();
    return;
  }
  for (Value value : activations)
    lastLeaders.insert(classes.getLeaderValue(value));
  for (Operation *op : ops)
    rewrite(op);
  Operation *terminator = block.getTerminator();
  for (OpOperand &operand : terminator->getOpOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.get().getType()))
      operand.set(inOrderOf(operand.get(), rowMajor(type), terminator));
  placeTransposes();
}

namespace {
struct LayoutPass : ckopt::impl::LayoutPassBase<LayoutPass> {
  using LayoutPassBase::LayoutPassBase;

  LogicalResult check(func::FuncOp function) {
    if (!function.getBody().hasOneBlock())
      return emitError(function.getLoc(),
                       "layout needs a function of one block");
    LogicalResult result = success();
    for (Operation &op : function.front().without_terminator())
      if (!isa<KernelOpInterface>(op))
        result = op.emitError("is no ckopt op that layout knows; run layout "
                              "before fuse");
    return result;
  }

  void runOnOperation() override {
    if (layout != "channels-last" && layout != "none") {
      emitError(getOperation().getLoc())
          << "layout: unknown layout '" << layout
          << "'; known are channels-last and none";
      return signalPassFailure();
    }
    if (layout == "none")
      return;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isDeclaration() || function->hasAttr(attrs::kKernel) ||
          (!functions.empty() &&
           !llvm::is_contained(functions, function.getSymName().str())))
        continue;
      if (failed(check(function)))
        return signalPassFailure();
      LayoutAssigner(function).run();
    }
  }
};
} // namespace
