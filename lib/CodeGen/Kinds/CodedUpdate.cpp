//===- CodedUpdate.cpp - updates of states in codes -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a state in codes has a scale for each row of some hundred numbers,
// which is known only when all new numbers of the row are. To compute them
// twice costs more than all else of an update, and to store them costs the
// bytes that codes save.
//
// Method: a row at a time. One pass computes all results of its points, stores
// what is no state in codes, and finds the largest magnitudes; the new numbers
// of such states lie on the stack (on a GPU, where a block does a row, in
// registers) until a second pass codes them. Magnitudes are compared as
// integers, which grow with them; NaN is the largest.
//
// Guarantee: what is stored for a point depends on its row alone, never on
// threads or parts. Time: memory is read once.
//
//===----------------------------------------------------------------------===//
#include "Device/BlockNest.h"
#include "Emit/ColumnCache.h"
#include "Emit/DynamicCodes.h"
#include "Emit/Nest.h"
#include "GeneratedKernel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;

/// The smallest scale.
static constexpr double kLeastScale = 1e-12;

namespace {

class CodedUpdate : public FormedKernel, private LoopRoles {
public:
  using FormedKernel::FormedKernel;

protected:
  LogicalResult analyze() override;
  LogicalResult planRanges() override;
  LogicalResult planBlocks() override;
  LogicalResult emitRanges(ModuleOp into) override;
  LogicalResult emitBlocks(ModuleOp into) override;

private:
  void emitRow(Emitter &e, PointNest &nest, ArrayRef<AffineExpr> at);
  void storeResult(Emitter &e, Value result, Index index, Value element);
  Value newNumber(Emitter &e, PointNest &nest, size_t state, Index index,
                  bool isFirst);

  SmallVector<AssignCodesOp> states;
  SmallVector<Value> others; ///< results that are no state in codes
  std::optional<Domain> domain;
  SmallVector<Value> buffers; ///< new numbers of a row; none on a GPU
  int64_t count = 1, length = 0;
  // Of a launch.
  int64_t threads = 0, keptVectors = 0;
  bool vectors = false;
};

} // namespace

LogicalResult CodedUpdate::analyze() {
  for (Value result : terminator.getOperands()) {
    auto op = result.getDefiningOp<AssignCodesOp>();
    if (!op)
      others.push_back(result);
    else if (!llvm::is_contained(states, op))
      states.push_back(op);
  }
  auto type = cast<RankedTensorType>(states.front().getNewCodes().getType());
  Accesses accesses;
  SmallVector<AffineExpr> point = identityIndex(type.getRank(), ctx);
  auto addResult = [&](Value made, Value result) {
    auto own = cast<RankedTensorType>(result.getType());
    accesses.addUse(own, point);
    accesses.add(made, point);
    return own.getShape() == type.getShape();
  };
  for (Value result : others)
    if (!addResult(result, result))
      return kernel.emitError("results of an update of states in codes must "
                              "have one shape: ")
             << type << " and " << result.getType();
  for (AssignCodesOp op : states)
    if (!addResult(op.getValue(), op.getNewCodes()))
      return op.emitError("must have the shape of others in its kernel");
  if (accesses.unsupported)
    return accesses.unsupported->emitOpError(
        "cannot be part of an update of states in codes");
  findReuse(accesses, point);
  SmallVector<int> classes{0, 1};
  domain.emplace(type.getShape(), getPhysicalOrder(type), classes,
                 openDims(type.getShape()), accesses, ctx);
  LoopRoles::operator=(domain->roles(classes));
  if (!rows)
    return kernel.emitError("states in codes must be row-major");
  count = type.getDimSize(0);
  length = type.getDimSize(1);
  return success();
}

LogicalResult CodedUpdate::planRanges() {
  addStage(count, kRangeElements / std::max<int64_t>(length, 1));
  return success();
}

LogicalResult CodedUpdate::planBlocks() {
  vectors = length % int64_t(lanes) == 0;
  std::tie(threads, keptVectors) =
      BlockNest::keepingRows(length, vectors ? int64_t(lanes) : 1);
  std::string reason;
  if (!vectors)
    reason = "rows of " + std::to_string(length) + " elements are unaligned";
  addLaunch(count, threads, /*together=*/true, reason);
  return success();
}

