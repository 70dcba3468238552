//===- Optimizers.cpp - formulas of the optimizers ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules of torch.optim (2.x), and of Lion (Chen et al., "Symbolic discovery of
// optimization algorithms", 2023). SGD and Adam are ops of their own where
// parameters and states are f32; the others are elementwise ops whose results
// are assigned to the states, from which `fuse` makes one kernel for each
// parameter.
//
//===----------------------------------------------------------------------===//
#include "Optimizers.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>
#include <memory>

using namespace mlir;
using namespace ckopt;
using Values = SmallVector<Value>;
using Names = SmallVector<StateName>;

UpdateRule::~UpdateRule() = default;

namespace {

struct SgdRule : UpdateRule {
  Names states(const Hyper &h) const override {
    return h["momentum"] > 0 ? Names{"/velocity"} : Names{};
  }
  Values scalars(ScalarBuilder &s) const override {
    return s.h.rounds ? Values{s.rate, s.isOne} : Values{};
  }
  Values build(UpdateBuilder &u) const override {
    if (u.h.rounds)
      return formulas(u);
    auto number = [&](StringRef name) {
      return u.b.builder.getF64FloatAttr(u.h[name]);
    };
    Value velocity = u.state.empty() ? Value() : u.state[0];
    auto op = SgdOp::create(
        u.b.builder, u.b.loc, u.param.getType(),
        velocity ? velocity.getType() : Type(), u.param, u.grad, u.rate, u.step,
        velocity, number("momentum"), number("dampening"),
        number("weight_decay"),
        u.h["nesterov"] != 0 ? u.b.builder.getUnitAttr() : UnitAttr(),
        u.skipping());
    return Values(op->getResults());
  }

private:
  /// What the op computes.
  Values formulas(UpdateBuilder &u) const {
    TensorBuilder &b = u.b;
    double momentum = u.h["momentum"];
    Value g = u.decayed();
    if (u.state.empty())
      return {b.sub(u.param, b.mul(g, u.scalars[0]))};
    Value isFirst = b.compare(ComparePredicate::NE, u.scalars[1], 0);
    Value v = b.select(
        isFirst, g,
        b.add(b.mul(u.state[0], momentum), b.mul(g, 1 - u.h["dampening"])));
    Value change = u.h["nesterov"] != 0 ? b.add(g, b.mul(v, momentum)) : v;
    return {b.sub(u.param, b.mul(change, u.scalars[0])), v};
  }
};

struct AdamRule : UpdateRule {
  explicit AdamRule(bool decoupled) : decoupled(decoupled) {}
  bool decoupled;

