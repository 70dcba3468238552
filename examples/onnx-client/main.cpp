// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads an ONNX model, makes a training step of it and plans it in a budget:
//
//   onnx-client model.onnx 0.8x
#include "ckopt/Compiler/Phases.h"
#include "ckopt/Frontend/Onnx/Onnx.h"
#include "ckopt/Remat/Figures.h"
#include "ckopt/Target/Targets.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

static int fail(llvm::Error error) {
  llvm::errs() << llvm::toString(std::move(error)) << "\n";
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    llvm::errs() << "usage: onnx-client MODEL BUDGET\n";
    return 64;
  }
  mlir::DialectRegistry registry;
  ckopt::registerAllDialects(registry);
  mlir::MLIRContext context(registry);

  ckopt::onnx_frontend::ImportOptions import;
  import.batch = 64;
  auto model = ckopt::onnx_frontend::importModel(argv[1], import, context);
  if (!model)
    return fail(model.takeError());
  ckopt::StepOptions step;
  step.loss = *ckopt::parseLoss("cross_entropy");
  step.optimizer.kind = "adamw";
  auto ratio =
      ckopt::parseBudgetRatio(llvm::StringRef(argv[2]).rtrim('x'),
                              ckopt::MemoryBudget::Kind::Ratio, "budget");
  if (!ratio)
    return fail(ratio.takeError());
  step.remat.budget = *ratio;
  ckopt::RematResult result;
  if (llvm::Error error = ckopt::runPhases(
          *model->module,
          llvm::cantFail(ckopt::buildPhases(step, ckopt::cpuTarget(), &result)),
          {}))
    return fail(std::move(error));
  for (const ckopt::RematPlan &made : result.plans) {
    ckopt::RematFigures plan = ckopt::getFigures(made);
    llvm::outs() << plan.function << ": " << plan.arena << " bytes instead of "
                 << plan.fullArena << ", " << plan.recomputed
                 << " kernels computed again\n";
  }
  return 0;
}
