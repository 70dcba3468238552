//===- Ptx.cpp - what the stand-in driver knows of PTX --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the headers of kernels with a tokenizer over the text's directives:
// .version, .target, each .entry with its parameters, .maxntid and static
// shared memory. Bodies are matched by braces and otherwise only searched for
// .ftz.
//
//===----------------------------------------------------------------------===//
#include "Ptx.h"

#include <cctype>
#include <cstdlib>

using namespace standin;

namespace {

// The most bytes of static shared memory, and of all parameters.
constexpr int64_t kMaxSharedBytes = 48 << 10, kMaxParameterBytes = 4 << 10;

/// Splits the text into words ([A-Za-z0-9_.$%]+) and single characters.
class Tokens {
public:
  explicit Tokens(const std::string &text) : text(text) { advance(); }
  std::string word;
  int line = 1;
  bool atEnd() const { return word.empty(); }
  void advance() {
    skipSpace();
    size_t begin = at;
    auto part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
             c == '.' || c == '$' || c == '%';
    };
    while (at < text.size() && part(text[at]))
      ++at;
    if (at == begin && at < text.size())
      ++at;
    word = text.substr(begin, at - begin);
  }
  std::string take() {
    std::string taken = word;
    advance();
    return taken;
  }

private:
  void skipSpace() {
    while (at < text.size()) {
      if (text[at] == '\n')
        ++line;
      if (std::isspace(static_cast<unsigned char>(text[at]))) {
        ++at;
      } else if (text.compare(at, 2, "//") == 0) {
        while (at < text.size() && text[at] != '\n')
          ++at;
      } else if (text.compare(at, 2, "/*") == 0) {
        for (; at < text.size() && text.compare(at, 2, "*/") != 0; ++at)
          line += text[at] == '\n';
        at = at + 2 < text.size() ? at + 2 : text.size();
      } else {
        return;
      }
    }
  }
  const std::string &text;
  size_t at = 0;
};

int typeBytes(const std::string &type) {
  size_t digits = type.find_first_of("0123456789");
  return digits == std::string::npos ? 0 : std::atoi(type.c_str() + digits) / 8;
}

/// Parses ".param .u64 .ptr .align 64 name" up to "," or ")".
Parameter parseParameter(Tokens &tokens) {
  Parameter parameter;
  while (!tokens.atEnd() && tokens.word != "," && tokens.word != ")") {
    std::string word = tokens.take();
    if (word == ".ptr")
      parameter.pointer = true;
    else if (word == ".align")
      parameter.align = std::atoll(tokens.take().c_str());
    else if (word[0] == '.' && typeBytes(word) > 0)
      parameter.bytes = typeBytes(word);
  }
  return parameter;
}

/// Parses ".shared .align 4 .b8 name[1024];" in a body.
int64_t sharedBytes(Tokens &tokens) {
  int64_t bytes = 1;
  while (!tokens.atEnd() && tokens.word != ";") {
    std::string word = tokens.take();
    if (word == ".align")
      tokens.advance();
    else if (word[0] == '.' && typeBytes(word) > 0)
      bytes *= typeBytes(word);
    else if (word == "[")
      bytes *= std::atoll(tokens.word.c_str());
  }
  return bytes;
}

std::string parseEntry(Tokens &tokens, PtxText &result) {
  std::string name = tokens.take();
  Entry entry;
  if (tokens.word == "(") {
    tokens.advance();
    while (!tokens.atEnd() && tokens.word != ")") {
      entry.parameters.push_back(parseParameter(tokens));
      if (tokens.word == ",")
        tokens.advance();
    }
    tokens.advance();
  }
  for (; !tokens.atEnd() && tokens.word != "{"; tokens.advance())
    if (tokens.word == ".maxntid") {
      tokens.advance();
      entry.maxThreads = std::atoll(tokens.word.c_str());
    }
  int depth = 0;
  while (!tokens.atEnd()) {
    std::string word = tokens.take();
    depth += word == "{" ? 1 : word == "}" ? -1 : 0;
    if (word.find(".ftz") != std::string::npos)
      entry.flushes = true;
    if (word == ".shared")
      entry.sharedBytes += sharedBytes(tokens);
    if (depth == 0)
      break;
  }
  if (depth != 0)
    return "entry " + name + " does not end";
  int64_t parameterBytes = 0;
  for (const Parameter &parameter : entry.parameters)
    parameterBytes += parameter.bytes;
  if (parameterBytes > kMaxParameterBytes)
    return "Formal parameter space overflowed (" +
           std::to_string(parameterBytes) + " bytes required, max " +
           std::to_string(kMaxParameterBytes) + " bytes allowed) in function " +
           name;
  if (entry.sharedBytes > kMaxSharedBytes)
    return "Entry function '" + name + "' uses too much shared data (" +
           std::to_string(entry.sharedBytes) + " bytes, " +
           std::to_string(kMaxSharedBytes) + " max)";
  if (!result.entries.emplace(name, entry).second)
    return "two entries " + name;
  return "";
}

int decimal(const std::string &version) {
  size_t dot = version.find('.');
  return std::atoi(version.c_str()) * 10 +
         (dot == std::string::npos ? 0 : std::atoi(&version[dot + 1]));
}

} // namespace

std::string standin::parsePtx(const std::string &text, PtxText &result) {
  Tokens tokens(text);
  while (!tokens.atEnd()) {
    std::string word = tokens.take();
    std::string wrong;
    if (word == ".version")
      result.version = decimal(tokens.take());
    else if (word == ".target")
      result.target = std::atoi(tokens.take().c_str() + 3);
    else if (word == ".entry")
      wrong = parseEntry(tokens, result);
    else if (word == ".extern" && tokens.word == ".func")
      wrong = "Unresolved extern function";
    if (!wrong.empty())
      return "ptxas application ptx input, line " +
             std::to_string(tokens.line) + "; error : " + wrong;
  }
  if (!result.version || !result.target)
    return "ptxas application ptx input, line 1; fatal : Missing .version "
           "directive";
  return "";
}
