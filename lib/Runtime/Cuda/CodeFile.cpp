//===- CodeFile.cpp - machine code beside an artifact ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CodeFile.h"
#include "Core/DeviceHash.h"
#include "WholeFile.h"

#include <fstream>
#include <sstream>
#include <sys/stat.h>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

CodeFile::CodeFile(std::string path, const std::string &ptx)
    : path(std::move(path)) {
  if (exists())
    ptxHash = ckopt::hexText(DeviceHash::of(ptx.data(), ptx.size()));
}

std::string CodeFile::head(const std::string &code) const {
  return "ckopt-cubin 1 " + ptxHash + " " +
         ckopt::hexText(DeviceHash::of(code.data(), code.size())) + "\n";
}

std::string CodeFile::read() const {
  struct stat info = {};
  if (path.empty() || stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
    return "";
  std::ifstream in(path, std::ios::binary);
  std::string first;
  std::getline(in, first);
  std::stringstream rest;
  rest << in.rdbuf();
  std::string code = rest.str();
  return first + "\n" == head(code) ? code : "";
}

void CodeFile::write(const std::string &code) const {
  if (!path.empty())
    (void)replaceFile(path, head(code) + code);
}
