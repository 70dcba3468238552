//===- Error.cpp - errors that know their exit code -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See the header. O(length of the messages).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Support/ToldError.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace ckopt {

char CkoptError::ID = 0;
char ToldError::ID = 0;

std::error_code CkoptError::convertToErrorCode() const {
  return inconvertibleErrorCode();
}

Error makeError(ExitCode code, const Twine &message) {
  return make_error<CkoptError>(code, message.str());
}
Error toldError(ExitCode code, const Twine &message) {
  return make_error<ToldError>(code, message.str());
}
Error inputError(const Twine &message) {
  return makeError(ExitInputError, message);
}
Error ioError(const Twine &message) { return makeError(ExitIoError, message); }
Error usageError(const Twine &message) { return makeError(ExitUsage, message); }

Error withContext(Error error, const Twine &context) {
  const std::string prefix = context.str() + ": ";
  Error result = Error::success();
  handleAllErrors(std::move(error), [&](const ErrorInfoBase &info) {
    ExitCode code = ExitInputError;
    if (info.isA<CkoptError>())
      code = static_cast<const CkoptError &>(info).getCode();
    result =
        joinErrors(std::move(result), makeError(code, prefix + info.message()));
  });
  return result;
}

ErrorText takeErrorText(Error error) {
  ErrorText result;
  handleAllErrors(std::move(error), [&](const ErrorInfoBase &info) {
    ExitCode code = ExitInputError;
    if (info.isA<CkoptError>())
      code = static_cast<const CkoptError &>(info).getCode();
    if (result.code == ExitOk)
      result.code = code;
    else
      result.text += '\n';
    result.text += printable(info.message(), /*keepLines=*/true);
  });
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
