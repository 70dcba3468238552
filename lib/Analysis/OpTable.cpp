//===- OpTable.cpp - tables of descriptions are read ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: who writes a table by hand makes mistakes, and a table that is read
// wrong makes wrong plans. Method: every member is checked for its name and its
// form; formulas are parsed at once. Guarantee: an unknown member is an error.
// Complexity: linear in the text.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/OpTable.h"
#include "ckopt/Analysis/OpFacts.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Base/JsonText.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace ckopt;
namespace json = llvm::json;

static constexpr StringLiteral kFormat = "ckopt-ops/1";

/// Returns the first member of an object that has none of these names.
static std::optional<std::string> unknownMember(const json::Object &object,
                                                ArrayRef<StringRef> known) {
  for (const auto &member : object)
    if (!llvm::is_contained(known, StringRef(member.first)))
      return StringRef(member.first).str();
  return std::nullopt;
}

/// Returns a string, or the strings of a list; nothing if it is neither.
static std::vector<std::string> stringsOf(const json::Value *value) {
  std::vector<std::string> all;
  auto add = [&](const json::Value &each) {
    std::optional<StringRef> text = each.getAsString();
    all.push_back(text ? text->str() : "");
  };
  if (value && value->getAsArray())
    llvm::for_each(*value->getAsArray(), add);
  else if (value)
    add(*value);
  if (llvm::is_contained(all, ""))
    all.clear();
  return all;
}

namespace {

/// Reads one entry for ops.
class EntryReader {
public:
  EntryReader(const json::Object &object, OpTable::Entry &entry)
      : object(object), entry(entry) {}
  llvm::Error run();

private:
  llvm::Error flag(StringRef name, std::optional<bool> &result);
  llvm::Error view();
  llvm::Error reuse();
  llvm::Error regions();
  llvm::Error where();
  llvm::Error work();
  llvm::Expected<OpFormula> formula(const json::Value &value,
                                    const Twine &name);
  llvm::Error fail(const Twine &what) {
    return inputError(entry.label + ": " + what);
  }

  const json::Object &object;
  OpTable::Entry &entry;
};

} // namespace

llvm::Error EntryReader::flag(StringRef name, std::optional<bool> &result) {
  if (const json::Value *value = object.get(name))
    if (result = value->getAsBoolean(); !result)
      return fail("'" + name + "' must be true or false");
  return llvm::Error::success();
}

llvm::Error EntryReader::view() {
  const json::Value *value = object.get("view");
  if (!value)
    return llvm::Error::success();
  entry.view = value->getAsInteger();
  if (value->getAsString() == StringRef("each"))
    entry.view = OpTable::kEach;
  else if (!entry.view || *entry.view < 0)
    return fail("'view' must be the number of an operand, or \"each\"");
  return llvm::Error::success();
}

llvm::Error EntryReader::reuse() {
  const json::Value *value = object.get("reuse");
  if (!value)
    return llvm::Error::success();
  entry.reuse = value->getAsString().value_or("").str();
  if (entry.reuse == "elementwise" || entry.reuse == "each")
    return llvm::Error::success();
  bool valid = value->getAsArray();
  if (valid)
    for (const json::Value &each : *value->getAsArray()) {
      const json::Array *pair = each.getAsArray();
      valid &= pair && pair->size() == 2;
      for (size_t i = 0; valid && i < 2; ++i) {
        std::optional<int64_t> number = (*pair)[i].getAsInteger();
        valid &= number && *number >= 0;
        entry.pairs.push_back(number.value_or(0));
      }
    }
  if (!valid)
    return fail("'reuse' must be \"elementwise\", \"each\", or a list of pairs "
                "[operand, result]");
  return llvm::Error::success();
}

llvm::Error EntryReader::regions() {
  if (const json::Value *value = object.get("regions")) {
    entry.regions = value->getAsString().value_or("").str();
    if (entry.regions != "loop" && entry.regions != "branch")
      return fail("'regions' must be \"loop\" or \"branch\"");
  }
  return llvm::Error::success();
}

