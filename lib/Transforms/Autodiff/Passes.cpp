//===- Passes.cpp - the passes of Autodiff --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Autodiff/Passes.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "mlir/IR/BuiltinOps.h"

namespace ckopt {
#define GEN_PASS_DEF_AUTODIFFPASS
#include "ckopt/Autodiff/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;

namespace {
struct Autodiff : ckopt::impl::AutodiffPassBase<Autodiff> {
  using AutodiffPassBase::AutodiffPassBase;
  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    AutodiffOptions options;
    options.wrt.assign(wrt.begin(), wrt.end());
    options.result = result;
    options.lossScale = lossScale;
    options.lossScaleState = lossScaleState;
    if (!found || failed(differentiate(found, options)))
      signalPassFailure();
  }
};
} // namespace
