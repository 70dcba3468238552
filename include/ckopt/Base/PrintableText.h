//===- PrintableText.h - escapes control characters in text -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: names of models and data may hold any characters. Written raw,
// control characters hide text, set a terminal's title, or forge lines. Method:
// output for people writes such characters as \x1b, and readers of files refuse
// names with line ends.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_PRINTABLETEXT_H
#define CKOPT_BASE_PRINTABLETEXT_H

#include <cstdint>
#include <string>
#include <string_view>

namespace ckopt {

inline bool isControl(char c) { return uint8_t(c) < 0x20 || c == 0x7f; }

/// Returns the bytes of a character at the front of `text` that controls a
/// terminal or the direction of text, 0 if there is none: ASCII's and Unicode's
/// control characters (the latter have two bytes), marks and overrides of
/// direction (three bytes).
inline size_t controlAt(std::string_view text) {
  auto at = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : 0; };
  if (!text.empty() && isControl(text[0]))
    return 1;
  if (at(0) == 0xc2 && at(1) >= 0x80 && at(1) < 0xa0)
    return 2;
  const bool turns = (at(1) == 0x80 && at(2) >= 0xaa && at(2) <= 0xae) ||
                     (at(1) == 0x81 && at(2) >= 0xa6 && at(2) <= 0xa9);
  return at(0) == 0xe2 && turns ? 3 : 0;
}

/// Writes control characters as "\x1b". With `keepLines` tabs and line ends
/// stay, for text of several lines.
inline std::string printable(std::string_view text, bool keepLines = false) {
  std::string result;
  while (!text.empty()) {
    size_t bytes = controlAt(text);
    const bool kept = keepLines && (text[0] == '\n' || text[0] == '\t');
    if (!bytes || kept) {
      result += text[0];
      text.remove_prefix(1);
      continue;
    }
    for (; bytes > 0; --bytes, text.remove_prefix(1)) {
      result += "\\x";
      result += "0123456789abcdef"[uint8_t(text[0]) >> 4];
      result += "0123456789abcdef"[uint8_t(text[0]) & 15];
    }
  }
  return result;
}

/// Returns why a name from a file is refused: in text of several lines, a line
/// end in a name could not be told from other line ends, so names with ASCII's
/// control characters are not accepted. Empty: the name is accepted.
inline std::string faultOfName(std::string_view name) {
  for (char c : name)
    if (isControl(c))
      return "the name '" + printable(name) +
             "' has control characters: rename it";
  return "";
}

} // namespace ckopt

#endif // CKOPT_BASE_PRINTABLETEXT_H
