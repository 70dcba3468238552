//===- InputFile.cpp - opening files to read ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/InputFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool isGivenAtStart(const std::string &path) {
  return path == "/dev/stdin" || path.rfind("/dev/fd/", 0) == 0 ||
         path.rfind("/proc/self/fd/", 0) == 0;
}

int ckopt::openInput(const std::string &path, std::string &why) {
  const bool given = isGivenAtStart(path);
  const int file =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (given ? 0 : O_NONBLOCK));
  struct stat info = {};
  if (file < 0 || fstat(file, &info) != 0)
    why = std::strerror(errno);
  else if (S_ISDIR(info.st_mode))
    why = std::strerror(EISDIR);
  else if (!S_ISREG(info.st_mode) && !given)
    why = "it is a pipe or device, and no regular file";
  else
    return file;
  if (file >= 0)
    ::close(file);
  return -1;
}
