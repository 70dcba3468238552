//===- JsonReader.cpp - reading JSON that other programs wrote ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's parser does the parsing. Splitting finds where members begin and end
// by counting brackets outside of strings; if it splits an invalid text
// wrongly, parsing the part fails. Linear in the text.
//
//===----------------------------------------------------------------------===//
#include "Formats/JsonReader.h"
#include "ckopt/Base/JsonText.h"

#include <cmath>

using namespace ckopt;
using namespace ckopt::planner;
namespace json = llvm::json;

bool JsonErrors::add(const std::string &message) {
  if (++count > 20)
    return false;
  if (!lines.empty())
    lines += '\n';
  lines += count == 20 ? "... and more" : message;
  return false;
}

bool JsonReader::integer(const json::Value &value, const std::string &where,
                         int64_t &result) {
  if (auto number = value.getAsInteger()) {
    result = *number;
    return true;
  }
  return fail(where + " must be an integer" +
              (value.getAsNumber() ? " of 64 bits" : ""));
}

bool JsonReader::integer(const json::Object &object, llvm::StringRef key,
                         const std::string &where, int64_t &result,
                         bool required) {
  const json::Value *value = object.get(key);
  if (!value || (!required && value->getAsNull()))
    return required ? fail(where + ": \"" + key.str() + "\" is missing") : true;
  return integer(*value, where + ": \"" + key.str() + "\"", result);
}

bool JsonReader::number(const json::Object &object, llvm::StringRef key,
                        const std::string &where, double &result,
                        bool required) {
  const json::Value *value = object.get(key);
  if (!value || (!required && value->getAsNull()))
    return required ? fail(where + ": \"" + key.str() + "\" is missing") : true;
  auto number = value->getAsNumber();
  if (!number || !std::isfinite(*number))
    return fail(where + ": \"" + key.str() + "\" must be a finite number");
  result = *number;
  return true;
}

const json::Array *JsonReader::list(const json::Object &object,
                                    llvm::StringRef key,
                                    const std::string &where, bool required) {
  const json::Value *value = object.get(key);
  if (!value) {
    if (required)
      fail(where + ": \"" + key.str() + "\" is missing");
    return nullptr;
  }
  const json::Array *list = value->getAsArray();
  if (!list)
    fail(where + ": \"" + key.str() + "\" must be a list");
  return list;
}

bool JsonReader::integers(const json::Array &list, const std::string &where,
                          std::vector<int64_t> &result) {
  for (const json::Value &value : list) {
    result.emplace_back();
    if (!integer(value, where, result.back()))
      return false;
  }
  return true;
}

bool JsonReader::format(const json::Object &object, llvm::StringRef wanted) {
  auto found = object.getString("format");
  if (found && *found == wanted)
    return true;
  return fail("\"format\" must be \"" + wanted.str() + "\"" +
              (found ? ", it is \"" + found->str() + "\"" : ", it is missing"));
}

std::string JsonReader::text(const json::Object &object, llvm::StringRef key) {
  auto found = object.getString(key);
  return found ? found->str() : std::string();
}

std::string ckopt::planner::checkJsonText(std::string_view text) {
  if (!json::isUTF8(llvm::StringRef(text)))
    return "the file is not UTF-8 text";
  std::string why = whyNotParse(text);
  return why.empty() ? why : "not JSON of this format: " + why;
}

std::string ckopt::planner::whyNotJson(std::string_view text) {
  llvm::Expected<json::Value> file = json::parse(llvm::StringRef(text));
  if (!file)
    return "not JSON: " + llvm::toString(file.takeError());
  return "the file is not a JSON object";
}

namespace {

/// A position in a text that is being split.
class Splitter {
public:
  explicit Splitter(std::string_view text) : text(text) {}

  void blanks() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' ||
                                text[at] == '\t' || text[at] == '\r'))
      ++at;
  }
  bool take(char c) {
    blanks();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  bool atEnd() {
    blanks();
    return at == text.size();
  }
  /// Returns the value that begins here; empty if there is none.
  std::string_view value();

private:
  void string();

  std::string_view text;
  size_t at = 0;
};

void Splitter::string() {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\')
      ++at;
  at = std::min(at + 1, text.size());
}

std::string_view Splitter::value() {
  blanks();
  size_t start = at;
  int64_t depth = 0;
  while (at < text.size()) {
    char c = text[at];
    if (c == '"') {
      string();
      if (depth == 0)
        break;
      continue;
    }
    if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      if (depth == 0)
        break;
      if (--depth == 0) {
        ++at;
        break;
      }
    } else if (depth == 0 && (c == ',' || c == ':' || c == ' ' || c == '\n' ||
                              c == '\t' || c == '\r')) {
      break;
    }
    ++at;
  }
  return text.substr(start, at - start);
}

} // namespace

bool ckopt::planner::splitList(
    std::string_view text,
    llvm::function_ref<bool(std::string_view value)> element) {
  Splitter split(text);
  if (!split.take('['))
    return false;
  if (split.take(']'))
    return split.atEnd();
  do {
    std::string_view value = split.value();
    if (value.empty() || !element(value))
      return false;
  } while (split.take(','));
  return split.take(']') && split.atEnd();
}

bool ckopt::planner::splitObject(
    std::string_view text,
    llvm::function_ref<bool(std::string_view key, std::string_view value)>
        member) {
  Splitter split(text);
  if (!split.take('{'))
    return false;
  if (split.take('}'))
    return split.atEnd();
  do {
    std::string_view key = split.value();
    if (key.size() < 2 || key.front() != '"' || !split.take(':'))
      return false;
    std::string_view value = split.value();
    if (value.empty() || !member(key, value))
      return false;
  } while (split.take(','));
  return split.take('}') && split.atEnd();
}
