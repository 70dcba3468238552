//===- Lexer.h - words of PTX -----------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA, "Syntax": identifiers begin with a letter, '_', '$' or '%' and go on
// with letters, digits, '_' and '$'; a word here has the dots of directives,
// opcodes ("ld.global.v4.b32") and special registers ("%tid.x") in it.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_PTX_LEXER_H
#define CKOPT_TEST_LIB_CUDASTANDIN_PTX_LEXER_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace standin::ptx {

struct Token {
  enum Kind { Word, Integer, Float32, Float64, String, Sign, End } kind = End;
  std::string_view text;
  uint64_t value = 0; ///< of an integer; bits of a float
  unsigned line = 0;

  bool is(std::string_view other) const {
    return text == other && kind != String;
  }
};

/// Returns all tokens, followed by an End; returns false and sets `error` if a
/// character or a number is wrong.
bool tokenize(std::string_view text, std::vector<Token> &tokens,
              std::string &error);

} // namespace standin::ptx

#endif // CKOPT_TEST_LIB_CUDASTANDIN_PTX_LEXER_H
