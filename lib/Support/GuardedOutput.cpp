//===- GuardedOutput.cpp - standard output that cannot be written ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: what is printed is written late, and LLVM ends the process with a
// defect's message and code 1 if a stream failed. Libraries also call exit()
// themselves, after --help. Method: a handler that runs at the end of every
// exit, and before the destructors of LLVM's streams.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/GuardedOutput.h"
#include "ckopt/Base/StandardStreams.h"
#include "ckopt/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

static void checkOutput(int code, void *tool) {
  llvm::outs().flush();
  std::error_code problem = llvm::outs().error();
  llvm::outs().clear_error();
  if (problem) {
    ckopt::reportError(
        ckopt::ioError("cannot write to standard output: " + problem.message()),
        static_cast<const char *>(tool), llvm::errs());
    std::fflush(nullptr);
    // The code of exit() cannot be changed otherwise.
    _exit(code ? code : int(ckopt::ExitIoError));
  }
  // Nobody can be told of standard error.
  llvm::errs().clear_error();
}

void ckopt::guardOutput(const char *tool) {
  static const bool once = [&] {
    guardStreams();
    // What is made before the handler is destroyed after it.
    (void)llvm::outs();
    (void)llvm::errs();
    return on_exit(checkOutput, const_cast<char *>(tool)) == 0;
  }();
  (void)once;
}
