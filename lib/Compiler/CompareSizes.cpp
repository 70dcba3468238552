//===- CompareSizes.cpp - what has to be alike at all sizes ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A range of sizes has one code only if the model is one: the same calls of the
// same values, the same constants, and numbers that follow one rule from the
// least size to the largest. Linear in the ops.
//
//===----------------------------------------------------------------------===//
#include "CompileSizes.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/WholeBatch.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/SizeNumbers.h"

#include <cstring>
#include <set>

using namespace mlir;
using namespace ckopt;

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

/// Returns a call of a node that has more or fewer of them in the other
/// function (a recurrence is written step by step); null: none is named.
static Operation *unevenCall(ArrayRef<Operation *> some,
                             ArrayRef<Operation *> others) {
  llvm::StringMap<int64_t> more;
  for (Operation *op : some)
    ++more[getSourceName(op->getLoc())];
  for (Operation *op : others)
    --more[getSourceName(op->getLoc())];
  for (ArrayRef<Operation *> ops : {some, others})
    for (Operation *op : ops)
      if (more[getSourceName(op->getLoc())])
        return op;
  return nullptr;
}

llvm::Error ckopt::compareWiring(const SizeRange &range, int64_t size,
                                 int64_t first, func::FuncOp largest,
                                 func::FuncOp other) {
  auto some = opsOf(largest), others = opsOf(other);
  llvm::DenseMap<Value, Value> mapped;
  if (largest.getNumArguments() != other.getNumArguments() ||
      some.size() != others.size())
    return refuseSizes(range, size, first, unevenCall(some, others),
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

llvm::Error ckopt::comparePrefix(const SizeRange &range, int64_t size,
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

/// Whether a - b, which has these values, is zero or changes its sign at a size
/// of the range that may not have been compared.
static bool meets(const SizePolynomial &p, const SizeRange &range) {
  if (p.isConstant())
    return false;
  auto at = [&](int64_t size) { return p.at({size}); };
  int64_t low = at(range.low), high = at(range.high);
  // A parabola may turn inside of the range.
  bool turns =
      p.square && (at(range.low + 1) > low) != (high > at(range.high - 1));
  return turns || low == 0 || high == 0 || (low < 0) != (high < 0);
}

/// Returns why the numbers at a size are not those that others say; "": they
/// are.
static std::string otherNumbers(const SizeRange &range,
                                ArrayRef<SizePoint> points,
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
        auto follows = SizeReal::through(points, reals);
        if (same ? values[0] != own[kind][i]
                 : follows && !follows->at({size}, real).bitwiseIsEqual(real))
          return "a number";
        continue;
      }
      auto p = polynomialThrough(points, values);
      if (!p || p->at({size}) != own[kind][i])
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
llvm::Error Compilation::compareImports() {
  const SizeRange &range = *opts.sizes;
  auto valuesOf = [](ModuleOp module) {
    return module->getAttrOfType<DictionaryAttr>(kOpenValuesAttr);
  };
  SmallVector<DictionaryAttr> said;
  SmallVector<SizePoint> points; // blocks come after the import
  for (auto &[point, module] : unplannedAt) {
    said.push_back(valuesOf(*module));
    points.push_back({point.size});
  }
  int64_t middle = range.low + (range.high - range.low) / 2;
  std::set<int64_t> smaller{range.low, std::min(range.low + 1, range.high),
                            middle};
  smaller.erase(range.high); // imported already
  std::vector<SizePoint> compared;
  for (int64_t size : smaller)
    compared.push_back({size});
  auto texts = stepsAt(compared, /*imports=*/true);
  if (!texts)
    return texts.takeError();
  compared.push_back({range.high});
  for (auto [i, point] : llvm::enumerate(compared)) {
    OwningOpRef<ModuleOp> own;
    if (i < texts->size())
      if (llvm::Error error = readStep((*texts)[i].module).moveInto(own))
        return error;
    DictionaryAttr there = valuesOf(own ? *own : module());
    int64_t size = point.size;
    for (NamedAttribute entry : there) {
      auto others = llvm::map_to_vector(
          said, [&](DictionaryAttr one) { return one.get(entry.getName()); });
      if (llvm::is_contained(others, Attribute()))
        continue;
      std::string what =
          otherNumbers(range, points, others, size, entry.getValue());
      if (!what.empty())
        return refuseSizes(range, size, points[0].size, nullptr,
                           what + " of '" + entry.getName().getValue() +
                               "' follows another rule");
    }
  }
  return llvm::Error::success();
}
