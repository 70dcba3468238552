//===- ShapeModels.cpp - constants, shapes, data movement -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ElementModel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;
using Indices = SmallVector<AffineExpr>;

static ArrayRef<int64_t> shapeOf(Value v) {
  return cast<RankedTensorType>(v.getType()).getShape();
}

static SmallVector<int64_t> rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  return strides;
}

namespace {

/// Models ops that only read their operand at another index.
struct Moves : ElementModel {
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    return operand(op, 0, index, e);
  }
};

struct RelayoutModel : Moves {};
struct ExpandModel : Moves {};

struct TransposeModel : Moves {
  std::optional<Indices> operandIndex(Operation *op, unsigned,
                                      Index index) const override {
    Indices result(index.size());
    for (auto [d, from] :
         llvm::enumerate(cast<TransposeOp>(op).getPermutation()))
      result[from] = index[d];
    return result;
  }
};

struct SliceModel : Moves {
  std::optional<Indices> operandIndex(Operation *op, unsigned,
                                      Index index) const override {
    auto slice = cast<SliceOp>(op);
    Indices result;
    for (auto [e, start, step] :
         llvm::zip_equal(index, slice.getStarts(), slice.getSteps()))
      result.push_back(e * step + start);
    return result;
  }
};

/// Models any reshape through the row-major element number, unless it only adds
/// or drops dimensions of size 1.
struct ReshapeModel : Moves {
  std::optional<Indices> operandIndex(Operation *op, unsigned,
                                      Index index) const override {
    MLIRContext *ctx = op->getContext();
    ArrayRef<int64_t> from = shapeOf(op->getResult(0)),
                      to = shapeOf(op->getOperand(0));
    Indices kept;
    SmallVector<int64_t> fromKept, toKept;
    for (auto [e, size] : llvm::zip_equal(index, from))
      if (size != 1) {
        kept.push_back(e);
        fromKept.push_back(size);
      }
    for (int64_t size : to)
      if (size != 1)
        toKept.push_back(size);
    Indices result(to.size(), getAffineConstantExpr(0, ctx));
    if (fromKept == toKept) {
      unsigned next = 0;
      for (auto [d, size] : llvm::enumerate(to))
        if (size != 1)
          result[d] = kept[next++];
      return result;
    }
    AffineExpr rest = Emitter::linearize(kept, rowMajorStrides(fromKept), ctx);
    for (size_t d = to.size(); d-- > 0;) {
      if (to[d] == 1)
        continue;
      result[d] = Emitter::simplify(rest % to[d]);
      rest = Emitter::simplify(rest.floorDiv(to[d]));
    }
    return result;
  }
};

struct ConstantModel : ElementModel {
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    auto values = dyn_cast<DenseElementsAttr>(cast<ConstantOp>(op).getValue());
    if (!values) {
      e.fail(op, "only dense constants can be part of a kernel");
      return {};
    }
    Type element = values.getElementType(), to = computeType(element);
    if (!values.isSplat()) {
      AffineExpr offset = Emitter::linearize(
          index, rowMajorStrides(shapeOf(op->getResult(0))), op->getContext());
      return e.loadFrom(e.constantTable(values), element, offset);
    }
    if (isa<FloatType>(element))
      return e.constant(to, values.getSplatValue<APFloat>().convertToDouble());
    return arith::ConstantOp::create(
        e.b, IntegerAttr::get(to, values.getSplatValue<APInt>()));
  }
};

