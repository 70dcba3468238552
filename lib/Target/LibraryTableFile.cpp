//===- LibraryTableFile.cpp - library tables from files -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Target/LibraryTableFile.h"
#include "ckopt/Base/JsonText.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace ckopt;
using namespace ckopt::runtime;
using llvm::StringRef;
using llvm::Twine;

static constexpr llvm::StringLiteral kAnyClass = "any";
/// Of convolutions: the product that has their bits, in the form of its own.
static constexpr llvm::StringLiteral kProduct = "product";

static constexpr std::pair<llvm::StringLiteral, PrimitiveKind> kKinds[] = {
    {"matmul", PrimitiveKind::MatMul},
    {"convolution", PrimitiveKind::ConvForward},
    {"convolution-input-gradient", PrimitiveKind::ConvInputGrad},
    {"convolution-weight-gradient", PrimitiveKind::ConvWeightGrad}};

static StringRef text(std::string_view view) {
  return StringRef(view.data(), view.size());
}

/// "matmul, convolution, ..." of names that satisfy a condition.
static std::string fieldNames(PrimitiveKind kind) {
  std::string names;
  for (uint32_t i = 0; i < kNumLibraryFields; ++i)
    if (auto field = static_cast<LibraryField>(i); hasField(kind, field))
      names +=
          (names.empty() ? "" : ", ") + text(libraryFieldName(field)).str();
  return names;
}

namespace {

/// Reads one rule; the first thing that is wrong is the error.
class RuleReader {
public:
  RuleReader(const llvm::json::Value &value, std::string place)
      : value(value), place(std::move(place)) {}

  llvm::Expected<LibraryRule> read();

private:
  llvm::Error fail(const Twine &what) const {
    return inputError(place + ": " + what);
  }
  llvm::Error readKind(const llvm::json::Object &rule);
  llvm::Error readForm(const llvm::json::Object &rule);
  llvm::Error readCondition(StringRef name, const llvm::json::Value &number);
  /// Reads [LOW, HIGH], each of which may be null.
  llvm::Error readRange(StringRef name, const llvm::json::Array &range,
                        LibraryCondition &into) const;

  const llvm::json::Value &value;
  std::string place;
  LibraryRule result;
};

} // namespace

llvm::Expected<LibraryRule> RuleReader::read() {
  const llvm::json::Object *rule = value.getAsObject();
  if (!rule)
    return fail("a rule is an object");
  for (const auto &member : *rule)
    if (!llvm::is_contained({"kind", "type", "where", "form"},
                            StringRef(member.first)))
      return fail("unknown member '" + StringRef(member.first) + "'");
  if (llvm::Error error = readKind(*rule))
    return std::move(error);
  const llvm::json::Object *where = rule->getObject("where");
  if (!where && rule->get("where"))
    return fail("'where' is an object of numbers");
  if (where)
    for (const auto &member : *where)
      if (llvm::Error error = readCondition(member.first, member.second))
        return std::move(error);
  // An object has no order, and equal rules have an equal hash.
  llvm::sort(result.conditions,
             [](const auto &a, const auto &b) { return a.field < b.field; });
  if (llvm::Error error = readForm(*rule))
    return std::move(error);
  return std::move(result);
}

llvm::Error RuleReader::readKind(const llvm::json::Object &rule) {
  StringRef kind = rule.getString("kind").value_or("");
  const auto *known =
      llvm::find_if(kKinds, [&](const auto &k) { return k.first == kind; });
  if (known == std::end(kKinds))
    return fail("'kind' is none of matmul, convolution, "
                "convolution-input-gradient, convolution-weight-gradient");
  result.kind = known->second;
  StringRef type = rule.getString("type").value_or("");
  if (type != "f32" && type != "bf16")
    return fail("'type' is neither f32 nor bf16");
  result.dtype = type == "f32" ? DType::F32 : DType::BF16;
  return llvm::Error::success();
}

llvm::Error RuleReader::readForm(const llvm::json::Object &rule) {
  StringRef form = rule.getString("form").value_or("");
  bool isProduct = result.kind == PrimitiveKind::MatMul;
  if (!isProduct && form == kProduct)
    return llvm::Error::success(); // Default
  llvm::SmallVector<LibraryForm> forms = {LibraryForm::Convolution};
  if (isProduct)
    forms = {LibraryForm::InPlace, LibraryForm::Packed, LibraryForm::OpenBlas};
  if (isProduct && result.dtype != DType::F32)
    forms.pop_back();
  std::string names = isProduct ? "" : kProduct.str() + ", ";
  for (LibraryForm known : forms) {
    names += text(libraryFormName(known)).str() + ", ";
    if (text(libraryFormName(known)) == form) {
      result.form = known;
      return llvm::Error::success();
    }
  }
  return fail("'form' is none of " + StringRef(names).drop_back(2));
}

