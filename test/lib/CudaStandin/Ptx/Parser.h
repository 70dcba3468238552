//===- Parser.h - the structure of PTX --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA, "Directives": a module's version, target and variables, kernels with
// their parameters, registers, shared variables, labels and statements.
// Directives that do not change results (.loc, .pragma, sections of debug
// information, limits for the assembler) are skipped; other unknown directives
// are errors.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_PTX_PARSER_H
#define CKOPT_TEST_LIB_CUDASTANDIN_PTX_PARSER_H

#include "Decode.h"
#include "Lexer.h"

#include <set>
#include <unordered_map>

namespace standin::ptx {

class Parser {
public:
  Parser(Program &program, const std::vector<Token> &tokens)
      : program(program), tokens(tokens) {}
  bool module();
  std::string error;

private:
  struct Symbol {
    enum Kind { Register, Variable } kind;
    Slot slot = kNoSlot;
    unsigned bits = 0;
    uint64_t address = 0;
    Space space = Space::None;
  };

  // The following are in ParseModule.cpp.
  bool directive();
  bool entry();
  bool parameters(Kernel &kernel);
  bool kernelDirectives(Kernel &kernel);
  /// Parses ".align 4 .b8 name[16] = {...}" after its state space.
  bool variable(Variable &variable, std::vector<uint8_t> *values);
  bool initializer(Type type, std::vector<uint8_t> &values);
  bool staticVariable(Space space);
  bool sharedVariable(Kernel *kernel);
  void addShared(Kernel &kernel, Variable variable);
  /// Skips everything up to the bracket that closes the current one.
  bool skipBlock();

  // The following are in ParseBody.cpp.
  bool body(Kernel &kernel);
  bool bodyDirective(Kernel &kernel);
  bool registers(Kernel &kernel);
  bool label(Kernel &kernel);
  bool statement(Kernel &kernel);
  bool guard(Kernel &kernel, Slot &slot, bool &negated);
  bool operand(Kernel &kernel, Operand &operand);
  bool vectorOperand(Kernel &kernel, Operand &operand);
  bool addressOperand(Kernel &kernel, Operand &operand);
  bool immediate(Operand &operand);
  bool named(Kernel &kernel, Operand &operand);
  bool resolveLabels(Kernel &kernel);
  const Symbol *lookup(std::string_view name) const;

  const Token &here() const { return tokens[at]; }
  const Token &next() { return tokens[at++]; }
  bool accept(std::string_view text) {
    if (!here().is(text))
      return false;
    ++at;
    return true;
  }
  bool need(std::string_view text) {
    return accept(text) || fail("'" + std::string(text) + "' is missing");
  }
  bool integer(uint64_t &value);
  bool fail(const std::string &why) { return failAt(here().line, why); }
  bool failAt(unsigned line, const std::string &why);

  Program &program;
  const std::vector<Token> &tokens;
  size_t at = 0;
  using Scope = std::unordered_map<std::string, Symbol>;
  std::vector<Scope> scopes = std::vector<Scope>(1);
  std::vector<Variable> moduleShared;

  struct Jump {
    size_t instruction;
    std::string_view label;
  };
  std::unordered_map<std::string_view, size_t> labels;
  std::unordered_map<std::string_view, std::vector<std::string_view>> lists;
  std::vector<Jump> jumps;
  std::unordered_map<std::string, Operand> specials;
};

} // namespace standin::ptx

#endif // CKOPT_TEST_LIB_CUDASTANDIN_PTX_PARSER_H
