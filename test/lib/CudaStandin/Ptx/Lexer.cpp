//===- Lexer.cpp - words of PTX -------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Lexer.h"

#include <bit>
#include <cctype>
#include <cstdlib>

using namespace standin::ptx;

static bool isPart(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
         c == '%' || c == '.';
}

/// Reads a number: "0x1F", "017", "0b11", "42", "42U"; "0f3F800000", "0d...";
/// "1.5", "2e3".
static bool readNumber(Token &token) {
  std::string text(token.text);
  char *end = nullptr;
  bool zero = text[0] == '0' && text.size() > 1;
  char second = zero ? char(std::tolower(text[1])) : ' ';
  if (second == 'f' || second == 'd') {
    token.kind = second == 'f' ? Token::Float32 : Token::Float64;
    token.value = std::strtoull(text.c_str() + 2, &end, 16);
    return text.size() == (second == 'f' ? 10u : 18u) && *end == 0;
  }
  if (second != 'x' && text.find_first_of(".eE") != std::string::npos) {
    token.kind = Token::Float64;
    token.value = std::bit_cast<uint64_t>(std::strtod(text.c_str(), &end));
    return *end == 0;
  }
  token.kind = Token::Integer;
  int base = second == 'x' ? 16 : second == 'b' ? 2 : zero ? 8 : 10;
  token.value = std::strtoull(
      text.c_str() + (second == 'x' || second == 'b' ? 2 : 0), &end, base);
  return *end == 0 || (*end == 'U' && end[1] == 0);
}

namespace {
class Scanner {
public:
  explicit Scanner(std::string_view text) : text(text) {}
  bool next(Token &token, std::string &error);

private:
  void skipSpace();
  size_t wordEnd(size_t from) const {
    while (from < text.size() && isPart(text[from]))
      ++from;
    return from;
  }
  std::string_view text;
  size_t at = 0;
  unsigned line = 1;
};
} // namespace

void Scanner::skipSpace() {
  while (at < text.size()) {
    if (std::isspace(static_cast<unsigned char>(text[at]))) {
      line += text[at++] == '\n';
    } else if (text.substr(at, 2) == "//") {
      while (at < text.size() && text[at] != '\n')
        ++at;
    } else if (text.substr(at, 2) == "/*") {
      while (at < text.size() && text.substr(at, 2) != "*/")
        line += text[at++] == '\n';
      at = std::min(text.size(), at + 2);
    } else {
      return;
    }
  }
}

bool Scanner::next(Token &token, std::string &error) {
  skipSpace();
  token = Token();
  token.line = line;
  if (at == text.size())
    return true;
  size_t begin = at;
  char c = text[at];
  if (c == '"') {
    at = text.find('"', at + 1);
    at = at == std::string_view::npos ? text.size() : at + 1;
    token.kind = Token::String;
  } else if (isPart(c)) {
    at = wordEnd(at);
    token.kind = Token::Word;
  } else if (std::string_view("{}()[]<>,;:|=+-!@").find(c) !=
             std::string_view::npos) {
    ++at;
    token.kind = Token::Sign;
  } else {
    error = "line " + std::to_string(line) +
            ": a character that PTX has not: '" + std::string(1, c) + "'";
    return false;
  }
  token.text = text.substr(begin, at - begin);
  if (std::isdigit(static_cast<unsigned char>(c))) {
    // The sign in "1e-5" is part of the number.
    bool hex = token.text.size() > 1 && token.text[0] == '0' &&
               std::isalpha(static_cast<unsigned char>(token.text[1]));
    if (!hex && (token.text.back() == 'e' || token.text.back() == 'E') &&
        at < text.size() && (text[at] == '-' || text[at] == '+'))
      token.text = text.substr(begin, (at = wordEnd(at + 1)) - begin);
    if (!readNumber(token)) {
      error = "line " + std::to_string(line) + ": not a number: '" +
              std::string(token.text) + "'";
      return false;
    }
  }
  return true;
}

bool standin::ptx::tokenize(std::string_view text, std::vector<Token> &tokens,
                            std::string &error) {
  Scanner scanner(text);
  do {
    tokens.emplace_back();
    if (!scanner.next(tokens.back(), error))
      return false;
  } while (tokens.back().kind != Token::End);
  return true;
}
