//===- LibraryTableFile.h - library tables from files -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The format ckopt-library-table/1 (docs/schemas) has rules by class of
// processor, or for "any". The built-in table decides what no rule of a file
// does.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_LIBRARYTABLEFILE_H
#define CKOPT_TARGET_LIBRARYTABLEFILE_H

#include "ckopt/Runtime/LibraryTable.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <memory>

namespace ckopt {

inline constexpr llvm::StringLiteral kLibraryTableFormat =
    "ckopt-library-table/1";

/// Reads the rules for a class of processors; the built-in ones follow. The
/// hash covers these rules: equal rules have equal hashes. An error names the
/// rule and its mistake.
llvm::Expected<std::shared_ptr<const runtime::LibraryTable>>
parseLibraryTable(llvm::StringRef text, llvm::StringRef cpuClass);
llvm::Expected<std::shared_ptr<const runtime::LibraryTable>>
readLibraryTable(llvm::StringRef path, llvm::StringRef cpuClass);

} // namespace ckopt

#endif // CKOPT_TARGET_LIBRARYTABLEFILE_H
