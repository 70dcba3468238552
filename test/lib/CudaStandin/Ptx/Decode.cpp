//===- Decode.cpp - from a statement of PTX to an instruction -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Decode.h"

#include <bit>

using namespace standin::ptx;

namespace {
struct TypeInfo {
  std::string_view name;
  unsigned bits;
};
} // namespace
// Entries are in the order of the enumeration.
static constexpr TypeInfo kTypes[] = {
    {"", 0},       {"pred", 1},  {"b8", 8},      {"b16", 16},  {"b32", 32},
    {"b64", 64},   {"u8", 8},    {"u16", 16},    {"u32", 32},  {"u64", 64},
    {"s8", 8},     {"s16", 16},  {"s32", 32},    {"s64", 64},  {"f16", 16},
    {"f16x2", 32}, {"bf16", 16}, {"bf16x2", 32}, {"tf32", 32}, {"f32", 32},
    {"f64", 64}};

Type standin::ptx::typeNamed(std::string_view name) {
  for (size_t i = 1; i < std::size(kTypes); ++i)
    if (kTypes[i].name == name)
      return static_cast<Type>(i);
  return Type::None;
}
unsigned standin::ptx::bitsOf(Type type) {
  return kTypes[static_cast<size_t>(type)].bits;
}
bool standin::ptx::isFloat(Type type) { return type >= Type::F16; }
bool standin::ptx::isSigned(Type type) {
  return type >= Type::S8 && type <= Type::S64;
}

Decoder::Decoder(Kernel &kernel, const Statement &statement)
    : statement(statement), op(statement.opcode[0]), kernel(kernel) {
  in.line = statement.line;
  for (size_t i = 1; i < statement.opcode.size(); ++i)
    if (Type type = typeNamed(statement.opcode[i]); type != Type::None)
      types.push_back(type);
    else
      modifiers.push_back(statement.opcode[i]);
}

bool Decoder::take(std::string_view modifier) {
  for (size_t i = 0; i < modifiers.size(); ++i)
    if (modifiers[i] == modifier) {
      modifiers.erase(modifiers.begin() + long(i));
      return true;
    }
  return false;
}

std::string_view
Decoder::takeOf(std::initializer_list<std::string_view> choices) {
  for (std::string_view choice : choices)
    if (take(choice))
      return choice;
  return "";
}

bool Decoder::fail(const std::string &why) {
  if (error.empty())
    error = why;
  return false;
}

bool Decoder::expect(size_t wantedOperands, size_t wantedTypes) {
  if (types.size() != wantedTypes)
    return fail(std::to_string(wantedTypes) + " types are needed");
  if (operands() != wantedOperands)
    return fail(std::to_string(wantedOperands) + " operands are needed");
  return true;
}

bool Decoder::push(Slot slot) {
  unsigned at = in.dsts + in.srcs;
  if (at == std::size(in.slots))
    return fail("too many operands");
  in.slots[at] = slot;
  return true;
}

Slot Decoder::freshSlot(bool wide) {
  Slot slot = kernel.numSlots;
  kernel.numSlots += wide ? 2 : 1;
  if (wide)
    kernel.wide.insert(slot);
  return slot;
}

Slot Decoder::constant(uint64_t value, bool wide) {
  for (const ConstantSlot &known : kernel.constants)
    if (known.value == value && known.wide == wide)
      return known.slot;
  kernel.constants.push_back({freshSlot(wide), wide, value});
  return kernel.constants.back().slot;
}

/// Returns whether the register fits the type.
static bool fits(unsigned bits, Type type, unsigned most) {
  return bits == bitsOf(type) || (bits > bitsOf(type) && bits <= most) ||
         (bitsOf(type) == 8 && bits >= 8 && bits <= 32);
}

