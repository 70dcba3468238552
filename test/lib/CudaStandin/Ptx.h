//===- Ptx.h - what the stand-in driver knows of PTX ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_PTX_H
#define CKOPT_TEST_LIB_CUDASTANDIN_PTX_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace standin {

struct Parameter {
  int bytes = 8;
  bool pointer = false; ///< declared with .ptr
  int64_t align = 1;    ///< alignment of the memory that it points to
};

struct Entry {
  std::vector<Parameter> parameters;
  int64_t maxThreads = 1024; ///< .maxntid
  int64_t sharedBytes = 0;   ///< .shared declared in its body
  bool flushes = false;      ///< f32 arithmetic with .ftz
};

struct PtxText {
  int version = 0; ///< 78 for 7.8
  int target = 0;  ///< 90 for sm_90
  std::map<std::string, Entry> entries;
};

/// Reads headers and signatures. Returns "", or why the text is refused (as a
/// real driver would refuse it), with its line.
std::string parsePtx(const std::string &text, PtxText &result);

} // namespace standin

#endif // CKOPT_TEST_LIB_CUDASTANDIN_PTX_H
