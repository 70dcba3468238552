//===- FilePaths.h - the files that a path means ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_FILEPATHS_H
#define CKOPT_SUPPORT_FILEPATHS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace ckopt {

/// Resolves links in a path: the folder of shares lies next to the index
/// itself.
std::string targetOfLink(llvm::StringRef path);

/// Returns the files that match a pattern, in the order of their names: `*`,
/// `?` and `[...]` in the last part of the path. Without these it returns the
/// path itself; a pattern without a match is an error.
llvm::Expected<std::vector<std::string>> listFiles(llvm::StringRef pattern);

} // namespace ckopt

#endif // CKOPT_SUPPORT_FILEPATHS_H
