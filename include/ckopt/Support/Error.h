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
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <string>

namespace ckopt {

/// A message for the user and the exit code that it leads to.
class CkoptError : public llvm::ErrorInfo<CkoptError> {
public:
  static char ID;
  CkoptError(ExitCode code, std::string message)
      : code(code), message(std::move(message)) {}

  ExitCode getCode() const { return code; }
  const std::string &getMessage() const { return message; }
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override;

private:
  ExitCode code;
  std::string message;
};

llvm::Error makeError(ExitCode code, const llvm::Twine &message);
/// Bad file, shape, type or data (exit code 1).
llvm::Error inputError(const llvm::Twine &message);
/// Cannot write: disk full, no permission (exit code 74).
llvm::Error ioError(const llvm::Twine &message);
/// Wrong command line (exit code 64).
llvm::Error usageError(const llvm::Twine &message);

/// Puts "context: " before each message of `error`; exit codes stay.
llvm::Error withContext(llvm::Error error, const llvm::Twine &context);

/// The messages of `error`, one a line and fit for a terminal (names come from
/// models and data; ckopt/Base/PrintableText.h), and its exit code (the first
/// one's; an error that is not a CkoptError counts as an input error). Consumes
/// it.
struct ErrorText {
  std::string text;
  ExitCode code = ExitOk;
};
ErrorText takeErrorText(llvm::Error error);

/// Prints "tool: error: message" for each message on `os` and returns the exit
/// code; ExitOk and no output for success.
ExitCode reportError(llvm::Error error, llvm::StringRef tool,
                     llvm::raw_ostream &os);

} // namespace ckopt

#endif // CKOPT_SUPPORT_ERROR_H
