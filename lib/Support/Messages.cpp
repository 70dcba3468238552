//===- Messages.cpp - texts of diagnostics --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Messages.h"
#include "ckopt/Base/PrintableText.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;

std::string Message::placed() const {
  return (where.empty() ? "" : where + ": ") + text;
}

std::string Message::str() const {
  static constexpr const char *names[] = {"error", "warning", "remark", "note"};
  return std::string(names[size_t(severity)]) + ": " + placed();
}

void ckopt::printMessage(const Message &message) {
  // One write, since ranks share a terminal. Further lines are indented, so
  // that a name cannot make one that looks like another message.
  std::string text;
  for (char c : printable(message.str(), /*keepLines=*/true))
    text += c == '\n' ? "\n  " : std::string(1, c);
  llvm::errs() << text + "\n";
}
