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
// model alone.
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
#include "ckopt/Dialect/Ckopt/Utils/WholeBatch.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/SizePolynomial.h"
#include "ckopt/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringMap.h"

#include <cstring>
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

std::string ckopt::shownName(const SizeRange &range) {
  return range.name.empty() ? "batch" : range.name;
}

SmallVector<Operation *> ckopt::opsOf(func::FuncOp function) {
  return llvm::map_to_vector(function.front(),
                             [](Operation &op) { return &op; });
}

llvm::Error ckopt::refuseSizes(const SizeRange &range, int64_t size,
                               int64_t other, Operation *op,
                               const Twine &what) {
  std::string node = op ? getSourceName(op->getLoc()) : "";
  return makeError(
      ExitUnsupported,
      "no step for all sizes of '" + shownName(range) + "' from " +
          Twine(range.low) + " to " + Twine(range.high) + ": " +
          (node.empty() ? std::string() : "at node '" + node + "' ") + what +
          " at " + Twine(size) + " than at " + Twine(other) +
          "; compile it for one size at a "
          "time");
}

/// Compares the wiring of two functions, whose tensors may have other sizes.
static llvm::Error compare(const SizeRange &range, int64_t size, int64_t first,
                           func::FuncOp largest, func::FuncOp other) {
  auto some = opsOf(largest), others = opsOf(other);
  llvm::DenseMap<Value, Value> mapped;
  if (largest.getNumArguments() != other.getNumArguments() ||
      some.size() != others.size())
    return refuseSizes(range, size, first, largest,
                       "@" + largest.getSymName() + " has other calls");
  for (auto [a, b] : llvm::zip(largest.getArguments(), other.getArguments())) {
    mapped[a] = b;
    auto one = cast<RankedTensorType>(a.getType()),
         two = cast<RankedTensorType>(b.getType());
    if (one.getRank() != two.getRank() ||
        one.getElementType() != two.getElementType())
      return refuseSizes(range, size, first, largest,
                         "an argument has another rank");
  }
  for (auto [a, b] : llvm::zip(some, others)) {
    bool same = a->getName() == b->getName() &&
                a->getNumOperands() == b->getNumOperands() &&
                a->getNumResults() == b->getNumResults();
    for (unsigned i = 0; same && i < a->getNumOperands(); ++i)
      same = mapped.lookup(a->getOperand(i)) == b->getOperand(i);
    if (!same)
      return refuseSizes(range, size, first, a, "the step has another call");
    for (auto [x, y] : llvm::zip(a->getResults(), b->getResults()))
      mapped[x] = y;
  }
  return llvm::Error::success();
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

/// Refuses what a range of sizes has no code for. Blocks of rows depend on the
/// number of rows, so there are none.
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
  if (opts.step.chunkRows > 0 || opts.step.tileRows > 0)
    return refuse("blocks of rows (" + Setting("chunk-vocab") + ", " +
                  Setting("tile-rows") + ") are for one number of rows");
  opts.step.chunkRows = opts.step.tileRows = -1;
  opts.import.hasOpenSize = true;
  remark("sizes of '" + shownName(range) + "' from " +
         std::to_string(range.low) + " to " + std::to_string(range.high) +
         " have one code; what is shown is at the largest");
  return llvm::Error::success();
}

/// Compiles the model at a size up to its kernels, or only `imports` it;
/// `values` get those that the model has there.
llvm::Expected<OwningOpRef<ModuleOp>>
Compilation::stepAt(int64_t size, bool imports, TensorMap &values) {
  const SizeRange &range = *opts.sizes;
  CompileOptions options = opts;
  options.sizes.reset();
  options.remarks = options.keepGraph = false;
  options.phases = PhaseControl();
  options.phases.to = "fuse";
  options.outputs.clear();
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
  values = other.weights();
  std::string text;
  llvm::raw_string_ostream os(text);
  other.module()->print(os, OpPrintingFlags().enableDebugInfo(true, false));
  auto parsed = parseSourceString<ModuleOp>(text, context.get());
  if (!parsed)
    return makeError(ExitInternal, "the step of another size cannot be read");
  return std::move(parsed);
}

/// Whether a - b, which has these values, is zero or changes its sign at a size
/// of the range that may not have been compared.
static bool meets(const SizePolynomial &p, const SizeRange &range) {
  if (p.isConstant())
    return false;
  int64_t low = p.at(range.low), high = p.at(range.high);
  // A parabola may turn inside of the range.
  bool turns =
      p.square && (p.at(range.low + 1) > low) != (high > p.at(range.high - 1));
  return turns || low == 0 || high == 0 || (low < 0) != (high < 0);
}

/// Returns why the numbers at a size are not those that others say; "": they
/// are.
static std::string otherNumbers(const SizeRange &range, ArrayRef<int64_t> sizes,
                                ArrayRef<Attribute> said, int64_t size,
                                Attribute there) {
  auto lists = [](Attribute attribute) {
    return llvm::map_to_vector(cast<ArrayAttr>(attribute), [](Attribute list) {
      return cast<DenseI64ArrayAttr>(list).asArrayRef();
    });
  };
  auto own = lists(there);
  SmallVector<SmallVector<ArrayRef<int64_t>>> all;
  for (Attribute attribute : said)
    all.push_back(lists(attribute));
  for (unsigned kind = 0; kind < own.size(); ++kind) {
    bool known = llvm::all_of(
        all, [&](auto &one) { return one[kind].size() == own[kind].size(); });
    for (size_t i = 0; known && i < own[kind].size(); ++i) {
      auto values =
          llvm::map_to_vector(all, [&](auto &one) { return one[kind][i]; });
      constexpr unsigned kFloats = 2, kDifferences = 3;
      if (kind == kFloats) {
        auto reals = llvm::map_to_vector(values, [](int64_t bits) {
          return llvm::APFloat(float(llvm::bit_cast<double>(bits)));
        });
        llvm::APFloat real(float(llvm::bit_cast<double>(own[kind][i])));
        bool same = llvm::all_equal(values);
        auto follows = SizeReal::through(sizes, reals);
        if (same ? values[0] != own[kind][i]
                 : follows && !follows->at(size, real).bitwiseIsEqual(real))
          return "a number";
        continue;
      }
      auto p = SizePolynomial::through(sizes, values);
      if (!p || p->at(size) != own[kind][i])
        return kind == 0 ? "a size" : "a number";
      if (kind == kDifferences && meets(*p, range))
        return "what it compares";
    }
  }
  return "";
}

