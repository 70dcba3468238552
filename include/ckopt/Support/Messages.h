//===- Messages.h - diagnostics of a compilation ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_MESSAGES_H
#define CKOPT_SUPPORT_MESSAGES_H

#include <functional>
#include <string>

namespace ckopt {

/// One error, warning, remark or note.
struct Message {
  enum class Severity { Error, Warning, Remark, Note };
  Severity severity = Severity::Remark;
  /// "node 'conv1'", "file.mlir:3:5"; empty where it belongs to no place.
  std::string where;
  std::string text;

  /// Formats the text with its place: "node 'conv1': text".
  std::string placed() const;
  /// Formats the message: "warning: node 'conv1': text".
  std::string str() const;
};

/// Receives messages; notes follow the message that they belong to.
using MessageHandler = std::function<void(const Message &)>;

/// Prints the message and a line end on standard error.
void printMessage(const Message &message);

} // namespace ckopt

#endif // CKOPT_SUPPORT_MESSAGES_H
