//===- AtomicFile.h - files that appear whole or not at all -----*- C++ -*-===//
//
// Bytes go to a temporary name in the same folder, are forced to the disk, and
// the name is moved over the old one; then the folder is forced too. Whatever
// fails (disk full, no permission, a kill), a file that was there before stays
// whole. The temporary is removed on errors and on signals that end the tool
// (not on SIGKILL: it leaves ".NAME.tmp-PID-N" behind).
// Devices and pipes cannot be renamed over: they are written directly.
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
  /// Bytes written so far.
  uint64_t position() const { return written; }
  /// Makes it the file of that name.
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

/// Whether files can be written at all these places (empty ones, "-", devices
/// and pipes are not tried): to be asked before the work whose results they
/// take. Errors for all that cannot.
llvm::Error checkWritable(llvm::ArrayRef<std::string> paths);

llvm::Error writeFileAtomically(llvm::StringRef path, llvm::StringRef bytes);
/// `fill` writes; its error, too, leaves the old file as it was.
llvm::Error
writeFileAtomically(llvm::StringRef path,
                    llvm::function_ref<llvm::Error(AtomicFile &)> fill);

} // namespace ckopt

#endif // CKOPT_SUPPORT_ATOMICFILE_H
