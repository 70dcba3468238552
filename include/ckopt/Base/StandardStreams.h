//===- StandardStreams.h - prepares standard streams of tools ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_STANDARDSTREAMS_H
#define CKOPT_BASE_STANDARDSTREAMS_H

#include <csignal>
#include <fcntl.h>

namespace ckopt {

/// Lets a write beyond the limit on file sizes fail with an error in place of a
/// signal. Also opens the standard streams that are closed, since later files
/// would get their numbers and text would be printed into them. Writes to a
/// closed standard output still fail.
inline void guardStreams() {
  std::signal(SIGXFSZ, SIG_IGN);
  for (int stream = 0; stream <= 2; ++stream)
    if (fcntl(stream, F_GETFD) < 0)
      (void)open("/dev/null", stream == 1 ? O_RDONLY : O_RDWR);
}

} // namespace ckopt

#endif // CKOPT_BASE_STANDARDSTREAMS_H
