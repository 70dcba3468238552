//===- OutputFiles.h - conflicts between a command's files ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: if two results have one name, the second silently replaces the
// first: those of two flags of a command, of a flag and a file that is read, or
// of two processes. Method: a command lists its files once, from its table of
// flags. Names are compared by the file that they lead to (links, "./x"), and
// each output is locked by a file ".NAME.lock" next to it, which the system
// unlocks however the process ends.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_OUTPUTFILES_H
#define CKOPT_SUPPORT_OUTPUTFILES_H

#include "ckopt/Base/MessageText.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace ckopt {

/// How a flag names files.
enum class FileUse { None, Reads, Writes };

struct NamedFile {
  MessageText flag; ///< the flag, or "the model"
  std::string path; ///< path; empty: it is not given
  /// For an output: the flag of an input that it may replace.
  MessageText renews = {};
};

/// Refuses two outputs that are one file, or both standard output ("-"), and
/// outputs that are an input or one of its files (those of a pattern or folder,
/// the shares of a checkpoint). Devices and pipes are not checked. Usage
/// errors.
llvm::Error checkDistinct(llvm::ArrayRef<NamedFile> outputs,
                          llvm::ArrayRef<NamedFile> inputs);

/// Locks of outputs by this process.
class OutputLocks {
public:
  OutputLocks() = default;
  OutputLocks(const OutputLocks &) = delete;
  ~OutputLocks();
  /// Locks the outputs; an error if another process has locked one. On a file
  /// system without locks, or in a folder without write permission, it does
  /// nothing.
  llvm::Error lock(llvm::ArrayRef<NamedFile> outputs);

private:
  struct Held {
    int file;
    std::string path;
  };
  std::vector<Held> held;
};

} // namespace ckopt

#endif // CKOPT_SUPPORT_OUTPUTFILES_H
