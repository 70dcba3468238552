//===- Passes.cpp - annotate-kernels, lower-kernels -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/CodeGen/Passes.h"
#include "Kinds/GeneratedKernel.h"
#include "ckopt/Analysis/CostModel.h"
#include "ckopt/Analysis/FlatParts.h"
#include "ckopt/CodeGen/Kernels.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/ExitDiagnostic.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/TargetRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/MapVector.h"

#include <cmath>

namespace ckopt {
#define GEN_PASS_DEF_ANNOTATEKERNELSPASS
#define GEN_PASS_DEF_LOWERKERNELSPASS
#include "ckopt/CodeGen/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

FailureOr<CodegenOptions> ckopt::codegenOptions(ModuleOp module,
                                                KernelSettings &settings,
                                                StringRef matmulPrecision) {
  auto fail = [&](llvm::Error error) {
    return module.emitError() << takeErrorText(std::move(error)).message;
  };
  auto target = findTarget(settings.target);
  if (!target)
    return fail(target.takeError());
  if (llvm::Error error = parseMatmulPrecision(matmulPrecision)
                              .moveInto(settings.matmulPrecision))
    return fail(std::move(error));
  auto options = (*target)->codegen(settings);
  if (!options)
    return fail(options.takeError());
  return *options;
}

namespace {

/// Reports kernels that exceed the target's limits.
LogicalResult checkLimits(func::FuncOp kernel, const KernelCode &code,
                          const TargetTraits &target) {
  unsigned tensors = kernel.getNumArguments() + kernel.getNumResults();
  bool runs = llvm::any_of(code.stages, [](auto &stage) { return stage.trip; });
  auto refuse = [&] {
    InFlightDiagnostic error = emitError(kernel.getLoc());
    setExitCode(error, ExitUnsupported);
    return error;
  };
  const KernelLimits &limits = target.limits;
  if (limits.tensors && runs && tensors > limits.tensors)
    return refuse() << "reads and writes " << tensors
                    << " tensors at once, and kernels of " << target.machines
                    << " take " << limits.tensors
                    << ": split the node, or run this model on the CPU";
  for (const KernelStage &stage : code.stages)
    if (limits.blocks && stage.trip > limits.blocks)
      return refuse()
             << "needs " << stage.trip << " blocks of threads for "
             << withOrder(
                    cast<RankedTensorType>(kernel.getResultTypes().front()), {})
             << ", and " << target.machines << " start at most "
             << limits.blocks
             << ": make the batch smaller, or run this model on the CPU";
  return success();
}

/// Returns the time of blocks relative to a full device. `resident` blocks run
/// on a multiprocessor at once, and each spends half of its time waiting, which
/// others hide.
double waveLoss(const ContractionShape &shape, double multiprocessors) {
  double resident = double(shape.resident);
  double perProcessor = double(shape.blocks) / multiprocessors;
  double rounds = std::floor(perProcessor / resident);
  double rest = std::ceil(perProcessor - rounds * resident);
  double time = rounds * resident + (rest > 0 ? (rest + resident) / 2 : 0);
  return time / perProcessor;
}

/// Returns the time of a contraction relative to the full rate. It counts tiles
/// beyond the edges, blocks that do not fill the device, and loads of tiles
/// from the cache. Libraries have a rate of their own, and the tiles of ours.
double productTime(const KernelCode &code, const MachineRates &rates) {
  double products = 0, time = 0;
  for (const ContractionShape &shape : code.shapes)
    products += shape.products;
  if (!(rates.multiprocessors > 0))
    return 1;
  bool isMatMul = code.primitive.kind == runtime::PrimitiveKind::MatMul;
  bool isHalf =
      code.primitive.dtype == DType::F16 || code.primitive.dtype == DType::BF16;
  double rate = isMatMul ? rates.matmul : rates.conv;
  if (isHalf)
    rate *= isMatMul ? rates.halves : rates.convHalves;
  bool byLibrary =
      code.library && (isMatMul || code.primitive.conv.groups == 1);
  double library = !byLibrary ? 0
                   : isHalf   ? rates.libraryHalves
                              : rates.libraryMatmul;
  if (!isMatMul)
    library *= rates.conv / rates.matmul;
  if (!(products > 0)) // no tiles of ours
    return library > 0 ? rate / library : 1;
  for (const ContractionShape &shape : code.shapes) {
    if (shape.blocks == 0)
      continue;
    double computing = 2 * shape.computed / (library > 0 ? library : rate) *
                       waveLoss(shape, rates.multiprocessors) / shape.share;
    double loading = library > 0 || !(rates.tileBandwidth > 0)
                         ? 0
                         : shape.tileBytes / rates.tileBandwidth;
    time += std::max(computing, loading);
  }
  // The cost model has a separate rate for groups.
  double counted =
      !isMatMul && code.primitive.conv.groups > 1 ? rates.depthwiseConv : rate;
  return time * counted / (2 * products);
}

/// Returns the time of a library's attention relative to ours. Its products are
/// in blocks of 128 rows, and it needs no passes over scores beside them.
double attentionTime(ContractionOpInterface op, const KernelCode &code,
                     const MachineRates &rates) {
  if (!code.library || !(rates.libraryHalves > 0))
    return 1;
  const runtime::AttentionDesc &a = code.primitive.attention;
  auto padding = [](int64_t rows) {
    return double(llvm::alignTo(uint64_t(rows), 128)) / double(rows);
  };
  double slower =
      op.isGradient() ? rates.libraryAttentionGradient : rates.libraryAttention;
  double flops = double(cast<KernelOpInterface>(op.getOperation()).getFlops());
  return flops * padding(a.queries) * padding(a.keys) * slower /
         rates.libraryHalves / arithmeticSeconds(op, rates);
}

/// Returns the bytes that the device's resident threads load and store at once,
/// if each has one element; 0 if threads have more.
int64_t scalarBytes(func::FuncOp kernel, const KernelCode &code,
                    const MachineRates &rates) {
  constexpr double kResidentThreads = 2048;
  if (code.stages.empty() || code.stages.front().scalarReason.empty())
    return 0;
  SmallVector<Type> tensors(kernel.getArgumentTypes());
  llvm::append_range(tensors, kernel.getResultTypes());
  int64_t most = 0;
  for (Type type : tensors)
    most = std::max(most, cast<RankedTensorType>(type).getNumElements());
  double threads =
      double(code.stages.front().trip) * double(code.stages.front().block);
  if (threads < double(most))
    return 0;
  double resident = kResidentThreads * rates.multiprocessors;
  return int64_t(std::min(threads, resident)) *
         codegen::bytesOfPoint(tensors, most);
}

/// Writes a kernel's costs other than its operations and bytes to it. With
/// `joins`, updates of all parameters are a few launches whose number is known
/// only after planning, but hundreds if each were one; they count as none.
void describeCost(func::FuncOp kernel, const KernelCode &code,
                  const MachineRates &rates, bool joins) {
  Builder builder(kernel.getContext());
  int64_t launches =
      code.blocks.empty()
          ? llvm::count_if(code.stages, [](auto &s) { return s.trip > 0; })
          : 0;
  if (joins && isJoinable(kernel))
    launches = 0;
  for (const KernelCode::ProductBlock &block : code.blocks)
    launches += code.blockStages.empty()
                    ? 2
                    : 1 + code.blockStages[block.primitive].second;
  kernel->setAttr(attrs::kLaunches, builder.getI64IntegerAttr(launches));
  int64_t inFlight = code.bytesInFlight ? code.bytesInFlight
                                        : scalarBytes(kernel, code, rates);
  if (inFlight)
    kernel->setAttr(attrs::kBytesInFlight, builder.getI64IntegerAttr(inFlight));
  auto product = dyn_cast<ContractionOpInterface>(kernel.front().front());
  double time =
      product && product.getContractionKind() == ContractionKind::Attention
          ? attentionTime(product, code, rates)
          : productTime(code, rates);
  if (time != 1)
    kernel->setAttr(attrs::kProductTime, builder.getF64FloatAttr(time));
}

struct AnnotateKernels : ckopt::impl::AnnotateKernelsPassBase<AnnotateKernels> {
  using AnnotateKernelsPassBase::AnnotateKernelsPassBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    KernelSettings settings;
    settings.target = target;
    settings.threads = int32_t(threads);
    settings.vectorBits = vectorBits;
    settings.libraryWorkspace = libraryWorkspace;
    settings.attentionWorkspace = attentionWorkspace;
    settings.multiprocessors = multiprocessors;
    settings.sharedBytes = sharedBytes;
    settings.processorShared = processorShared;
    settings.ownBesideLibraries = ownBesideLibraries;
    settings.contractions = contractions;
    settings.cpuClass = cpuClass;
    settings.libraryTable = libraryTable;
    FailureOr<CodegenOptions> options =
        codegenOptions(getOperation(), settings, matmulPrecision);
    if (failed(options))
      return signalPassFailure();
    getOperation()->setAttr(kTargetAttr,
                            StringAttr::get(&getContext(), target));
    const TargetTraits &traits = options->target->traits;
    if (traits.arenaAlignment > 64)
      getOperation()->setAttr(
          attrs::kAlignment,
          Builder(&getContext()).getI64IntegerAttr(traits.arenaAlignment));
    if (traits.feedsAhead)
      getOperation()->setAttr(attrs::kFedTwice, UnitAttr::get(&getContext()));
    MachineRates weighed;
    if (!deviceRates.empty()) {
      settings.deviceRates = deviceRates;
      llvm::Expected<MachineRates> rates = options->target->rates(settings);
      if (!rates) {
        getOperation().emitError() << takeErrorText(rates.takeError()).message;
        return signalPassFailure();
      }
      rates->approximates = getOperation()->hasAttr(kApproximatesAttr) ? 1 : 0;
      getOperation()->setAttr(kRatesAttr, ratesAttr(&getContext(), *rates));
      weighed = *rates;
    }
    llvm::MapVector<Operation *, KernelCode> codes;
    bool failedAny = false;
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!kernel->hasAttr(attrs::kKernel))
        continue;
      FailureOr<KernelCode> code = planKernel(kernel, *options);
      if (failed(code)) {
        failedAny = true;
      } else if (failed(checkLimits(kernel, *code, options->target->traits))) {
        failedAny = true;
      } else {
        codes[kernel] = *code;
        if (traits.form == StageForm::Blocks)
          describeCost(kernel, *code, weighed, traits.joinsUpdates);
      }
    }
    if (failedAny)
      return signalPassFailure();
    getOperation().walk([&](KernelCallOp call) {
      auto it = codes.find(symbols.lookup(call.getCallee()));
      if (it == codes.end()) {
        call.emitError("calls @") << call.getCallee() << ", which is no kernel";
        failedAny = true;
        return;
      }
      call.setWorkspace(it->second.workspaceBytes);
      SmallVector<int64_t> reuse;
      for (auto [operand, result] : it->second.reuse)
        reuse.append({int64_t(operand), int64_t(result)});
      call.setReuse(reuse);
    });
    if (failedAny)
      signalPassFailure();
  }
};