struct IotaModel : ElementModel {
  SmallVector<AffineExpr> indexUses(Operation *op, Index index) const override {
    return {index[cast<IotaOp>(op).getAxis()]};
  }
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    auto iota = cast<IotaOp>(op);
    Type element = getElementTypeOrSelf(iota.getType()),
         to = computeType(element);
    Value position = e.materialize(index[iota.getAxis()]);
    double start = iota.getStart().convertToDouble(),
           delta = iota.getDelta().convertToDouble();
    Type type = e.typeLike(to, position);
    if (auto integer = dyn_cast<IntegerType>(to)) {
      unsigned before = Emitter::elementType(position).getIntOrFloatBitWidth();
      if (before > integer.getWidth())
        position = arith::TruncIOp::create(e.b, type, position);
      else if (before < integer.getWidth())
        position = arith::ExtSIOp::create(e.b, type, position);
      return e.add(e.mul(position, e.like(position, delta)),
                   e.like(position, start));
    }
    // Compute in double, rounded once.
    Type f64 = e.typeLike(e.b.getF64Type(), position);
    Value real = arith::SIToFPOp::create(e.b, f64, position);
    real = e.add(e.mul(real, e.like(real, delta)), e.like(real, start));
    if (to.isF64())
      return real;
    return arith::TruncFOp::create(e.b, type, real);
  }
};

struct ConcatModel : ElementModel {
  std::optional<Indices> operandIndex(Operation *op, unsigned number,
                                      Index index) const override {
    int64_t axis = cast<ConcatOp>(op).getAxis(), begin = 0;
    for (Value input : op->getOperands().take_front(number))
      begin += shapeOf(input)[axis];
    Indices inside(index);
    inside[axis] = inside[axis] - begin;
    return inside;
  }
  SmallVector<AffineExpr> indexUses(Operation *op, Index index) const override {
    return {index[cast<ConcatOp>(op).getAxis()]};
  }
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    auto concat = cast<ConcatOp>(op);
    int64_t axis = concat.getAxis();
    unsigned count = op->getNumOperands();
    SmallVector<int64_t> begins{0};
    for (Value input : concat.getInputs())
      begins.push_back(begins.back() + shapeOf(input)[axis]);
    return pick(concat, 0, count, begins, index, e);
  }

private:
  /// Returns the element, known to lie in operands [first, last), by bisection.
  static Value pick(ConcatOp op, unsigned first, unsigned last,
                    ArrayRef<int64_t> begins, Index index, Emitter &e) {
    int64_t axis = op.getAxis();
    if (last - first == 1) {
      Indices inside(index);
      inside[axis] = inside[axis] - begins[first];
      return e.emit(op.getInputs()[first], inside);
    }
    unsigned middle = (first + last) / 2;
    // If the boundary lies between vectors, all lanes are on one side of it.
    bool together = e.laneStride(index[axis]) == 1 &&
                    begins[middle] % int64_t(e.lanes) == 0 &&
                    e.isMultipleOf(index[axis], e.lanes);
    Value position =
        together ? e.scalar(index[axis]) : e.materialize(index[axis]);
    Value left = e.cmpi(arith::CmpIPredicate::slt, position,
                        e.like(position, double(begins[middle])));
    auto low = [&] { return pick(op, first, middle, begins, index, e); };
    auto high = [&] { return pick(op, middle, last, begins, index, e); };
    if (Emitter::isVector(left)) {
      Value x = e.withMask(left, low);
      Value inverse = e.xori(left, e.like(left, 1));
      return e.select(left, x, e.withMask(inverse, high));
    }
    bool lane = false;
    for (AffineExpr i : index)
      lane |= e.dependsOnLane(i);
    auto widen = [&](Value v) { return lane ? e.splat(v) : v; };
    return e
        .ifThen(
            left, [&] { return SmallVector<Value>{widen(low())}; },
            [&] { return SmallVector<Value>{widen(high())}; })
        .front();
  }
};

