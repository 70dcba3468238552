//===- WholeFile.cpp - files beside an artifact ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "WholeFile.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int ckopt::runtime::cuda::replaceFile(const std::string &path,
                                      const std::string &bytes) {
  // The temporary name is unique, so that it collides neither with another
  // thread's nor with a file left by a crashed process.
  static std::atomic<unsigned> count{0};
  // A link stays a link: its target is replaced, and a dangling link is an
  // error.
  std::string target = path, made;
  struct stat known;
  if (lstat(path.c_str(), &known) == 0 && S_ISLNK(known.st_mode)) {
    char *real = realpath(path.c_str(), nullptr);
    if (!real)
      return errno;
    target = real;
    free(real);
  }
  if (stat(target.c_str(), &known) == 0 && !S_ISREG(known.st_mode))
    return EEXIST; // a device or a pipe, which a rename would remove
  int file = -1;
  do {
    made = target + ".tmp-" + std::to_string(static_cast<long>(getpid())) +
           "-" + std::to_string(count++);
    file = open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (file < 0 && errno == EEXIST);
  if (file < 0)
    return errno;
  size_t done = 0;
  int reason = 0;
  while (!reason && done < bytes.size()) {
    ssize_t wrote = ::write(file, bytes.data() + done, bytes.size() - done);
    if (wrote > 0)
      done += static_cast<size_t>(wrote);
    else if (wrote == 0 || errno != EINTR)
      reason = wrote == 0 ? ENOSPC : errno;
  }
  if (!reason && fsync(file) != 0)
    reason = errno;
  if (close(file) != 0 && !reason)
    reason = errno;
  if (!reason && std::rename(made.c_str(), target.c_str()) != 0)
    reason = errno;
  if (reason)
    (void)unlink(made.c_str());
  return reason;
}
