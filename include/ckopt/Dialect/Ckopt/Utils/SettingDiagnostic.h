//===- SettingDiagnostic.h - diagnostics that name settings -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A diagnostic names settings as flags, for printers that do not know about
// settings. Its metadata say which arguments are settings, for handlers whose
// readers use no flags.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_UTILS_SETTINGDIAGNOSTIC_H
#define CKOPT_DIALECT_CKOPT_UTILS_SETTINGDIAGNOSTIC_H

#include "ckopt/Base/MessageText.h"
#include "ckopt/Dialect/Ckopt/Utils/DiagnosticMetadata.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace ckopt {

/// Marks an argument's number in the metadata.
inline constexpr llvm::StringLiteral kSettingTag = "ckopt.setting";

/// Marks the next argument of the diagnostic as a setting.
inline void markSetting(mlir::Diagnostic &diagnostic) {
  auto *metadata = metadataOf(diagnostic);
  if (!metadata)
    return;
  metadata->push_back(mlir::DiagnosticArgument(llvm::StringRef(kSettingTag)));
  metadata->push_back(
      mlir::DiagnosticArgument(uint64_t(diagnostic.getArguments().size())));
}

template <NamesSettings T>
mlir::Diagnostic &operator<<(mlir::Diagnostic &diagnostic, const T &text) {
  const MessageText whole(text);
  for (const MessageText::Piece &piece : whole.pieces()) {
    if (!piece.setting.empty())
      markSetting(diagnostic);
    diagnostic << llvm::Twine(piece.in(SettingStyle::Flags));
  }
  return diagnostic;
}

/// An option of a pass that is no flag: printers write the bare name.
struct PassOption {
  llvm::StringRef name;
};
inline mlir::Diagnostic &operator<<(mlir::Diagnostic &diagnostic,
                                    const PassOption &option) {
  markSetting(diagnostic);
  return diagnostic << llvm::Twine(option.name);
}

/// The text of a diagnostic, without its notes.
inline MessageText textOf(mlir::Diagnostic &diagnostic) {
  using Kind = mlir::DiagnosticArgument::DiagnosticArgumentKind;
  llvm::SmallDenseSet<uint64_t> settings;
  auto *metadata = metadataOf(diagnostic);
  for (size_t i = 0; metadata && i + 1 < metadata->size(); ++i)
    if ((*metadata)[i].getKind() == Kind::String &&
        (*metadata)[i].getAsString() == kSettingTag)
      settings.insert((*metadata)[i + 1].getAsUnsigned());
  MessageText result;
  for (auto [i, argument] : llvm::enumerate(diagnostic.getArguments())) {
    if (settings.contains(i)) {
      result += Setting::ofFlagText(argument.getAsString());
      continue;
    }
    std::string text;
    llvm::raw_string_ostream stream(text);
    argument.print(stream);
    result += text;
  }
  return result;
}

} // namespace ckopt

#endif // CKOPT_DIALECT_CKOPT_UTILS_SETTINGDIAGNOSTIC_H
