//===- ParseModule.cpp - modules, kernels and variables -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Parser.h"

#include <cstring>

using namespace standin::ptx;

bool Parser::failAt(unsigned line, const std::string &why) {
  if (error.empty())
    error = "line " + std::to_string(line) + ": " + why;
  return false;
}

bool Parser::integer(uint64_t &value) {
  if (here().kind != Token::Integer)
    return fail("a whole number is missing before '" +
                std::string(here().text) + "'");
  value = next().value;
  return true;
}

bool Parser::skipBlock() {
  int depth = 0;
  do {
    if (here().kind == Token::End)
      return fail("'}' is missing");
    depth += here().is("{") ? 1 : here().is("}") ? -1 : 0;
    ++at;
  } while (depth != 0);
  return true;
}

bool Parser::module() {
  while (here().kind != Token::End)
    if (!directive())
      return false;
  if (!program.version || !program.target)
    return fail("no .version and .target");
  return true;
}

/// Reads "7.8" as 78.
static unsigned decimal(std::string_view text) {
  size_t dot = text.find('.');
  unsigned major = unsigned(std::atoi(std::string(text).c_str()));
  return major * 10 +
         (dot == std::string_view::npos ? 0 : unsigned(text[dot + 1] - '0'));
}

bool Parser::directive() {
  const Token &word = next();
  if (word.is(".version")) {
    program.version = decimal(next().text);
  } else if (word.is(".target")) {
    if (here().text.substr(0, 3) != "sm_")
      return fail("not a target: '" + std::string(here().text) + "'");
    program.target =
        unsigned(std::atoi(std::string(next().text.substr(3)).c_str()));
    while (accept(","))
      ++at;
  } else if (word.is(".address_size")) {
    if (!here().is("64"))
      return fail("only addresses of 64 bits are known");
    ++at;
  } else if (word.is(".visible") || word.is(".weak") || word.is(".common") ||
             word.is(".extern")) {
    // Linkage.
  } else if (word.is(".entry")) {
    return entry();
  } else if (word.is(".global")) {
    return staticVariable(Space::Global);
  } else if (word.is(".const")) {
    return staticVariable(Space::Const);
  } else if (word.is(".shared")) {
    return sharedVariable(nullptr);
  } else if (word.is(".pragma")) {
    while (!accept(";"))
      if (next().kind == Token::End)
        return fail("';' is missing");
  } else if (word.is(".file")) {
    unsigned line = word.line;
    while (here().line == line && here().kind != Token::End)
      ++at;
  } else if (word.is(".section")) {
    while (!here().is("{") && here().kind != Token::End)
      ++at;
    return skipBlock();
  } else {
    return failAt(word.line,
                  "a directive that the interpreter does not know: '" +
                      std::string(word.text) + "'");
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

bool Parser::initializer(Type type, std::vector<uint8_t> &values) {
  if (accept("{")) {
    while (!accept("}")) {
      if (!initializer(type, values))
        return false;
      if (!here().is("}") && !need(","))
        return false;
    }
    return true;
  }
  Operand value;
  if (here().kind == Token::Word && !std::isdigit(int(here().text[0])))
    return fail("initializers that are addresses are not known");
  if (!immediate(value))
    return false;
  uint64_t bits = value.value;
  if (type == Type::F32 && value.literal == Type::F64) {
    double wide;
    std::memcpy(&wide, &bits, 8);
    auto narrow = float(wide);
    uint32_t word;
    std::memcpy(&word, &narrow, 4);
    bits = word;
  }
  for (unsigned i = 0; i < bitsOf(type) / 8; ++i)
    values.push_back(uint8_t(bits >> (8 * i)));
  return true;
}

bool Parser::variable(Variable &variable, std::vector<uint8_t> *values) {
  Type type = Type::None;
  uint64_t elements = 1, align = 0, vector = 1;
  while (here().text.starts_with('.')) {
    const Token &word = next();
    if (word.is(".align")) {
      if (!integer(align))
        return false;
    } else if (word.is(".ptr")) {
      // The alignment is that of the memory pointed to, not of the parameter.
      while (here().is(".global") || here().is(".shared") ||
             here().is(".const") || here().is(".local"))
        ++at;
      uint64_t ignored;
      if (accept(".align") && !integer(ignored))
        return false;
    } else if (word.is(".v2") || word.is(".v4")) {
      vector = word.is(".v2") ? 2 : 4;
    } else if (word.is(".attribute")) {
      return fail("attributes of variables are not known");
    } else if (type = typeNamed(word.text.substr(1));
               type == Type::None || type == Type::Pred) {
      return failAt(word.line, "not a type of variables: '" +
                                   std::string(word.text) + "'");
    }
  }
  if (type == Type::None || here().kind != Token::Word)
    return fail("a variable needs a type and a name");
  variable.name = std::string(next().text);
  while (accept("[")) {
    uint64_t size = 0;
    if (accept("]")) { // the launch gives its size
      elements = 0;
      break;
    }
    if (!integer(size) || !need("]"))
      return false;
    elements *= size;
  }
  variable.bytes = elements * vector * bitsOf(type) / 8;
  variable.align = align ? align : vector * bitsOf(type) / 8;
  if (accept("=")) {
    if (!values)
      return fail("this variable cannot have a value");
    if (!initializer(type, *values))
      return false;
    if (values->size() > variable.bytes)
      return fail("more values than the variable has elements");
  }
  return true;
}

bool Parser::staticVariable(Space space) {
  Static made;
  std::vector<uint8_t> values;
  if (!variable(made.variable, &values) || !need(";"))
    return false;
  made.variable.space = space;
  uint64_t room = made.variable.bytes + made.variable.align;
  made.memory = std::make_unique<char[]>(room); // zeros, as PTX has it
  auto begin = reinterpret_cast<uint64_t>(made.memory.get());
  begin = (begin + made.variable.align - 1) / made.variable.align *
          made.variable.align;
  if (!values.empty())
    std::memcpy(reinterpret_cast<char *>(begin), values.data(), values.size());
  made.variable.address = begin;
  scopes[0][made.variable.name] = {Symbol::Variable, kNoSlot, 64, begin, space};
  program.statics.push_back(std::move(made));
  return true;
}

void Parser::addShared(Kernel &kernel, Variable variable) {
  kernel.sharedBytes = (kernel.sharedBytes + variable.align - 1) /
                       variable.align * variable.align;
  variable.space = Space::Shared;
  variable.address = kSharedBase + kernel.sharedBytes;
  kernel.sharedBytes += variable.bytes;
  scopes.back()[variable.name] = {Symbol::Variable, kNoSlot, 64,
                                  variable.address, Space::Shared};
  kernel.shared.push_back(std::move(variable));
}

bool Parser::sharedVariable(Kernel *kernel) {
  Variable made;
  if (!variable(made, nullptr) || !need(";"))
    return false;
  if (kernel)
    addShared(*kernel, std::move(made));
  else
    moduleShared.push_back(std::move(made));
  return true;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

bool Parser::parameters(Kernel &kernel) {
  uint64_t end = 0;
  while (!accept(")")) {
    Variable made;
    if (!need(".param") || !variable(made, nullptr))
      return false;
    made.space = Space::Param;
    made.address = (end + made.align - 1) / made.align * made.align;
    end = made.address + made.bytes;
    scopes.back()[made.name] = {Symbol::Variable, kNoSlot, 64, made.address,
                                Space::Param};
    kernel.parameters.push_back(std::move(made));
    if (!here().is(")") && !need(","))
      return false;
  }
  return true;
}

bool Parser::kernelDirectives(Kernel &kernel) {
  while (!here().is("{")) {
    const Token &word = next();
    bool threads = word.is(".maxntid") || word.is(".reqntid");
    if (!threads && !word.is(".minnctapersm") && !word.is(".maxnreg") &&
        !word.is(".maxnctapersm") && !word.is(".noreturn"))
      return failAt(
          word.line,
          "a kernel's directive that the interpreter does not know: '" +
              std::string(word.text) + "'");
    uint64_t product = 1;
    while (here().kind == Token::Integer) {
      product *= next().value;
      accept(",");
    }
    if (threads)
      kernel.maxThreads = product;
  }
  return true;
}

bool Parser::entry() {
  auto kernel = std::make_unique<Kernel>();
  kernel->line = here().line;
  kernel->name = std::string(next().text);
  scopes.emplace_back();
  labels.clear(), lists.clear(), jumps.clear(), specials.clear();
  for (const Variable &shared : moduleShared)
    addShared(*kernel, shared);
  if (accept("(") && !parameters(*kernel))
    return false;
  if (!kernelDirectives(*kernel) || !body(*kernel))
    return false;
  scopes.pop_back();
  std::string name = kernel->name;
  if (!program.kernels.emplace(name, std::move(kernel)).second)
    return fail("two kernels '" + name + "'");
  return true;
}

std::unique_ptr<Program> standin::ptx::parse(const std::string &text,
                                             std::string &error) {
  auto program = std::make_unique<Program>();
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    program->lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  std::vector<Token> tokens;
  if (!tokenize(text, tokens, error))
    return nullptr;
  Parser parser(*program, tokens);
  if (!parser.module()) {
    error = parser.error;
    return nullptr;
  }
  return program;
}
