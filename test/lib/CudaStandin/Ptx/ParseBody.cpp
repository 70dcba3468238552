//===- ParseBody.cpp - registers, labels and statements of a kernel -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Parser.h"

#include <bit>

using namespace standin::ptx;

const Parser::Symbol *Parser::lookup(std::string_view name) const {
  std::string key(name);
  for (size_t i = scopes.size(); i-- > 0;)
    if (auto found = scopes[i].find(key); found != scopes[i].end())
      return &found->second;
  return nullptr;
}

bool Parser::body(Kernel &kernel) {
  size_t depth = 0;
  do {
    if (here().kind == Token::End)
      return fail("kernel '" + kernel.name + "' does not end");
    if (accept("{")) {
      ++depth;
      scopes.emplace_back();
    } else if (accept("}")) {
      --depth;
      scopes.pop_back();
    } else if (here().text.starts_with('.')) {
      if (!bodyDirective(kernel))
        return false;
    } else if (here().kind == Token::Word && tokens[at + 1].is(":")) {
      if (!label(kernel))
        return false;
    } else if (!accept(";") && !statement(kernel)) {
      return false;
    }
  } while (depth != 0);
  // A thread ends at the end of the body, so "ret" may be left out.
  Instruction exit;
  exit.control = Control::Exit;
  exit.line = tokens[at - 1].line;
  kernel.code.push_back(exit);
  if (!resolveLabels(kernel))
    return false;
  findMeetings(kernel);
  return true;
}

bool Parser::bodyDirective(Kernel &kernel) {
  const Token &word = next();
  if (word.is(".reg"))
    return registers(kernel);
  if (word.is(".shared"))
    return sharedVariable(&kernel);
  if (word.is(".pragma")) {
    ++at;
    return need(";");
  }
  if (word.is(".loc")) {
    while (here().line == word.line && here().kind != Token::End)
      ++at;
    return true;
  }
  return failAt(word.line, "a directive that the interpreter does not know: '" +
                               std::string(word.text) + "'");
}

bool Parser::registers(Kernel &kernel) {
  Type type = typeNamed(here().text.substr(1));
  if (type == Type::None)
    return fail("not a type of registers: '" + std::string(here().text) + "'");
  ++at;
  unsigned bits = bitsOf(type);
  auto add = [&](const std::string &name) {
    Symbol made{Symbol::Register, kernel.numSlots, bits};
    kernel.numSlots += bits == 64 ? 2 : 1;
    kernel.registers[made.slot] = name;
    if (bits == 64)
      kernel.wide.insert(made.slot);
    return scopes.back().emplace(name, made).second ||
           fail("register '" + name + "' is declared twice");
  };
  do {
    std::string name(next().text);
    uint64_t count = 0;
    if (!accept("<")) {
      if (!add(name))
        return false;
      continue;
    }
    if (!integer(count) || !need(">"))
      return false;
    for (uint64_t i = 0; i < count; ++i)
      if (!add(name + std::to_string(i)))
        return false;
  } while (accept(","));
  return need(";");
}

