//===- PlanSizes.cpp - plans and code for a range of sizes ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes the step of a size from those that CompileSizes.cpp compared, plans
// smaller sizes where the largest recomputes, and gives a plan's calls and
// places to the tensors of the sizes that the target merges.
//
//===----------------------------------------------------------------------===//
#include "CompileSizes.h"
#include "SizeResizer.h"
#include "ckopt/CodeGen/Kernels.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/TargetInfo.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringMap.h"

#include <set>

using namespace mlir;
using namespace ckopt;

/// Notes on a kernel which of its sizes another one has otherwise.
static void noteOpenSizes(func::FuncOp kernel, func::FuncOp other) {
  std::set<int64_t> open;
  auto look = [&](Type one, Type two) {
    for (auto [a, b] : llvm::zip(cast<RankedTensorType>(one).getShape(),
                                 cast<RankedTensorType>(two).getShape()))
      if (a != b)
        open.insert(a);
  };
  for (auto [a, b] :
       llvm::zip(kernel.getArgumentTypes(), other.getArgumentTypes()))
    look(a, b);
  for (auto [a, b] : llvm::zip(kernel.front(), other.front()))
    for (auto [x, y] : llvm::zip(a.getResultTypes(), b.getResultTypes()))
      look(x, y);
  if (!open.empty())
    kernel->setAttr(
        kOpenSizesAttr,
        DenseI64ArrayAttr::get(kernel.getContext(),
                               SmallVector<int64_t>(open.begin(), open.end())));
}

/// Gives the functions of a planned module the tensors of another size.
static llvm::Error resize(ModuleOp planned, ModuleOp unplanned) {
  for (const char *name : kPlannedFunctions) {
    auto function = planned.lookupSymbol<func::FuncOp>(name),
         model = unplanned.lookupSymbol<func::FuncOp>(name);
    if (!function)
      continue;
    auto ops = opsOf(model);
    function.setType(model.getFunctionType());
    // What planning noted stays; what the model says follows the size.
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      function.getArgument(i).setType(model.getArgument(i).getType());
      if (DictionaryAttr noted = model.getArgAttrDict(i))
        for (NamedAttribute attr : noted)
          function.setArgAttr(i, attr.getName(), attr.getValue());
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (DictionaryAttr noted = model.getResultAttrDict(i))
        for (NamedAttribute attr : noted)
          function.setResultAttr(i, attr.getName(), attr.getValue());
    for (Operation &op : function.front().without_terminator()) {
      auto origin = op.getAttrOfType<IntegerAttr>(kOriginAttr);
      if (!origin)
        return makeError(ExitInternal, "a planned call is none of the step's");
      for (auto [result, other] : llvm::zip_equal(
               op.getResults(), ops[size_t(origin.getInt())]->getResults()))
        result.setType(other.getType());
    }
  }
  return llvm::Error::success();
}

/// Makes the step before planning at a size, from those that were compared.
llvm::Expected<OwningOpRef<ModuleOp>> Compilation::unplannedStep(int64_t size,
                                                                 bool plans) {
  const SizeRange &range = *opts.sizes;
  SmallVector<ModuleOp> modules;
  SmallVector<SizePoint> points;
  for (auto &[own, module] : unplannedAt) {
    points.push_back(own);
    modules.push_back(*module);
  }
  SizeResizer resizer(points, blocks.at(size));
  OwningOpRef<ModuleOp> made = resizer.run(modules);
  if (!made)
    return refuseSizes(range, size, points[0].size, resizer.failedAt,
                       "a size is below zero, or a number follows another "
                       "rule:");
  for (auto kernel : made->getOps<func::FuncOp>())
    if (kernel->hasAttr(attrs::kKernel))
      noteOpenSizes(kernel, modules.front().lookupSymbol<func::FuncOp>(
                                kernel.getSymName()));
  if (failed(verify(*made)))
    return refuseSizes(range, points[0].size, size, nullptr,
                       "tensors have sizes that they have not");
  if (!plans)
    return std::move(made);
  PassManager annotation(context.get());
  addAnnotation(annotation, opts.step, *targetInfo);
  if (failed(annotation.run(*made)))
    return toldError(ExitInputError, "stopped at a size of " + Twine(size) +
                                         " by what is said above");
  if (llvm::Error error = raiseWorkspaces(*made, size))
    return std::move(error);
  return std::move(made);
}

/// Sizes whose primitives may need more workspace than those of the largest:
/// libraries cut work into blocks. A whole number of them may take most; or,
/// where operands of 16 bits are copied into whole blocks (oneDNN with AMX),
/// one less.
static std::set<int64_t> sizesOfBlocks(int64_t low, int64_t high,
                                       bool hasHalves) {
  std::set<int64_t> sizes{low, high};
  auto add = [&](int64_t step, int64_t last) {
    for (int64_t n = step; n <= std::min(last, high); n += step)
      for (int64_t near : {n, hasHalves ? n - 1 : n})
        if (near >= low)
          sizes.insert(near);
  };
  if (hasHalves && high > low)
    sizes.insert(high - 1);
  constexpr int64_t kParts = 24;
  add(16, 512);
  add(128, 4096);
  for (int64_t i = 1; i < kParts; ++i)
    sizes.insert(low + (high - low) * i / kParts);
  return sizes;
}

