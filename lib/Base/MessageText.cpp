//===- MessageText.cpp - messages that name settings ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/MessageText.h"

#include <algorithm>

using namespace ckopt;

void MessageText::add(const Piece &piece) {
  if (!piece.setting.empty() || list.empty() || !list.back().setting.empty()) {
    if (!piece.setting.empty() || !piece.text.empty())
      list.push_back(piece);
  } else {
    list.back().text += piece.text;
  }
}

/// A number, a quoted text, or a placeholder ("N").
static bool needsNoQuotes(const std::string &value) {
  auto isAll = [&](const char *characters) {
    return value.find_first_not_of(characters) == std::string::npos;
  };
  return value[0] == '\'' || isAll("0123456789.-+e") ||
         isAll("ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
}

std::string MessageText::Piece::in(SettingStyle style) const {
  if (setting.empty())
    return text;
  if (style == SettingStyle::Flags)
    return (setting.size() == 1 ? "-" : "--") + setting +
           (hasValue ? "=" + text : "");
  std::string name =
      style == SettingStyle::Keywords ? keywordOf(setting) : setting;
  if (text.empty())
    return inQuotes(name);
  const bool isBare = style == SettingStyle::Named || needsNoQuotes(text);
  return name + "=" + (isBare ? text : inQuotes(text));
}

std::string MessageText::in(SettingStyle style) const {
  std::string result;
  for (const Piece &piece : list)
    result += piece.in(style);
  return result;
}

MessageText MessageText::printable() const {
  return mapped([](const std::string &text) {
    return ckopt::printable(text, /*keepLines=*/true);
  });
}

std::string MessageText::pack() const {
  std::string bytes;
  for (const Piece &piece : list)
    bytes +=
        piece.setting + '\0' + (piece.hasValue ? "=" : "") + piece.text + '\0';
  return bytes;
}

MessageText MessageText::unpack(std::string_view bytes) {
  MessageText result;
  auto take = [&] {
    std::string field(bytes.substr(0, bytes.find('\0')));
    bytes.remove_prefix(std::min(bytes.size(), field.size() + 1));
    return field;
  };
  while (!bytes.empty()) {
    Piece piece;
    piece.setting = take();
    piece.text = take();
    piece.hasValue = !piece.setting.empty() && piece.text[0] == '=';
    piece.text.erase(0, piece.hasValue);
    result.add(piece);
  }
  return result;
}
