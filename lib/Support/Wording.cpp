//===- Wording.cpp - how an interface words messages ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a text names settings as flags, and its reader has no flags. Method:
// one pass finds two dashes before a small letter where a word begins, the name
// behind them, and the value behind an equals sign: quoted, or up to a space or
// punctuation that ends it. What is no such mark stays as it is. Complexity:
// O(length).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Wording.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace ckopt {

/// Takes the value of a setting from the front of a text.
static StringRef takeValue(StringRef &text) {
  size_t end = 0;
  if (text.starts_with("'"))
    end = text.find('\'', 1) == StringRef::npos ? 0 : text.find('\'', 1) + 1;
  if (!end) {
    end = std::min(text.find_first_of(" \n),;'"), text.size());
    // "--group=...: the text goes on", and the end of a sentence.
    while (end && StringRef(":.").contains(text[end - 1]))
      --end;
  }
  StringRef value = text.take_front(end);
  text = text.drop_front(end);
  return value;
}

/// A number, a quoted text, or a placeholder ("N").
static bool needsNoQuotes(StringRef value) {
  double number;
  return value.starts_with("'") || !value.getAsDouble(number) ||
         all_of(value, [](char c) { return isUpper(c) || c == '_'; });
}

static std::string writeSetting(StringRef name, StringRef value, bool hasValue,
                                bool isQuoted, SettingStyle style) {
  std::string text = name.str();
  if (style == SettingStyle::Keywords) {
    text = name == "memory-budget" ? "budget" : text;
    std::replace(text.begin(), text.end(), '-', '_');
  }
  if (!hasValue || value.empty())
    return isQuoted ? text : "'" + text + "'";
  if (style == SettingStyle::Named || needsNoQuotes(value))
    return text + "=" + value.str();
  return text + "='" + value.str() + "'";
}

std::string wordSettings(StringRef text, SettingStyle style) {
  std::string result;
  char before = ' ';
  while (!text.empty()) {
    const bool begins = before != '-' && before != '/' && !isAlnum(before);
    if (!begins || !text.starts_with("--") || text.size() < 3 ||
        !isLower(text[2])) {
      before = text.front();
      result += before;
      text = text.drop_front();
      continue;
    }
    text = text.drop_front(2);
    StringRef name =
        text.take_while([](char c) { return isAlnum(c) || c == '-'; })
            .rtrim('-');
    text = text.drop_front(name.size());
    const bool hasValue = text.consume_front("=");
    StringRef value = hasValue ? takeValue(text) : StringRef();
    result += writeSetting(name, value, hasValue, before == '\'', style);
    before = 'x';
  }
  return result;
}

static std::string replaceAll(StringRef text, StringRef from, StringRef to) {
  std::string result;
  for (size_t at; (at = text.find(from)) != StringRef::npos;
       text = text.drop_front(at + from.size()))
    result += (text.take_front(at) + to).str();
  return result + text.str();
}

std::string wordModel(StringRef text, StringRef path) {
  if (path.empty())
    return text.str();
  std::string worded =
      replaceAll(replaceAll(text, "'" + path.str() + "'", kGivenAsBytes), path,
                 kGivenAsBytes);
  // What else lies there was looked for beside the model.
  std::string folder = path.take_front(path.rfind('/') + 1).str();
  if (folder.empty() || worded.find(folder) == std::string::npos)
    return worded;
  return replaceAll(worded, folder, "") +
         "; bytes have no folder where other files could lie: give the model's "
         "path, or one with its weights inside";
}

} // namespace ckopt
