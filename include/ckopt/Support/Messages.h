//===- Messages.h - diagnostics of a compilation ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_MESSAGES_H
#define CKOPT_SUPPORT_MESSAGES_H

#include "ckopt/Base/MessageText.h"

#include <functional>
#include <string>
#include <utility>

namespace ckopt {

/// One error, warning, remark or note.
struct Message {
  enum class Severity { Error, Warning, Remark, Note };
  Severity severity = Severity::Remark;
  /// "node 'conv1'", "file.mlir:3:5"; empty for messages without a place.
  std::string where;
  MessageText text;

  /// Formats the text with its place: "node 'conv1': text".
  MessageText placed() const;
  /// Formats the message: "warning: node 'conv1': text".
  MessageText str() const;
};

/// Receives messages; notes follow the message that they belong to.
using MessageHandler = std::function<void(const Message &)>;

/// Prints the message and a line end on standard error.
void printMessage(const Message &message);

/// Keeps the errors among messages, with their notes, a line each, for use if
/// no handler shows them.
class ErrorLines {
public:
  void add(const Message &message);
  /// The lines since the last call.
  MessageText take() { return std::exchange(text, {}); }

private:
  bool ofError = false; ///< the last message that was no note
  MessageText text;
};

/// The name in messages for a model that was given as bytes.
inline constexpr const char *kGivenAsBytes = "the model given as bytes";

/// Replaces the temporary file `path` that holds the model by this name; "":
/// there is none. O(length).
MessageText nameGivenBytes(const MessageText &text, const std::string &path);

} // namespace ckopt

#endif // CKOPT_SUPPORT_MESSAGES_H
