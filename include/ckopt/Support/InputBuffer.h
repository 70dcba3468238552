//===- InputBuffer.h - reads files that users name --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_INPUTBUFFER_H
#define CKOPT_SUPPORT_INPUTBUFFER_H

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace ckopt {

/// Maps or reads a file, without waiting for pipes (ckopt/Base/InputFile.h).
/// The error has only the reason ("No such file or directory"). A parser of
/// text may need a zero at its end.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
openInputBuffer(llvm::StringRef path, bool endsWithZero = false);

/// The same; the error is "cannot read 'PATH': " and the reason.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readInput(llvm::StringRef path, bool endsWithZero = false);

} // namespace ckopt

#endif // CKOPT_SUPPORT_INPUTBUFFER_H
