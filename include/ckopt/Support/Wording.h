//===- Wording.h - how an interface words messages --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages of the library name settings as a command line does ("--batch=N"):
// the dashes mark them. Interfaces in which settings are no flags word messages
// in their own way, once, where the text leaves the library.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_WORDING_H
#define CKOPT_SUPPORT_WORDING_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace ckopt {

/// How settings are written.
enum class SettingStyle {
  Named,   ///< C: 'memory-budget', memory-budget=2GiB
  Keywords ///< Python: 'budget', budget='2GiB'
};

/// Writes the settings that a message names in another style. O(length).
std::string wordSettings(llvm::StringRef text, SettingStyle style);

/// What a model that was given as bytes is called.
inline constexpr const char *kGivenAsBytes = "the model given as bytes";

/// Writes this name instead of the temporary file `path` that holds the model.
/// O(length).
std::string wordModel(llvm::StringRef text, llvm::StringRef path);

} // namespace ckopt

#endif // CKOPT_SUPPORT_WORDING_H
