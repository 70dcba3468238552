//===- CompileSizes.cpp - one plan for a range of sizes -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: rows have a thousand lengths, and a step is compiled for one.
// Method: the model is compiled up to its kernels at four sizes, whose steps
// must have the same calls. The step of the largest size is made from them, and
// planned. A place that is free for a tensor there is free for the smaller one
// of another size, so the plan holds for all: each of the four gets the plan's
// calls and places, with tensors of its own sizes, and the target makes one
// code of them (Target/Cpu/OpenSizes.cpp).
//
// The four sizes are primes, so that nothing about them is true by chance: what
// holds for their sizes (a multiple of 16, one merged loop) follows from the
// model alone. They are compiled on several threads.
//
// Guarantee: the arena of the largest size is enough for every other; steps
// that differ in more than sizes are an error that names the node. Complexity:
// four times the work before planning.
//
//===----------------------------------------------------------------------===//
#include "CompileSizes.h"
#include "SizeResizer.h"
#include "ckopt/CodeGen/Kernels.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/OnThreads.h"
#include "ckopt/Support/SizeNumbers.h"
#include "ckopt/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringMap.h"

#include <set>

using namespace mlir;
using namespace ckopt;

/// How many sizes are compared: three make a polynomial, one
/// confirms it.
static constexpr size_t kSizes = 4;

/// The least size that is compared: vectors have up to 16 lanes, and smaller
/// sizes do not tell them from others.
static constexpr int64_t kLeastCompared = 17;

static bool isPrime(int64_t n) {
  for (int64_t d = 2; d * d <= n; ++d)
    if (n % d == 0)
      return false;
  return n > 1;
}

/// Returns primes below the largest size, or above it where there are too few.
static std::vector<int64_t> sizesToCompare(const SizeRange &range, bool above) {
  std::vector<int64_t> sizes;
  for (int64_t n = range.high - 1;
       !above && n >= kLeastCompared && sizes.size() < kSizes; --n)
    if (isPrime(n))
      sizes.push_back(n);
  if (sizes.size() < kSizes)
    sizes.clear();
  for (int64_t n = std::max(range.high, kLeastCompared); sizes.size() < kSizes;
       ++n)
    if (isPrime(n))
      sizes.push_back(n);
  return sizes;
}

/// Adds the rows of a block to sizes: primes, too, each enough for its size, in
/// an order that no polynomial of the size has.
static std::vector<SizePoint> withRows(const std::vector<int64_t> &sizes,
                                       int64_t least, bool hasBlocks) {
  std::vector<int64_t> primes;
  for (int64_t n = std::max(least, kLeastCompared);
       hasBlocks && primes.size() < kSizes; ++n)
    if (isPrime(n))
      primes.push_back(n);
  constexpr size_t kOrder[kSizes] = {1, 3, 0, 2};
  std::vector<SizePoint> points;
  for (auto [size, place] : llvm::zip_equal(sizes, kOrder))
    points.push_back({size, hasBlocks ? primes[place] : 0});
  return points;
}

std::string ckopt::shownName(const SizeRange &range) {
  return range.name.empty() ? "batch" : range.name;
}

SmallVector<Operation *> ckopt::opsOf(func::FuncOp function) {
  return llvm::map_to_vector(function.front(),
                             [](Operation &op) { return &op; });
}