llvm::Error RuleReader::readRange(StringRef name,
                                  const llvm::json::Array &range,
                                  LibraryCondition &into) const {
  int64_t *bounds[] = {&into.low, &into.high};
  for (size_t i = 0; i < 2 && range.size() == 2; ++i) {
    if (std::optional<int64_t> bound = range[i].getAsInteger())
      *bounds[i] = *bound;
    else if (!range[i].getAsNull())
      return fail("where." + name + ": bounds are integers or null");
  }
  if (range.size() != 2 || into.low > into.high)
    return fail("where." + name + ": a range is [LEAST, MOST]");
  return llvm::Error::success();
}

llvm::Error RuleReader::readCondition(StringRef name,
                                      const llvm::json::Value &number) {
  LibraryCondition condition;
  bool known = false;
  for (uint32_t i = 0; i < kNumLibraryFields && !known; ++i) {
    condition.field = static_cast<LibraryField>(i);
    known = text(libraryFieldName(condition.field)) == name &&
            hasField(result.kind, condition.field);
  }
  if (!known)
    return fail("where: no number '" + name + "'; this kind has " +
                fieldNames(result.kind));
  if (std::optional<int64_t> exact = number.getAsInteger()) {
    condition.low = condition.high = *exact;
  } else if (const llvm::json::Array *range = number.getAsArray()) {
    if (llvm::Error error = readRange(name, *range, condition))
      return error;
  } else {
    const llvm::json::Object *object = number.getAsObject();
    std::optional<int64_t> of = object && object->size() == 1
                                    ? object->getInteger("multiple_of")
                                    : std::nullopt;
    if (!of || *of < 1)
      return fail("where." + name +
                  ": is no integer, [LEAST, MOST] or "
                  "{\"multiple_of\": N}");
    condition.multipleOf = *of;
  }
  result.conditions.push_back(condition);
  return llvm::Error::success();
}

/// What decides a choice, as text.
static std::string canonical(const LibraryRule &rule) {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << unsigned(rule.kind) << " " << unsigned(rule.dtype);
  for (const LibraryCondition &c : rule.conditions)
    os << " " << unsigned(c.field) << ":" << c.low << ":" << c.high << ":"
       << c.multipleOf;
  os << " " << unsigned(rule.form) << "\n";
  return result;
}

/// Checks all classes, and adds the rules of `cpuClass` and, behind them, those
/// for all.
static llvm::Error addRules(const llvm::json::Object &classes,
                            StringRef cpuClass, LibraryTable &table) {
  std::vector<LibraryRule> forAll;
  for (const auto &member : classes) {
    StringRef name = member.first;
    if (name != kAnyClass &&
        !llvm::is_contained(kCpuClasses, std::string_view(name))) {
      std::string names;
      for (std::string_view known : kCpuClasses)
        names += text(known).str() + ", ";
      return inputError("classes: no class '" + name +
                        "' of processors; there "
                        "are " +
                        names + kAnyClass);
    }
    std::string place = "classes." + name.str();
    const llvm::json::Array *rules = member.second.getAsArray();
    if (!rules)
      return inputError(place + " is no list of rules");
    for (auto [i, value] : llvm::enumerate(*rules)) {
      auto rule =
          RuleReader(value, place + "[" + std::to_string(i) + "]").read();
      if (!rule)
        return rule.takeError();
      if (name == cpuClass)
        table.rules.push_back(std::move(*rule));
      else if (name == kAnyClass)
        forAll.push_back(std::move(*rule));
    }
  }
  table.rules.insert(table.rules.end(), forAll.begin(), forAll.end());
  return llvm::Error::success();
}

llvm::Expected<std::shared_ptr<const LibraryTable>>
ckopt::parseLibraryTable(StringRef source, StringRef cpuClass) {
  if (std::string why = whyNotParse(source); !why.empty())
    return inputError(why);
  auto json = llvm::json::parse(source);
  if (!json)
    return inputError(llvm::toString(json.takeError()));
  const llvm::json::Object *root = json->getAsObject();
  if (!root || root->getString("format") != StringRef(kLibraryTableFormat))
    return inputError("needs \"format\": \"" + kLibraryTableFormat + "\"");
  const llvm::json::Object *classes = root->getObject("classes");
  if (!classes || root->size() != 2)
    return inputError("has 'format' and 'classes', an object, and no other "
                      "members");
  auto table = std::make_shared<LibraryTable>();
  table->base = &builtInLibraryTable(cpuClass);
  if (llvm::Error error = addRules(*classes, cpuClass, *table))
    return std::move(error);
  std::string rules;
  for (const LibraryRule &rule : table->rules)
    rules += canonical(rule);
  llvm::raw_string_ostream(table->hash)
      << llvm::format_hex_no_prefix(llvm::xxh3_64bits(rules), 16);
  return std::shared_ptr<const LibraryTable>(std::move(table));
}

llvm::Expected<std::shared_ptr<const LibraryTable>>
ckopt::readLibraryTable(StringRef path, StringRef cpuClass) {
  auto file = openInputBuffer(path, /*endsWithZero=*/true);
  if (!file)
    return withContext(file.takeError(),
                       "cannot read the library table " + path);
  auto table = parseLibraryTable((*file)->getBuffer(), cpuClass);
  if (!table)
    return withContext(table.takeError(), "library table " + path.str());
  return table;
}
