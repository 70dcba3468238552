//===- Version.cpp - what --version prints --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The build writes a source file with the commit (cmake/WriteCommit.cmake).
// That file and this one are a library of their own, so that a new commit
// compiles two small files and links the tools, and nothing else.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/Version.h"

namespace ckopt {
extern const char kCommit[]; // "" if the source is not a git checkout
} // namespace ckopt

std::string ckopt::versionLine(const char *tool, const char *llvm) {
  std::string line = std::string(tool) + " " CKOPT_VERSION;
  std::string details = kCommit;
  if (!details.empty())
    details = "commit " + details;
  if (*llvm)
    details += std::string(details.empty() ? "" : ", ") + "LLVM " + llvm;
  return details.empty() ? line : line + " (" + details + ")";
}
