//===- JsonDepth.h - how deep JSON nests ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's parser of JSON calls itself for each bracket, so a file of brackets
// alone would end the program. Whoever reads a file looks here first.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_JSONDEPTH_H
#define CKOPT_BASE_JSONDEPTH_H

#include <cstddef>
#include <string_view>

namespace ckopt {

/// Returns whether brackets nest more than 64 deep in a text that may be JSON.
inline bool nestsDeeply(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > 64)
        return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

} // namespace ckopt

#endif // CKOPT_BASE_JSONDEPTH_H
