//===- GuardedOutput.h - errors of standard output --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_GUARDEDOUTPUT_H
#define CKOPT_SUPPORT_GUARDEDOUTPUT_H

namespace ckopt {

/// Prepares the standard streams as guardStreams() does. The process then ends
/// with exit code 74 and an error of `tool` if llvm::outs() could not be
/// written. A tool calls it first; later calls do nothing.
void guardOutput(const char *tool);

} // namespace ckopt

#endif // CKOPT_SUPPORT_GUARDEDOUTPUT_H
