//===- LibraryTableFile.h - library tables from files -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The format ckopt-library-table/1 (docs/schemas): rules by class of processor,
// or for "any". What no rule of a file decides, the built-in table does.
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

/// Reads the rules for processors of a class, over the built-in ones. The hash
/// is of these rules: equal ones have an equal hash. An error names the rule
/// and what is wrong with it.
llvm::Expected<std::shared_ptr<const runtime::LibraryTable>>
parseLibraryTable(llvm::StringRef text, llvm::StringRef cpuClass);
llvm::Expected<std::shared_ptr<const runtime::LibraryTable>>
readLibraryTable(llvm::StringRef path, llvm::StringRef cpuClass);

} // namespace ckopt

#endif // CKOPT_TARGET_LIBRARYTABLEFILE_H
