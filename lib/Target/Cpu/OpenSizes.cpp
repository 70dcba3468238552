//===- OpenSizes.cpp - one code for a range of sizes ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a step is compiled for fixed sizes, and a model is trained on rows
// of a thousand lengths. Method: the same plan is lowered at a few sizes, with
// kernels that decide nothing by the open ones (GeneratedKernel::isOpen). What
// comes out are the same functions but for constants, which are polynomials of
// the size: three sizes give each polynomial, and every other has to confirm
// it. The first one's constants are replaced by these polynomials, computed
// once at a function's entry. The manifest's numbers follow in the same way.
//
// Guarantee: at the sizes that were lowered the result is their code, and a
// difference that no polynomial explains is an error. Complexity: linear in the
// code.
//
//===----------------------------------------------------------------------===//
#include "OpenSizes.h"
#include "ManifestBuilder.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/SizeNumbers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace ckopt;

/// The attribute of constants.
static constexpr llvm::StringLiteral kValue = "value";

namespace {

/// Walks functions that were lowered at several sizes side by side.
class Merger {
public:
  Merger(ArrayRef<SizePoint> points, const runtime::OpenSize &open)
      : points(points), open(open) {}

  /// Merges the modules into the first.
  llvm::Error run(ArrayRef<ModuleOp> modules);

private:
  using Ops = SmallVector<Operation *>;
  llvm::Error merge(const Ops &ops);
  llvm::Error mergeRegions(const Ops &ops);
  llvm::Error mergeConstant(const Ops &ops);
  llvm::Error mergeGEP(const Ops &ops);
  llvm::Error differ(Operation *op, const Twine &why) const;
  bool sameOperands(const Ops &ops) const;
  void mapResults(const Ops &ops);
  /// The size at which the session runs, and the rows of a block (where they
  /// are asked for), at the function's entry.
  struct Sizes {
    Value size, rows;
  };
  Sizes sizesIn(FunctionOpInterface function, bool withRows);
  Value emit(OpBuilder &b, Location loc, Sizes sizes, const SizePolynomial &p);
  std::optional<Value> replacement(const Ops &ops);
  std::optional<Value> integers(OpBuilder &b, const Ops &ops,
                                ArrayRef<DenseIntElementsAttr> values);
  std::optional<Value> real(OpBuilder &b, Location loc, Type type,
                            ArrayRef<llvm::APFloat> values);
  Value splat(OpBuilder &b, Location loc, Value scalar, VectorType type);

  ArrayRef<SizePoint> points;
  const runtime::OpenSize &open;
  /// Of each module but the first: what stands for a value of the first.
  SmallVector<llvm::DenseMap<Value, Value>> mapped;
  SmallVector<llvm::DenseMap<Block *, Block *>> blocks;
  llvm::DenseMap<Operation *, Sizes> sizesOf; ///< by function
  SmallVector<std::pair<Operation *, Value>> replaced;
};

} // namespace

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

llvm::Error Merger::differ(Operation *op, const Twine &why) const {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    function = op->getParentOfType<FunctionOpInterface>();
  std::string node = function ? sourceName(function.getLoc()) : "";
  return makeError(
      ExitUnsupported,
      "no code for all sizes of '" + open.name +
          "': " + (node.empty() ? std::string() : "node '" + node + "', ") +
          "kernel '" + (function ? function.getName() : StringRef("?")) +
          "', " + why + "; compile it for one size at a time");
}

bool Merger::sameOperands(const Ops &ops) const {
  for (size_t m = 1; m < ops.size(); ++m) {
    if (ops[m]->getNumOperands() != ops[0]->getNumOperands() ||
        ops[m]->getNumSuccessors() != ops[0]->getNumSuccessors())
      return false;
    for (auto [own, first] :
         llvm::zip(ops[m]->getOperands(), ops[0]->getOperands()))
      if (mapped[m - 1].lookup(first) != own)
        return false;
    for (auto [own, first] :
         llvm::zip(ops[m]->getSuccessors(), ops[0]->getSuccessors()))
      if (blocks[m - 1].lookup(first) != own)
        return false;
  }
  return true;
}

void Merger::mapResults(const Ops &ops) {
  for (size_t m = 1; m < ops.size(); ++m)
    for (auto [own, first] :
         llvm::zip(ops[m]->getResults(), ops[0]->getResults()))
      mapped[m - 1][first] = own;
}

