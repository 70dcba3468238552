//===- OpDescriptions.cpp - ops get the facts of tables -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: analyses ask ops, but a table knows ops by name. Method: each op
// that a table describes gets the facts as attributes, numbers computed for its
// shapes, and a list of those that it got, so that they can be removed; what
// it has already stays. Complexity: linear in ops and patterns.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/OpFacts.h"
#include "ckopt/Analysis/OpTable.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Support/Error.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Threading.h"

using namespace mlir;
using namespace ckopt;

/// Returns whether a text is what a pattern with `*` says.
static bool agrees(StringRef pattern, StringRef text) {
  auto [first, rest] = pattern.split('*');
  if (first.size() == pattern.size())
    return text == pattern;
  if (!text.consume_front(first))
    return false;
  for (size_t i = 0; i <= text.size(); ++i)
    if (agrees(rest, text.drop_front(i)))
      return true;
  return false;
}

/// Returns whether the op has all attributes that an entry asks for.
static bool agrees(const OpTable::Entry &entry, Operation *op) {
  return llvm::all_of(entry.where, [&](const auto &wanted) {
    Attribute attr = findAttribute(op, wanted.first);
    if (auto text = dyn_cast_or_null<StringAttr>(attr))
      return text.getValue() == wanted.second;
    std::string text;
    if (attr)
      llvm::raw_string_ostream(text) << attr;
    return attr && text == wanted.second;
  });
}

