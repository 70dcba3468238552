//===- Passes.cpp - the passes over what Autodiff.h offers ----------------===//
#include "ckopt/Autodiff/Passes.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Support/Error.h"
#include "mlir/IR/BuiltinOps.h"

namespace ckopt {
#define GEN_PASS_DEF_ATTACHLOSSPASS
#define GEN_PASS_DEF_AUTODIFFPASS
#define GEN_PASS_DEF_OPTIMIZERPASS
#include "ckopt/Autodiff/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

/// The function of that name, or an error that lists those there are.
static func::FuncOp findFunction(ModuleOp module, StringRef name) {
  if (auto function = module.lookupSymbol<func::FuncOp>(name))
    return function;
  std::string names;
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    names += (names.empty() ? "@" : ", @") + function.getSymName().str();
  module.emitError("no function '")
      << name << "'; the module has " << (names.empty() ? "none" : names);
  return {};
}

namespace {
struct AttachLoss : ckopt::impl::AttachLossPassBase<AttachLoss> {
  using AttachLossPassBase::AttachLossPassBase;
  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    if (!found)
      return signalPassFailure();
    LossOptions options;
    auto terms = parseLoss(loss);
    if (!terms) {
      found.emitError(takeErrorText(terms.takeError()).text);
      return signalPassFailure();
    }
    options.terms = std::move(*terms);
    options.target = target;
    options.ignoreIndex = ignoreIndex;
    options.reduction = reduction;
    options.labelSmoothing = labelSmoothing;
    options.classWeights.assign(classWeights.begin(), classWeights.end());
    options.posWeight.assign(posWeight.begin(), posWeight.end());
    options.beta = beta;
    options.delta = delta;
    options.margin = margin;
    options.softTargets = softTargets;
    if (classAxis != INT64_MIN)
      options.classAxis = classAxis;
    if (failed(attachLoss(found, options)))
      signalPassFailure();
  }
};

struct Autodiff : ckopt::impl::AutodiffPassBase<Autodiff> {
  using AutodiffPassBase::AutodiffPassBase;
  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    AutodiffOptions options;
    options.wrt.assign(wrt.begin(), wrt.end());
    options.result = result;
    if (!found || failed(differentiate(found, options)))
      signalPassFailure();
  }
};

struct Optimizer : ckopt::impl::OptimizerPassBase<Optimizer> {
  using OptimizerPassBase::OptimizerPassBase;
  void runOnOperation() override {
    using Kind = OptimizerOptions::Kind;
    func::FuncOp found = findFunction(getOperation(), function);
    if (!found)
      return signalPassFailure();
    OptimizerOptions options;
    if (type == "sgd") {
      options.kind = Kind::Sgd;
    } else if (type == "adam") {
      options.kind = Kind::Adam;
    } else if (type != "adamw") {
      found.emitError("unknown optimizer '")
          << type << "'; expected sgd, adam or adamw";
      return signalPassFailure();
    }
    options.momentum = momentum;
    options.dampening = dampening;
    options.nesterov = nesterov;
    options.beta1 = beta1;
    options.beta2 = beta2;
    options.epsilon = epsilon;
    if (weightDecay >= 0)
      options.weightDecay = weightDecay;
    options.clipNorm = clipNorm;
    options.accumulate = accumulate;
    if (failed(addOptimizer(found, options)))
      signalPassFailure();
  }
};
} // namespace
