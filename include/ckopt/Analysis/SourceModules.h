//===- SourceModules.h - modules that ops come from -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_SOURCEMODULES_H
#define CKOPT_ANALYSIS_SOURCEMODULES_H

#include "mlir/IR/Location.h"

#include <string>
#include <vector>

namespace ckopt {

/// A module that holds an op: "net.h.0" of class "package.GPT2Block". If no
/// class is known, it is the scope's own name without its numbers.
struct ModuleScope {
  std::string name, className;
};

/// Collects named locations in order, including those inside of fused
/// locations.
void collectNames(mlir::Location loc,
                  llvm::SmallVectorImpl<mlir::NameLoc> &names);

/// Returns the modules of a source node, outermost first: those that PyTorch's
/// exporter recorded for it, or the components of `name`
/// ("/layer1/layer1.0/conv1/Conv": layer1, layer1/layer1.0,
/// layer1/layer1.0/conv1).
std::vector<ModuleScope> getModules(mlir::NameLoc node, llvm::StringRef name);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_SOURCEMODULES_H
