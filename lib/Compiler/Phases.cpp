//===- Phases.cpp - the named phases of a compilation ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Compiler/Phases.h"
#include "WorkspaceAdvice.h"
#include "ckopt/Autodiff/Passes.h"
#include "ckopt/CodeGen/Passes.h"
#include "ckopt/Dialect/Ckopt/Utils/ExitDiagnostic.h"
#include "ckopt/Distribute/Distribute.h"
#include "ckopt/Distribute/Passes.h"
#include "ckopt/Fuse/Passes.h"
#include "ckopt/Layout/Passes.h"
#include "ckopt/Losses/Passes.h"
#include "ckopt/MemoryPlan/Passes.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Normalize/Passes.h"
#include "ckopt/Optimizers/Passes.h"
#include "ckopt/Overlap/Passes.h"
#include "ckopt/Precision/Passes.h"
#include "ckopt/Remat/Passes.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/TargetRegistry.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace mlir;
using namespace ckopt;

std::string ckopt::parallelText(const StepOptions &options) {
  int64_t replicas = options.ranks / std::max<int64_t>(options.shards, 1);
  std::string text;
  if (replicas > 1 || options.shards < 2)
    text = "dp:" + std::to_string(replicas);
  if (options.shards > 1)
    text +=
        (text.empty() ? "fsdp:" : ",fsdp:") + std::to_string(options.shards);
  return text;
}

std::string Phase::pipeline() const {
  OpPassManager passes(ModuleOp::getOperationName());
  build(passes);
  std::string text;
  llvm::raw_string_ostream os(text);
  passes.printAsTextualPipeline(os);
  return text;
}

