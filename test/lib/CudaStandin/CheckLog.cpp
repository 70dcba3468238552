//===- CheckLog.cpp - check-standin-log FOLDER LOG [--pattern] ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares the calls that the stand-in driver logged with the artifact's table,
// for tests of whole networks. Prints the figures, or the first line that is
// wrong.
//
//===----------------------------------------------------------------------===//
#include "../../../lib/Runtime/Cuda/LockFile.h"
#include "LogCheck.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

using namespace ckopt::runtime;

static bool read(const std::string &path, std::string &bytes) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  bytes = text.str();
  if (!in)
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
  return static_cast<bool>(in);
}

/// Returns the primitives that a lock file leaves to our own kernels.
static std::set<int32_t> ownOf(const Manifest &m, const cuda::LockFile &lock) {
  std::set<int32_t> own;
  std::map<int32_t, int64_t> workspaces;
  for (const CallInfo &call : m.calls)
    if (int32_t primitive = m.libraryPrimitive(call); primitive >= 0) {
      auto [at, isNew] = workspaces.insert({primitive, call.workspaceBytes});
      at->second = std::min(at->second, call.workspaceBytes);
    }
  for (auto [primitive, bytes] : workspaces)
    if (cuda::isOwnKernel(lock.algorithm(cuda::lockKey(
            m.primitives[static_cast<size_t>(primitive)], bytes))))
      own.insert(primitive);
  return own;
}

int main(int argc, char **argv) {
  bool pattern = false, wrongUse = argc < 3;
  cuda::LockFile lock;
  for (int i = 3; i < argc; ++i) {
    std::string argument = argv[i], error;
    if (argument == "--pattern") {
      pattern = true;
    } else if (argument.rfind("--lock=", 0) != 0) {
      wrongUse = true;
    } else if (!lock.read(argument.substr(7), error)) {
      std::fprintf(stderr, "%s\n", error.c_str());
      return 1;
    }
  }
  if (wrongUse) {
    std::fputs("usage: check-standin-log FOLDER LOG [--pattern] "
               "[--lock=FILE]\n",
               stderr);
    return 64;
  }
  std::string blob, log, error;
  if (!read(std::string(argv[1]) + "/manifest.bin", blob) ||
      !read(argv[2], log))
    return 1;
  Manifest manifest;
  if (!parse(blob.data(), blob.size(), manifest, error)) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 1;
  }
  standin::LogFacts facts;
  std::string wrong =
      standin::checkLog(manifest, log, pattern, ownOf(manifest, lock), facts);
  if (!wrong.empty()) {
    std::fprintf(stderr, "%s: %s\n", argv[2], wrong.c_str());
    return 1;
  }
  std::printf("%lld runs of %lld launches, %lld copies, as planned\n",
              static_cast<long long>(facts.runs),
              static_cast<long long>(facts.launches),
              static_cast<long long>(facts.copies));
  return 0;
}
