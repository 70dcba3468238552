//===- InputFile.h - opening files to read ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: opening a pipe waits for a writer that may never come, and reading a
// device may never end; a folder or a command line may name either. Method: the
// file is opened without waiting, and accepted if it is a regular one. Files
// that the process was started with (/dev/stdin, /dev/fd/N: a shell's
// <(command)) are open already, and are read to their end.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_INPUTFILE_H
#define CKOPT_BASE_INPUTFILE_H

#include <string>

namespace ckopt {

/// Opens a file to read; returns its descriptor, or -1 and the reason.
int openInput(const std::string &path, std::string &why);

} // namespace ckopt

#endif // CKOPT_BASE_INPUTFILE_H
