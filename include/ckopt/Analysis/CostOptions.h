//===- CostOptions.h - where costs of ops come from -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_COSTOPTIONS_H
#define CKOPT_ANALYSIS_COSTOPTIONS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace ckopt {

class CostProfile;

/// The sources that a cost model uses.
struct CostOptions {
  /// Every op must have `ckopt.cost`; buildProblem emits an error otherwise.
  bool attributesOnly = false;
  std::shared_ptr<const CostProfile> profile;
  /// The text that parseCostModel() read.
  std::string source = "analytic";
};

/// Parses "analytic", "attribute" or "profile=FILE", and reads the file.
llvm::Expected<CostOptions> parseCostModel(llvm::StringRef text);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_COSTOPTIONS_H