bool Decoder::def(const Operand &operand, Type type, unsigned most) {
  bool wide = bitsOf(type) == 64;
  if (operand.kind == Operand::Sink) {
    if (!push(freshSlot(wide)))
      return false;
  } else if (operand.kind != Operand::Register) {
    return fail("'" + std::string(operand.name) + "' is no register to write");
  } else if (!fits(operand.bits, type, most)) {
    return fail("register '" + std::string(operand.name) + "' has " +
                std::to_string(operand.bits) + " bits");
  } else if (!push(operand.slot)) {
    return false;
  }
  ++in.dsts;
  return true;
}

/// Converts an immediate to bits of the type.
static bool literalBits(const Operand &operand, Type type, uint64_t &bits) {
  bits = operand.value;
  if (type == Type::Pred) {
    bits = operand.value ? kAllLanes : 0;
    return operand.literal == Type::U64;
  }
  unsigned size = bitsOf(type);
  if (operand.literal == Type::U64) {
    if (size < 64)
      bits &= (uint64_t(1) << size) - 1;
    // "0" is not a float, but the bits in a float's register are.
    return !isFloat(type) || type == Type::F16 || type == Type::BF16 ||
           type == Type::F16x2 || type == Type::BF16x2;
  }
  if (operand.literal == Type::F32)
    return size == 32;
  if (type == Type::F32)
    bits = std::bit_cast<uint32_t>(float(std::bit_cast<double>(bits)));
  return size == 64 || type == Type::F32;
}

bool Decoder::use(const Operand &operand, Type type, unsigned most) {
  Slot slot = operand.slot;
  bool wide = bitsOf(type) == 64;
  if (operand.kind == Operand::Immediate) {
    uint64_t bits = 0;
    if (!literalBits(operand, type, bits))
      return fail("'" + std::string(operand.name) +
                  "' is no number of the instruction's type");
    slot = constant(bits, wide);
  } else if (operand.kind != Operand::Register &&
             operand.kind != Operand::Special) {
    return fail("'" + std::string(operand.name) + "' cannot be read here");
  } else if (!fits(operand.bits, type, most)) {
    return fail("register '" + std::string(operand.name) + "' has " +
                std::to_string(operand.bits) + " bits");
  }
  if (operand.negated)
    return fail("'!' cannot be here");
  if (!push(slot))
    return false;
  ++in.srcs;
  return true;
}

bool Decoder::defUse(Type result, std::initializer_list<Type> sources) {
  if (operands() != sources.size() + 1)
    return fail(std::to_string(sources.size() + 1) + " operands are needed");
  if (!def(0, result))
    return false;
  size_t i = 1;
  for (Type source : sources)
    if (!use(i++, source))
      return false;
  return true;
}

bool Decoder::address(const Operand &operand) {
  if (operand.kind != Operand::Address)
    return fail("an [address] is needed");
  in.offset = static_cast<int64_t>(operand.value);
  Slot base = operand.slot == kNoSlot ? constant(0, true) : operand.slot;
  // The detail's lowest bit says that the base has 32 bits.
  in.detail = operand.slot != kNoSlot && operand.bits == 32;
  if (!push(base))
    return false;
  ++in.srcs;
  return true;
}

static bool hasFastLanes() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
}

bool Decoder::decode() {
  static const bool fastLanes = hasFastLanes();
  static const Family plainFamilies[] = {
      plain::decodeInteger, plain::decodeBits,    plain::decodeFloat,
      plain::decodeHalf,    plain::decodeCompare, plain::decodeConvert};
  static const Family fastFamilies[] = {
      fast::decodeInteger, fast::decodeBits,    fast::decodeFloat,
      fast::decodeHalf,    fast::decodeCompare, fast::decodeConvert};
  static const Family others[] = {decodeMove, decodeMemory, decodeControl,
                                  decodeWarp, decodeMma,    decodeCopies};
  bool known = false;
  for (Family family :
       fastLanes && !onlyPlainLanes ? fastFamilies : plainFamilies)
    known = known || family(*this);
  for (Family family : others)
    known = known || family(*this);
  if (!known)
    return fail("an instruction that the interpreter does not know");
  if (error.empty() && !modifiers.empty())
    fail("a modifier that the interpreter does not know here: '." +
         std::string(modifiers[0]) + "'");
  return error.empty();
}