static void simplify(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

/// Scores that tiles of rows leave whole are the host's to compare.
static void addLabelRanks(OpPassManager &passes, const StepOptions &options,
                          const RowTiles &tiles) {
  RankLabelsPassOptions ranks;
  ranks.loss = formatLoss(options.loss);
  ranks.ignoreIndex = options.lossSettings.ignoreIndex;
  if (options.lossSettings.classAxis)
    ranks.classAxis = *options.lossSettings.classAxis;
  ranks.leastBytes = options.tileRows ? 0 : tiles.leastBytes;
  passes.addPass(createRankLabelsPass(ranks));
}

/// Adds the loss and the evaluation function, which is a clone of the forward
/// function at this point: with a loss of the model's own, or with an attached
/// one if the host cannot compute it. One rank evaluates alone, so that its
/// loss is no share.
static void addLossAndEval(OpPassManager &passes, const StepOptions &options,
                           const RowTiles &tiles) {
  LossOptions loss;
  static_cast<LossSettings &>(loss) = options.lossSettings;
  loss.terms = options.loss;
  bool attaches = !options.loss.empty(), alone = options.ranks == 1;
  if (attaches && options.evaluateLoss && alone)
    passes.addPass(createAttachLossPass(loss));
  if (options.evaluation)
    passes.addPass(createMakeEvalPass());
  if (options.evaluation && options.ranksLabels && !options.evaluateLoss &&
      options.tileRows >= 0 && attaches &&
      loss.terms.front().kind == "cross_entropy")
    addLabelRanks(passes, options, tiles);
  if (!alone)
    passes.addPass(createSettleBatchNumbersPass());
  if (attaches && options.evaluateLoss && !alone && options.evaluation)
    passes.addPass(createAttachLossPass(loss, "eval"));
  loss.ranks = options.ranks;
  if (attaches && !(options.evaluateLoss && alone))
    passes.addPass(createAttachLossPass(loss));
  if (!attaches && !alone) {
    ShareLossPassOptions share;
    share.ranks = options.ranks;
    passes.addPass(createShareLossPass(share));
  }
}

constexpr int64_t kEvaluationBlocks = 64;

/// Blocks of a step are few, since each needs its gradients; those of an
/// evaluation are small, so that it needs no more bytes than the step.
static void addTiles(OpPassManager &passes, const StepOptions &options,
                     const TargetTraits &traits) {
  const RowTiles &rule = traits.rowTiles;
  TileRowsPassOptions tiles;
  tiles.rows = printChunkRows(options.tileRows);
  tiles.draws = options.ranks == 1;
  tiles.leastBytes = rule.leastBytes;
  tiles.rowStep = rule.rowStep;
  if (options.evaluation && !options.tileRows) {
    tiles.function = "eval";
    tiles.mostBytes = traits.lossChunks.mostBytes;
    tiles.mostBlocks = kEvaluationBlocks;
    passes.addPass(createTileRowsPass(tiles));
  }
  tiles.function = "";
  tiles.mostBytes = rule.mostBytes;
  tiles.mostBlocks = rule.mostBlocks;
  passes.addPass(createTileRowsPass(tiles));
}

static void addChunks(OpPassManager &passes, const StepOptions &options,
                      const LossChunks &rule) {
  ChunkVocabPassOptions chunks;
  chunks.rows = printChunkRows(options.chunkRows);
  chunks.blocks = options.chunkBlocks;
  chunks.mostBytes = rule.mostBytes;
  chunks.leastRows = rule.leastRows;
  if (options.libraryWorkspace && options.precision != Precision::F32)
    chunks.enoughRows = rule.enoughRows;
  chunks.rowStep = rule.rowStep;
  passes.addPass(createChunkVocabPass(chunks));
  if (!options.evaluation)
    return;
  chunks.function = "eval";
  chunks.evaluates = true;
  chunks.enoughRows = 0; // nothing is added up
  passes.addPass(createChunkVocabPass(chunks));
}

static Phase autodiffPhase(const StepOptions &options,
                           const TargetInfo &target) {
  if (options.forwardOnly)
    return {"autodiff", "evaluation form alone: no gradients",
            [options](OpPassManager &passes) {
              MakeEvalPassOptions eval;
              eval.replace = true;
              eval.asWritten = options.asWritten;
              passes.addPass(createMakeEvalPass(eval));
            }};
  return {"autodiff", "loss and backward graph",
          [options, &target](OpPassManager &passes) {
            if (options.freezeNorms)
              passes.addPass(createFreezeNormsPass());
            addLossAndEval(passes, options, target.traits.rowTiles);
            if (options.chunkRows >= 0)
              addChunks(passes, options, target.traits.lossChunks);
            if (options.tileRows >= 0)
              addTiles(passes, options, target.traits);
            if (options.optimizer.paramType != ParamType::F32)
              passes.addPass(createStoreParametersPass());
            AutodiffPassOptions gradients;
            if (options.precision == Precision::F16) {
              gradients.lossScale = options.lossScaling.initial;
              gradients.lossScaleState = !options.optimizer.kind.empty();
            }
            passes.addPass(createAutodiffPass(gradients));
            simplify(passes);
            if (options.ranks > 1) {
              DistributePassOptions distribute;
              distribute.ranks = options.ranks;
              distribute.shards = options.shards;
              distribute.syncNorms = options.syncNorms;
              passes.addPass(createDistributePass(distribute));
            }
          }};
}

/// Returns whether products of f32 are computed by those of bf16, from operands
/// that kernels of their own make.
static bool roundsApart(const StepOptions &options, const TargetInfo &target) {
  auto precision = target.productPrecision(options.matmulPrecision);
  if (!precision) {
    llvm::consumeError(precision.takeError()); // codegen() says it
    return false;
  }
  return target.traits.roundsApart &&
         *precision != runtime::ProductPrecision::F32;
}

/// Returns whether products are computed from less than f32, in which case
/// loads take longer than they do.
static bool roundsOperands(const StepOptions &options,
                           const TargetInfo &target) {
  auto precision = target.productPrecision(options.matmulPrecision);
  if (!precision) {
    llvm::consumeError(precision.takeError()); // codegen() says it
    return false;
  }
  return options.precision != Precision::F32 ||
         *precision != runtime::ProductPrecision::F32;
}

/// Attention rounds no operands by itself, and f16 has no kernels of it.
bool ckopt::hasAttention(const StepOptions &options, const TargetInfo &target) {
  return !roundsApart(options, target) && options.precision != Precision::F16 &&
         target.traits.leastAttentionKeys;
}

static void addAttention(OpPassManager &passes, const StepOptions &options,
                         const TargetInfo &target) {
  FuseAttentionPassOptions attention;
  attention.leastKeys =
      options.attention == Attention::On ? 0 : target.traits.leastAttentionKeys;
  attention.mostColumns = target.traits.mostAttentionColumns;
  if (options.attention == Attention::Off || !hasAttention(options, target))
    return;
  passes.addNestedPass<func::FuncOp>(createFuseAttentionPass(attention));
  simplify(passes);
  passes.addNestedPass<func::FuncOp>(createSampleOrderPass());
  simplify(passes);
}

void ckopt::addAnnotation(OpPassManager &passes, const StepOptions &options,
                          const TargetInfo &target) {
  AnnotateKernelsPassOptions kernels;
  kernels.threads = unsigned(options.threads);
  kernels.vectorBits = options.vectorBits;
  kernels.target = target.name();
  kernels.libraryWorkspace = options.libraryWorkspace;
  kernels.attentionWorkspace = options.attentionWorkspace;
  kernels.multiprocessors = options.multiprocessors;
  kernels.sharedBytes = options.sharedBytes;
  kernels.processorShared = options.processorShared;
  kernels.ownBesideLibraries = options.ownBesideLibraries;
  kernels.matmulPrecision = nameOf(options.matmulPrecision).str();
  kernels.deviceRates = options.deviceRates;
  kernels.cpuClass = options.cpuClass;
  kernels.libraryTable = options.libraryTable;
  passes.addPass(createAnnotateKernelsPass(kernels));
}

static void addFusion(OpPassManager &passes, const StepOptions &options,
                      const TargetInfo &target) {
  DecomposePassOptions decompose;
  decompose.maxJoined = target.traits.limits.joined;
  decompose.widenHalves = !target.traits.halfProducts;
  if (roundsOperands(options, target))
    decompose.classGroup = target.traits.lossChunks.classGroup;
  passes.addNestedPass<func::FuncOp>(createDecomposePass(decompose));
  simplify(passes);
  LayoutPassOptions layout;
  layout.layout = nameOf(options.layout).str();
  layout.planes = target.traits.planesOfRows;
  passes.addPass(createLayoutPass(layout));
  simplify(passes);
  if (roundsOperands(options, target)) {
    WidenChannelsPassOptions widen;
    widen.group = target.traits.channelGroup;
    passes.addNestedPass<func::FuncOp>(createWidenChannelsPass(widen));
  }
  FusePassOptions fuse;
  fuse.addsProducts = target.traits.addsToTensors;
  fuse.rounds = options.precision != Precision::F32;
  passes.addPass(createFusePass(fuse));
  if (options.precision != Precision::F32) {
    MixedPrecisionPassOptions mixed;
    mixed.type = nameOf(options.precision).str();
    mixed.keepF32 = options.keepF32;
    mixed.threads = unsigned(options.threads);
    mixed.target = target.name();
    mixed.libraryWorkspace = options.libraryWorkspace;
    mixed.cpuClass = options.cpuClass;
    mixed.libraryTable = options.libraryTable;
    mixed.keepCopies = options.keepCopies;
    passes.addPass(createMixedPrecisionPass(mixed));
  }
  if (roundsApart(options, target)) {
    RoundProductsPassOptions round;
    round.precision = nameOf(options.matmulPrecision).str();
    round.threads = unsigned(options.threads);
    round.target = target.name();
    passes.addPass(createRoundProductsPass(round));
  }
  RepeatWeightsPassOptions repeat;
  repeat.threads = unsigned(options.threads);
  repeat.target = target.name();
  repeat.libraryWorkspace = options.libraryWorkspace;
  repeat.cpuClass = options.cpuClass;
  repeat.libraryTable = options.libraryTable;
  passes.addPass(createRepeatWeightsPass(repeat));
  addAnnotation(passes, options, target);
}

bool ckopt::overlaps(const StepOptions &options) {
  return options.ranks > 1 && options.overlap;
}

/// Refuses what steps of several ranks cannot do yet.
static llvm::Error checkRanks(const StepOptions &options) {
  if (options.ranks < 1)
    return usageError(Setting("parallel", parallelText(options)) +
                      ": there is at least one rank");
  return llvm::Error::success();
}

llvm::Expected<std::vector<Phase>>
ckopt::buildPhases(const StepOptions &options, const TargetInfo &target,
                   RematResult *result) {
  if (llvm::Error error = registerTarget(target))
    return std::move(error);
  if (llvm::Error error = checkRanks(options))
    return std::move(error);
  if (options.attention == Attention::On && !hasAttention(options, target))
    return usageError(Setting("attention", "on") + ": with " +
                      (roundsApart(options, target)
                           ? "operands that kernels of their own round (" +
                                 Setting("matmul-precision") + ")"
                           : MessageText(Setting("precision", "f16"))) +
                      " attention is products and a softmax");
  std::vector<Phase> phases;
  phases.push_back({"normalize", "fold and deduplicate what the exporter wrote",
                    [options, &target](OpPassManager &passes) {
                      simplify(passes);
                      passes.addNestedPass<func::FuncOp>(createNormalizePass());
                      simplify(passes);
                      addAttention(passes, options, target);
                    }});
  phases.push_back(autodiffPhase(options, target));
  if (!options.optimizer.kind.empty() && !options.forwardOnly)
    phases.push_back(
        {"optimizer", "parameter updates", [options](OpPassManager &passes) {
           OptimizerSettings settings = options.optimizer;
           settings.lossScaleGrowth = options.lossScaling.dynamic
                                          ? options.lossScaling.growthInterval
                                          : 0;
           passes.addPass(createOptimizerPass(settings));
         }});
  phases.push_back({"fuse",
                    "layouts, then ops to kernels with costs and workspaces",
                    [options, &target](OpPassManager &passes) {
                      addFusion(passes, options, target);
                    }});
  phases.push_back({"remat", "order and recomputation under the budget",
                    [options, result, &target](OpPassManager &passes) {
                      RematOptions remat = options.remat;
                      remat.advise = [options, &target](const RematPlan &plan) {
                        return adviseWorkspace(plan, options, target);
                      };
                      remat.overlap = overlaps(options);
                      if (!options.needsEvaluation && !options.forwardOnly)
                        remat.optional = {"eval"};
                      passes.addPass(createRematPass(remat, result));
                      if (remat.overlap)
                        passes.addPass(createOverlapPass(options.remat.costs));
                    }});
  phases.push_back({"plan-memory", "one arena, an offset for every value",
                    [&target](OpPassManager &passes) {
                      PlanMemoryPassOptions plan;
                      plan.lateUpdates = target.traits.joinsUpdates;
                      passes.addPass(createPlanMemoryPass(plan));
                      if (target.traits.joinsUpdates) {
                        JoinUpdatesPassOptions join;
                        join.mostTensors = target.traits.limits.tensors;
                        passes.addPass(createJoinUpdatesPass(join));
                      }
                    }});
  return phases;
}

/// On dumped modules: the last phase that they have behind them.
static constexpr llvm::StringLiteral kPhaseAttr = "ckopt.phase";

/// Refuses to leave out phases between a dump and the first to run.
static llvm::Error checkNext(ModuleOp module, ArrayRef<Phase> phases,
                             StringRef from) {
  auto behind = module->getAttrOfType<StringAttr>(kPhaseAttr);
  if (!behind || from.empty())
    return llvm::Error::success();
  for (size_t i = 0; i < phases.size(); ++i)
    if (phases[i].name == from && i > 0 &&
        phases[i - 1].name != behind.getValue())
      return usageError(Setting("compile-from", from) + " goes on behind '" +
                        phases[i - 1].name +
                        "', and the IR was dumped behind '" +
                        behind.getValue() + "'");
  return llvm::Error::success();
}

/// Writes the module as DIR/NN-phase.mlir.
static llvm::Error dump(ModuleOp module, StringRef directory, size_t number,
                        const Phase &phase) {
  if (auto code = llvm::sys::fs::create_directories(directory))
    return ioError("cannot make '" + directory + "': " + code.message());
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "// " << phase.pipeline() << "\n";
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(64).enableDebugInfo(/*enable=*/true, false);
  module.print(stream, flags);
  std::string name;
  llvm::raw_string_ostream(name)
      << directory << "/" << llvm::format("%02zu-", number) << phase.name
      << ".mlir";
  return writeFileAtomically(name, text);
}

static llvm::Error runPhase(ModuleOp module, const Phase &phase) {
  auto manager = PassManager::on<ModuleOp>(module.getContext());
  phase.build(manager);
  manager.enableVerifier(true);
  // The exit code that a pass set, if it failed for a documented reason; every
  // other failure is bad input, whose diagnostics have been emitted.
  std::optional<ExitCode> code;
  ScopedDiagnosticHandler handler(
      module.getContext(), [&](Diagnostic &diagnostic) {
        if (!code && diagnostic.getSeverity() == DiagnosticSeverity::Error)
          code = getExitCode(diagnostic);
        return failure(); // other callers print it
      });
  if (succeeded(manager.run(module)))
    return llvm::Error::success();
  return toldError(code.value_or(ExitInputError),
                   "stopped in phase '" + phase.name +
                       "' by what is said above");
}

llvm::Error ckopt::checkPhases(ArrayRef<Phase> phases,
                               const PhaseControl &control) {
  auto known = [&](StringRef name) {
    return name.empty() || llvm::any_of(phases, [&](const Phase &phase) {
             return phase.name == name;
           });
  };
  for (const std::string &name : {control.from, control.to})
    if (!known(name)) {
      std::string list;
      for (const Phase &phase : phases)
        list += (list.empty() ? "" : ", ") + phase.name;
      return usageError("no phase '" + name + "'; the phases are import, " +
                        list);
    }
  auto place = [&](StringRef name) {
    return llvm::find_if(
        phases, [&](const Phase &phase) { return phase.name == name; });
  };
  if (!control.from.empty() && !control.to.empty() &&
      place(control.to) < place(control.from))
    return usageError("phase '" + control.to + "' ends before '" +
                      control.from + "' begins");
  return llvm::Error::success();
}

llvm::Error ckopt::runPhases(ModuleOp module, const std::vector<Phase> &phases,
                             const PhaseControl &control) {
  if (llvm::Error error = checkPhases(phases, control))
    return error;
  if (llvm::Error error = checkNext(module, phases, control.from))
    return error;
  bool running = control.from.empty();
  for (auto [i, phase] : llvm::enumerate(phases)) {
    running |= phase.name == control.from;
    if (!running)
      continue;
    auto start = std::chrono::steady_clock::now();
    if (llvm::Error error = runPhase(module, phase))
      return error;
    std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    if (control.verbose)
      llvm::errs() << llvm::format("[%zu/%zu] %-12s %6.2f s  ", i + 1,
                                   phases.size(), phase.name.c_str(),
                                   seconds.count())
                   << phase.summary << "\n";
    if (control.finished)
      control.finished(phase.name);
    if (!control.dumpDirectory.empty() || !control.to.empty())
      module->setAttr(kPhaseAttr,
                      StringAttr::get(module.getContext(), phase.name));
    if (!control.dumpDirectory.empty())
      if (llvm::Error error = dump(module, control.dumpDirectory, i + 1, phase))
        return error;
    if (phase.name == control.to)
      break;
  }
  return llvm::Error::success();
}