/// Compares all sizes of the model, and the numbers that are known when it is
/// imported, with what a few sizes near the largest say of them: a number with
/// a bound (min(size, 128)) is a polynomial on either side of it.
llvm::Error Compilation::compareImports(ArrayRef<int64_t> sizes) {
  const SizeRange &range = *opts.sizes;
  auto valuesOf = [](ModuleOp module) {
    return module->getAttrOfType<DictionaryAttr>(kOpenValuesAttr);
  };
  SmallVector<DictionaryAttr> said;
  for (auto &[size, module] : unplannedAt)
    said.push_back(valuesOf(*module));
  int64_t middle = range.low + (range.high - range.low) / 2;
  std::set<int64_t> compared{range.low, std::min(range.low + 1, range.high),
                             middle, range.high};
  for (int64_t size : compared) {
    DictionaryAttr there = valuesOf(module()); // imported at the largest
    if (size != range.high) {
      TensorMap values;
      auto made = stepAt(size, /*imports=*/true, values);
      if (!made)
        return made.takeError();
      there = valuesOf(**made);
    }
    for (NamedAttribute entry : there) {
      auto others = llvm::map_to_vector(
          said, [&](DictionaryAttr one) { return one.get(entry.getName()); });
      if (llvm::is_contained(others, Attribute()))
        continue;
      std::string what =
          otherNumbers(range, sizes, others, size, entry.getValue());
      if (!what.empty())
        return refuseSizes(range, size, sizes[0], nullptr,
                           what + " of '" + entry.getName().getValue() +
                               "' follows another rule");
    }
  }
  return llvm::Error::success();
}

/// Constants of one size have to be the first part of those of a larger one,
/// whose place they share, and the same where their shape is.
static llvm::Error comparePrefix(const SizeRange &range, int64_t size,
                                 const HostTensor &own,
                                 const HostTensor &largest,
                                 func::FuncOp function, StringRef name) {
  size_t bytes = std::min(own.sizeInBytes(), largest.sizeInBytes());
  bool outermost = true; // of dimensions that are not 1
  for (auto [a, b] : llvm::zip(own.shape(), largest.shape())) {
    if (a != b && !outermost)
      bytes = 0;
    outermost &= a == 1 && b == 1;
  }
  bool same = own.shape() == largest.shape() || bytes;
  if (same && std::memcmp(own.rawData(), largest.rawData(), bytes) == 0)
    return llvm::Error::success();
  return refuseSizes(range, size, range.high, function,
                     "the constant '" + name.str() + "' has other numbers");
}

/// Compiles the model at several sizes up to its kernels, and makes the step of
/// the largest from them.
llvm::Error Compilation::lookAtSizes() {
  llvm::Error below = lookAtSizes(/*above=*/false);
  if (!below)
    return below;
  // A choice of the compiler's may change between those sizes.
  unplannedAt.clear();
  if (llvm::Error above = lookAtSizes(/*above=*/true)) {
    llvm::consumeError(std::move(above));
    return below;
  }
  llvm::consumeError(std::move(below));
  return llvm::Error::success();
}

llvm::Error Compilation::lookAtSizes(bool above) {
  const SizeRange &range = *opts.sizes;
  SmallVector<ModuleOp> modules;
  SmallVector<int64_t> sizes;
  for (int64_t size : sizesToCompare(range, above)) {
    TensorMap values;
    auto made = stepAt(size, /*imports=*/false, values);
    if (!made)
      return made.takeError();
    dropOthers(**made);
    for (const char *name : kPlannedFunctions)
      if (auto function = (*made)->lookupSymbol<func::FuncOp>(name))
        for (unsigned i = 0; i < function.getNumArguments(); ++i) {
          if (argumentRole(function, i) != roles::kConstant)
            continue;
          std::string constant = argumentName(function, i);
          const HostTensor *own = values.find(constant);
          auto largest = imported.weights.find(constant);
          if (own && largest == imported.weights.end())
            return refuseSizes(range, size, range.high, function,
                               "the constant '" + constant +
                                   "' has other numbers");
          if (own)
            if (llvm::Error error = comparePrefix(
                    range, size, *own, largest->second, function, constant))
              return error;
        }
    for (const char *name : kPlannedFunctions) {
      if (modules.empty())
        break;
      auto first = modules.front().lookupSymbol<func::FuncOp>(name),
           its = (*made)->lookupSymbol<func::FuncOp>(name);
      if (!first && !its)
        continue;
      if (!first || !its)
        return refuseSizes(range, size, sizes.front(), nullptr,
                           "the step has other functions");
      if (llvm::Error error = compare(range, size, sizes.front(), first, its))
        return error;
    }
    modules.push_back(**made);
    sizes.push_back(size);
    unplannedAt.emplace_back(size, std::move(*made));
  }
  if (llvm::Error error = compareImports(sizes))
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