static Value number(OpBuilder &b, Location loc, int64_t value) {
  return LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                  b.getI64IntegerAttr(value));
}

Merger::Sizes Merger::sizesIn(FunctionOpInterface function, bool withRows) {
  auto [size, rows] = sizesOf.lookup(function);
  Location loc = function.getLoc();
  OpBuilder b = OpBuilder::atBlockBegin(&function.getFunctionBody().front());
  Type i64 = b.getI64Type(),
       pointer = LLVM::LLVMPointerType::get(b.getContext());
  constexpr unsigned kKernelArguments = 5;
  if (!size && function.getNumArguments() == kKernelArguments) {
    Value place =
        LLVM::GEPOp::create(b, loc, pointer, i64, function.getArgument(1),
                            ArrayRef<LLVM::GEPArg>{kSizeScalar});
    size = LLVM::LoadOp::create(b, loc, i64, place);
  } else if (!size) {
    auto callee =
        function->getParentOfType<ModuleOp>().lookupSymbol<LLVM::LLVMFuncOp>(
            "ckrt_open_size");
    size = LLVM::CallOp::create(b, loc, callee,
                                ValueRange{function.getArgument(0)})
               .getResult();
  }
  if (!rows && withRows) {
    b.setInsertionPointAfterValue(size);
    int64_t most = open.blocks.count - 1;
    Value all = emit(b, loc, {size, {}},
                     {open.blocks.constant + most, open.blocks.linear});
    rows = LLVM::UDivOp::create(b, loc, all, number(b, loc, open.blocks.count));
  }
  return sizesOf[function] = {size, rows};
}

/// Emits the polynomial's value as an i64.
Value Merger::emit(OpBuilder &b, Location loc, Sizes sizes,
                   const SizePolynomial &p) {
  Value result = number(b, loc, p.constant);
  auto add = [&](Value size, int64_t linear, int64_t square) {
    if (!linear && !square)
      return;
    Value term = number(b, loc, linear);
    if (square)
      term = LLVM::AddOp::create(
          b, loc, term,
          LLVM::MulOp::create(b, loc, size, number(b, loc, square)));
    term = LLVM::MulOp::create(b, loc, term, size);
    result = LLVM::AddOp::create(b, loc, result, term);
  };
  add(sizes.size, p.linear, p.square);
  add(sizes.rows, p.rowsLinear, p.rowsSquare);
  return result;
}

Value Merger::splat(OpBuilder &b, Location loc, Value scalar, VectorType type) {
  Value zero =
      LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(0));
  Value first = LLVM::InsertElementOp::create(
      b, loc, LLVM::PoisonOp::create(b, loc, type), scalar, zero);
  SmallVector<int32_t> everywhere(size_t(type.getNumElements()), 0);
  return LLVM::ShuffleVectorOp::create(b, loc, first, first, everywhere);
}

/// Emits integer elements, each its own polynomial.
std::optional<Value> Merger::integers(OpBuilder &b, const Ops &ops,
                                      ArrayRef<DenseIntElementsAttr> values) {
  Location loc = ops[0]->getLoc();
  Type type = ops[0]->getResult(0).getType();
  auto vector = dyn_cast<VectorType>(type);
  auto element = cast<IntegerType>(getElementTypeOrSelf(type));
  SmallVector<llvm::APInt> constants, linears, squares, rows, rowSquares;
  SmallVector<SizePolynomial> all;
  bool withRows = false;
  for (int64_t i = 0, n = values[0].getNumElements(); i < n; ++i) {
    SmallVector<int64_t> numbers;
    for (DenseIntElementsAttr value : values)
      numbers.push_back(value.getValues<llvm::APInt>()[i].getSExtValue());
    auto p = polynomialThrough(points, numbers);
    if (!p)
      return std::nullopt;
    all.push_back(*p);
    withRows |= p->followsRows();
    auto put = [&](SmallVector<llvm::APInt> &to, int64_t number) {
      to.emplace_back(64, uint64_t(number), /*isSigned=*/true);
      to.back() = to.back().sextOrTrunc(element.getWidth());
    };
    put(constants, p->constant);
    put(linears, p->linear);
    put(squares, p->square);
    put(rows, p->rowsLinear);
    put(rowSquares, p->rowsSquare);
  }
  Sizes sizes =
      sizesIn(ops[0]->getParentOfType<FunctionOpInterface>(), withRows);
  b.setInsertionPointAfterValue(withRows ? sizes.rows : sizes.size);
  auto fitted = [&](Value v) -> Value {
    if (element.getWidth() == 64)
      return v;
    return LLVM::TruncOp::create(b, loc, element, v);
  };
  if (!vector)
    return fitted(emit(b, loc, sizes, all.front()));
  auto constant = [&](ArrayRef<llvm::APInt> numbers) -> Value {
    return LLVM::ConstantOp::create(b, loc, type,
                                    DenseElementsAttr::get(vector, numbers));
  };
  Value result = constant(constants);
  auto add = [&](Value size, ArrayRef<llvm::APInt> linear,
                 ArrayRef<llvm::APInt> square) {
    Value each = splat(b, loc, fitted(size), vector);
    Value term = LLVM::MulOp::create(b, loc, each, constant(square));
    term = LLVM::AddOp::create(b, loc, term, constant(linear));
    term = LLVM::MulOp::create(b, loc, term, each);
    result = LLVM::AddOp::create(b, loc, result, term);
  };
  add(sizes.size, linears, squares);
  if (withRows)
    add(sizes.rows, rows, rowSquares);
  return result;
}

