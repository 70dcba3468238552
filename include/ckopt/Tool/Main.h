//===- Main.h - what the tools do after main() ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOL_MAIN_H
#define CKOPT_TOOL_MAIN_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace ckopt {

/// The ckopt tool: parses, runs the command, prints errors. Returns the exit
/// code (Base/ExitCodes.h).
int driverMain(int argc, char **argv);

/// ckopt-opt: every pass on IR files, as mlir-opt.
int optMain(int argc, char **argv);
/// Adds the dialects that ckopt-opt reads: those of ckopt and of its phases,
/// and those whose functions `remat` plans.
void registerOptDialects(mlir::DialectRegistry &registry);

/// ckopt-plan: the planner alone, on files.
int planMain(int argc, char **argv);

} // namespace ckopt

#endif // CKOPT_TOOL_MAIN_H
