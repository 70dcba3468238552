//===- ModuleSums.h - time and bytes by module ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_MODULESUMS_H
#define CKOPT_TOOLS_CKOPT_MODULESUMS_H

#include "ckopt/Compiler/Compile.h"
#include "llvm/Support/JSON.h"

namespace ckopt {

/// Sums over the calls of a module and of all modules inside of it.
struct ModuleSum {
  std::string name; ///< its path; empty: the whole step
  int depth = 0;    ///< modules around it; 0: the whole step
  int64_t calls = 0;
  double seconds = 0;           ///< of a step
  double backwardSeconds = 0;   ///< of them for gradients
  double recomputedSeconds = 0; ///< of them for values made once before
  int64_t weightBytes = 0;      ///< parameters, at the module that reads them
  int64_t resultBytes = 0;      ///< of results, those made again not counted
  int64_t peakBytes = 0;        ///< of results at the step's fullest moment
};

/// Time and bytes of the planned step by the modules of the program that was
/// exported: parents before children, in the order in which the step reaches
/// them, `depth` levels (1: the outermost). Calls outside of modules count for
/// "(no module)", updates of weights for "(optimizer)", those that a module
/// with others in it has itself for "MODULE/(itself)". Seconds are those of
/// `measured` by the step's calls in order, or else predicted. Empty where no
/// node names a module.
std::vector<ModuleSum>
sumByModule(const Compilation &compilation, int depth,
            const std::vector<double> *measured = nullptr);

/// Prints a table; nothing for no sums. `time`: what seconds are.
void printModules(llvm::ArrayRef<ModuleSum> sums, llvm::StringRef time,
                  llvm::raw_ostream &os);

/// Writes the member "modules" of the current JSON object.
void writeModules(llvm::ArrayRef<ModuleSum> sums, llvm::json::OStream &json);

} // namespace ckopt

#endif // CKOPT_TOOLS_CKOPT_MODULESUMS_H