/// Emits a float that follows the size.
std::optional<Value> Merger::real(OpBuilder &b, Location loc, Type type,
                                  ArrayRef<llvm::APFloat> values) {
  auto found = SizeReal::through(points, values);
  if (!found)
    return std::nullopt;
  Type f64 = b.getF64Type(), element = getElementTypeOrSelf(type);
  bool withRows = found->count.followsRows();
  Sizes sizes = sizesIn(b.getInsertionBlock()
                            ->getParent()
                            ->getParentOfType<FunctionOpInterface>(),
                        withRows);
  b.setInsertionPointAfterValue(withRows ? sizes.rows : sizes.size);
  Value n =
      LLVM::SIToFPOp::create(b, loc, f64, emit(b, loc, sizes, found->count));
  if (found->isReciprocal)
    n = LLVM::FDivOp::create(
        b, loc,
        LLVM::ConstantOp::create(b, loc, f64, b.getF64FloatAttr(found->factor)),
        n);
  if (element != f64)
    n = LLVM::FPTruncOp::create(b, loc, element, n);
  if (auto vector = dyn_cast<VectorType>(type))
    return splat(b, loc, n, vector);
  return n;
}

/// Returns the value in place of constants that differ; nothing: no polynomial
/// explains them.
std::optional<Value> Merger::replacement(const Ops &ops) {
  OpBuilder b(ops[0]);
  Type type = ops[0]->getResult(0).getType();
  auto shape = RankedTensorType::get({1}, getElementTypeOrSelf(type));
  SmallVector<DenseIntElementsAttr> numbers;
  SmallVector<llvm::APFloat> reals;
  for (Operation *op : ops) {
    Attribute value = op->getAttr(kValue);
    if (auto integer = dyn_cast<IntegerAttr>(value);
        integer && isa<IntegerType>(type))
      numbers.push_back(cast<DenseIntElementsAttr>(
          DenseElementsAttr::get(shape, integer.getValue())));
    else if (auto dense = dyn_cast<DenseIntElementsAttr>(value))
      numbers.push_back(dense);
    else if (auto one = dyn_cast<FloatAttr>(value))
      reals.push_back(one.getValue());
    else if (auto many = dyn_cast<DenseFPElementsAttr>(value);
             many && many.isSplat())
      reals.push_back(many.getSplatValue<llvm::APFloat>());
  }
  if (numbers.size() == ops.size())
    return integers(b, ops, numbers);
  if (reals.size() == ops.size())
    return real(b, ops[0]->getLoc(), type, reals);
  return std::nullopt;
}

llvm::Error Merger::mergeConstant(const Ops &ops) {
  auto value = [](Operation *op) { return op->getAttr(kValue); };
  if (llvm::any_of(ops,
                   [&](Operation *op) { return value(op) != value(ops[0]); })) {
    std::optional<Value> made = replacement(ops);
    if (!made) {
      std::string shown;
      llvm::raw_string_ostream os(shown);
      for (auto [point, op] : llvm::zip(points, ops))
        os << (shown.empty() ? "" : ", ") << value(op) << " at " << point.size;
      return differ(ops[0],
                    "has a number that is no polynomial of it (" + shown + ")");
    }
    replaced.push_back({ops[0], *made});
  }
  mapResults(ops);
  return llvm::Error::success();
}

