//===- MessageText.h - messages that name settings --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a message names a setting to change, and its reader knows it as a
// flag of a shell (--memory-budget), an option in C or a keyword in Python.
// Method: inside the program a message is a list of pieces, text or settings.
// Only where it leaves the program is its reader known, and the list becomes
// text.
//
//   inputError(Setting("loss", kind) + " needs " + Setting("class-axis"))
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_MESSAGETEXT_H
#define CKOPT_BASE_MESSAGETEXT_H

#include "ckopt/Base/PrintableText.h"
#include "ckopt/Base/SettingNames.h"

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ckopt {

/// A class of strings: the standard library's, and those that have str().
template <typename T>
concept StringLike = std::convertible_to<const T &, std::string_view> ||
                     requires(const T &text) {
                       { text.str() } -> std::convertible_to<std::string_view>;
                     };

template <StringLike T> std::string stringOf(const T &text) {
  if constexpr (std::convertible_to<const T &, std::string_view>)
    return std::string(std::string_view(text));
  else
    return std::string(std::string_view(text.str()));
}

inline std::string inQuotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

/// A flag in a quoted command line of another program (`mpirun --bind-to
/// none`), which is the same for all readers.
inline std::string foreignFlag(std::string_view name) {
  return "--" + std::string(name);
}

/// A setting in a message, with or without a value: a number, a word, or a
/// placeholder in capitals; other values are in quotes, if a shell needs them.
struct Setting {
  Setting(SettingName name) : name(name.name) {}
  template <StringLike T>
  Setting(SettingName name, const T &value)
      : name(name.name), value(stringOf(value)) {}
  /// A name from a table of flags, or from its user.
  static Setting ofFlag(std::string_view name) {
    Setting result;
    result.name = printable(name);
    return result;
  }

  /// A setting in a shell's form: "--seed=1".
  static Setting ofFlagText(std::string_view text) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of('-')));
    Setting result = ofFlag(text.substr(0, text.find('=')));
    if (result.name.size() < text.size())
      result.value = text.substr(result.name.size() + 1);
    return result;
  }

  std::string name;
  std::optional<std::string> value;

private:
  Setting() = default;
};

/// The reader, who decides how settings are written.
enum class SettingStyle {
  Flags,   ///< shells: --memory-budget, --memory-budget=2GiB
  Named,   ///< C: 'memory-budget', memory-budget=2GiB
  Keywords ///< Python: 'budget', budget='2GiB'
};

class MessageText {
public:
  /// A text, or a setting with this text as its value.
  struct Piece {
    std::string text;
    std::string setting = ""; ///< "": none
    bool hasValue = false;
    bool operator==(const Piece &) const = default;
    std::string in(SettingStyle style) const;
  };

  MessageText() = default;
  MessageText(const Setting &setting)
      : list{{setting.value.value_or(""), setting.name,
              setting.value.has_value()}} {}
  template <StringLike T> MessageText(const T &text) { add({stringOf(text)}); }

  MessageText &operator+=(const MessageText &more) {
    for (const Piece &piece : more.list)
      add(piece);
    return *this;
  }

  bool operator==(const MessageText &) const = default;
  bool empty() const { return list.empty(); }
  const std::vector<Piece> &pieces() const { return list; }
  std::string in(SettingStyle style) const;
  /// Returns the text for the user of a shell.
  std::string inShell() const { return in(SettingStyle::Flags); }
  /// Changes the text between settings, and their values.
  template <typename Change> MessageText mapped(Change change) const {
    MessageText result = *this;
    for (Piece &piece : result.list)
      piece.text = change(piece.text);
    return result;
  }
  /// Escapes control characters as ckopt::printable() does. Line ends stay.
  MessageText printable() const;

  /// The pieces as bytes, for another process of this build.
  std::string pack() const;
  static MessageText unpack(std::string_view bytes);

private:
  void add(const Piece &piece);

  std::vector<Piece> list;
};

template <typename T>
concept NamesSettings =
    std::same_as<T, MessageText> || std::same_as<T, Setting>;

template <typename A, typename B>
  requires((NamesSettings<A> || NamesSettings<B>) &&
           std::convertible_to<const A &, MessageText> &&
           std::convertible_to<const B &, MessageText>)
MessageText operator+(const A &a, const B &b) {
  MessageText result(a);
  result += b;
  return result;
}

} // namespace ckopt

#endif // CKOPT_BASE_MESSAGETEXT_H