struct LowerKernels : ckopt::impl::LowerKernelsPassBase<LowerKernels> {
  using LowerKernelsPassBase::LowerKernelsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    KernelSettings settings;
    settings.target = target;
    settings.threads = int32_t(threads);
    settings.vectorBits = vectorBits;
    settings.cpuClass = cpuClass;
    settings.libraryTable = libraryTable;
    FailureOr<CodegenOptions> options =
        codegenOptions(module, settings, matmulPrecision);
    if (failed(options))
      return signalPassFailure();
    SmallVector<func::FuncOp> kernels;
    for (auto kernel : module.getOps<func::FuncOp>())
      if (kernel->hasAttr(attrs::kKernel))
        kernels.push_back(kernel);
    bool failedAny = false;
    for (func::FuncOp kernel : kernels)
      failedAny |= failed(report ? remark(kernel, *options)
                                 : emitKernel(kernel, *options, module));
    if (failedAny)
      return signalPassFailure();
    if (!toLLVM || report)
      return;
    for (Operation &op : llvm::make_early_inc_range(*module.getBody())) {
      auto function = dyn_cast<func::FuncOp>(op);
      if (function && !function->hasAttr("passthrough"))
        op.erase();
    }
    OpPassManager pipeline(ModuleOp::getOperationName());
    buildKernelLoweringPipeline(pipeline);
    if (failed(runPipeline(pipeline, module)))
      signalPassFailure();
  }

private:
  static LogicalResult remark(func::FuncOp kernel,
                              const CodegenOptions &options) {
    FailureOr<KernelCode> code = planKernel(kernel, options);
    if (failed(code))
      return failure();
    auto text = kernel.emitRemark();
    if (code->library) {
      text << "library: " << runtime::describe(code->primitive);
      if (!code->blocks.empty())
        text << ", blocks " << code->blocks.size();
    } else {
      FailureOr<VectorReport> vector = reportVectorization(kernel, options);
      if (failed(vector))
        return failure();
      text << "lanes " << vector->lanes << ", unit loads " << vector->unitLoads
           << ", broadcasts " << vector->broadcasts << ", gathers "
           << vector->gathers << ", libm " << vector->libmCalls << "; stages";
      for (const KernelStage &stage : code->stages)
        text << " " << stage.trip << "/" << stage.grain;
    }
    text << "; workspace " << code->workspaceBytes << "; reuse";
    for (auto [operand, result] : code->reuse)
      text << " " << operand << "->" << result;
    return success();
  }
};

} // namespace
