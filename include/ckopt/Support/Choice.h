//===- Choice.h - enumerations that settings choose from --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An enumeration whose values, from 0 on, have names has a function
// choiceNames() in its namespace; only this file converts between texts and
// values.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_CHOICE_H
#define CKOPT_SUPPORT_CHOICE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace ckopt {

using ChoiceNames = llvm::ArrayRef<const char *>;

template <typename E>
concept Choice = requires(E value) {
  { choiceNames(value) } -> std::same_as<ChoiceNames>;
};

/// Returns the name of a value.
template <Choice E> llvm::StringRef nameOf(E value) {
  return choiceNames(value)[size_t(value)];
}

/// Returns the value of this name, if there is one.
template <Choice E> std::optional<E> parseChoice(llvm::StringRef text) {
  ChoiceNames names = choiceNames(E());
  for (size_t i = 0; i < names.size(); ++i)
    if (text == names[i])
      return E(i);
  return std::nullopt;
}

/// Lists names: "f32, bf16, f16".
inline std::string listChoices(ChoiceNames names) {
  std::string text;
  for (const char *name : names)
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

} // namespace ckopt

#endif // CKOPT_SUPPORT_CHOICE_H
