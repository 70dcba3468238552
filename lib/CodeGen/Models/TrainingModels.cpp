//===- TrainingModels.cpp - updates and loss gradients --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models of losses and updates. Scalars of a step (bias corrections) are
// computed in double precision once for each range, from the step number and
// the learning rate.
//
//===----------------------------------------------------------------------===//
#include "ElementModel.h"
#include "Emit/MathFunctions.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using codegen::Index;
using Indices = SmallVector<AffineExpr>;

static Type elementOf(Value tensor) {
  return computeType(getElementTypeOrSelf(tensor));
}

/// Returns a scalar double as a number of `type`.
static Value round(Emitter &e, Value x, Type type) {
  return type.isF64() ? x : Value(arith::TruncFOp::create(e.b, type, x));
}

/// Returns the scalar tensor as a double.
static Value scalarDouble(Emitter &e, Value tensor) {
  Value x = e.emit(tensor, {});
  Type f64 = e.b.getF64Type();
  if (isa<IntegerType>(x.getType()))
    return arith::SIToFPOp::create(e.b, f64, x);
  return x.getType().isF64() ? x : Value(arith::ExtFOp::create(e.b, f64, x));
}

static double number(const APFloat &attribute) {
  return attribute.convertToDouble();
}

namespace {

struct MovingAverageModel : ElementModel {
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    double momentum = number(cast<MovingAverageOp>(op).getMomentum());
    Value old = operand(op, 0, index, e), value = operand(op, 1, index, e);
    return e.add(e.mul(old, e.like(old, momentum)),
                 e.mul(value, e.like(value, 1 - momentum)));
  }
};

struct AssignModel : ElementModel {
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    return operand(op, 1, index, e);
  }
};

struct AccumulateModel : ElementModel {
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    return e.add(operand(op, 0, index, e), operand(op, 1, index, e));
  }
};

/// Operands that are scalars are read at no point of the domain.
struct UpdateModel : ElementModel {
  std::optional<Indices> operandIndex(Operation *op, unsigned number,
                                      Index index) const override {
    auto type = cast<RankedTensorType>(op->getOperand(number).getType());
    if (type.getRank() == 0)
      return Indices();
    return Indices(index);
  }
};

/// Returns new if the update is made, else old: with `skips`, step 0 means no
/// update.
template <typename Op>
static Value unlessSkipped(Op op, Emitter &e, Value old, Value now) {
  if (!op.getSkips())
    return now;
  Value made = e.once(op, 3, [&] {
    return e.cmpi(arith::CmpIPredicate::ne, e.emit(op.getStep(), {}),
                  e.index(0));
  });
  return e.select(made, now, old);
}

struct SgdModel : UpdateModel {
  Value emit(Operation *op, unsigned result, Index index,
             Emitter &e) const override {
    auto sgd = cast<SgdOp>(op);
    Type type = elementOf(sgd.getParam());
    Value p = e.emit(sgd.getParam(), index), g = e.emit(sgd.getGrad(), index);
    Value before = p;
    double decay = number(sgd.getWeightDecay()),
           momentum = number(sgd.getMomentum());
    if (decay != 0)
      g = e.add(g, e.mul(p, e.like(p, decay)));
    Value v;
    if (Value velocity = sgd.getVelocity()) {
      Value old = e.emit(velocity, index);
      double share = 1 - number(sgd.getDampening());
      Value first = e.once(op, 0, [&] {
        return e.cmpi(arith::CmpIPredicate::eq, e.emit(sgd.getStep(), {}),
                      e.index(1));
      });
      v = e.add(e.mul(old, e.like(old, momentum)),
                share == 1 ? g : e.mul(g, e.like(g, share)));
      v = e.select(first, g, v);
      Value made = v;
      v = unlessSkipped(sgd, e, old, v);
      g = sgd.getNesterov() ? e.add(g, e.mul(made, e.like(made, momentum)))
                            : made;
    }
    Value rate = e.once(op, 1, [&] {
      return round(e, scalarDouble(e, sgd.getLearningRate()), type);
    });
    p = unlessSkipped(sgd, e, before, e.sub(p, e.mul(rate, g)));
    e.remember(op->getResult(0), index, p);
    if (v)
      e.remember(op->getResult(1), index, v);
    return result == 0 ? p : v;
  }
};

