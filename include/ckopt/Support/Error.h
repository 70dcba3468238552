//===- Error.h - errors that know their exit code ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every failure that a user can cause travels as an llvm::Error with a message
// (what, where, what to do) and the exit code which the tools document. The
// tools print and return; nothing in between has to guess a code again.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_ERROR_H
#define CKOPT_SUPPORT_ERROR_H

#include "ckopt/Base/ExitCodes.h"
#include "ckopt/Base/MessageText.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <string>

namespace ckopt {

/// A message for the user and the exit code that it leads to.
class CkoptError : public llvm::ErrorInfo<CkoptError> {
public:
  static char ID;
  CkoptError(ExitCode code, MessageText message, bool isTold = false)
      : code(code), message(std::move(message)), isTold(isTold) {}

  ExitCode getCode() const { return code; }
  const MessageText &getMessage() const { return message; }
  /// Whether diagnostics reported the cause, and the message only says where
  /// work stopped: code that collects diagnostics shows these in its place.
  bool wasTold() const { return isTold; }
  void log(llvm::raw_ostream &os) const override { os << message.inShell(); }
  std::error_code convertToErrorCode() const override;

private:
  ExitCode code;
  MessageText message;
  bool isTold;
};

llvm::Error makeError(ExitCode code, const MessageText &message);
/// An error whose cause was reported as a diagnostic.
llvm::Error toldError(ExitCode code, const MessageText &message);
/// Bad file, shape, type or data (exit code 1).
llvm::Error inputError(const MessageText &message);
/// Cannot write: disk full, no permission (exit code 74).
llvm::Error ioError(const MessageText &message);
/// Wrong command line (exit code 64).
llvm::Error usageError(const MessageText &message);

/// Puts "context: " before each message of `error`; exit codes stay.
llvm::Error withContext(llvm::Error error, const MessageText &context);

/// The messages of `error`, one a line and fit for a terminal (names come from
/// models and data; ckopt/Base/PrintableText.h), and its exit code (the first
/// one's; an error that is not a CkoptError counts as an input error). Consumes
/// it.
struct ErrorText {
  std::string text; ///< as a shell's user reads it
  ExitCode code = ExitOk;
  MessageText message = {};
  bool wasTold = false; ///< all of it (CkoptError)

  /// Returns a message for `error` that includes these diagnostics, or only the
  /// diagnostics if they reported the cause.
  MessageText after(const MessageText &diagnostics) const;
};
ErrorText takeErrorText(llvm::Error error);

/// Prints "tool: error: message" for each message on `os` and returns the exit
/// code; ExitOk and no output for success.
ExitCode reportError(llvm::Error error, llvm::StringRef tool,
                     llvm::raw_ostream &os);

} // namespace ckopt

#endif // CKOPT_SUPPORT_ERROR_H