/// Gives addresses with other constant indices an index that follows the size.
llvm::Error Merger::mergeGEP(const Ops &ops) {
  auto first = cast<LLVM::GEPOp>(ops[0]);
  SmallVector<LLVM::GEPArg> indices;
  unsigned dynamic = 0;
  OpBuilder b(first);
  for (size_t i = 0; i < first.getRawConstantIndices().size(); ++i) {
    SmallVector<int64_t> values;
    for (Operation *op : ops) {
      auto own = cast<LLVM::GEPOp>(op);
      if (own.getRawConstantIndices().size() !=
          first.getRawConstantIndices().size())
        return differ(first, "has other addresses at other sizes");
      values.push_back(own.getRawConstantIndices()[i]);
    }
    if (values[0] == LLVM::GEPOp::kDynamicIndex) {
      indices.push_back(first.getDynamicIndices()[dynamic++]);
      continue;
    }
    auto p = polynomialThrough(points, values);
    if (!p)
      return differ(first, "has other addresses at other sizes");
    if (p->isConstant()) {
      indices.push_back(int32_t(values[0]));
      continue;
    }
    bool withRows = p->followsRows();
    Sizes sizes =
        sizesIn(first->getParentOfType<FunctionOpInterface>(), withRows);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(withRows ? sizes.rows : sizes.size);
    indices.push_back(emit(b, first.getLoc(), sizes, *p));
  }
  b.setInsertionPoint(first);
  Value made = LLVM::GEPOp::create(b, first.getLoc(), first.getType(),
                                   first.getElemType(), first.getBase(),
                                   indices, first.getNoWrapFlags());
  replaced.push_back({first, made});
  mapResults(ops);
  return llvm::Error::success();
}

llvm::Error Merger::merge(const Ops &ops) {
  for (Operation *op : ops)
    if (op->getName() != ops[0]->getName() ||
        op->getResultTypes() != ops[0]->getResultTypes() ||
        op->getNumRegions() != ops[0]->getNumRegions())
      return differ(ops[0], "is another op at other sizes ('" +
                                ops[0]->getName().getStringRef() + "')");
  if (!sameOperands(ops))
    return differ(ops[0], "has other operands at other sizes ('" +
                              ops[0]->getName().getStringRef() + "')");
  if (isa<LLVM::ConstantOp, arith::ConstantOp>(ops[0]))
    return mergeConstant(ops);
  bool same = llvm::all_of(ops, [&](Operation *op) {
    return op->getAttrDictionary() == ops[0]->getAttrDictionary();
  });
  if (!same && isa<LLVM::GEPOp>(ops[0]))
    return mergeGEP(ops);
  if (!same)
    return differ(ops[0], "has other attributes at other sizes ('" +
                              ops[0]->getName().getStringRef() + "')");
  mapResults(ops);
  return mergeRegions(ops);
}

llvm::Error Merger::mergeRegions(const Ops &ops) {
  for (unsigned r = 0; r < ops[0]->getNumRegions(); ++r) {
    SmallVector<SmallVector<Block *>> all;
    for (Operation *op : ops) {
      all.emplace_back();
      for (Block &block : op->getRegion(r))
        all.back().push_back(&block);
      if (all.back().size() != all.front().size())
        return differ(ops[0], "branches in another way at other sizes");
    }
    for (size_t m = 1; m < ops.size(); ++m)
      for (auto [own, first] : llvm::zip(all[m], all[0])) {
        blocks[m - 1][first] = own;
        for (auto [mine, theirs] :
             llvm::zip(own->getArguments(), first->getArguments()))
          mapped[m - 1][theirs] = mine;
      }
    for (size_t b = 0; b < all[0].size(); ++b) {
      SmallVector<Ops> lists;
      for (auto &own : all) {
        lists.emplace_back();
        for (Operation &op : *own[b])
          lists.back().push_back(&op);
        if (lists.back().size() != lists.front().size())
          return differ(own[b]->empty() ? ops[0] : &own[b]->front(),
                        "has other code at other sizes");
      }
      for (size_t i = 0; i < lists[0].size(); ++i) {
        Ops together;
        for (Ops &list : lists)
          together.push_back(list[i]);
        if (llvm::Error error = merge(together))
          return error;
      }
    }
  }
  return llvm::Error::success();
}

