//===- Messages.cpp - diagnostics of a compilation ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Messages.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;

MessageText Message::placed() const {
  return (where.empty() ? "" : where + ": ") + text;
}

MessageText Message::str() const {
  static constexpr const char *names[] = {"error", "warning", "remark", "note"};
  return std::string(names[size_t(severity)]) + ": " + placed();
}

void ckopt::printMessage(const Message &message) {
  // One write, since ranks share a terminal. Further lines are indented, so
  // that a name cannot make one that looks like another message.
  std::string text;
  for (char c : message.str().printable().inShell())
    text += c == '\n' ? "\n  " : std::string(1, c);
  llvm::errs() << text + "\n";
}

void ErrorLines::add(const Message &message) {
  const bool isNote = message.severity == Message::Severity::Note;
  if (!isNote)
    ofError = message.severity == Message::Severity::Error;
  if (ofError)
    text += (text.empty() ? "" : "\n") +
            (isNote ? message.str() : message.placed());
}

static std::string replaceAll(llvm::StringRef text, llvm::StringRef from,
                              llvm::StringRef to) {
  std::string result;
  for (size_t at; (at = text.find(from)) != llvm::StringRef::npos;
       text = text.drop_front(at + from.size()))
    result += (text.take_front(at) + to).str();
  return result + text.str();
}

MessageText ckopt::nameGivenBytes(const MessageText &text,
                                  const std::string &path) {
  if (path.empty())
    return text;
  // What else lies there was looked for beside the model.
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  bool isBeside = false;
  MessageText named = text.mapped([&](const std::string &piece) {
    std::string own = replaceAll(piece, inQuotes(path), kGivenAsBytes);
    own = replaceAll(own, path, kGivenAsBytes);
    std::string other = folder.empty() ? own : replaceAll(own, folder, "");
    isBeside = isBeside || other != own;
    return other;
  });
  if (isBeside)
    named += "; bytes have no folder where other files could lie: give the "
             "model's path, or one with its weights inside";
  return named;
}