llvm::Error EntryReader::where() {
  const json::Value *value = object.get("where");
  if (!value)
    return llvm::Error::success();
  const json::Object *wanted = value->getAsObject();
  if (!wanted)
    return fail("'where' must be an object of attributes and their texts");
  for (const auto &member : *wanted) {
    std::optional<StringRef> text = member.second.getAsString();
    if (!text)
      return fail("where: '" + StringRef(member.first) + "' must be a string");
    entry.where[StringRef(member.first).str()] = text->str();
  }
  return llvm::Error::success();
}

llvm::Expected<OpFormula> EntryReader::formula(const json::Value &value,
                                               const Twine &name) {
  std::string text = value.getAsString().value_or("").str();
  if (std::optional<double> number = value.getAsNumber())
    llvm::raw_string_ostream(text) << json::Value(*number);
  if (text.empty())
    return fail("'" + name + "' must be a number or a formula");
  llvm::Expected<OpFormula> parsed = OpFormula::parse(text);
  if (!parsed)
    return withContext(parsed.takeError(), entry.label + ": " + name.str());
  return parsed;
}

llvm::Error EntryReader::work() {
  if (const json::Value *value = object.get("workspace")) {
    llvm::Expected<OpFormula> parsed = formula(*value, "workspace");
    if (!parsed)
      return parsed.takeError();
    entry.workspace = std::move(*parsed);
  }
  const json::Value *value = object.get("work");
  if (!value)
    return llvm::Error::success();
  const json::Object *kinds = value->getAsObject();
  if (!kinds)
    return fail("'work' must be an object");
  for (const auto &member : *kinds) {
    StringRef kind = member.first;
    if (!llvm::is_contained(facts::kWorkKinds, kind))
      return fail("work: unknown member '" + kind +
                  "'; known are vector, matmul, conv, bytes and seconds");
    llvm::Expected<OpFormula> parsed = formula(member.second, "work." + kind);
    if (!parsed)
      return parsed.takeError();
    entry.work.emplace(kind.str(), std::move(*parsed));
  }
  return llvm::Error::success();
}

llvm::Error EntryReader::run() {
  static constexpr StringRef known[] = {"op",      "where",     "pure",
                                        "view",    "constant",  "reuse",
                                        "regions", "workspace", "work"};
  if (auto unknown = unknownMember(object, known))
    return fail("unknown member '" + *unknown + "'");
  if (llvm::Error error = flag("pure", entry.pure))
    return error;
  if (llvm::Error error = flag("constant", entry.constant))
    return error;
  for (auto read :
       {&EntryReader::view, &EntryReader::reuse, &EntryReader::regions,
        &EntryReader::where, &EntryReader::work})
    if (llvm::Error error = (this->*read)())
      return error;
  return llvm::Error::success();
}

llvm::Error OpTable::addOp(const json::Object &object, size_t index) {
  Entry entry;
  std::vector<std::string> names = stringsOf(object.get("op"));
  entry.label = from + ": ops[" + std::to_string(index) + "]";
  if (names.empty())
    return inputError(entry.label + ": needs 'op', a name or a list of names");
  entry.label += " (" + names.front() + (names.size() > 1 ? ", ...)" : ")");
  if (llvm::Error error = EntryReader(object, entry).run())
    return error;
  for (const std::string &name : names) {
    if (StringRef(name).contains('*')) {
      patterns.emplace_back(name, entries.size());
      continue;
    }
    std::vector<size_t> &same = named[name];
    for (size_t other : same)
      if (other == entries.size() || entries[other].where.empty() ||
          entries[other].where == entry.where)
        return inputError(entry.label + ": an entry before it describes '" +
                          name + "'");
    same.push_back(entries.size());
  }
  entries.push_back(std::move(entry));
  return llvm::Error::success();
}