/// Whether kernels take tensors of 16-bit floats.
static bool takesHalves(ModuleOp module) {
  auto isHalf = [](Type type) {
    Type element = getElementTypeOrSelf(type);
    return element.isBF16() || element.isF16();
  };
  return llvm::any_of(module.getOps<func::FuncOp>(), [&](func::FuncOp kernel) {
    return llvm::any_of(kernel.getArgumentTypes(), isHalf);
  });
}

/// Gives calls of primitives the most workspace that they need at some size.
llvm::Error Compilation::raiseWorkspaces(ModuleOp step, int64_t high) {
  auto codegen = targetInfo->codegen(opts.step);
  if (!codegen)
    return codegen.takeError();
  SmallVector<OwningOpRef<ModuleOp>> owned;
  SmallVector<ModuleOp> modules;
  SmallVector<SizePoint> points;
  for (auto &[point, module] : unplannedAt) {
    owned.push_back(ModuleOp::create(module->getLoc()));
    for (auto kernel : module->getOps<func::FuncOp>())
      if (auto kind = kernel->getAttrOfType<StringAttr>(attrs::kKernel);
          kind && kind.getValue() == "library")
        owned.back()->push_back(kernel.clone());
    modules.push_back(*owned.back());
    points.push_back(point);
  }
  llvm::StringMap<int64_t> most;
  for (int64_t size :
       sizesOfBlocks(opts.sizes->low, high, takesHalves(modules.front()))) {
    OwningOpRef<ModuleOp> made =
        SizeResizer(points, blocks.at(size)).run(modules);
    if (!made)
      continue; // said for sizes that are compared
    for (auto kernel : made->getOps<func::FuncOp>()) {
      auto code = planKernel(kernel, *codegen);
      if (failed(code))
        return toldError(ExitUnsupported, "stopped at a size of " +
                                              Twine(size) +
                                              " by what is said above");
      int64_t &bytes = most[kernel.getSymName()];
      bytes = std::max(bytes, code->workspaceBytes);
    }
  }
  step.walk([&](KernelCallOp call) {
    auto found = most.find(call.getCallee());
    if (found != most.end())
      call.setWorkspace(
          std::max<int64_t>(int64_t(call.getWorkspace()), found->second));
  });
  return llvm::Error::success();
}

/// Where the largest size recomputes to stay inside of its budget, smaller ones
/// need not: plans half of the size, and half of that, until nothing is
/// recomputed. Their arena is that of the largest.
llvm::Error Compilation::planSmaller() {
  const SizeRange &range = *opts.sizes;
  StepOptions step = opts.step;
  step.remat.budget = {MemoryBudget::Kind::Bytes, planSummary.figures.arena, 1};
  int64_t recomputed = planSummary.figures.recomputed;
  for (int64_t high = range.high / 2; recomputed > 0 && high > range.low;
       high /= 2) {
    auto made = unplannedStep(high);
    if (!made)
      return made.takeError();
    auto phases = buildPhases(step, *targetInfo);
    if (!phases)
      return phases.takeError();
    PhaseControl control;
    control.from = "remat";
    if (llvm::Error error = runPhases(**made, *phases, control))
      return error;
    recomputed = 0;
    (*made)->walk(
        [&](KernelCallOp call) { recomputed += call.getClone().has_value(); });
    Schedule &schedule = smaller.emplace_back();
    schedule.high = high;
    schedule.planned = std::move(*made);
    remark("sizes of '" + shownName(range) + "' up to " + std::to_string(high) +
           " have a schedule of their own, which "
           "recomputes " +
           std::to_string(recomputed) + " calls");
  }
  return llvm::Error::success();
}

llvm::Expected<PlannedSizes> Compilation::planSizes(ModuleOp planned,
                                                    int64_t high) {
  PlannedSizes sizes;
  sizes.range.name = shownName(*opts.sizes);
  sizes.range.low = opts.sizes->low;
  sizes.range.blocks = blocks;
  sizes.range.high = sizes.range.size = high;
  for (auto [i, entry] : llvm::enumerate(unplannedAt)) {
    ModuleOp unplanned = *entry.second;
    ModuleOp neighbor = *unplannedAt[i ? i - 1 : 1].second;
    OwningOpRef<ModuleOp> made = planned.clone();
    if (llvm::Error error = resize(*made, unplanned))
      return std::move(error);
    for (func::FuncOp kernel :
         llvm::make_early_inc_range(made->getOps<func::FuncOp>())) {
      if (!kernel->hasAttr(attrs::kKernel))
        continue;
      auto own = unplanned.lookupSymbol<func::FuncOp>(kernel.getSymName());
      auto other = neighbor.lookupSymbol<func::FuncOp>(kernel.getSymName());
      if (!own || !other)
        return makeError(ExitInternal, "a kernel is of one size alone");
      func::FuncOp copy = own.clone();
      made->getBody()->getOperations().insert(Block::iterator(kernel), copy);
      kernel.erase();
      noteOpenSizes(copy, other);
    }
    sizes.others.emplace_back(entry.first, std::move(made));
  }
  return std::move(sizes);
}
