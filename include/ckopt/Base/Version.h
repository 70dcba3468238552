//===- Version.h - what --version prints ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_VERSION_H
#define CKOPT_BASE_VERSION_H

#include <string>

namespace ckopt {

/// Returns the text of --version: `tool`, ckopt's version, the commit that it
/// was built from if the source was a git checkout, and the version of LLVM if
/// `llvm` gives one: "ckopt 0.1.0 (commit 95f63ff2c1de, LLVM 22.1.8)". Library:
/// CkoptVersion.
std::string versionLine(const char *tool, const char *llvm = "");

} // namespace ckopt

#endif // CKOPT_BASE_VERSION_H