llvm::Error OpTable::addType(const json::Object &object, size_t index) {
  std::string label = from + ": types[" + std::to_string(index) + "]";
  TypeEntry entry;
  entry.pattern = object.getString("type").value_or("").str();
  if (auto unknown = unknownMember(object, {"type", "bytes"}))
    return inputError(label + ": unknown member '" + *unknown + "'");
  if (!StringRef(entry.pattern).starts_with("!"))
    return inputError(label + ": needs 'type', a text that begins with !");
  entry.bytes = object.getInteger("bytes");
  bool shaped = StringRef(entry.pattern).contains("$dims") &&
                StringRef(entry.pattern).contains("$element");
  if (object.get("bytes") ? !entry.bytes || *entry.bytes < 0 : !shaped)
    return inputError(label + ": needs 'bytes', a number that is not negative, "
                              "or $dims and $element in the type");
  types.push_back(std::move(entry));
  return llvm::Error::success();
}

llvm::Expected<OpTable> OpTable::fromJson(const json::Object &root,
                                          std::string source) {
  OpTable table;
  table.from = std::move(source);
  auto fail = [&](const Twine &what) {
    return inputError(table.from + ": " + what);
  };
  if (root.getString("format") != StringRef(kFormat))
    return fail("needs \"format\": \"" + kFormat + "\"");
  if (auto unknown = unknownMember(root, {"format", "types", "ops"}))
    return fail("unknown member '" + *unknown + "'");
  auto list = [&](StringRef name, auto add) -> llvm::Error {
    const json::Value *value = root.get(name);
    if (!value)
      return llvm::Error::success();
    if (!value->getAsArray())
      return fail("'" + name + "' must be a list");
    for (auto [i, each] : llvm::enumerate(*value->getAsArray())) {
      const json::Object *object = each.getAsObject();
      if (!object)
        return fail(name + "[" + Twine(i) + "] must be an object");
      if (llvm::Error error = (table.*add)(*object, i))
        return error;
    }
    return llvm::Error::success();
  };
  if (llvm::Error error = list("types", &OpTable::addType))
    return std::move(error);
  if (llvm::Error error = list("ops", &OpTable::addOp))
    return std::move(error);
  return table;
}

llvm::Expected<OpTable> OpTable::parse(StringRef text, std::string source) {
  auto fail = [&](const std::string &what) {
    return inputError(source + ": " + what);
  };
  if (std::string why = whyNotParse(text); !why.empty())
    return fail(why);
  auto value = json::parse(text);
  if (!value)
    return fail(llvm::toString(value.takeError()));
  const json::Object *root = value->getAsObject();
  if (!root)
    return fail("needs an object");
  return fromJson(*root, source);
}

llvm::Expected<OpTable> OpTable::read(const std::string &path) {
  auto file = readInput(path, /*endsWithZero=*/true);
  if (!file)
    return file.takeError();
  return parse((*file)->getBuffer(), path);
}

/// Returns an attribute as the JSON value that it looks like.
static json::Value toJson(Attribute attr) {
  if (auto list = dyn_cast<ArrayAttr>(attr)) {
    json::Array array;
    for (Attribute each : list)
      array.push_back(toJson(each));
    return array;
  }
  if (auto members = dyn_cast<DictionaryAttr>(attr)) {
    json::Object object;
    for (NamedAttribute each : members)
      object[each.getName().getValue()] = toJson(each.getValue());
    return object;
  }
  if (auto text = dyn_cast<StringAttr>(attr))
    return json::fixUTF8(text.getValue());
  if (auto flag = dyn_cast<BoolAttr>(attr))
    return flag.getValue();
  if (isa<UnitAttr>(attr))
    return true;
  if (auto number = dyn_cast<IntegerAttr>(attr))
    return number.getValue().getSExtValue();
  if (auto number = dyn_cast<FloatAttr>(attr))
    return number.getValueAsDouble();
  return nullptr;
}

llvm::Expected<OpTable> OpTable::fromAttribute(Attribute attr) {
  json::Value ops = toJson(attr);
  return fromJson(json::Object{{"format", kFormat}, {"ops", std::move(ops)}},
                  kOpsAttr.str());
}