struct PadModel : ElementModel {
  std::optional<Indices> operandIndex(Operation *op, unsigned,
                                      Index index) const override {
    auto pad = cast<PadOp>(op);
    Indices inside;
    for (auto [d, i] : llvm::enumerate(index)) {
      if (pad.getInterior()[d])
        return std::nullopt;
      inside.push_back(i - pad.getLow()[d]);
    }
    return inside;
  }
  SmallVector<AffineExpr> indexUses(Operation *op, Index index) const override {
    auto pad = cast<PadOp>(op);
    Indices uses;
    for (auto [d, i] : llvm::enumerate(index))
      if (pad.getLow()[d] || pad.getHigh()[d] || pad.getInterior()[d])
        uses.push_back(i);
    return uses;
  }
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    auto pad = cast<PadOp>(op);
    ArrayRef<int64_t> shape = shapeOf(pad.getInput());
    Emitter::Guard guard;
    Indices inside;
    for (auto [d, i] : llvm::enumerate(index)) {
      int64_t low = pad.getLow()[d], high = pad.getHigh()[d],
              step = pad.getInterior()[d] + 1;
      int64_t extent = shape[d] == 0 ? 0 : (shape[d] - 1) * step + 1;
      AffineExpr at = i - low;
      e.require(guard, at, 0, extent,
                std::pair<int64_t, int64_t>(-low, extent + high));
      if (step > 1) {
        e.requireEqual(guard, at % step, 0);
        at = at.floorDiv(step);
      }
      inside.push_back(at);
    }
    Type type = computeType(getElementTypeOrSelf(pad.getInput()));
    Value value = e.constant(type, pad.getValue().convertToDouble());
    return e.emitGuarded(guard, pad.getInput(), inside, value);
  }
};

struct TriluModel : ElementModel {
  SmallVector<AffineExpr> indexUses(Operation *, Index index) const override {
    return {index[index.size() - 1] - index[index.size() - 2]};
  }
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    auto trilu = cast<TriluOp>(op);
    Value distance =
        e.materialize(index[index.size() - 1] - index[index.size() - 2]);
    Value keep =
        e.cmpi(trilu.getUpper() ? arith::CmpIPredicate::sge
                                : arith::CmpIPredicate::sle,
               distance, e.like(distance, double(int64_t(trilu.getK()))));
    Value x = operand(op, 0, index, e);
    return e.select(keep, x, e.like(x, 0));
  }
};

struct GatherModel : ElementModel {
  /// Returns the position in `indices` for the point's index.
  static Indices indicesPoint(GatherOp op, Index index) {
    return Indices(index.slice(op.getAxis(), shapeOf(op.getIndices()).size()));
  }
  std::optional<Indices> operandIndex(Operation *op, unsigned number,
                                      Index index) const override {
    if (number == 0)
      return std::nullopt;
    return indicesPoint(cast<GatherOp>(op), index);
  }
  SmallVector<AffineExpr> indexUses(Operation *, Index index) const override {
    return Indices(index);
  }
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    auto gather = cast<GatherOp>(op);
    int64_t axis = gather.getAxis();
    ArrayRef<int64_t> data = shapeOf(gather.getData());
    Value row = e.emit(gather.getIndices(), indicesPoint(gather, index));
    Indices point(index.take_front(axis));
    point.push_back(e.addReadIndex(row, data[axis]));
    llvm::append_range(
        point, index.drop_front(axis + shapeOf(gather.getIndices()).size()));
    return e.emit(gather.getData(), point);
  }
};

struct GatherElementsModel : ElementModel {
  std::optional<Indices> operandIndex(Operation *, unsigned number,
                                      Index index) const override {
    if (number == 0)
      return std::nullopt;
    return Indices(index);
  }
  SmallVector<AffineExpr> indexUses(Operation *, Index index) const override {
    return Indices(index);
  }
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    auto gather = cast<GatherElementsOp>(op);
    int64_t axis = gather.getAxis();
    Indices point(index);
    point[axis] = e.addReadIndex(operand(op, 1, index, e),
                                 shapeOf(gather.getData())[axis]);
    return e.emit(gather.getData(), point);
  }
};

} // namespace

void codegen::addShapeModels(ElementModels &models) {
  models.add<ConstantOp, ConstantModel>();
  models.add<IotaOp, IotaModel>();
  models.add<ReshapeOp, ReshapeModel>();
  models.add<TransposeOp, TransposeModel>();
  models.add<SliceOp, SliceModel>();
  models.add<ConcatOp, ConcatModel>();
  models.add<PadOp, PadModel>();
  models.add<ExpandOp, ExpandModel>();
  models.add<RelayoutOp, RelayoutModel>();
  models.add<TriluOp, TriluModel>();
  models.add<GatherOp, GatherModel>();
  models.add<GatherElementsOp, GatherElementsModel>();
}
