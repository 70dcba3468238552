//===- OpFormula.cpp - formulas over an op's shapes -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recursive descent makes a tree of terms (FormulaTerms.h). Guarantee: a
// formula that cannot be evaluated for an op is an error, never a number.
// Complexity: linear in the text.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/OpFormula.h"
#include "FormulaTerms.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::formula;
using llvm::Expected;

namespace {

class Parser {
public:
  explicit Parser(StringRef text) : text(text) {}
  Expected<Term> run() {
    Term root = sum();
    if (error.empty() && at < text.size())
      fail("expected an operator");
    if (!error.empty())
      return inputError("column " + std::to_string(errorAt + 1) + ": " + error);
    return root;
  }

private:
  /// Operands with operators of one precedence between them, from the left.
  Term chain(StringRef operators, Term (Parser::*operand)());
  Term sum() { return chain("+-", &Parser::product); }
  Term product() { return chain("*/", &Parser::factor); }
  Term factor();
  Term call(StringRef name);
  Term dimension(bool several);
  Term attribute();
  Term extreme(bool largest);
  Values values(bool one);
  int64_t integer();
  std::string string();
  bool accept(char c);
  void expect(char c) {
    if (!accept(c))
      fail(std::string("expected '") + c + "'");
  }
  StringRef word();
  void skip() { at = std::min(text.find_first_not_of(" \t", at), text.size()); }
  /// Notes the first error; what is parsed after it does not matter.
  void fail(const std::string &what) {
    if (error.empty()) {
      error = what;
      errorAt = at;
    }
    at = text.size();
  }

  StringRef text;
  size_t at = 0, errorAt = 0, depth = 0;
  std::string error;
};

} // namespace

bool Parser::accept(char c) {
  skip();
  if (at >= text.size() || text[at] != c)
    return false;
  ++at;
  skip();
  return true;
}

StringRef Parser::word() {
  skip();
  size_t start = at;
  while (at < text.size() && (llvm::isAlnum(text[at]) || text[at] == '_'))
    ++at;
  return text.slice(start, at);
}

int64_t Parser::integer() {
  bool negative = accept('-');
  StringRef digits = word();
  int64_t number = 0;
  if (digits.getAsInteger(10, number)) {
    at -= digits.size();
    fail("expected a whole number");
  }
  return negative ? -number : number;
}

std::string Parser::string() {
  expect('\'');
  size_t end = text.find('\'', at);
  if (end == StringRef::npos) {
    fail("expected a string that ends");
    return "";
  }
  std::string result = text.slice(at, end).str();
  at = end;
  expect('\'');
  return result;
}

Values Parser::values(bool one) {
  skip();
  size_t start = at;
  StringRef kind = word();
  Values result;
  result.results = kind == "results";
  if (kind != "results" && kind != "operands") {
    at = start;
    fail("expected operands or results");
    return result;
  }
  if (accept('[')) {
    result.index = integer();
    if (*result.index < 0)
      fail("expected a number that is not negative");
    expect(']');
  } else if (one) {
    fail("expected one value, as " + kind.str() + "[0]");
  }
  return result;
}

Term Parser::dimension(bool several) {
  Values value = values(/*one=*/true);
  expect(',');
  if (!several && at < text.size() && text[at] != '\'')
    return formula::size(value, integer());
  std::string name = string();
  if (several)
    return listedSizes(value, name);
  expect(',');
  int64_t group = integer();
  expect(',');
  return labelledSize(value, name, group, string());
}

Term Parser::attribute() {
  std::string name = string();
  std::optional<int64_t> otherwise;
  if (accept(','))
    otherwise = integer();
  return formula::attribute(name, otherwise);
}

Term Parser::extreme(bool largest) {
  Term result = sum();
  while (accept(','))
    result = combine(std::move(result), sum(), largest ? '>' : '<');
  return result;
}

Term Parser::call(StringRef name) {
  size_t start = at - name.size();
  expect('(');
  Term result = constant(0);
  if (name == "elements" || name == "bytes")
    result = overAll(values(/*one=*/false), name == "bytes");
  else if (name == "rank")
    result = rank(values(/*one=*/true));
  else if (name == "dim" || name == "dims")
    result = dimension(name == "dims");
  else if (name == "attr")
    result = attribute();
  else if (name == "min" || name == "max")
    result = extreme(name == "max");
  else if (error.empty()) {
    at = start;
    fail("there is no function '" + name.str() +
         "'; there are elements, bytes, rank, dim, dims, attr, min, max");
  }
  expect(')');
  return result;
}

Term Parser::factor() {
  // Parentheses call factor() again, so their depth is limited.
  constexpr size_t maxDepth = 64;
  if (++depth > maxDepth)
    fail("more than 64 terms inside of each other");
  Term result = constant(0);
  skip();
  double number = 0;
  size_t end = text.find_first_not_of("0123456789.", at);
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E') && end > at)
    end = text.find_first_not_of(
        "0123456789", end + 1 + (text.substr(end + 1).starts_with("-")));
  if (accept('(')) {
    result = sum();
    expect(')');
  } else if (accept('-')) {
    result = combine(constant(0), factor(), '-');
  } else if (at < text.size() && llvm::isAlpha(text[at])) {
    result = call(word());
  } else if (text.slice(at, end).getAsDouble(number)) {
    fail("expected a number, a function or '('");
  } else {
    at = std::min(end, text.size());
    result = constant(number);
  }
  --depth;
  return result;
}

Term Parser::chain(StringRef operators, Term (Parser::*operand)()) {
  Term result = (this->*operand)();
  while (true) {
    const char *found =
        llvm::find_if(operators, [&](char c) { return accept(c); });
    if (found == operators.end())
      return result;
    result = combine(std::move(result), (this->*operand)(), *found);
  }
}

Expected<OpFormula> OpFormula::parse(StringRef text) {
  // Each operator adds to the depth of the tree.
  if (text.size() > 1000)
    return inputError("a formula has at most 1000 characters");
  Expected<Term> root = Parser(text).run();
  if (!root)
    return root.takeError();
  return OpFormula(std::move(*root));
}

Expected<double> OpFormula::evaluate(const FormulaScope &scope) const {
  Expected<double> number = root(scope);
  if (number && !(std::isfinite(*number) && *number >= 0))
    return inputError("the formula gives a number that is negative or too "
                      "large");
  return number;
}
