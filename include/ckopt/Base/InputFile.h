//===- InputFile.h - opening files to read ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: opening a pipe waits for a writer that may never come, and reading a
// device may never end, wherever a folder or a command line names one. Method:
// the file is opened without waiting, and taken if it is a regular one. What
// the process was started with (/dev/stdin, /dev/fd/N: a shell's <(command))
// is open already, and is read to its end.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_INPUTFILE_H
#define CKOPT_BASE_INPUTFILE_H

#include <string>

namespace ckopt {

/// Opens a file to read; returns its descriptor, or -1 and why not.
int openInput(const std::string &path, std::string &why);

} // namespace ckopt

#endif // CKOPT_BASE_INPUTFILE_H
