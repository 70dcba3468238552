//===- DumpedPhases.h - what dumped IR was made with ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// IR that phases were dumped to has those phases behind it: flags that they
// read change nothing any more, and the phases that follow must be run for the
// same processor, threads and types. The module says what it was made with
// (`ckopt.made_with`), so that a flag is never ignored without a word.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_COMPILER_DUMPEDPHASES_H
#define CKOPT_LIB_COMPILER_DUMPEDPHASES_H

#include "ckopt/Compiler/Compile.h"

namespace ckopt {

/// Notes in the module what the phases up to its dump are made with.
llvm::Error noteMadeWith(mlir::ModuleOp module, const CompileOptions &options,
                         const TargetInfo &target);

/// Refuses options that contradict the phases before `options.phases.from`
/// (usage errors). Nothing is known of IR that says nothing: flags of those
/// phases are refused then.
llvm::Error checkMadeWith(mlir::ModuleOp module, const CompileOptions &options,
                          const TargetInfo &target);

} // namespace ckopt

#endif // CKOPT_LIB_COMPILER_DUMPEDPHASES_H
