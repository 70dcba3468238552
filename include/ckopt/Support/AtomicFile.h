//===- AtomicFile.h - files that appear whole or not at all -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The writer puts the bytes into a temporary file in the same folder, forces
// them to the disk, renames the file over the old one, and forces the folder to
// the disk too. After any failure (disk full, no permission, a kill), a
// previous file is still whole. The temporary is removed on errors and on
// signals that end the tool (not on SIGKILL: it leaves ".NAME.tmp-PID-N"
// behind). Devices and pipes cannot be renamed over: they are written directly.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_ATOMICFILE_H
#define CKOPT_SUPPORT_ATOMICFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace ckopt {

class AtomicFile {
public:
  /// Opens the temporary. A symbolic link is followed, so that it stays.
  static llvm::Expected<AtomicFile> create(llvm::StringRef path);
  AtomicFile(AtomicFile &&other);
  AtomicFile &operator=(AtomicFile &&) = delete;
  /// Removes the temporary unless `commit` was called.
  ~AtomicFile();

  /// Appends. After an error the file cannot be committed.
  llvm::Error write(llvm::StringRef bytes);
  llvm::Error write(const void *bytes, size_t size) {
    return write(llvm::StringRef(static_cast<const char *>(bytes), size));
  }
  /// Writes over bytes that were written before; for regular files.
  llvm::Error overwrite(uint64_t at, llvm::StringRef bytes);
  /// False: a device or pipe, which takes bytes in order only.
  bool isRegular() const { return !temporary.empty(); }
  /// Bytes written so far.
  uint64_t position() const { return written; }
  /// Renames the temporary to the file's name.
  llvm::Error commit();

private:
  AtomicFile() = default;
  llvm::Error flush();
  llvm::Error fail(const char *what);
  void discard();

  std::string path, temporary; ///< `temporary` is empty for devices
  std::string buffered;
  uint64_t written = 0;
  int fd = -1;
  bool failed = false;
};

/// Checks that files can be written to all these paths, before a tool does its
/// work. Empty paths, "-", devices and pipes are not checked. The error names
/// every path that cannot be written.
llvm::Error checkWritable(llvm::ArrayRef<std::string> paths);

llvm::Error writeFileAtomically(llvm::StringRef path, llvm::StringRef bytes);
/// Calls `fill` to write the content; an error of `fill` leaves the old file as
/// it was.
llvm::Error
writeFileAtomically(llvm::StringRef path,
                    llvm::function_ref<llvm::Error(AtomicFile &)> fill);

} // namespace ckopt

#endif // CKOPT_SUPPORT_ATOMICFILE_H
