//===- Passes.cpp - the passes of Optimizers ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Optimizers/Passes.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "mlir/IR/BuiltinOps.h"
#include <cmath>

namespace ckopt {
#define GEN_PASS_DEF_OPTIMIZERPASS
#define GEN_PASS_DEF_STOREPARAMETERSPASS
#include "ckopt/Optimizers/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

namespace {
struct StoreParameters : ckopt::impl::StoreParametersPassBase<StoreParameters> {
  using StoreParametersPassBase::StoreParametersPassBase;

  void runOnOperation() override {
    bool any = false;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      storeParameters(function);
      any |= llvm::any_of(function.getArguments(), [&](BlockArgument argument) {
        return argumentRole(function, argument.getArgNumber()) ==
                   roles::kParameter &&
               getElementTypeOrSelf(argument).isBF16();
      });
    }
    if (!any)
      getOperation().emitWarning()
          << Setting("param-type", "bf16") + ": no trained weight has two "
                                             "dimensions and "
          << kLeastNarrowElements << " numbers or more, and others stay f32";
  }
};

struct Optimizer : ckopt::impl::OptimizerPassBase<Optimizer> {
  using OptimizerPassBase::OptimizerPassBase;
  explicit Optimizer(const OptimizerOptions &options) {
    type = options.kind;
    forEachValue([&](StringRef name, auto &option) {
      if (auto given = options.values.find(name.str());
          given != options.values.end())
        option = given->second;
    });
    clipNorm = options.clipNorm;
    accumulate = options.accumulate;
    ema = options.ema;
    stateType = nameOf(options.stateType).str();
    lossScaleGrowth = options.lossScaleGrowth;
  }

  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    if (!found)
      return signalPassFailure();
    OptimizerOptions options;
    options.kind = type;
    // Takes only the options that were given, since each kind has its own
    // defaults. A printed pipeline lists all options: there NaN and false stand
    // for those that were not given.
    forEachValue([&](StringRef name, auto &option) {
      double value = option.getValue();
      bool isGiven = isSwitch(name) ? value != 0 : !std::isnan(value);
      if (isGiven)
        options.values[name.str()] = value;
    });
    options.clipNorm = clipNorm;
    options.accumulate = accumulate;
    options.ema = ema;
    options.lossScaleGrowth = lossScaleGrowth;
    auto stored = parseChoice<StateType>(stateType);
    if (!stored) {
      found.emitError("optimizer: state-type '")
          << stateType << "' is not one of "
          << listChoices(choiceNames(StateType()));
      return signalPassFailure();
    }
    options.stateType = *stored;
    if (failed(addOptimizer(found, options)))
      signalPassFailure();
  }

private:
  /// Calls `take` for each hyperparameter, with its name in the optimizers'
  /// table.
  template <typename Take> void forEachValue(Take take) {
    auto each = [&](auto &option) {
      std::string name = option.getArgStr().str();
      llvm::replace(name, '-', '_');
      take(StringRef(name), option);
    };
    for (Option<Real> *option :
         {&momentum, &dampening, &beta1, &beta2, &epsilon, &weightDecay, &alpha,
          &rho, &lrDecay, &initialAccumulatorValue, &momentumDecay})
      each(*option);
    for (Option<bool> *option :
         {&nesterov, &amsgrad, &centered, &decoupledWeightDecay})
      each(*option);
  }
};
} // namespace

std::unique_ptr<Pass>
ckopt::createOptimizerPass(const OptimizerOptions &options) {
  return std::make_unique<Optimizer>(options);
}
