//===- WeightNames.h - what files call a model's weights --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRAIN_WEIGHTNAMES_H
#define CKOPT_LIB_TRAIN_WEIGHTNAMES_H

#include "ckopt/Train/Session.h"
#include "llvm/ADT/StringRef.h"
#include <set>
#include <string>
#include <vector>

namespace ckopt {

/// Returns PEFT's name in files of an adapter's weight: without what wraps
/// PEFT's model, and without the name that the adapter has in the module. Other
/// names are returned as they are.
std::string nameInAdapterFile(llvm::StringRef name);

/// Names of a file's tensors, in the file's order, as the model has them.
struct MatchedNames {
  std::vector<std::string> names; ///< "": the model has no such weight
  NamePrefix prefix;
  size_t fitting = 0;
};
/// Finds the model's weights that a file's names mean. If more of them fit with
/// one prefix before them, or with one left out, than as they are, and most of
/// them do, then that prefix is meant.
MatchedNames matchNames(llvm::ArrayRef<std::string> given,
                        const std::set<std::string> &known);

} // namespace ckopt

#endif // CKOPT_LIB_TRAIN_WEIGHTNAMES_H
