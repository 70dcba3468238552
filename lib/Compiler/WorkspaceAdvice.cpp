//===- WorkspaceAdvice.cpp - what lowers libraries' workspaces ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: where no plan fits a budget, a library's workspace may be what does
// not, and no search lowers that: settings do. Their user does not know that
// the call is a library's.
//
// Method: the call that runs at the peak of the smallest plan is planned again
// as if there were no libraries; what it then needs less is theirs.
//
// Guarantee: nothing is said where the settings cannot help. No plan's peak
// falls by more than the largest workspace, so the proven bound less that is a
// bound for all settings. O(nodes).
//
//===----------------------------------------------------------------------===//
#include "WorkspaceAdvice.h"
#include "ckopt/CodeGen/Kernels.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Support/ByteSize.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace ckopt;

/// Returns the bytes of a call's workspace that it does not need without
/// libraries; 0 if it needs them.
static int64_t libraryBytes(KernelCallOp call, KernelSettings settings,
                            const TargetInfo &target) {
  settings.libraryWorkspace = settings.attentionWorkspace = 0;
  auto codegen = target.codegen(settings);
  if (!codegen) {
    llvm::consumeError(codegen.takeError());
    return 0;
  }
  ScopedDiagnosticHandler silence(call->getContext(),
                                  [](Diagnostic &) { return success(); });
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  auto own = planKernel(kernel, *codegen);
  return failed(own)
             ? 0
             : std::max<int64_t>(
                   int64_t(call.getWorkspace()) - own->workspaceBytes, 0);
}

/// Returns whether a plan could fit if no call had a workspace.
static bool mayFitWithout(const RematPlan &plan) {
  int64_t most = 0;
  for (const planner::Node &node : plan.problem.graph.nodes)
    most = std::max(most, node.workspace);
  int64_t reserved = plan.fixedBytes - plan.problem.argumentBytes;
  return plan.result.plan.provenMinimum + reserved - most <= plan.budgetBytes;
}

MessageText ckopt::adviseWorkspace(const RematPlan &plan,
                                   const KernelSettings &settings,
                                   const TargetInfo &target) {
  MessageText less = target.lessWorkspace();
  if (less.empty() || !mayFitWithout(plan))
    return {};
  for (const planner::PeakEntry &entry : plan.result.aliveAtPeak) {
    auto call =
        entry.node < 0
            ? KernelCallOp()
            : dyn_cast<KernelCallOp>(plan.problem.ops[size_t(entry.node)]);
    int64_t bytes = call ? libraryBytes(call, settings, target) : 0;
    if (bytes > 0)
      return "; " + formatBytes(bytes) + " of the " + entry.name +
             " are for a library, which " + less;
  }
  return {};
}
