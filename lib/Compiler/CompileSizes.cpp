//===- CompileSizes.cpp - one plan for a range of sizes -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: rows have a thousand lengths, and a step is compiled for one.
// Method: the model is compiled up to its kernels at the largest size and at
// four more, whose steps must have the same calls. The largest is planned. A
// place that is free for a tensor there is free for the smaller one of another
// size, so the plan holds for all: each of the four gets the plan's calls and
// places, with tensors of its own sizes, and the target makes one code of them
// (Target/Cpu/OpenSizes.cpp).
//
// The four sizes are primes, so that nothing about them is true by chance: what
// holds for their sizes (a multiple of 16, one merged loop) follows from the
// model alone.
//
// Guarantee: the arena of the largest size is enough for every other; steps
// that differ in more than sizes are an error that names the node. Complexity:
// five times the work before planning.
//
//===----------------------------------------------------------------------===//
#include "ckopt/CodeGen/Kernels.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/SizePolynomial.h"
#include "ckopt/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include <cstring>
#include <set>

using namespace mlir;
using namespace ckopt;

/// On the ops of functions before planning: their number, which copies keep.
static constexpr llvm::StringLiteral kOriginAttr = "ckopt.origin";
/// A call's estimated operations.
static constexpr llvm::StringLiteral kCostName = "cost";
static constexpr const char *kFunctions[] = {"step", "eval", "accumulate"};
/// How many sizes are compared beside the largest: three make a polynomial, one
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
static std::vector<int64_t> sizesToCompare(const SizeRange &range) {
  std::vector<int64_t> sizes;
  for (int64_t n = range.high - 1; n >= kLeastCompared && sizes.size() < kSizes;
       --n)
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

static std::string shownName(const SizeRange &range) {
  return range.name.empty() ? "batch" : range.name;
}

static SmallVector<Operation *> opsOf(func::FuncOp function) {
  return llvm::map_to_vector(function.front(), [](Operation &op) { return &op; });
}

/// Refuses a range whose steps differ in more than sizes.
static llvm::Error differ(const SizeRange &range, int64_t size, int64_t first,
                          Operation *op, const Twine &what) {
  std::string node = op ? getSourceName(op->getLoc()) : "";
  return makeError(ExitUnsupported,
                   "no step for all sizes of '" + shownName(range) + "' from " +
                       Twine(range.low) + " to " + Twine(range.high) + ": " +
                       (node.empty() ? std::string()
                                     : "at node '" + node + "' ") +
                       what + " at " + Twine(size) + " than at " +
                       Twine(first) + "; compile it for one size at a "
                       "time");
}

/// Compares the wiring of two functions, whose tensors may have other sizes.
static llvm::Error compare(const SizeRange &range, int64_t size, int64_t first,
                           func::FuncOp largest, func::FuncOp other) {
  auto some = opsOf(largest), others = opsOf(other);
  llvm::DenseMap<Value, Value> mapped;
  if (largest.getNumArguments() != other.getNumArguments() ||
      some.size() != others.size())
    return differ(range, size, first, largest,
                  "@" + largest.getSymName() + " has other calls");
  for (auto [a, b] : llvm::zip(largest.getArguments(), other.getArguments())) {
    mapped[a] = b;
    auto one = cast<RankedTensorType>(a.getType()),
         two = cast<RankedTensorType>(b.getType());
    if (one.getRank() != two.getRank() ||
        one.getElementType() != two.getElementType())
      return differ(range, size, first, largest, "an argument has another rank");
  }
  for (auto [a, b] : llvm::zip(some, others)) {
    bool same = a->getName() == b->getName() &&
                a->getNumOperands() == b->getNumOperands() &&
                a->getNumResults() == b->getNumResults();
    for (unsigned i = 0; same && i < a->getNumOperands(); ++i)
      same = mapped.lookup(a->getOperand(i)) == b->getOperand(i);
    if (!same)
      return differ(range, size, first, a, "the step has another call");
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
  for (const char *name : kFunctions) {
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

namespace {

/// Makes the module at another size of those at several sizes, which have the
/// same ops.
class Resizer {
public:
  Resizer(ArrayRef<int64_t> sizes, int64_t wanted)
      : sizes(sizes), wanted(wanted) {}

  /// Returns nothing with the op where no polynomial explains a difference.
  OwningOpRef<ModuleOp> run(ArrayRef<ModuleOp> modules);
  Operation *failedAt = nullptr;

private:
  std::optional<int64_t> number(ArrayRef<int64_t> values);
  double estimate(ArrayRef<llvm::APFloat> values);
  Type type(ArrayRef<Type> types);
  Attribute attribute(StringRef name, ArrayRef<Attribute> attributes);
  Attribute dense(ArrayRef<Attribute> attributes);
  bool resize(Operation *into, ArrayRef<Operation *> ops);

  ArrayRef<int64_t> sizes;
  int64_t wanted;
};

} // namespace

/// Continues a parabola through the first three: a cost need not be exact.
double Resizer::estimate(ArrayRef<llvm::APFloat> values) {
  double sum = 0;
  for (size_t i = 0; i < 3; ++i) {
    double term = values[i].convertToDouble();
    for (size_t k = 0; k < 3; ++k)
      if (k != i)
        term *= double(wanted - sizes[k]) / double(sizes[i] - sizes[k]);
    sum += term;
  }
  return std::max(sum, 0.0);
}

std::optional<int64_t> Resizer::number(ArrayRef<int64_t> values) {
  auto p = SizePolynomial::through(sizes, values);
  return p ? std::optional(p->at(wanted)) : std::nullopt;
}

Type Resizer::type(ArrayRef<Type> types) {
  if (llvm::all_equal(types))
    return types.front();
  if (auto function = dyn_cast<FunctionType>(types.front())) {
    SmallVector<Type> inputs, results;
    for (unsigned i = 0; i < function.getNumInputs(); ++i)
      inputs.push_back(type(llvm::map_to_vector(types, [&](Type own) {
        return cast<FunctionType>(own).getInput(i);
      })));
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      results.push_back(type(llvm::map_to_vector(types, [&](Type own) {
        return cast<FunctionType>(own).getResult(i);
      })));
    bool all = !llvm::is_contained(inputs, Type()) &&
               !llvm::is_contained(results, Type());
    return all ? FunctionType::get(function.getContext(), inputs, results)
               : Type();
  }
  auto first = dyn_cast<RankedTensorType>(types.front());
  if (!first)
    return Type();
  SmallVector<int64_t> shape;
  for (int64_t d = 0; d < first.getRank(); ++d) {
    SmallVector<int64_t> values;
    for (Type own : types) {
      auto tensor = dyn_cast<RankedTensorType>(own);
      if (!tensor || tensor.getRank() != first.getRank() ||
          tensor.getElementType() != first.getElementType() ||
          tensor.getEncoding() != first.getEncoding())
        return Type();
      values.push_back(tensor.getDimSize(d));
    }
    auto size = number(values);
    if (!size || *size < 0)
      return Type();
    shape.push_back(*size);
  }
  return RankedTensorType::get(shape, first.getElementType(),
                               first.getEncoding());
}

/// Constants of one number.
Attribute Resizer::dense(ArrayRef<Attribute> attributes) {
  SmallVector<Type> types;
  SmallVector<llvm::APFloat> reals;
  SmallVector<int64_t> numbers;
  for (Attribute attribute : attributes) {
    auto own = dyn_cast<DenseElementsAttr>(attribute);
    if (!own || !own.isSplat())
      return Attribute();
    types.push_back(own.getType());
    if (isa<FloatType>(own.getElementType()))
      reals.push_back(own.getSplatValue<llvm::APFloat>());
    else
      numbers.push_back(own.getSplatValue<llvm::APInt>().getSExtValue());
  }
  auto to = dyn_cast_or_null<ShapedType>(type(types));
  if (!to)
    return Attribute();
  if (reals.empty()) {
    auto value = number(numbers);
    if (!value)
      return Attribute();
    unsigned width = to.getElementTypeBitWidth();
    return DenseElementsAttr::get(
        to, llvm::APInt(64, uint64_t(*value), true).sextOrTrunc(width));
  }
  bool same = llvm::all_of(reals, [&](const llvm::APFloat &real) {
    return real.bitwiseIsEqual(reals.front());
  });
  if (same)
    return DenseElementsAttr::get(to, reals.front());
  auto real = SizeReal::through(sizes, reals);
  return real ? DenseElementsAttr::get(to, real->at(wanted, reals.front()))
              : Attribute();
}

Attribute Resizer::attribute(StringRef name, ArrayRef<Attribute> attributes) {
  Attribute first = attributes.front();
  if (llvm::all_equal(attributes))
    return first;
  MLIRContext *context = first.getContext();
  if (isa<DenseElementsAttr>(first))
    return dense(attributes);
  if (auto own = dyn_cast<TypeAttr>(first)) {
    Type to = type(llvm::map_to_vector(attributes, [](Attribute a) {
      return cast<TypeAttr>(a).getValue();
    }));
    return to ? TypeAttr::get(to) : Attribute();
  }
  auto isAll = [&](auto check) { return llvm::all_of(attributes, check); };
  if (isAll([](Attribute a) { return isa<IntegerAttr>(a); })) {
    auto value = number(llvm::map_to_vector(attributes, [](Attribute a) {
      return cast<IntegerAttr>(a).getValue().getSExtValue();
    }));
    return value ? IntegerAttr::get(cast<IntegerAttr>(first).getType(), *value)
                 : Attribute();
  }
  if (isAll([](Attribute a) { return isa<FloatAttr>(a); })) {
    auto values = llvm::map_to_vector(attributes, [](Attribute a) {
      return cast<FloatAttr>(a).getValue();
    });
    Type type = cast<FloatAttr>(first).getType();
    if (auto real = SizeReal::through(sizes, values))
      return FloatAttr::get(type, real->at(wanted, values.front()));
    return name == kCostName ? FloatAttr::get(type, estimate(values))
                             : Attribute();
  }
  if (isAll([&](Attribute a) {
        auto own = dyn_cast<DenseI64ArrayAttr>(a);
        return own && own.size() == cast<DenseI64ArrayAttr>(first).size();
      })) {
    SmallVector<int64_t> made;
    for (int64_t i = 0; i < cast<DenseI64ArrayAttr>(first).size(); ++i) {
      auto value = number(llvm::map_to_vector(attributes, [&](Attribute a) {
        return cast<DenseI64ArrayAttr>(a)[i];
      }));
      if (!value)
        return Attribute();
      made.push_back(*value);
    }
    return DenseI64ArrayAttr::get(context, made);
  }
  if (isAll([&](Attribute a) {
        auto own = dyn_cast<ArrayAttr>(a);
        return own && own.size() == cast<ArrayAttr>(first).size();
      })) {
    SmallVector<Attribute> made;
    for (size_t i = 0; i < cast<ArrayAttr>(first).size(); ++i) {
      made.push_back(
          attribute(name, llvm::map_to_vector(attributes, [&](Attribute a) {
                      return cast<ArrayAttr>(a)[i];
                    })));
      if (!made.back())
        return Attribute();
    }
    return ArrayAttr::get(context, made);
  }
  auto dictionary = dyn_cast<DictionaryAttr>(first);
  if (!dictionary || !isAll([&](Attribute a) {
        auto own = dyn_cast<DictionaryAttr>(a);
        return own && own.size() == dictionary.size();
      }))
    return Attribute();
  SmallVector<NamedAttribute> made;
  for (NamedAttribute entry : dictionary) {
    SmallVector<Attribute> values;
    for (Attribute a : attributes)
      values.push_back(cast<DictionaryAttr>(a).get(entry.getName()));
    Attribute value = llvm::is_contained(values, Attribute())
                          ? Attribute()
                          : attribute(entry.getName(), values);
    if (!value)
      return Attribute();
    made.push_back({entry.getName(), value});
  }
  return DictionaryAttr::get(context, made);
}

/// What annotate-kernels writes is not copied: it is run again.
static bool isAnnotated(Operation *op, StringRef attribute) {
  return isa<KernelCallOp>(op) &&
         (attribute == "workspace" || attribute == "reuse");
}

bool Resizer::resize(Operation *into, ArrayRef<Operation *> ops) {
  for (unsigned i = 0; i < into->getNumResults(); ++i) {
    Type to = type(llvm::map_to_vector(
        ops, [&](Operation *op) { return op->getResult(i).getType(); }));
    if (!to)
      return false;
    into->getResult(i).setType(to);
  }
  for (unsigned r = 0; r < into->getNumRegions(); ++r)
    for (unsigned i = 0; !into->getRegion(r).empty() &&
                         i < into->getRegion(r).getNumArguments();
         ++i) {
      Type to = type(llvm::map_to_vector(ops, [&](Operation *op) {
        return op->getRegion(r).getArgument(i).getType();
      }));
      if (!to)
        return false;
      into->getRegion(r).getArgument(i).setType(to);
    }
  for (NamedAttribute entry : ops.front()->getAttrDictionary()) {
    if (isAnnotated(into, entry.getName()))
      continue;
    SmallVector<Attribute> values;
    for (Operation *op : ops)
      values.push_back(op->getAttr(entry.getName()));
    Attribute to = llvm::is_contained(values, Attribute())
                       ? Attribute()
                       : attribute(entry.getName(), values);
    if (!to)
      return false;
    into->setAttr(entry.getName(), to);
  }
  return true;
}

/// All ops of a module, outer ones first.
static SmallVector<Operation *> flat(ModuleOp module) {
  SmallVector<Operation *> ops;
  for (Operation &top : *module.getBody())
    top.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  return ops;
}

OwningOpRef<ModuleOp> Resizer::run(ArrayRef<ModuleOp> modules) {
  OwningOpRef<ModuleOp> made = ModuleOp(modules.front()).clone();
  SmallVector<SmallVector<Operation *>> all;
  for (ModuleOp module : modules)
    all.push_back(flat(module));
  auto into = flat(*made);
  for (size_t i = 0; i < into.size(); ++i) {
    SmallVector<Operation *> ops;
    for (auto &own : all) {
      ops.push_back(i < own.size() ? own[i] : nullptr);
      if (own.size() != into.size() || ops.back()->getName() != into[i]->getName()) {
        failedAt = into[i];
        return {};
      }
    }
    if (!resize(into[i], ops)) {
      failedAt = ops.front();
      return {};
    }
  }
  return made;
}

/// Leaves the functions that are planned, and kernels.
static void dropOthers(ModuleOp module) {
  for (func::FuncOp function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (!function->hasAttr(attrs::kKernel) &&
        !llvm::is_contained(kFunctions, function.getSymName()))
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
      said += (said.empty() ? MessageText() : MessageText("; ")) +
              message.placed();
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

/// The ops of each node of the model.
static llvm::MapVector<StringRef, SmallVector<Operation *>>
opsByNode(ModuleOp module) {
  llvm::MapVector<StringRef, SmallVector<Operation *>> ops;
  for (Operation *op : flat(module))
    if (auto name = dyn_cast<NameLoc>(op->getLoc()))
      ops[name.getName()].push_back(op);
  return ops;
}

static bool sameNames(ArrayRef<Operation *> some,
                      ArrayRef<Operation *> others) {
  return llvm::equal(some, others, [](Operation *a, Operation *b) {
    return a->getName() == b->getName();
  });
}

/// Compares the model near the least size with what those near the largest say
/// of it: a number with a bound (min(size, 128)) is a polynomial on either side
/// of it. Nodes that fold to small tables there, as positions and masks do, are
/// left out: they read no data.
llvm::Error Compilation::compareImports(ArrayRef<int64_t> sizes) {
  const SizeRange &range = *opts.sizes;
  int64_t least = std::max(range.low, kLeastCompared);
  while (!isPrime(least))
    ++least;
  if (least >= sizes[2])
    return llvm::Error::success();
  SmallVector<OwningOpRef<ModuleOp>> owned;
  SmallVector<ModuleOp> modules;
  for (int64_t size : {sizes[0], sizes[1], sizes[2], least}) {
    TensorMap values;
    auto made = stepAt(size, /*imports=*/true, values);
    if (!made)
      return made.takeError();
    owned.push_back(std::move(*made));
    modules.push_back(*owned.back());
  }
  ModuleOp there = modules.pop_back_val();
  Resizer resizer(sizes.take_front(3), least);
  OwningOpRef<ModuleOp> said = resizer.run(modules);
  if (!said)
    return differ(range, sizes[1], sizes[0], resizer.failedAt,
                  "the model is another");
  auto ops = opsByNode(*said), others = opsByNode(there);
  for (auto &[node, own] : ops) {
    auto found = others.find(node);
    if (found == others.end() || !sameNames(own, found->second))
      continue;
    for (auto [a, b] : llvm::zip(own, found->second))
      if (a->getResultTypes() != b->getResultTypes() ||
          a->getAttrDictionary() != b->getAttrDictionary())
        return differ(range, least, sizes[0], b, "the model is another");
  }
  return llvm::Error::success();
}

/// Constants of a size have to be the first part of the largest's, whose place
/// they share.
static llvm::Error comparePrefix(const SizeRange &range, int64_t size,
                                 const HostTensor &part,
                                 const HostTensor &whole,
                                 func::FuncOp function, StringRef name) {
  if (part.shape() == whole.shape())
    return llvm::Error::success();
  size_t bytes =
      size_t(part.numElements()) * size_t(dtypeSize(part.dtype()));
  bool outermost = true; // of dimensions that are not 1
  for (auto [a, b] : llvm::zip(part.shape(), whole.shape())) {
    if (a != b && !outermost)
      bytes = 0;
    outermost &= a == 1 && b == 1;
  }
  if (bytes && std::memcmp(part.rawData(), whole.rawData(), bytes) == 0)
    return llvm::Error::success();
  return differ(range, size, range.high, function,
                "the constant '" + name.str() + "' has other numbers");
}

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
    kernel->setAttr(kOpenSizesAttr,
                    DenseI64ArrayAttr::get(
                        kernel.getContext(),
                        SmallVector<int64_t>(open.begin(), open.end())));
}

/// Compiles the model at several sizes up to its kernels, and makes the step of
/// the largest from them.
llvm::Error Compilation::lookAtSizes() {
  const SizeRange &range = *opts.sizes;
  SmallVector<ModuleOp> modules;
  SmallVector<int64_t> sizes;
  for (int64_t size : sizesToCompare(range)) {
    TensorMap values;
    auto made = stepAt(size, /*imports=*/false, values);
    if (!made)
      return made.takeError();
    dropOthers(**made);
    for (const char *name : kFunctions)
      if (auto function = (*made)->lookupSymbol<func::FuncOp>(name))
        for (unsigned i = 0; i < function.getNumArguments(); ++i) {
          if (argumentRole(function, i) != roles::kConstant)
            continue;
          std::string constant = argumentName(function, i);
          const HostTensor *part = values.find(constant);
          auto whole = imported.weights.find(constant);
          if (part && whole != imported.weights.end() &&
              size <= range.high)
            if (llvm::Error error = comparePrefix(
                    range, size, *part, whole->second, function, constant))
              return error;
        }
    for (const char *name : kFunctions) {
      if (modules.empty())
        break;
      auto first = modules.front().lookupSymbol<func::FuncOp>(name),
           its = (*made)->lookupSymbol<func::FuncOp>(name);
      if (!first && !its)
        continue;
      if (!first || !its)
        return differ(range, size, sizes.front(), nullptr,
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
  for (const char *name : kFunctions)
    if (auto function = modules.front().lookupSymbol<func::FuncOp>(name))
      for (auto [i, op] : llvm::enumerate(opsOf(function)))
        for (ModuleOp module : modules)
          opsOf(module.lookupSymbol<func::FuncOp>(name))[i]->setAttr(
              kOriginAttr, builder.getI64IntegerAttr(int64_t(i)));
  auto largest = unplannedStep(range.high);
  if (!largest)
    return largest.takeError();
  imported.module = std::move(*largest);
  return llvm::Error::success();
}

/// Gives the functions of a planned module the tensors of another size.
static llvm::Error resize(ModuleOp planned, ModuleOp unplanned) {
  for (const char *name : kFunctions) {
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
        return makeError(ExitInternal,
                         "a planned call is none of the step's");
      for (auto [result, other] : llvm::zip_equal(
               op.getResults(), ops[size_t(origin.getInt())]->getResults()))
        result.setType(other.getType());
    }
  }
  return llvm::Error::success();
}

/// Makes the step before planning at a size, from those that were compared.
llvm::Expected<OwningOpRef<ModuleOp>> Compilation::unplannedStep(int64_t size) {
  const SizeRange &range = *opts.sizes;
  SmallVector<ModuleOp> modules;
  SmallVector<int64_t> sizes;
  for (auto &[own, module] : unplannedAt) {
    sizes.push_back(own);
    modules.push_back(*module);
  }
  Resizer resizer(sizes, size);
  OwningOpRef<ModuleOp> made = resizer.run(modules);
  if (!made)
    return differ(range, sizes[1], sizes[0], resizer.failedAt,
                  "sizes or numbers do not follow it: they are others");
  for (auto kernel : made->getOps<func::FuncOp>())
    if (kernel->hasAttr(attrs::kKernel))
      noteOpenSizes(kernel, modules.front().lookupSymbol<func::FuncOp>(
                                kernel.getSymName()));
  if (failed(verify(*made)))
    return makeError(ExitInternal, "the step of another size is wrong");
  PassManager annotation(context.get());
  addAnnotation(annotation, opts.step, *targetInfo);
  if (failed(annotation.run(*made)))
    return toldError(ExitInputError, "stopped at a size of " + Twine(size) +
                                         " by what is said above");
  return std::move(made);
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
    RematResult result;
    auto phases = buildPhases(step, *targetInfo, &result);
    if (!phases)
      return phases.takeError();
    PhaseControl control;
    control.from = "remat";
    if (llvm::Error error = runPhases(**made, *phases, control))
      return error;
    recomputed = 0;
    (*made)->walk([&](KernelCallOp call) {
      recomputed += call.getClone().has_value();
    });
    Schedule &schedule = smaller.emplace_back();
    schedule.high = high;
    schedule.planned = std::move(*made);
    if (const RematPlan *plan = result.mainPlan())
      schedule.figures = getFigures(*plan);
    remark("sizes of '" + shownName(range) + "' up to " +
           std::to_string(high) + " have a schedule of their own, which "
           "recomputes " + std::to_string(recomputed) + " calls");
  }
  return llvm::Error::success();
}

llvm::Expected<PlannedSizes> Compilation::planSizes(ModuleOp planned,
                                                    int64_t high) {
  PlannedSizes sizes;
  sizes.range.name = shownName(*opts.sizes);
  sizes.range.low = opts.sizes->low;
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
