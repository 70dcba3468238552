//===- RunOpt.h - what ckopt-opt and ckopt-remat-opt share ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_OPT_RUNOPT_H
#define CKOPT_TOOLS_CKOPT_OPT_RUNOPT_H

namespace mlir {
class DialectRegistry;
}

namespace ckopt {

/// Runs a tool like mlir-opt: `registerAll` registers its passes and dialects.
/// Returns the exit code.
int runOpt(int argc, char **argv, const char *name,
           void (*registerAll)(mlir::DialectRegistry &));

} // namespace ckopt

#endif // CKOPT_TOOLS_CKOPT_OPT_RUNOPT_H
