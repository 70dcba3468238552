//===- CudaSearch.cpp - finds cuBLASLt, cuDNN and NCCL --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/CudaSearch.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <glob.h>
#include <unistd.h>

using namespace ckopt::runtime;

/// Appends the matches of the pattern, newest version first.
static void addMatches(const std::string &pattern,
                       std::vector<std::string> &folders) {
  glob_t found = {};
  if (glob(pattern.c_str(), GLOB_ONLYDIR, nullptr, &found) == 0)
    for (size_t i = found.gl_pathc; i > 0; --i)
      folders.emplace_back(found.gl_pathv[i - 1]);
  globfree(&found);
}

/// Escapes the characters of a name that have a meaning in patterns.
static std::string literally(const std::string &name) {
  std::string pattern;
  for (char c : name)
    pattern += c == '*' || c == '?' || c == '[' || c == '\\'
                   ? std::string("\\") + c
                   : std::string(1, c);
  return pattern;
}

std::vector<std::string> ckopt::runtime::cudaLibraryFolders() {
  std::vector<std::string> folders;
  addMatches("/usr/local/cuda*/lib64", folders);
  addMatches("/usr/local/cuda*/lib", folders);
  addMatches("/usr/local/cuda*/targets/x86_64-linux/lib", folders);
  // Python only lists folders, since importing a package takes seconds.
  std::FILE *python =
      popen("for p in python3 python; do command -v $p >/dev/null 2>&1 && "
            "exec $p -c 'import sys; print(\"\\n\".join(sys.path))' "
            "2>/dev/null; done",
            "r");
  if (!python)
    return folders;
  std::string line;
  for (int c; (c = std::fgetc(python)) != EOF;) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    if (!line.empty() && line[0] == '/')
      addMatches(literally(line) + "/nvidia/*/lib", folders);
    line.clear();
  }
  (void)pclose(python);
  return folders;
}

std::string
ckopt::runtime::findInFolders(const std::vector<std::string> &names,
                              const std::vector<std::string> &folders) {
  for (const std::string &name : names)
    for (const std::string &folder : folders)
      if (std::string path = folder + "/" + name;
          access(path.c_str(), R_OK) == 0)
        return path;
  return "";
}

namespace {
struct Wanted {
  bool needed;
  const char *variable;
  std::vector<std::string> names;
};
} // namespace

/// Sets the variables of needed libraries that only the search finds.
static void choose(const std::vector<Wanted> &all) {
  std::vector<std::string> folders;
  bool asked = false;
  for (const Wanted &wanted : all) {
    const char *given = std::getenv(wanted.variable);
    if (!wanted.needed || (given && *given))
      continue;
    bool found = false;
    for (const std::string &name : wanted.names)
      // It stays open, since the runtime opens it next.
      found = found || dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (found)
      continue;
    if (!asked)
      folders = cudaLibraryFolders();
    asked = true;
    std::string path = findInFolders(wanted.names, folders);
    if (!path.empty())
      (void)setenv(wanted.variable, path.c_str(), 1);
  }
}

static Wanted ncclIf(bool needed) {
  return {needed, "CKOPT_NCCL", {"libnccl.so.2"}};
}

void ckopt::runtime::chooseNccl() { choose({ncclIf(true)}); }

void ckopt::runtime::chooseCudaLibraries(const Manifest &manifest) {
  bool blasLt = false, cudnn = false, nccl = false;
  for (const CallInfo &call : manifest.calls)
    for (const LaunchInfo &launch : call.launches)
      if (launch.primitive >= 0) {
        PrimitiveKind kind =
            manifest.primitives[static_cast<size_t>(launch.primitive)].kind;
        (kind == PrimitiveKind::MatMul ? blasLt
         : isOfRanks(kind)             ? nccl
                                       : cudnn) = true;
      }
  choose(
      {{blasLt, "CKOPT_CUBLASLT", {"libcublasLt.so.13", "libcublasLt.so.12"}},
       {cudnn, "CKOPT_CUDNN", {"libcudnn.so.9"}},
       ncclIf(nccl)});
}