llvm::Error Merger::run(ArrayRef<ModuleOp> modules) {
  mapped.resize(modules.size() - 1);
  blocks.resize(modules.size() - 1);
  Ops ops(modules.begin(), modules.end());
  if (llvm::Error error = mergeRegions(ops))
    return error;
  for (auto [op, made] : replaced) {
    op->getResult(0).replaceAllUsesWith(made);
    op->erase();
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// The manifest
//===----------------------------------------------------------------------===//

/// Returns the manifest's bytes without the numbers that sizes change.
static std::vector<uint8_t> withoutSizes(runtime::Manifest manifest) {
  for (int64_t *number : runtime::sizeFields(manifest))
    *number = 0;
  return runtime::serialize(manifest);
}

/// Returns the bytes of everything that has a place.
static std::vector<int64_t> placedBytes(const runtime::Manifest &manifest) {
  std::vector<int64_t> bytes;
  for (const runtime::TensorInfo &tensor : manifest.tensors)
    bytes.push_back(tensor.bytes);
  for (const runtime::CallInfo &call : manifest.calls)
    for (const runtime::CallResult &result : call.results)
      bytes.push_back(result.bytes);
  return bytes;
}

/// Whether nothing shrinks where the size grows: then a place of the largest
/// size is large enough for every other. A parabola that rises at both ends of
/// the range rises in it, and the rows of a block never fall.
static bool growsWithSize(const runtime::Manifest &largest, std::string &why) {
  const runtime::OpenSize &open = largest.open;
  for (const runtime::OpenSize::Field &field : open.fields)
    if (const SizePolynomial &p = field.value;
        p.followsRows() &&
        std::min({p.linear, p.rowsLinear, p.rowsSquare}) < 0) {
      why = "a tensor of it has what its rows lack to fill blocks";
      return false;
    }
  std::vector<std::vector<int64_t>> bytes;
  for (int64_t size : {open.low, std::min(open.low + 1, open.high),
                       std::max(open.high - 1, open.low), open.high}) {
    runtime::Manifest at = largest;
    if (!runtime::resize(at, size, why))
      return false;
    bytes.push_back(placedBytes(at));
  }
  for (size_t i = 0; i < bytes[0].size(); ++i)
    if (bytes[0][i] > bytes[1][i] || bytes[2][i] > bytes[3][i] ||
        bytes[0][i] > bytes[3][i]) {
      why = "a tensor of it is smaller where the size is larger";
      return false;
    }
  return true;
}

llvm::Error ckopt::mergeManifests(ArrayRef<SizePoint> points,
                                  MutableArrayRef<runtime::Manifest> manifests,
                                  runtime::Manifest &largest,
                                  const runtime::OpenSize &open) {
  auto refuse = [&](const Twine &what) {
    return makeError(ExitUnsupported,
                     "no plan for all sizes of '" + open.name + "': " + what +
                         "; compile it for one size at a time");
  };
  SmallVector<SizePoint> all{open.blocks.at(open.high)};
  SmallVector<std::vector<int64_t *>> fields{runtime::sizeFields(largest)};
  for (auto [point, manifest] : llvm::zip_equal(points, manifests)) {
    // The forms that the largest size has are those of all: they need its
    // workspace.
    for (auto [own, first] : llvm::zip(manifest.primitives, largest.primitives))
      own.form = first.form;
    all.push_back(point);
    fields.push_back(runtime::sizeFields(manifest));
    if (fields.back().size() != fields.front().size() ||
        withoutSizes(manifest) != withoutSizes(largest))
      return refuse("its tensors or calls are others at " + Twine(point.size) +
                    " than at " + Twine(open.high));
  }
  largest.open = open;
  for (size_t i = 0; i < fields[0].size(); ++i) {
    SmallVector<int64_t> values;
    for (auto &own : fields)
      values.push_back(*own[i]);
    auto p = polynomialThrough(all, values);
    if (!p)
      return refuse("a number of its description is no polynomial of the size "
                    "(" +
                    Twine(values[0]) + " at " + Twine(all[0].size) + ", " +
                    Twine(values[1]) + " at " + Twine(all[1].size) + ")");
    if (!p->isConstant())
      largest.open.fields.push_back({int64_t(i), *p});
  }
  if (std::string why; !growsWithSize(largest, why))
    return refuse(why);
  return llvm::Error::success();
}

llvm::Error ckopt::mergeCode(ArrayRef<SizePoint> points,
                             ArrayRef<ModuleOp> modules,
                             const runtime::OpenSize &open) {
  return Merger(points, open).run(modules);
}
