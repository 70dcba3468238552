//===- OutputFiles.h - what a command writes --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: of two results with one name the second replaces the first, in
// silence: two flags of a command, a flag and a file that is read, two
// processes. Method: a command lists its files once, as its table of flags
// knows them. Names are compared by the file that they lead to (links, "./x"),
// and each output is locked by a file ".NAME.lock" beside it, which the system
// unlocks whatever ends the process.
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
  MessageText flag; ///< that names it, or "the model"
  std::string path; ///< empty: it is not given
  /// Of an output: the flag of an input whose place it may take.
  MessageText renews = {};
};

/// Refuses two outputs that are one file, or both standard output ("-"), and
/// outputs that are an input, or one of those that an input stands for: the
/// files of a pattern or folder, the shares of a checkpoint. Devices and pipes
/// are left out. Usage errors.
llvm::Error checkDistinct(llvm::ArrayRef<NamedFile> outputs,
                          llvm::ArrayRef<NamedFile> inputs);

/// Holds outputs for this process.
class OutputLocks {
public:
  OutputLocks() = default;
  OutputLocks(const OutputLocks &) = delete;
  ~OutputLocks();
  /// Locks the outputs; an error where another process has one of them. A file
  /// system without locks, or a folder in which no file can be made, gives
  /// none.
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