/// Gives calls whose kernels differ at some size kernels of their own, by names
/// that are the same at all sizes.
static void nameKernels(MutableArrayRef<ModuleOp> modules) {
  llvm::StringMap<std::string> names; ///< by the callees at all sizes
  std::set<std::string> taken;
  SmallVector<llvm::StringMap<func::FuncOp>> made(modules.size());
  auto rename = [&](MutableArrayRef<KernelCallOp> calls) {
    std::string key;
    for (KernelCallOp call : calls)
      key += call.getCallee().str() + " ";
    auto [entry, isNew] = names.try_emplace(key);
    if (isNew) {
      std::string name = calls.front().getCallee().str();
      for (int n = 1; !taken.insert(name).second; ++n)
        name = (calls.front().getCallee() + "_" + Twine(n)).str();
      entry->second = name;
      for (auto [m, call] : llvm::enumerate(calls)) {
        auto kernel = modules[m].lookupSymbol<func::FuncOp>(call.getCallee());
        made[m][name] = kernel.clone();
        made[m][name].setSymName(name);
      }
    }
    return entry->second;
  };
  SmallVector<std::pair<KernelCallOp, std::string>> changed;
  for (const char *name : kPlannedFunctions) {
    SmallVector<SmallVector<Operation *>> ops;
    for (ModuleOp module : modules)
      if (auto function = module.lookupSymbol<func::FuncOp>(name))
        ops.push_back(opsOf(function));
    for (size_t i = 0; !ops.empty() && i < ops.front().size(); ++i) {
      SmallVector<KernelCallOp> calls;
      for (auto &own : ops)
        if (auto call = dyn_cast<KernelCallOp>(own[i]))
          calls.push_back(call);
      if (calls.empty())
        continue;
      std::string name = rename(calls);
      for (KernelCallOp call : calls)
        changed.push_back({call, name});
    }
  }
  for (auto [call, name] : changed)
    call.setCallee(name);
  for (auto [module, kernels] : llvm::zip(modules, made)) {
    for (func::FuncOp kernel :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (kernel->hasAttr(attrs::kKernel))
        kernel.erase();
    std::set<std::string> sorted;
    for (auto &kernel : kernels)
      sorted.insert(kernel.getKey().str());
    for (const std::string &name : sorted)
      module.push_back(kernels[name]);
  }
}

/// Leaves the functions that are planned, and kernels.
static void dropOthers(ModuleOp module) {
  for (func::FuncOp function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (!function->hasAttr(attrs::kKernel) &&
        !llvm::is_contained(kPlannedFunctions, function.getSymName()))
      function.erase();
}

/// Refuses what a range of sizes has no code for. The blocks of rows of an MLP
/// depend on the number of rows, so there are none.
llvm::Error Compilation::settleSizes() {
  if (!opts.sizes)
    return llvm::Error::success();
  const SizeRange &range = *opts.sizes;
  std::string value =
      std::to_string(range.low) + ".." + std::to_string(range.high);
  auto refuse = [&](const MessageText &why) {
    return usageError((range.name.empty()
                           ? Setting("batch", value)
                           : Setting("dim", range.name + "=" + value)) +
                      ": " + why);
  };
  if (targetInfo->traits.form != StageForm::Ranges)
    return refuse("a range of sizes is for the CPU alone; give one size");
  if (opts.step.ranks > 1)
    return refuse("a range of sizes is for one process alone; give one size");
  if (!opts.phases.from.empty() || !opts.phases.to.empty() ||
      !opts.phases.dumpDirectory.empty())
    return refuse("phases are run and dumped at one size");
  if (opts.step.tileRows > 0)
    return refuse("blocks of rows (" + Setting("tile-rows") +
                  ") are for one number of rows");
  opts.step.tileRows = -1;
  opts.import.hasOpenSize = true;
  remark("sizes of '" + shownName(range) + "' from " +
         std::to_string(range.low) + " to " + std::to_string(range.high) +
         " have one code; what is shown is at the largest");
  return llvm::Error::success();
}

/// Compiles the model at a point up to its kernels, or only `imports` it.
llvm::Expected<Compilation::StepText>
Compilation::stepAt(SizePoint point, bool imports, bool choosesBlocks) const {
  int64_t size = point.size;
  const SizeRange &range = *opts.sizes;
  CompileOptions options = opts;
  options.sizes.reset();
  options.remarks = options.keepGraph = false;
  options.phases = PhaseControl();
  options.phases.to = "fuse";
  options.outputs.clear();
  if (!choosesBlocks)
    options.step.chunkRows = point.rows ? point.rows : -1;
  options.step.chunkBlocks = blocks.count;
  options.lost = LostParameters::Ignore;
  MessageText said;
  options.messages = [&said](const Message &message) {
    if (message.severity == Message::Severity::Error)
      said +=
          (said.empty() ? MessageText() : MessageText("; ")) + message.placed();
  };
  if (range.name.empty())
    options.import.batch = size;
  else
    options.import.dims[range.name] = size;
  Compilation other(std::move(options));
  llvm::Error error = other.import();
  if (!error && !imports)
    error = other.plan();
  if (error)
    return withContext(std::move(error),
                       "at a size of '" + shownName(range) + "' of " +
                           std::to_string(size) +
                           (said.empty() ? MessageText() : ": " + said));
  StepText made;
  made.values = other.weights();
  if (auto chunks =
          other.module()->getAttrOfType<DenseI64ArrayAttr>(kChunksAttr))
    made.chunks = chunks.asArrayRef().vec();
  llvm::raw_string_ostream os(made.module);
  other.module()->print(os, OpPrintingFlags().enableDebugInfo(true, false));
  return std::move(made);
}

/// Compiles the model at several points, each on a thread of its own.
llvm::Expected<std::vector<Compilation::StepText>>
Compilation::stepsAt(ArrayRef<SizePoint> points, bool imports) {
  std::vector<StepText> made(points.size());
  llvm::Error error =
      onThreads(/*threads=*/0, int64_t(points.size()), [&](int64_t i) {
        return stepAt(points[size_t(i)], imports).moveInto(made[size_t(i)]);
      });
  if (error)
    return std::move(error);
  return std::move(made);
}

llvm::Expected<OwningOpRef<ModuleOp>> Compilation::readStep(StringRef text) {
  auto parsed = parseSourceString<ModuleOp>(text, context.get());
  if (!parsed)
    return makeError(ExitInternal, "the step of another size cannot be read");
  return std::move(parsed);
}

/// Compiles the model at the first size that is compared, where it may take the
/// loss of a large head in blocks. If it does, their number is that of all
/// sizes, and `blocks` gets it with the rows of the largest.
llvm::Expected<Compilation::StepText> Compilation::firstStep(int64_t size) {
  auto text = stepAt({size}, /*imports=*/false, /*choosesBlocks=*/true);
  if (!text)
    return text;
  if (!text->chunks.empty()) {
    blocks.count = text->chunks[1];
    blocks.constant =
        llvm::divideCeil(text->chunks[0] * opts.sizes->high, size);
  }
  return text;
}

/// Notes how the rows in blocks follow the size.
llvm::Error Compilation::noteBlocks() {
  SmallVector<SizePoint> points;
  SmallVector<int64_t> rows;
  for (auto &[point, module] : unplannedAt)
    if (auto noted = (*module)->getAttrOfType<DenseI64ArrayAttr>(kChunksAttr)) {
      points.push_back({point.size});
      rows.push_back(noted[0]);
    }
  if (rows.empty()) {
    blocks = {};
    return llvm::Error::success();
  }
  auto p = rows.size() == unplannedAt.size() ? polynomialThrough(points, rows)
                                             : std::nullopt;
  if (!p || p->square || p->linear < 0)
    return refuseSizes(*opts.sizes, unplannedAt[1].first.size,
                       unplannedAt[0].first.size, nullptr,
                       "the loss has other rows");
  blocks.constant = p->constant;
  blocks.linear = p->linear;
  return llvm::Error::success();
}

/// Compiles the model at several sizes up to its kernels, and makes the step of
/// the largest from them.
llvm::Error Compilation::lookAtSizes() {
  llvm::Error first = llvm::Error::success();
  bool tookBlocks = false;
  auto look = [&](bool above, bool inBlocks) {
    blocks = {};
    unplannedAt.clear();
    llvm::Error error = lookAtSizes(above, inBlocks);
    tookBlocks |= blocks.count > 0;
    if (!error) {
      llvm::consumeError(std::move(first));
      return true;
    }
    // What is wrong at sizes that the range has is said.
    if (first)
      llvm::consumeError(std::move(error));
    else
      first = std::move(error);
    return false;
  };
  // A choice of the compiler's may change between sizes below the largest.
  bool inBlocks = opts.step.chunkRows >= 0;
  if (look(/*above=*/false, inBlocks) || look(/*above=*/true, inBlocks)) {
    if (blocks.count)
      remark(MessageText(
                 "the loss is taken in " + std::to_string(blocks.count) +
                 " blocks of rows at every size, of up to " +
                 std::to_string(blocks.at(opts.sizes->high).rows) + " rows (") +
             Setting("chunk-vocab") + ")");
    return llvm::Error::success();
  }
  if (tookBlocks && opts.step.chunkRows == 0 &&
      (look(/*above=*/false, false) || look(/*above=*/true, false)))
    return llvm::Error::success();
  return first;
}

/// Compares the constants of a size with those of the largest.
llvm::Error Compilation::compareConstants(int64_t size, ModuleOp step,
                                          const TensorMap &values) const {
  const SizeRange &range = *opts.sizes;
  for (const char *name : kPlannedFunctions) {
    auto function = step.lookupSymbol<func::FuncOp>(name);
    for (unsigned i = 0; function && i < function.getNumArguments(); ++i) {
      if (argumentRole(function, i) != roles::kConstant)
        continue;
      std::string constant = argumentName(function, i);
      const HostTensor *own = values.find(constant);
      auto largest = imported.weights.find(constant);
      if (own && largest == imported.weights.end())
        return refuseSizes(range, size, range.high, function,
                           "the constant '" + constant + "' has other numbers");
      if (own)
        if (llvm::Error error = comparePrefix(
                range, size, *own, largest->second, function, constant))
          return error;
    }
  }
  return llvm::Error::success();
}

/// Compares the calls of two steps.
static llvm::Error compareSteps(const SizeRange &range, int64_t size,
                                int64_t firstSize, ModuleOp step,
                                ModuleOp firstStep) {
  for (const char *name : kPlannedFunctions) {
    auto first = firstStep.lookupSymbol<func::FuncOp>(name),
         its = step.lookupSymbol<func::FuncOp>(name);
    if (!first && !its)
      continue;
    if (!first || !its)
      return refuseSizes(range, size, firstSize, nullptr,
                         "the step has other functions");
    if (llvm::Error error = compareWiring(range, size, firstSize, first, its))
      return error;
  }
  return llvm::Error::success();
}

/// Compiles the model at points whose steps can be compared; a step that was
/// made without blocks already is the one of its size.
llvm::Error Compilation::lookAtSizes(bool above, bool inBlocks) {
  const SizeRange &range = *opts.sizes;
  std::vector<int64_t> compared = sizesToCompare(range, above);
  std::vector<StepText> texts;
  if (inBlocks) {
    auto first = firstStep(compared.front());
    if (!first)
      return first.takeError();
    if (!blocks.count)
      texts.push_back(std::move(*first));
  }
  // Enough for the largest that is compared, and one row that is filled.
  int64_t least = blocks.count
                      ? blocks.constant * *llvm::max_element(compared) /
                                range.high / blocks.count +
                            2
                      : 0;
  std::vector<SizePoint> points = withRows(compared, least, blocks.count > 0);
  auto others =
      stepsAt(ArrayRef(points).drop_front(texts.size()), /*imports=*/false);
  if (!others)
    return others.takeError();
  llvm::move(*others, std::back_inserter(texts));
  SmallVector<ModuleOp> modules;
  for (auto [point, text] : llvm::zip_equal(points, texts)) {
    auto made = readStep(text.module);
    if (!made)
      return made.takeError();
    dropOthers(**made);
    if (llvm::Error error = compareConstants(point.size, **made, text.values))
      return error;
    if (!modules.empty())
      if (llvm::Error error = compareSteps(range, point.size, points[0].size,
                                           **made, modules.front()))
        return error;
    modules.push_back(**made);
    unplannedAt.emplace_back(point, std::move(*made));
  }
  return makeLargest(modules);
}

/// Makes the step of the largest size from those that were compared.
llvm::Error Compilation::makeLargest(MutableArrayRef<ModuleOp> modules) {
  const SizeRange &range = *opts.sizes;
  if (llvm::Error error = compareImports())
    return error;
  if (llvm::Error error = noteBlocks())
    return error;
  nameKernels(modules);
  Builder builder(context.get());
  for (ModuleOp module : modules)
    for (const char *name : kPlannedFunctions)
      if (auto function = module.lookupSymbol<func::FuncOp>(name))
        for (auto [i, op] : llvm::enumerate(function.front()))
          op.setAttr(kOriginAttr, builder.getI64IntegerAttr(int64_t(i)));
  auto largest = unplannedStep(range.high);
  if (!largest)
    return largest.takeError();
  // What has no tensors at the least sizes (slices that would overlap) is seen.
  for (int64_t size : {range.low, std::min(range.low + 1, range.high)})
    if (auto least = unplannedStep(size, /*plans=*/false); !least)
      return least.takeError();
  imported.module = std::move(*largest);
  return llvm::Error::success();
}