LogicalResult CodedUpdate::emitRanges(ModuleOp into) {
  return emitStage(into, 0, [&](Emitter &e) {
    for (size_t i = 0; i < states.size(); ++i)
      buffers.push_back(stackBuffer(e, e.b.getF32Type(), length));
    e.forLoop(e.begin, e.end, 1, {}, [&](Value t, ValueRange) {
      SmallVector<AffineExpr> at{e.addDim(t), e.c(0)};
      Nest nest(e, *domain, reduced, /*laneReduced=*/true, at);
      emitRow(e, nest, at);
      return SmallVector<Value>();
    });
  });
}

LogicalResult CodedUpdate::emitBlocks(ModuleOp into) {
  return emitLaunch(into, 0, [&](Emitter &e, Value t) {
    SmallVector<AffineExpr> at{e.addDim(t), e.c(0)};
    BlockNest nest(e, *domain, reduced, at, threads, vectors, keptVectors);
    emitRow(e, nest, at);
  });
}

void CodedUpdate::storeResult(Emitter &e, Value result, Index index,
                              Value element) {
  for (auto [r, value] : llvm::enumerate(terminator.getOperands()))
    if (value == result)
      e.store(unsigned(r), cast<RankedTensorType>(value.getType()), index,
              element);
}

/// Returns the new number of a state, in the pass that computes it, or later.
Value CodedUpdate::newNumber(Emitter &e, PointNest &nest, size_t state,
                             Index index, bool isFirst) {
  auto make = [&] { return e.emit(states[state].getValue(), index); };
  if (buffers.empty())
    return nest.keep(unsigned(state), make);
  Type f32 = e.b.getF32Type();
  if (!isFirst)
    return e.loadFrom(buffers[state], f32, index.back());
  Value number = make();
  e.storeTo(buffers[state], f32, index.back(), number);
  return number;
}

void CodedUpdate::emitRow(Emitter &e, PointNest &nest,
                          ArrayRef<AffineExpr> at) {
  Type i32 = e.b.getI32Type(), f32 = e.b.getF32Type();
  SmallVector<Reducer> reducers(states.size(), Reducer{ReduceKind::Max, i32});
  if (!buffers.empty()) // The second pass reads nothing that is not in cache.
    e.fetch = Emitter::Fetch{e.c(length), {}};
  SmallVector<Value> largest = nest.reduce(reducers, [&](Index i, unsigned) {
    SmallVector<Value> sizes, elements;
    for (size_t s = 0; s < states.size(); ++s)
      sizes.push_back(
          e.bitcast(i32, e.abs(newNumber(e, nest, s, i, /*isFirst=*/true))));
    for (Value other : others)
      elements.push_back(e.emit(beforeRounding(other), i));
    for (auto [other, element] : llvm::zip_equal(others, elements))
      storeResult(e, other, i, element);
    return sizes;
  });
  e.fetch.reset();
  Value least = e.bitcast(i32, e.constant(f32, kLeastScale));
  SmallVector<Value> scales, inverses;
  for (Value bits : largest) {
    scales.push_back(e.bitcast(f32, e.maximum(bits, least)));
    inverses.push_back(e.div(e.constant(f32, 1.0), scales.back()));
  }
  auto settled = [&](AssignCodesOp op, Value now, Value old, Index index) {
    Value made = op.getMade();
    return made ? e.select(e.emit(made, {}), now, e.emit(old, index)) : now;
  };
  nest.forEach([&](Index i, unsigned) {
    SmallVector<Value> codes;
    for (auto [s, op] : llvm::enumerate(states)) {
      Value x = e.mul(newNumber(e, nest, s, i, /*isFirst=*/false), inverses[s]);
      codes.push_back(settled(op, emitEncodeDynamic(e, x, op.getHasSign()),
                              op.getCodes(), i));
    }
    for (auto [op, code] : llvm::zip_equal(states, codes))
      storeResult(e, op.getNewCodes(), i, code);
  });
  Index row = at.take_front();
  for (auto [op, scale] : llvm::zip_equal(states, scales))
    scale = settled(op, scale, op.getScales(), row);
  for (auto [op, scale] : llvm::zip_equal(states, scales))
    storeResult(e, op.getNewScales(), row, scale);
}

std::unique_ptr<GeneratedKernel>
codegen::makeCodedUpdate(func::FuncOp kernel, const CodegenOptions &options) {
  return std::make_unique<CodedUpdate>(kernel, options);
}
