//===- JoinedKernel.cpp - horizontally fused kernels of several shapes ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: launching a kernel for each of many small tensors costs more than
// its arithmetic. Method: one launch has the blocks of all parts (FlatParts.h),
// one after another. A block finds the number of its part by a binary search
// over the first blocks, in branches that all its threads take together. A
// switch over it gives the part's addresses and length (from nested branches
// LLVM would make selects, which keep all addresses in registers). Then there
// is one body for all parts; a thread computes one vector, as in an elementwise
// kernel. Guarantee: the bits are those of the separate kernels.
//
//===----------------------------------------------------------------------===//
#include "Kinds/GeneratedKernel.h"
#include "ckopt/Analysis/FlatParts.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

namespace {

class JoinedKernel final : public GeneratedKernel {
public:
  using GeneratedKernel::GeneratedKernel;
  LogicalResult plan() override;
  LogicalResult emit(ModuleOp into) override;

private:
  func::FuncOp makeBody(OpBuilder &builder);
  SmallVector<Value> describe(Emitter &e, size_t part);
  Value find(Emitter &e, Value block, size_t low, size_t high);
  void emitPoint(Emitter &e, AffineExpr at);

  SmallVector<FlatPart> parts;
  SmallVector<int64_t> firstBlocks; ///< of each part
};

} // namespace

LogicalResult JoinedKernel::plan() {
  if (options.target->traits.form != StageForm::Blocks)
    return kernel.emitError("of kind 'joined' has code in blocks alone");
  parts = findFlatParts(kernel);
  if (parts.empty())
    return kernel.emitError("is not flat, so that its parts cannot be joined");
  int64_t blocks = 0;
  for (const FlatPart &part : parts) {
    if (part.form != parts.front().form)
      return kernel.emitError("joins parts that compute different things");
    firstBlocks.push_back(blocks);
    blocks += llvm::divideCeil(part.elements, kBlockThreads * int64_t(lanes));
  }
  addLaunch(blocks, kBlockThreads, /*together=*/true);
  return success();
}

/// Makes the function of one part. It has one dimension that is long enough for
/// all parts; tensors of one element have no dimension. Reshapes are removed.
func::FuncOp JoinedKernel::makeBody(OpBuilder &builder) {
  const FlatPart &part = parts.front();
  int64_t longest = 0;
  for (const FlatPart &other : parts)
    longest = std::max(longest, other.elements);
  auto flat = [&](Type type) -> Type {
    SmallVector<int64_t, 1> shape;
    if (!isOneElement(type))
      shape.push_back(longest);
    return RankedTensorType::get(shape, getElementTypeOrSelf(type));
  };
  SmallVector<Type> arguments, results;
  for (unsigned a : part.arguments)
    arguments.push_back(flat(kernel.getArgumentTypes()[a]));
  for (unsigned r : part.results)
    results.push_back(flat(kernel.getResultTypes()[r]));
  auto body = func::FuncOp::create(builder, kernel.getLoc(), "body",
                                   builder.getFunctionType(arguments, results));
  builder.setInsertionPointToStart(body.addEntryBlock());
  IRMapping mapping;
  for (auto [i, a] : llvm::enumerate(part.arguments))
    mapping.map(kernel.getArgument(a), body.getArgument(i));
  for (Operation *op : part.ops) {
    if (isa<ReshapeOp>(op)) {
      mapping.map(op->getResult(0), mapping.lookup(op->getOperand(0)));
      continue;
    }
    Operation *copy = builder.clone(*op, mapping);
    for (Value result : copy->getResults())
      result.setType(flat(result.getType()));
    if (auto constant = dyn_cast<ConstantOp>(copy))
      constant.setValueAttr(
          DenseElementsAttr::get(cast<ShapedType>(constant.getType()),
                                 cast<DenseElementsAttr>(constant.getValue())
                                     .getSplatValue<Attribute>()));
  }
  SmallVector<Value> values;
  for (unsigned r : part.results)
    values.push_back(mapping.lookup(terminator.getOperand(r)));
  func::ReturnOp::create(builder, kernel.getLoc(), values);
  return body;
}

/// Returns the addresses of a part's arguments and results, then its length and
/// first block.
SmallVector<Value> JoinedKernel::describe(Emitter &e, size_t part) {
  SmallVector<Value> values;
  Block &entry = e.stage.front();
  for (unsigned a : parts[part].arguments)
    values.push_back(entry.getArgument(a));
  for (unsigned r : parts[part].results)
    values.push_back(entry.getArgument(kernel.getNumArguments() + r));
  values.push_back(e.index(parts[part].elements));
  values.push_back(e.index(firstBlocks[part]));
  return values;
}

/// Returns the number of the block's part, which is one of [low, high).
Value JoinedKernel::find(Emitter &e, Value block, size_t low, size_t high) {
  if (high - low == 1)
    return e.index(int64_t(low));
  size_t middle = (low + high) / 2;
  Value below =
      e.cmpi(arith::CmpIPredicate::slt, block, e.index(firstBlocks[middle]));
  return e
      .ifThen(
          below,
          [&] { return SmallVector<Value>{find(e, block, low, middle)}; },
          [&] { return SmallVector<Value>{find(e, block, middle, high)}; })
      .front();
}

void JoinedKernel::emitPoint(Emitter &e, AffineExpr at) {
  SmallVector<Value> elements;
  auto results = e.kernel.front().getTerminator()->getOperands();
  for (Value result : results)
    elements.push_back(e.emit(beforeRounding(result), at));
  for (auto [r, element] : llvm::enumerate(elements))
    e.store(unsigned(r), cast<RankedTensorType>(results[r].getType()), at,
            element);
}

LogicalResult JoinedKernel::emit(ModuleOp into) {
  OwningOpRef<ModuleOp> holder = ModuleOp::create(kernel.getLoc());
  OpBuilder builder(ctx);
  builder.setInsertionPointToEnd(holder->getBody());
  func::FuncOp body = makeBody(builder);
  auto emitBlock = [&](Emitter &e, Value block) {
    SmallVector<SmallVector<Value>> each;
    for (size_t i = 0; i < parts.size(); ++i)
      each.push_back(describe(e, i));
    SmallVector<Value> chosen = e.choose(find(e, block, 0, parts.size()), each);
    Value own = e.sub(block, chosen.pop_back_val()),
          length = chosen.pop_back_val();
    e.setArguments(chosen);
    int64_t width = lanes;
    Value first = e.mul(own, e.index(kBlockThreads * width));
    e.forThreads(kBlockThreads, [&](Value thread) {
      Value low = e.add(first, e.mul(thread, e.index(width)));
      auto scalars = [&] {
        e.forLoop(low, length, 1, {}, [&](Value iv, ValueRange) {
          emitPoint(e, e.addDim(iv));
          return SmallVector<Value>();
        });
        return SmallVector<Value>();
      };
      if (width == 1) {
        scalars();
        return;
      }
      Value end = e.add(low, e.index(width));
      auto vector = [&] {
        emitPoint(e, e.addDim(low, /*lane=*/true));
        return SmallVector<Value>();
      };
      e.ifThen(e.cmpi(arith::CmpIPredicate::sle, end, length), vector, scalars);
    });
  };
  return emitLaunch(into, 0, emitBlock, body);
}

std::unique_ptr<GeneratedKernel>
codegen::makeJoinedKernel(func::FuncOp kernel, const CodegenOptions &options) {
  return std::make_unique<JoinedKernel>(kernel, options);
}
