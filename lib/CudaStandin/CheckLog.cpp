//===- CheckLog.cpp - check-standin-log FOLDER LOG [--pattern] ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares the calls that the stand-in driver logged with the artifact's table,
// for tests of whole networks. Prints the figures, or the first line that is
// wrong.
//
//===----------------------------------------------------------------------===//
#include "LogCheck.h"

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

int main(int argc, char **argv) {
  bool pattern = argc == 4 && std::strcmp(argv[3], "--pattern") == 0;
  if (argc != 3 && !pattern) {
    std::fputs("usage: check-standin-log FOLDER LOG [--pattern]\n", stderr);
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
  std::string wrong = standin::checkLog(manifest, log, pattern, facts);
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