struct AdamModel : UpdateModel {
  Value emit(Operation *op, unsigned result, Index index,
             Emitter &e) const override {
    auto adam = cast<AdamOp>(op);
    Type type = elementOf(adam.getParam());
    double beta1 = number(adam.getBeta1()), beta2 = number(adam.getBeta2()),
           decay = number(adam.getWeightDecay());
    Value p = e.emit(adam.getParam(), index), g = e.emit(adam.getGrad(), index),
          m = e.emit(adam.getM(), index), v = e.emit(adam.getV(), index);
    Value before[] = {p, m, v};
    Type f64 = e.b.getF64Type();
    auto rate = [&] { return scalarDouble(e, adam.getLearningRate()); };
    // 1 - beta^step
    auto correction = [&](double beta) -> Value {
      Value step = e.emit(adam.getStep(), {});
      Value power = emitPowerByInteger(e, e.constant(f64, beta), step);
      return e.sub(e.constant(f64, 1.0), power);
    };
    if (decay != 0 && adam.getDecoupled())
      p = e.mul(p, e.once(op, 0, [&] {
        Value shrink =
            e.sub(e.constant(f64, 1.0), e.mul(rate(), e.constant(f64, decay)));
        return round(e, shrink, type);
      }));
    else if (decay != 0)
      g = e.add(g, e.mul(p, e.like(p, decay)));
    m = e.add(e.mul(m, e.like(m, beta1)), e.mul(g, e.like(g, 1 - beta1)));
    v = e.add(e.mul(v, e.like(v, beta2)),
              e.mul(e.mul(g, e.like(g, 1 - beta2)), g));
    Value stepSize = e.once(op, 1, [&] {
      return round(e, e.div(rate(), correction(beta1)), type);
    });
    Value inverse = e.once(
        op, 2, [&] { return round(e, emitRsqrt(e, correction(beta2)), type); });
    Value root = e.mul(e.sqrt(v), inverse);
    root = e.add(root, e.like(root, number(adam.getEpsilon())));
    p = e.sub(p, e.mul(stepSize, e.div(m, root)));
    p = unlessSkipped(adam, e, before[0], p);
    m = unlessSkipped(adam, e, before[1], m);
    v = unlessSkipped(adam, e, before[2], v);
    e.remember(op->getResult(0), index, p);
    e.remember(op->getResult(1), index, m);
    e.remember(op->getResult(2), index, v);
    return result == 0 ? p : result == 1 ? m : v;
  }
};

struct CrossEntropyGradModel : ElementModel {
  std::optional<Indices> operandIndex(Operation *op, unsigned number,
                                      Index index) const override {
    if (number == 1)
      return Indices(index);
    Indices outer(index);
    outer.erase(outer.begin() + cast<CrossEntropyGradOp>(op).getAxis());
    return broadcastIndex(op->getOperand(number).getType(), outer,
                          op->getContext());
  }
  SmallVector<AffineExpr> indexUses(Operation *op, Index index) const override {
    return {index[cast<CrossEntropyGradOp>(op).getAxis()]};
  }
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    auto grad = cast<CrossEntropyGradOp>(op);
    Value g = operand(op, 0, index, e), x = operand(op, 1, index, e),
          target = operand(op, 2, index, e), lse = operand(op, 3, index, e),
          lost = operand(op, 4, index, e);
    Value ignored =
        e.cmpi(arith::CmpIPredicate::eq, target,
               e.like(target, double(int64_t(grad.getIgnoreIndex()))));
    g = e.select(ignored, e.like(g, 0), g);
    Value position = e.materialize(index[grad.getAxis()]);
    // Make labels as wide as the lanes' indices.
    Type wanted = Emitter::elementType(position);
    if (Emitter::isVector(target) && !Emitter::isVector(position))
      wanted = e.laneIndexType();
    auto as = [&](Value v) -> Value {
      unsigned before = Emitter::elementType(v).getIntOrFloatBitWidth(),
               after = wanted.getIntOrFloatBitWidth();
      Type type = e.typeLike(wanted, v);
      if (before < after)
        return arith::ExtSIOp::create(e.b, type, v);
      if (before > after)
        return arith::TruncIOp::create(e.b, type, v);
      return v;
    };
    Value hit = e.cmpi(arith::CmpIPredicate::eq, as(position), as(target));
    Value softmax = emitExpNonPositive(e, e.sub(e.sub(x, lse), lost));
    Value d =
        e.sub(softmax, e.select(hit, e.like(softmax, 1), e.like(softmax, 0)));
    // Select 0 for ignored labels, since the product could be 0 * infinity.
    d = e.select(ignored, e.like(d, 0), e.mul(g, d));
    if (!grad.isPadded())
      return d;
    Value exists = e.cmpi(arith::CmpIPredicate::slt, position,
                          e.like(position, double(grad.getNumClasses())));
    return e.select(exists, d, e.like(d, 0));
  }
};

struct BatchNormInferenceModel : ElementModel {
  std::optional<Indices> operandIndex(Operation *op, unsigned number,
                                      Index index) const override {
    if (number == 0)
      return Indices(index);
    return Indices{index[1]};
  }
  Value emit(Operation *op, unsigned, Index index, Emitter &e) const override {
    auto norm = cast<BatchNormInferenceOp>(op);
    Value x = operand(op, 0, index, e), scale = operand(op, 1, index, e),
          bias = operand(op, 2, index, e), mean = operand(op, 3, index, e),
          variance = operand(op, 4, index, e);
    Value rstd = emitRsqrt(
        e, e.add(variance, e.like(variance, number(norm.getEpsilon()))));
    return e.add(e.mul(e.mul(e.sub(x, mean), rstd), scale), bias);
  }

private:
  static double number(const APFloat &x) { return x.convertToDouble(); }
};

} // namespace

void codegen::addTrainingModels(ElementModels &models) {
  models.add<MovingAverageOp, MovingAverageModel>();
  models.add<AssignOp, AssignModel>();
  models.add<AccumulateOp, AccumulateModel>();
  models.add<SgdOp, SgdModel>();
  models.add<AdamOp, AdamModel>();
  models.add<CrossEntropyGradOp, CrossEntropyGradModel>();
  models.add<BatchNormInferenceOp, BatchNormInferenceModel>();
}
