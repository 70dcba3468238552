//===- TestPasses.h - passes of ckopt-opt alone -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_OPT_TESTPASSES_H
#define CKOPT_TOOLS_CKOPT_OPT_TESTPASSES_H

namespace ckopt {
void registerTestPasses();
void registerPrintPasses();
} // namespace ckopt

#endif // CKOPT_TOOLS_CKOPT_OPT_TESTPASSES_H
