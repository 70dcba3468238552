//===- CpuFeatures.cpp - may this machine run that artifact? --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks that the CPU has the features that an artifact was compiled for: code
// for AVX-512 would die by a signal elsewhere. The kernel's list of flags
// (/proc/cpuinfo) names the features that the CPU has and the system lets
// programs use. LLVM's names for features differ from the kernel's in
// punctuation and in a few words. If the list cannot be read, all features
// count as missing.
//
//===----------------------------------------------------------------------===//
#include "CpuFeatures.h"

#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace ckopt::runtime;

/// Reduces a name to letters and digits, so that "avx512_bf16", "avx512-bf16"
/// and "avx512bf16" are one feature, and translates LLVM's other names to the
/// kernel's.
static std::string canonical(const std::string &name) {
  std::string text;
  for (char c : name)
    if (c != '_' && c != '-' && c != '.' && c != '+')
      text += c;
  static const std::map<std::string, std::string> kAliases = {
      {"bmi", "bmi1"},         {"lzcnt", "abm"},    {"sha", "shani"},
      {"pclmul", "pclmulqdq"}, {"rdrnd", "rdrand"}, {"crc32", "sse42"},
      {"x87", "fpu"},          {"64bit", "lm"},     {"prfchw", "3dnowprefetch"},
      {"sahf", "lahflm"},      {"sse3", "pni"},     {"evex512", "avx512f"},
  };
  auto alias = kAliases.find(text);
  return alias == kAliases.end() ? text : alias->second;
}

std::vector<std::string>
ckopt::runtime::missingCpuFeatures(const std::vector<std::string> &features) {
  std::set<std::string> present;
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (present.empty() && std::getline(info, line)) {
    if (line.compare(0, 5, "flags") != 0)
      continue;
    std::istringstream words(
        line.substr(std::min(line.size(), line.find(':') + 1)));
    for (std::string word; words >> word;)
      present.insert(canonical(word));
  }
  std::vector<std::string> missing;
  for (const std::string &feature : features)
    if (!present.count(canonical(feature)))
      missing.push_back(feature);
  return missing;
}
