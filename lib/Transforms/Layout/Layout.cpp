//===- Layout.cpp - what convolutions touch becomes channels-last ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: library convolutions run at about twice the speed on channels-last
// activations, forward and backward; every change of layout in between costs a
// copy. Weights need one order at rest that all their users read.
// Method: union-find connects the values that one op reads and writes point by
// point (elementwise ops, updates, pooling, normalization, concat, pad, slice).
// A class with an activation of a convolution becomes channels-last as a whole.
// So does a class with a weight of one, and with it gradients, momenta and
// averages, unless an op reads or makes one of its values row-major (a product,
// a reshape): weights lie as [out, window, in]. Named arguments and results are
// the program's edges, where the runtime converts: they lie as their classes
// do. All functions must agree on an argument; a fixed point finds the names
// that stay row-major. Then one pass over the ops sets result types and puts a
// copy where an op needs another order than its operand has; each copy is made
// once.
// Guarantee: logical shapes and values stay, and so does what has no name. The
// decision looks at the program alone.
// Complexity: near linear in the ops, times the rounds of the fixed point
// (two, in all programs seen).
//
//===----------------------------------------------------------------------===//
#include "LayoutAssigner.h"
#include "RowPlanes.h"
#include "Transposes.h"
#include "ckopt/Layout/Passes.h"
#include "ckopt/Support/Debug.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::layout;

namespace ckopt {
#define GEN_PASS_DEF_LAYOUTPASS
#include "ckopt/Layout/Passes.h.inc"
} // namespace ckopt

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static RankedTensorType rowMajor(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), type.getElementType());
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
    debug::count(debug::Counter::LayoutCopies);
    debug::log(debug::Part::Layout, [&](llvm::raw_ostream &os) {
      os << "copies " << value.getType() << " to " << type << " for "
         << user->getName();
    });
  }
  return copy;
}

void LayoutAssigner::rewrite(Operation *op) {
  if (isUpdate(op))
    return rewriteUpdate(op);
  LayoutRole role = roleOf(op);
  SmallVector<Value> values;
  if (role == LayoutRole::Convolution)
    llvm::append_range(values, cast<ContractionOpInterface>(op).getConvolved());
  else if (role == LayoutRole::Uniform)
    values = uniformValues(op);
  else if (role == LayoutRole::Pairs)
    llvm::append_range(values, op->getOperands());
  // All values of an op but a convolution's are in one class, so the layout of
  // its largest one decides.
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (llvm::is_contained(values, value))
      operand.set(inOrderOf(value, wanted(value), op));
    else if (role == LayoutRole::RowMajor || role == LayoutRole::Matrices)
      operand.set(inOrderOf(value, rowMajor(tensorType(value)), op));
  }
  for (Value result : op->getResults()) {
    if (llvm::is_contained(values, result))
      result.setType(wanted(result));
    else if (role == LayoutRole::Any && !matchPattern(op, m_Constant()))
      result.setType(wanted(result));
    else if (role == LayoutRole::Pairs) {
      Value operand = op->getOperand(cast<OpResult>(result).getResultNumber());
      result.setType(
          withOrder(tensorType(result), getPhysicalOrder(tensorType(operand))));
    }
  }
}

/// Updates take over the bytes of states, so they work in the states' order.
void LayoutAssigner::rewriteUpdate(Operation *op) {
  auto pairs = cast<KernelOpInterface>(op).getUpdatePairs();
  RankedTensorType state = tensorType(op->getOperand(pairs.front().first));
  auto inOrder = [&](Value value) {
    return state.getRank() == tensorType(value).getRank()
               ? withOrder(tensorType(value), getPhysicalOrder(state))
               : rowMajor(tensorType(value));
  };
  for (OpOperand &operand : op->getOpOperands())
    operand.set(inOrderOf(operand.get(), inOrder(operand.get()), op));
  for (Value result : op->getResults())
    result.setType(inOrder(result));
}

/// Sets the types of results and of the function.
void LayoutAssigner::rewriteEdges() {
  Operation *terminator = function.front().getTerminator();
  for (auto [i, operand] : llvm::enumerate(terminator->getOpOperands())) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!type)
      continue;
    auto index = function.getResultAttrOfType<IntegerAttr>(i, attrs::kUpdates);
    if (index)
      type = cast<RankedTensorType>(
          function.getArgument(index.getInt()).getType());
    else if (!function.getResultAttr(i, attrs::kName))
      type = rowMajor(type);
    operand.set(inOrderOf(operand.get(), type, terminator));
  }
  function.setFunctionType(FunctionType::get(
      function.getContext(), function.front().getArgumentTypes(),
      terminator->getOperandTypes()));
}

void LayoutAssigner::run(const Names &refused, const Names &chosen) {
  decide(refused, chosen);
  debug::log(debug::Part::Layout, [&](llvm::raw_ostream &os) {
    os << "@" << function.getSymName() << ": " << lastLeaders.size() << " of "
       << classes.getNumClasses() << " classes of values become channels-last";
    for (BlockArgument argument : function.getArguments())
      if (StringRef name = edgeName(argument);
          hasChannels(argument) && chosen.contains(name))
        os << ", argument " << name;
  });
  if (!lastLeaders.empty()) {
    for (BlockArgument argument : function.getArguments())
      if (hasChannels(argument) && chosen.contains(edgeName(argument)))
        argument.setType(channelsLast(tensorType(argument)));
    for (Operation &op :
         llvm::make_early_inc_range(function.front().without_terminator()))
      rewrite(&op);
    rewriteEdges();
  }
  placeTransposes(function);
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

  bool isWanted(func::FuncOp function) const {
    return !function.isDeclaration() && !function->hasAttr(attrs::kKernel) &&
           (functions.empty() ||
            llvm::is_contained(functions, function.getSymName().str()));
  }

  /// Assigns layouts to the functions, which agree on arguments of one name.
  void assign(ArrayRef<func::FuncOp> wanted, Names refused) {
    SmallVector<std::unique_ptr<LayoutAssigner>> assigners;
    for (func::FuncOp function : wanted) {
      hoistTransposes(function);
      assigners.push_back(std::make_unique<LayoutAssigner>(function));
    }
    Names chosen;
    auto grow = [&](Names &names, auto add) {
      unsigned before;
      do {
        before = names.size();
        for (auto &assigner : assigners)
          add(*assigner);
      } while (names.size() != before);
    };
    grow(refused, [&](LayoutAssigner &a) { a.refuse(refused); });
    grow(chosen, [&](LayoutAssigner &a) { a.choose(refused, chosen); });
    for (auto &assigner : assigners)
      assigner->run(refused, chosen);
  }

  void runOnOperation() override {
    if (layout != "channels-last" && layout != "none") {
      emitError(getOperation().getLoc())
          << "layout: unknown layout '" << layout
          << "'; known are channels-last and none";
      return signalPassFailure();
    }
    SmallVector<func::FuncOp> wanted;
    Names others; // names that a function has which stays as it is
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (isWanted(function)) {
        if (failed(check(function)))
          return signalPassFailure();
        wanted.push_back(function);
        continue;
      }
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (auto name = function.getArgAttrOfType<StringAttr>(i, attrs::kName))
          others.insert(name.getValue());
    }
    if (layout != "none")
      assign(wanted, std::move(others));
    if (planes) // last: whoever assigns layouts takes the order for an accident
      llvm::for_each(wanted, placeRowsInPlanes);
    if (layout == "none")
      return;
    bool hasStep = getOperation().lookupSymbol("step");
    for (func::FuncOp function : wanted)
      if (!hasStep || function.getSymName() == "step")
        remarkCopies(function);
  }
};
} // namespace