const OpTable::Entry *OpTable::find(Operation *op) const {
  StringRef name = op->getName().getStringRef();
  if (auto found = named.find(name); found != named.end())
    for (size_t entry : found->second)
      if (agrees(entries[entry], op))
        return &entries[entry];
  for (const auto &[pattern, entry] : patterns)
    if (agrees(pattern, name) && agrees(entries[entry], op))
      return &entries[entry];
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Takes the text that a pattern with `$dims` and `$element` says apart.
static bool takeApart(StringRef pattern, StringRef text, StringRef &dims,
                      StringRef &element) {
  while (!pattern.empty()) {
    StringRef *part = nullptr;
    if (pattern.consume_front("$dims"))
      part = &dims;
    else if (pattern.consume_front("$element"))
      part = &element;
    if (part) {
      size_t end = pattern.empty() ? text.size() : text.find(pattern.front());
      if (part == &element && !pattern.empty())
        end = text.rfind(pattern.front()); // complex<f32>
      if (end == StringRef::npos)
        return false;
      *part = text.take_front(end);
      text = text.drop_front(end);
      continue;
    }
    if (text.empty() || text.front() != pattern.front())
      return false;
    pattern = pattern.drop_front();
    text = text.drop_front();
  }
  return text.empty();
}

std::optional<OpTable::Sized> OpTable::sized(Type type) const {
  auto opaque = dyn_cast<OpaqueType>(type);
  if (types.empty() || (!opaque && type.getDialect().getNamespace() ==
                                       BuiltinDialect::getDialectNamespace()))
    return std::nullopt;
  std::string text;
  llvm::raw_string_ostream(text) << type;
  for (const TypeEntry &entry : types) {
    StringRef dims, element;
    if (!takeApart(entry.pattern, text, dims, element))
      continue;
    Sized result;
    result.bytes = entry.bytes;
    SmallVector<StringRef> sizes;
    llvm::SplitString(dims, sizes, ", x");
    for (StringRef size : sizes)
      if (size.getAsInteger(10, result.shape.emplace_back()))
        return std::nullopt; // not known when compiling
    if (result.bytes)
      return result;
    // A text that is no type is not an error of the program.
    ScopedDiagnosticHandler silence(
        type.getContext(), [thread = llvm::get_threadid()](Diagnostic &) {
          return success(llvm::get_threadid() == thread);
        });
    Type known = parseType(element, type.getContext());
    if (known && TensorType::isValidElementType(known))
      result.bytes = TypeSizes().bytes(RankedTensorType::get({1}, known));
    for (int64_t size : result.shape)
      if (result.bytes && llvm::MulOverflow(*result.bytes, size, *result.bytes))
        return std::nullopt;
    if (result.bytes && *result.bytes == 0 &&
        !llvm::is_contained(result.shape, 0))
      return std::nullopt;
    return result;
  }
  return std::nullopt;
}

std::optional<SmallVector<int64_t>> OpTable::shape(Type type) const {
  std::optional<Sized> found = sized(type);
  return found ? std::optional(found->shape) : std::nullopt;
}

std::optional<int64_t> OpTable::bytes(Type type) const {
  std::optional<Sized> found = sized(type);
  return found ? found->bytes : std::nullopt;
}

void ckopt::sizeTypes(PlanningHooks &hooks, const OpTables &tables) {
  if (tables.empty())
    return;
  hooks.typeBytes = [client = hooks.typeBytes,
                     tables](Type type) -> std::optional<int64_t> {
    if (client)
      if (std::optional<int64_t> bytes = client(type))
        return bytes;
    for (const auto &table : tables)
      if (std::optional<int64_t> bytes = table->bytes(type))
        return bytes;
    return std::nullopt;
  };
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

namespace {

/// Gives one op the attributes of an entry.
class Describer {
public:
  Describer(Operation *op, const OpTable::Entry &entry, const OpTables &tables,
            const TypeSizes &sizes)
      : op(op), entry(entry), builder(op->getContext()) {
    scope.op = op;
    scope.bytes = [&](Type type) -> std::optional<int64_t> {
      return sizes.isKnown(type) ? std::optional(sizes.bytes(type))
                                 : std::nullopt;
    };
    scope.shape = [&](Type type) -> std::optional<SmallVector<int64_t>> {
      if (auto shaped = dyn_cast<ShapedType>(type))
        return shaped.hasStaticShape()
                   ? std::optional(llvm::to_vector(shaped.getShape()))
                   : std::nullopt;
      if (type.isIntOrIndexOrFloat())
        return SmallVector<int64_t>{};
      for (const auto &table : tables)
        if (auto shape = table->shape(type))
          return shape;
      return std::nullopt;
    };
  }
  LogicalResult run();

private:
  void give(StringRef name, Attribute value) {
    if (op->hasAttr(name))
      return;
    op->setAttr(name, value);
    given.push_back(builder.getStringAttr(name));
  }
  LogicalResult number(const OpFormula &formula, double &result);
  LogicalResult giveNumbers();
  std::vector<int64_t> reusePairs();

  Operation *op;
  const OpTable::Entry &entry;
  Builder builder;
  FormulaScope scope;
  SmallVector<Attribute> given;
};

} // namespace

LogicalResult Describer::number(const OpFormula &formula, double &result) {
  llvm::Expected<double> number = formula.evaluate(scope);
  if (!number)
    return op->emitError() << entry.label << ": "
                           << takeErrorText(number.takeError()).text;
  result = *number;
  return success();
}

LogicalResult Describer::giveNumbers() {
  double value = 0;
  if (entry.workspace) {
    if (failed(number(*entry.workspace, value)))
      return failure();
    if (value > double(kMaxStatedBytes))
      return op->emitError() << entry.label << ": workspace: more than 2^56";
    give(kWorkspaceAttr, builder.getI64IntegerAttr(int64_t(value)));
  }
  SmallVector<NamedAttribute> work;
  for (const auto &[kind, formula] : entry.work) {
    if (failed(number(formula, value)))
      return failure();
    work.push_back(builder.getNamedAttr(kind, builder.getF64FloatAttr(value)));
  }
  if (!work.empty())
    give(facts::kWork, builder.getDictionaryAttr(work));
  return success();
}

std::vector<int64_t> Describer::reusePairs() {
  std::vector<int64_t> pairs = entry.pairs;
  bool each = entry.reuse == "each" ||
              (entry.view == OpTable::kEach && op->getNumResults() > 1);
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (each && i < op->getNumResults())
      pairs.insert(pairs.end(), {i, i});
    else if (entry.reuse == "elementwise" && op->getNumResults() == 1 &&
             op->getOperand(i).getType() == op->getResult(0).getType())
      pairs.insert(pairs.end(), {i, 0});
  return pairs;
}

LogicalResult Describer::run() {
  if (entry.pure)
    give(facts::kPure, builder.getBoolAttr(*entry.pure));
  if (entry.constant)
    give(facts::kConstant, builder.getBoolAttr(*entry.constant));
  if (!entry.regions.empty())
    give(facts::kRegions, builder.getStringAttr(entry.regions));
  if (entry.view && *entry.view >= 0)
    give(facts::kView, builder.getI64IntegerAttr(*entry.view));
  else if (entry.view && op->getNumOperands() == 1 && op->getNumResults() == 1)
    give(facts::kView, builder.getI64IntegerAttr(0));
  if (std::vector<int64_t> pairs = reusePairs(); !pairs.empty())
    give(facts::kReuse, builder.getDenseI64ArrayAttr(pairs));
  if (failed(giveNumbers()))
    return failure();
  op->setAttr(facts::kDescribed, builder.getArrayAttr(given));
  return success();
}

LogicalResult ckopt::describeOps(Operation *root, const OpTables &tables) {
  if (tables.empty())
    return success();
  PlanningHooks hooks;
  sizeTypes(hooks, tables);
  TypeSizes sizes(root, hooks);
  LogicalResult status = success();
  root->walk([&](Operation *op) {
    if (facts::isDescribed(op))
      return;
    for (const auto &table : tables)
      if (const OpTable::Entry *entry = table->find(op)) {
        if (failed(Describer(op, *entry, tables, sizes).run()))
          status = failure();
        return;
      }
  });
  return status;
}

void ckopt::undescribeOps(Operation *root) {
  root->walk([](Operation *op) {
    auto given = op->getAttrOfType<ArrayAttr>(facts::kDescribed);
    if (!given)
      return;
    for (auto name : given.getAsRange<StringAttr>())
      op->removeAttr(name);
    op->removeAttr(facts::kDescribed);
  });
}
