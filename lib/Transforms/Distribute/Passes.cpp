//===- Passes.cpp - the passes of Distribute ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Distribute/Passes.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/WholeBatch.h"
#include "mlir/IR/BuiltinOps.h"

namespace ckopt {
#define GEN_PASS_DEF_DISTRIBUTEPASS
#define GEN_PASS_DEF_SETTLEBATCHNUMBERSPASS
#define GEN_PASS_DEF_SHARELOSSPASS
#include "ckopt/Distribute/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

namespace {
struct Distribute : ckopt::impl::DistributePassBase<Distribute> {
  using DistributePassBase::DistributePassBase;
  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    DistributeOptions options;
    options.ranks = ranks;
    options.shards = shards;
    options.bucketBytes = bucketBytes;
    options.syncNorms = syncNorms;
    if (!found || failed(distribute(found, options)))
      signalPassFailure();
  }
};

struct SettleBatchNumbers
    : ckopt::impl::SettleBatchNumbersPassBase<SettleBatchNumbers> {
  using SettleBatchNumbersPassBase::SettleBatchNumbersPassBase;
  void runOnOperation() override {
    for (auto found : getOperation().getOps<func::FuncOp>())
      settleBatchNumbers(found, found.getName() != evaluation);
  }
};

struct ShareLoss : ckopt::impl::ShareLossPassBase<ShareLoss> {
  using ShareLossPassBase::ShareLossPassBase;
  void runOnOperation() override {
    func::FuncOp found = findFunction(getOperation(), function);
    if (!found || failed(shareLoss(found, ranks)))
      signalPassFailure();
  }
};
} // namespace
