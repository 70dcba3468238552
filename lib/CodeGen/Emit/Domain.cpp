//===- Domain.cpp - the loops over a tensor's points ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Domain.h"
#include "Models/ElementModel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

SmallVector<AffineExpr> codegen::identityIndex(unsigned rank,
                                               MLIRContext *ctx) {
  SmallVector<AffineExpr> index;
  for (unsigned d = 0; d < rank; ++d)
    index.push_back(getAffineDimExpr(d, ctx));
  return index;
}

void Accesses::add(Value value, ArrayRef<AffineExpr> given) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<AffineExpr> index(given);
  for (auto [d, size] : llvm::enumerate(type.getShape()))
    if (size == 1)
      index[d] = getAffineConstantExpr(0, type.getContext());
  AffineMap map = AffineMap::get(1 << 16, 0, index, type.getContext());
  if (!seen.insert({value.getAsOpaquePointer(), map.getAsOpaquePointer()})
           .second)
    return;
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    reads.push_back({arg, index});
    return;
  }
  Operation *op = value.getDefiningOp();
  const ElementModel *model = ElementModels::get().lookup(op);
  if (!model) {
    if (!unsupported)
      unsupported = op;
    return;
  }
  llvm::append_range(uses, model->indexUses(op, index));
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    if (auto point = model->operandIndex(op, i, index))
      add(op->getOperand(i), *point);
    else
      addElsewhere(op->getOperand(i));
  }
}

void Accesses::addElsewhere(Value value) {
  if (!seen.insert({value.getAsOpaquePointer(), nullptr}).second)
    return;
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    elsewhere.push_back(arg);
    return;
  }
  Operation *op = value.getDefiningOp();
  if (!ElementModels::get().lookup(op) && !unsupported)
    unsupported = op;
  for (Value operand : op->getOperands())
    addElsewhere(operand);
}

void Accesses::addUse(RankedTensorType type, ArrayRef<AffineExpr> index) {
  AffineExpr offset = getAffineConstantExpr(0, type.getContext());
  for (auto [d, stride] : llvm::enumerate(getElementStrides(type)))
    if (type.getDimSize(d) != 1)
      offset = offset + index[d] * stride;
  uses.push_back(offset);
}

Domain::Domain(ArrayRef<int64_t> shape, ArrayRef<int64_t> order,
               ArrayRef<int> classes, ArrayRef<bool> open,
               const Accesses &accesses, MLIRContext *ctx)
    : shape(shape), ctx(ctx) {
  for (int64_t d : order) {
    if (shape[d] == 1)
      continue;
    if (!loops.empty() && !open[d] && !loops.back().open &&
        classes[loops.back().dims.back()] == classes[d]) {
      SmallVector<Loop> merged = loops;
      merged.back().size *= shape[d];
      merged.back().dims.push_back(unsigned(d));
      // Later dimensions are not merged yet: each is a loop of its own.
      SmallVector<Loop> all = merged;
      bool after = false;
      for (int64_t other : order) {
        if (after && shape[other] != 1)
          all.push_back({shape[other], {unsigned(other)}});
        after |= other == d;
      }
      if (staysLinear(all, accesses)) {
        loops = merged;
        continue;
      }
    }
    loops.push_back({shape[d], {unsigned(d)}, open[d]});
  }
  if (loops.empty())
    loops.push_back({1, {}});
}

SmallVector<AffineExpr> Domain::indexOf(ArrayRef<Loop> loops,
                                        ArrayRef<AffineExpr> at) const {
  SmallVector<AffineExpr> index(shape.size(), getAffineConstantExpr(0, ctx));
  for (auto [loop, position] : llvm::zip_equal(loops, at)) {
    AffineExpr rest = position;
    for (size_t i = loop.dims.size(); i-- > 1;) {
      index[loop.dims[i]] = rest % shape[loop.dims[i]];
      rest = rest.floorDiv(shape[loop.dims[i]]);
    }
    if (!loop.dims.empty())
      index[loop.dims[0]] = rest;
  }
  return index;
}

static bool divides(AffineExpr e) {
  bool found = false;
  e.walk([&](AffineExpr part) {
    found |= part.getKind() == AffineExprKind::FloorDiv ||
             part.getKind() == AffineExprKind::Mod;
  });
  return found;
}

bool Domain::staysLinear(ArrayRef<Loop> loops, const Accesses &accesses) const {
  SmallVector<AffineExpr> index =
      indexOf(loops, identityIndex(loops.size(), ctx));
  auto linear = [&](AffineExpr e) {
    return divides(e) || !divides(Emitter::simplify(e.replaceDims(index)));
  };
  for (AffineExpr e : accesses.uses)
    if (!linear(e))
      return false;
  for (const Accesses::Read &read : accesses.reads) {
    auto type = cast<RankedTensorType>(read.arg.getType());
    if (!linear(Emitter::linearize(read.index, getElementStrides(type), ctx)))
      return false;
  }
  return true;
}

LoopRoles Domain::roles(ArrayRef<int> classes) const {
  LoopRoles result;
  for (auto [l, loop] : llvm::enumerate(loops)) {
    if (!loop.dims.empty() && classes[loop.dims.front()]) {
      result.reduced.push_back(l);
      continue;
    }
    result.kept.push_back(l);
    result.trips.push_back(loop.size);
  }
  result.rows =
      !result.reduced.empty() && result.reduced.back() + 1 == loops.size();
  return result;
}