  Names states(const Hyper &h) const override {
    Names names{"/m", StateName("/v", false)};
    if (h["amsgrad"] != 0)
      names.push_back(StateName("/v_max", false));
    return names;
  }
  Values scalars(ScalarBuilder &s) const override {
    if (s.h["amsgrad"] == 0 && !s.h.rounds)
      return {};
    TensorBuilder &b = s.b;
    return {b.div(s.rate, s.correction("beta1")),
            b.make<RsqrtOp>(s.correction("beta2")), s.shrinking()};
  }
  Values build(UpdateBuilder &u) const override {
    return u.h["amsgrad"] != 0 || u.h.rounds ? formulas(u) : plain(u);
  }

private:
  Values plain(UpdateBuilder &u) const {
    auto number = [&](StringRef name) {
      return u.b.builder.getF64FloatAttr(u.h[name]);
    };
    Type type = u.param.getType();
    auto op = AdamOp::create(
        u.b.builder, u.b.loc, type, type, type, u.param, u.grad, u.state[0],
        u.state[1], u.rate, u.step, number("beta1"), number("beta2"),
        number("epsilon"), number("weight_decay"),
        decoupled ? u.b.builder.getUnitAttr() : UnitAttr(), u.skipping());
    return Values(op->getResults());
  }
  /// Returns what the op computes; AMSGrad (Reddi et al. 2018) divides by the
  /// largest second moment so far.
  Values formulas(UpdateBuilder &u) const {
    TensorBuilder &b = u.b;
    Value p = decoupled ? b.mul(u.param, u.scalars[2]) : u.param;
    Value g = decoupled ? u.grad : u.decayed();
    Value m = u.average(u.state[0], g, u.h["beta1"]);
    Value v = u.average(u.state[1], u.square(g), u.h["beta2"]);
    Values states{m, v};
    if (u.h["amsgrad"] != 0)
      states.push_back(b.make<MaximumOp>(u.state[2], v));
    Value root =
        b.add(b.mul(u.sqrt(states.back()), u.scalars[1]), u.h["epsilon"]);
    Values results{b.sub(p, b.mul(b.div(m, root), u.scalars[0]))};
    llvm::append_range(results, states);
    return results;
  }
};

struct RmspropRule : UpdateRule {
  Names states(const Hyper &h) const override {
    Names names{StateName("/v", false)};
    if (h["centered"] != 0)
      names.push_back("/grad_avg");
    if (h["momentum"] > 0)
      names.push_back("/velocity");
    return names;
  }
  Values scalars(ScalarBuilder &s) const override { return {s.rate}; }
  Values build(UpdateBuilder &u) const override {
    TensorBuilder &b = u.b;
    double alpha = u.h["alpha"];
    Value g = u.decayed(), v = u.average(u.state[0], u.square(g), alpha);
    Values states{v};
    if (u.h["centered"] != 0) {
      Value mean = u.average(u.state[1], g, alpha);
      states.push_back(mean);
      v = b.sub(v, u.square(mean));
    }
    Value change = b.div(g, b.add(u.sqrt(v), u.h["epsilon"]));
    if (double momentum = u.h["momentum"]; momentum > 0) {
      change = b.add(b.mul(u.state.back(), momentum), change);
      states.push_back(change);
    }
    Values results{b.sub(u.param, b.mul(change, u.scalars[0]))};
    llvm::append_range(results, states);
    return results;
  }
};

struct AdagradRule : UpdateRule {
  Names states(const Hyper &) const override {
    return {StateName("/sum", false)};
  }
  Values scalars(ScalarBuilder &s) const override {
    TensorBuilder &b = s.b;
    Value past = b.sub(s.t, b.number(s.t, 1));
    Value rate = b.div(s.rate, b.add(b.mul(past, s.h["lr_decay"]), 1));
    // The sums are zero before the first step, which adds their initial value.
    return {rate, b.mul(s.isOne, s.h["initial_accumulator_value"])};
  }
  Values build(UpdateBuilder &u) const override {
    TensorBuilder &b = u.b;
    Value g = u.decayed(), sum = u.state[0];
    if (u.h["initial_accumulator_value"] != 0)
      sum = b.add(sum, u.scalars[1]);
    sum = b.add(sum, u.square(g));
    Value change = b.div(g, b.add(u.sqrt(sum), u.h["epsilon"]));
    return {b.sub(u.param, b.mul(change, u.scalars[0])), sum};
  }
};

struct AdadeltaRule : UpdateRule {
  Names states(const Hyper &) const override {
    return {StateName("/v", false), StateName("/delta", false)};
  }
  Values scalars(ScalarBuilder &s) const override { return {s.rate}; }
  Values build(UpdateBuilder &u) const override {
    TensorBuilder &b = u.b;
    double rho = u.h["rho"], epsilon = u.h["epsilon"];
    Value g = u.decayed(), v = u.average(u.state[0], u.square(g), rho);
    Value change = b.mul(
        b.div(u.sqrt(b.add(u.state[1], epsilon)), u.sqrt(b.add(v, epsilon))),
        g);
    Value delta = u.average(u.state[1], u.square(change), rho);
    return {b.sub(u.param, b.mul(change, u.scalars[0])), v, delta};
  }
};

struct AdamaxRule : UpdateRule {
  Names states(const Hyper &) const override {
    return {"/m", StateName("/inf", false)};
  }
  Values scalars(ScalarBuilder &s) const override {
    return {s.b.div(s.rate, s.correction("beta1"))};
  }
  Values build(UpdateBuilder &u) const override {
    TensorBuilder &b = u.b;
    Value g = u.decayed(), m = u.average(u.state[0], g, u.h["beta1"]);
    Value norm = b.make<MaximumOp>(b.mul(u.state[1], u.h["beta2"]),
                                   b.add(b.make<AbsOp>(g), u.h["epsilon"]));
    return {b.sub(u.param, b.mul(b.div(m, norm), u.scalars[0])), m, norm};
  }
};

struct NadamRule : UpdateRule {
  Names states(const Hyper &) const override {
    return {"/m", StateName("/v", false)};
  }
  StringRef sharedState() const override { return "mu_product"; }
  Values scalars(ScalarBuilder &s) const override {
    TensorBuilder &b = s.b;
    // mu(t) = beta1 * (1 - 0.96^(t * momentum_decay) / 2)
    double base = std::pow(0.96, s.h["momentum_decay"]), beta1 = s.h["beta1"];
    Value power = s.powerOfStep(base);
    Value mu = b.mul(b.sub(1, b.mul(power, 0.5)), beta1);
    Value next = b.mul(b.sub(1, b.mul(b.mul(power, base), 0.5)), beta1);
    // The product starts at 1; its state is 0 before the first step.
    Value product = b.mul(b.add(s.shared, s.isOne), mu);
    s.shared = product;
    Value now = b.div(b.mul(s.rate, b.sub(1, mu)), b.sub(1, product));
    Value then = b.div(b.mul(s.rate, next), b.sub(1, b.mul(product, next)));
    return {now, then, b.make<ReciprocalOp>(s.correction("beta2")),
            s.shrinking()};
  }
  Values build(UpdateBuilder &u) const override {
    TensorBuilder &b = u.b;
    bool decoupled = u.h["decoupled_weight_decay"] != 0;
    Value p = decoupled ? b.mul(u.param, u.scalars[3]) : u.param;
    Value g = decoupled ? u.grad : u.decayed();
    Value m = u.average(u.state[0], g, u.h["beta1"]);
    Value v = u.average(u.state[1], u.square(g), u.h["beta2"]);
    Value root = b.add(u.sqrt(b.mul(v, u.scalars[2])), u.h["epsilon"]);
    p = b.sub(p, b.mul(b.div(g, root), u.scalars[0]));
    return {b.sub(p, b.mul(b.div(m, root), u.scalars[1])), m, v};
  }
};

struct RadamRule : UpdateRule {
  Names states(const Hyper &) const override {
    return {"/m", StateName("/v", false)};
  }
  Values scalars(ScalarBuilder &s) const override {
    TensorBuilder &b = s.b;
    double beta2 = s.h["beta2"], limit = 2 / (1 - beta2) - 1;
    Value power = s.powerOfStep(beta2), correction = b.sub(1, power);
    // The length of the approximated simple moving average decides whether
    // RAdam adapts the rate.
    Value length = b.sub(limit, b.mul(b.div(b.mul(s.t, power), correction), 2));
    Value rate = b.div(s.rate, s.correction("beta1"));
    Value rectified = b.mul(b.mul(b.sub(length, b.number(length, 4)),
                                  b.sub(length, b.number(length, 2))),
                            limit / ((limit - 4) * (limit - 2)));
    rectified = b.make<SqrtOp>(b.div(b.mul(rectified, correction), length));
    Value isLong = b.compare(ComparePredicate::GT, length, 5);
    return {rate, b.where(isLong, b.mul(rate, rectified)), s.shrinking(),
            b.cast(isLong, b.builder.getF64Type())};
  }
  Values build(UpdateBuilder &u) const override {
    TensorBuilder &b = u.b;
    bool decoupled = u.h["decoupled_weight_decay"] != 0;
    Value p = decoupled ? b.mul(u.param, u.scalars[2]) : u.param;
    Value g = decoupled ? u.grad : u.decayed();
    Value m = u.average(u.state[0], g, u.h["beta1"]);
    Value v = u.average(u.state[1], u.square(g), u.h["beta2"]);
    Value isLong = b.compare(ComparePredicate::NE, u.scalars[3], 0);
    Value root = b.add(u.sqrt(v), u.h["epsilon"]);
    Value change = b.select(isLong, b.mul(b.div(m, root), u.scalars[1]),
                            b.mul(m, u.scalars[0]));
    return {b.sub(p, change), m, v};
  }
};

struct LionRule : UpdateRule {
  Names states(const Hyper &) const override { return {"/m"}; }
  Values scalars(ScalarBuilder &s) const override {
    return {s.rate, s.shrinking()};
  }
  Values build(UpdateBuilder &u) const override {
    TensorBuilder &b = u.b;
    Value sign = b.make<SignOp>(u.average(u.state[0], u.grad, u.h["beta1"]));
    Value p = u.h["weight_decay"] != 0 ? b.mul(u.param, u.scalars[1]) : u.param;
    return {b.sub(p, b.mul(sign, u.scalars[0])),
            u.average(u.state[0], u.grad, u.h["beta2"])};
  }
};

} // namespace

const UpdateRule &ckopt::updateRule(StringRef kind) {
  static const llvm::StringMap<std::unique_ptr<UpdateRule>> rules = [] {
    llvm::StringMap<std::unique_ptr<UpdateRule>> made;
    made["sgd"] = std::make_unique<SgdRule>();
    made["adam"] = std::make_unique<AdamRule>(/*decoupled=*/false);
    made["adamw"] = std::make_unique<AdamRule>(/*decoupled=*/true);
    made["rmsprop"] = std::make_unique<RmspropRule>();
    made["adagrad"] = std::make_unique<AdagradRule>();
    made["adadelta"] = std::make_unique<AdadeltaRule>();
    made["adamax"] = std::make_unique<AdamaxRule>();
    made["nadam"] = std::make_unique<NadamRule>();
    made["radam"] = std::make_unique<RadamRule>();
    made["lion"] = std::make_unique<LionRule>();
    return made;
  }();
  return *rules.find(kind)->second;
}
