//===- JsonText.h - checks that LLVM's JSON parser lacks --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's JSON parser calls itself for each bracket, so a file of brackets would
// overflow the stack. Of two members with one name it silently takes the last.
// Control characters in names would forge lines of output (PrintableText.h).
// Readers of files call this check first. Time and memory are linear in the
// text, except for a logarithm of an object's members.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_JSONTEXT_H
#define CKOPT_BASE_JSONTEXT_H

#include "ckopt/Base/PrintableText.h"

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ckopt {

/// Returns whether the text, which is inside a string, begins with a control
/// character of ASCII, raw or as an escape.
inline bool isControlInJson(std::string_view text) {
  if (text.size() < 2 || text[0] != '\\')
    return !text.empty() && isControl(text[0]);
  std::string_view code = text.substr(1, 5);
  return std::string_view("bfnrt").find(code[0]) != std::string_view::npos ||
         code.starts_with("u000") || code.starts_with("u001") ||
         code == "u007f" || code == "u007F";
}

/// Returns why a JSON text must not be parsed: brackets more than 64 deep, two
/// members of an object with one name, or a string with control characters.
/// Empty: it may be.
inline std::string whyNotParse(std::string_view text) {
  std::vector<std::set<std::string_view>> members; // of open brackets
  bool named = false; // the next string is the name of a member
  std::vector<bool> objects;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      size_t begin = ++i;
      for (; i < text.size() && text[i] != '"'; ++i) {
        if (isControlInJson(text.substr(i)))
          return "a string has control characters: '" +
                 printable(text.substr(begin, text.find('"', i) - begin)) + "'";
        i += text[i] == '\\';
      }
      if (!named || i >= text.size())
        continue;
      std::string_view name = text.substr(begin, i - begin);
      if (!members.back().insert(name).second)
        return "member '" + std::string(name) + "' stands twice in an object";
      named = false;
    } else if (c == '[' || c == '{') {
      if (objects.size() == 64)
        return "brackets nest more than 64 deep";
      objects.push_back(c == '{');
      members.emplace_back();
      named = c == '{';
    } else if ((c == ']' || c == '}') && !objects.empty()) {
      objects.pop_back();
      members.pop_back();
      named = false;
    } else if (c == ',') {
      named = !objects.empty() && objects.back();
    }
  }
  return "";
}

} // namespace ckopt

#endif // CKOPT_BASE_JSONTEXT_H
