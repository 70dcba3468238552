//===- Error.cpp - errors that know their exit code -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See the header. O(length of the messages).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace ckopt {

char CkoptError::ID = 0;

std::error_code CkoptError::convertToErrorCode() const {
  return inconvertibleErrorCode();
}

Error makeError(ExitCode code, const MessageText &message) {
  return make_error<CkoptError>(code, message);
}
Error toldError(ExitCode code, const MessageText &message) {
  return make_error<CkoptError>(code, message, /*isTold=*/true);
}
Error inputError(const MessageText &message) {
  return makeError(ExitInputError, message);
}
Error ioError(const MessageText &message) {
  return makeError(ExitIoError, message);
}
Error usageError(const MessageText &message) {
  return makeError(ExitUsage, message);
}

/// Calls `visit` with each error, those of others as input errors. Consumes it.
static void visitEach(Error error,
                      function_ref<void(const CkoptError &)> visit) {
  handleAllErrors(std::move(error), [&](const ErrorInfoBase &info) {
    if (info.isA<CkoptError>())
      visit(static_cast<const CkoptError &>(info));
    else
      visit(CkoptError(ExitInputError, info.message()));
  });
}

Error withContext(Error error, const MessageText &context) {
  Error result = Error::success();
  visitEach(std::move(error), [&](const CkoptError &one) {
    result =
        joinErrors(std::move(result),
                   makeError(one.getCode(), context + ": " + one.getMessage()));
  });
  return result;
}

MessageText ErrorText::after(const MessageText &diagnostics) const {
  if (diagnostics.empty() || message.empty())
    return diagnostics + message;
  return wasTold ? diagnostics : diagnostics + "\n" + message;
}

ErrorText takeErrorText(Error error) {
  ErrorText result;
  visitEach(std::move(error), [&](const CkoptError &one) {
    if (result.code == ExitOk) {
      result.code = one.getCode();
      result.wasTold = one.wasTold();
    } else {
      result.message += "\n";
      result.wasTold = result.wasTold && one.wasTold();
    }
    result.message += one.getMessage().printable();
  });
  result.text = result.message.inShell();
  return result;
}

ExitCode reportError(Error error, StringRef tool, raw_ostream &os) {
  ErrorText text = takeErrorText(std::move(error));
  if (text.code == ExitOk)
    return ExitOk;
  SmallVector<StringRef> lines;
  StringRef(text.text).split(lines, '\n');
  // One string makes one write: messages of several processes stay apart.
  std::string said;
  for (StringRef line : lines)
    said += (tool + ": error: " + line + "\n").str();
  os << said;
  return text.code;
}

} // namespace ckopt
