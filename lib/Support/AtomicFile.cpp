//===- AtomicFile.cpp - files that appear whole or not at all -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes a file so that a reader sees the old or the new contents, whatever
// happens. The order matters: the data is forced to disk before the rename, and
// the folder after it; otherwise a power cut could leave the new name without
// data. The code uses plain POSIX calls, since errors need their errno and
// fsync its own check. A buffer of 256 KiB saves system calls for small pieces.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include <atomic>
#include <cassert>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace ckopt {

static constexpr size_t bufferSize = 256 * 1024;

static std::string reason(int code) { return std::strerror(code); }

/// Returns the file that `path` refers to: links are followed, so that the link
/// stays and the file it points to is replaced.
static std::string followLinks(StringRef path) {
  struct stat info;
  if (lstat(path.str().c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    char resolved[PATH_MAX];
    if (realpath(path.str().c_str(), resolved))
      return resolved;
  }
  return path.str();
}

static std::string folderOf(StringRef path) {
  StringRef parent = sys::path::parent_path(path);
  return parent.empty() ? "." : parent.str();
}

Expected<AtomicFile> AtomicFile::create(StringRef givenPath) {
  AtomicFile file;
  file.path = followLinks(givenPath);
  if (givenPath.empty())
    return ioError("cannot write: the file name is empty");
  struct stat info;
  const bool exists = stat(file.path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    return ioError("cannot write '" + givenPath + "': it is a folder");
  if (exists && !S_ISREG(info.st_mode)) {
    file.fd = open(file.path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.fd < 0)
      return ioError("cannot write '" + givenPath + "': " + reason(errno));
    return file;
  }
  // A read-only file is not replaced, though a rename could do it.
  if (exists && access(file.path.c_str(), W_OK) != 0)
    return ioError("cannot write '" + givenPath + "': " + reason(errno));

  static std::atomic<unsigned> counter{0};
  const mode_t mode = exists ? (info.st_mode & 0777) : 0666;
  for (unsigned attempt = 0; attempt < 100 && file.fd < 0; ++attempt) {
    file.temporary = (folderOf(file.path) + "/." +
                      sys::path::filename(file.path).take_front(200) + ".tmp-" +
                      Twine(int64_t(getpid())) + "-" + Twine(counter++))
                         .str();
    file.fd = open(file.temporary.c_str(),
                   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file.fd < 0 && errno != EEXIST)
      break;
  }
  if (file.fd < 0) {
    const std::string why = reason(errno);
    file.temporary.clear();
    return ioError("cannot write '" + givenPath +
                   "': cannot make a file in folder '" + folderOf(file.path) +
                   "': " + why);
  }
  if (exists)
    // open() applied the umask; the old file's mode did not
    (void)fchmod(file.fd, mode);
  sys::RemoveFileOnSignal(file.temporary);
  return file;
}

AtomicFile::AtomicFile(AtomicFile &&other)
    : path(std::move(other.path)), temporary(std::move(other.temporary)),
      buffered(std::move(other.buffered)), written(other.written), fd(other.fd),
      failed(other.failed) {
  other.fd = -1;
  other.temporary.clear();
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (fd >= 0)
    close(fd);
  fd = -1;
  if (!temporary.empty()) {
    unlink(temporary.c_str());
    sys::DontRemoveFileOnSignal(temporary);
    temporary.clear();
  }
}

Error AtomicFile::fail(const char *what) {
  const std::string why = reason(errno);
  const bool hadTemporary = !temporary.empty();
  failed = true;
  discard();
  return ioError(Twine(what) + " '" + path + "': " + why +
                 (hadTemporary && access(path.c_str(), F_OK) == 0
                      ? " (the previous file is unchanged)"
                      : ""));
}

static bool writeAll(int fd, StringRef bytes) {
  while (!bytes.empty()) {
    const ssize_t done =
        ::write(fd, bytes.data(), std::min(bytes.size(), size_t(1) << 30));
    if (done < 0) {
      if (errno == EINTR)
        continue;
      return false;
    }
    bytes = bytes.drop_front(size_t(done));
  }
  return true;
}

Error AtomicFile::flush() {
  const bool ok = writeAll(fd, buffered);
  buffered.clear();
  return ok ? Error::success() : fail("cannot write");
}

Error AtomicFile::write(StringRef bytes) {
  if (failed || fd < 0)
    return ioError("cannot write '" + path + "': an earlier write failed");
  written += bytes.size();
  if (buffered.size() + bytes.size() <= bufferSize) {
    buffered.append(bytes.data(), bytes.size());
    return Error::success();
  }
  if (Error error = flush())
    return error;
  if (bytes.size() <= bufferSize) {
    buffered.assign(bytes.data(), bytes.size());
    return Error::success();
  }
  return writeAll(fd, bytes) ? Error::success() : fail("cannot write");
}

Error AtomicFile::overwrite(uint64_t at, StringRef bytes) {
  assert(isRegular() && at + bytes.size() <= written && "not written yet");
  if (failed || fd < 0)
    return ioError("cannot write '" + path + "': an earlier write failed");
  if (Error error = flush())
    return error;
  if (lseek(fd, off_t(at), SEEK_SET) < 0 || !writeAll(fd, bytes) ||
      lseek(fd, 0, SEEK_END) < 0)
    return fail("cannot write");
  return Error::success();
}

Error AtomicFile::commit() {
  if (failed || fd < 0)
    return ioError("cannot write '" + path + "': an earlier write failed");
  if (Error error = flush())
    return error;
  const bool regular = !temporary.empty();
  if (regular && fsync(fd) != 0)
    return fail("cannot write");
  const int closed = close(fd);
  fd = -1;
  if (closed != 0)
    return fail("cannot write");
  if (!regular)
    return Error::success();
  if (rename(temporary.c_str(), path.c_str()) != 0)
    return fail("cannot put in place");
  sys::DontRemoveFileOnSignal(temporary);
  temporary.clear();
  // The new file is complete and in place, so a folder that cannot be synced
  // (some file systems refuse) is not an error.
  const int folder =
      open(folderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)fsync(folder);
    close(folder);
  }
  return Error::success();
}

Error checkWritable(ArrayRef<std::string> paths) {
  Error errors = Error::success();
  for (const std::string &path : paths) {
    // Opening a pipe or a device can have side effects, so look at the type
    // first.
    struct stat info;
    if (path.empty() || path == "-" ||
        (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) &&
         !S_ISDIR(info.st_mode)))
      continue;
    auto file = AtomicFile::create(path); // removes its temporary file
    if (!file)
      errors = joinErrors(std::move(errors), file.takeError());
  }
  return errors;
}

Error writeFileAtomically(StringRef path,
                          function_ref<Error(AtomicFile &)> fill) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.takeError();
  if (Error error = fill(*file))
    return error;
  return file->commit();
}

Error writeFileAtomically(StringRef path, StringRef bytes) {
  return writeFileAtomically(
      path, [&](AtomicFile &file) { return file.write(bytes); });
}

} // namespace ckopt