bool Parser::label(Kernel &kernel) {
  std::string_view name = next().text;
  ++at; // ':'
  if (accept(".branchtargets")) {
    do
      lists[name].push_back(next().text);
    while (accept(","));
    return need(";");
  }
  if (!labels.emplace(name, kernel.code.size()).second)
    return fail("label '" + std::string(name) + "' is there twice");
  return true;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

bool Parser::immediate(Operand &operand) {
  operand.kind = Operand::Immediate;
  operand.name = here().text;
  bool minus = accept("-");
  const Token &number = next();
  operand.value = number.value;
  if (number.kind == Token::Integer) {
    operand.literal = Type::U64;
    if (minus)
      operand.value = 0 - operand.value;
  } else if (number.kind == Token::Float32) {
    operand.literal = Type::F32;
    operand.value ^= minus ? 0x80000000u : 0;
  } else if (number.kind == Token::Float64) {
    operand.literal = Type::F64;
    operand.value ^= minus ? uint64_t(1) << 63 : 0;
  } else {
    return failAt(number.line,
                  "not an operand: '" + std::string(number.text) + "'");
  }
  return true;
}

/// Returns the bits of a special register (PTX ISA, "Special Registers"), or 0
/// if it is unknown.
static unsigned specialBits(std::string_view name) {
  for (const char *base : {"%tid.", "%ntid.", "%ctaid.", "%nctaid."})
    for (char axis : {'x', 'y', 'z'})
      if (name == base + std::string(1, axis))
        return 32;
  for (const char *other :
       {"%laneid", "%warpid", "%lanemask_eq", "%lanemask_lt", "%lanemask_le",
        "%lanemask_gt", "%lanemask_ge"})
    if (name == other)
      return 32;
  return 0;
}

bool Parser::named(Kernel &kernel, Operand &operand) {
  operand.name = next().text;
  if (operand.name == "_")
    return true; // a sink, whose value is dropped
  if (const Symbol *symbol = lookup(operand.name)) {
    if (symbol->kind == Symbol::Register) {
      operand.kind = Operand::Register;
      operand.slot = symbol->slot;
      operand.bits = symbol->bits;
      return true;
    }
    operand.kind = Operand::Immediate;
    operand.literal = Type::U64;
    operand.value = symbol->address;
    return true;
  }
  if (unsigned bits = specialBits(operand.name)) {
    auto [known, isNew] = specials.try_emplace(std::string(operand.name));
    if (isNew) {
      operand.kind = Operand::Special;
      operand.slot = kernel.numSlots++;
      operand.bits = bits;
      kernel.specials.push_back({operand.slot, std::string(operand.name)});
      known->second = operand;
    }
    operand = known->second;
    return true;
  }
  if (operand.name[0] == '%')
    return fail("no register '" + std::string(operand.name) +
                "' is declared or known");
  operand.kind = Operand::Symbol; // a label
  return true;
}

bool Parser::addressOperand(Kernel &kernel, Operand &operand) {
  operand.kind = Operand::Address;
  Operand base;
  if (here().kind == Token::Integer || here().is("-") ? !immediate(base)
                                                      : !named(kernel, base))
    return false;
  operand.name = base.name;
  if (base.kind == Operand::Register) {
    operand.slot = base.slot;
    operand.bits = base.bits;
    if (base.bits < 32)
      return fail("an address needs 32 or 64 bits");
  } else if (base.kind == Operand::Immediate) {
    operand.value = base.value;
  } else {
    return fail("'" + std::string(base.name) + "' is no address");
  }
  if (here().is("+") || here().is("-")) {
    accept("+");
    Operand offset;
    if (!immediate(offset))
      return false;
    operand.value += offset.value;
  }
  return need("]");
}

bool Parser::vectorOperand(Kernel &kernel, Operand &made) {
  made.kind = Operand::Vector;
  made.name = "{}";
  while (!accept("}")) {
    made.parts.emplace_back();
    if (!operand(kernel, made.parts.back()))
      return false;
    if (!here().is("}") && !need(","))
      return false;
  }
  return true;
}

bool Parser::operand(Kernel &kernel, Operand &made) {
  if (accept("{"))
    return vectorOperand(kernel, made);
  if (accept("["))
    return addressOperand(kernel, made);
  bool negated = accept("!");
  bool number = here().is("-") || here().kind == Token::Integer ||
                here().kind == Token::Float32 || here().kind == Token::Float64;
  if (number)
    return immediate(made);
  if (here().kind != Token::Word)
    return fail("not an operand: '" + std::string(here().text) + "'");
  if (!named(kernel, made))
    return false;
  made.negated = negated;
  if (accept("|")) {
    made.parts.emplace_back();
    return named(kernel, made.parts.back());
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

bool Parser::guard(Kernel &kernel, Slot &slot, bool &negated) {
  if (!accept("@"))
    return true;
  negated = accept("!");
  Operand predicate;
  if (!named(kernel, predicate))
    return false;
  if (predicate.kind != Operand::Register || predicate.bits != 1)
    return fail("'" + std::string(predicate.name) + "' is no predicate");
  slot = predicate.slot;
  return true;
}

bool Parser::statement(Kernel &kernel) {
  Slot guarded = kNoSlot;
  bool negated = false;
  if (!guard(kernel, guarded, negated))
    return false;
  Statement made;
  made.line = here().line;
  if (here().kind != Token::Word)
    return fail("an instruction is missing before '" +
                std::string(here().text) + "'");
  std::string_view opcode = next().text;
  for (size_t begin = 0; begin <= opcode.size();) {
    size_t end = std::min(opcode.find('.', begin), opcode.size());
    made.opcode.push_back(opcode.substr(begin, end - begin));
    begin = end + 1;
  }
  while (!accept(";")) {
    made.operands.emplace_back();
    if (!operand(kernel, made.operands.back()))
      return false;
    if (!here().is(";") && !need(","))
      return false;
  }
  Decoder decoder(kernel, made);
  if (!decoder.decode())
    return failAt(made.line, decoder.error + ": " + std::string(opcode));
  decoder.in.guard = guarded;
  decoder.in.guardNegated = negated;
  if (decoder.in.control == Control::Branch ||
      decoder.in.control == Control::BranchIndexed)
    jumps.push_back({kernel.code.size(), made.operands.back().name});
  kernel.code.push_back(std::move(decoder.in));
  return true;
}

bool Parser::resolveLabels(Kernel &kernel) {
  auto find = [&](std::string_view name, uint32_t &target) {
    auto found = labels.find(name);
    if (found == labels.end())
      return fail("kernel '" + kernel.name + "': no label '" +
                  std::string(name) + "'");
    target = uint32_t(found->second);
    return true;
  };
  for (const Jump &jump : jumps) {
    Instruction &in = kernel.code[jump.instruction];
    if (in.control == Control::Branch) {
      if (!find(jump.label, in.detail))
        return false;
      continue;
    }
    auto list = lists.find(jump.label);
    if (list == lists.end())
      return failAt(in.line,
                    "no .branchtargets '" + std::string(jump.label) + "'");
    for (std::string_view name : list->second) {
      in.targets.emplace_back();
      if (!find(name, in.targets.back()))
        return false;
    }
  }
  return true;
}
