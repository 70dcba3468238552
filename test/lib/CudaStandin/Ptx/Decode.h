//===- Decode.h - from a statement of PTX to an instruction -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A statement is an opcode with its dotted modifiers, and operands. Each family
// of instructions (integers, floats, memory, ...) has a function that takes the
// modifiers it knows, defines destinations, then sources, and picks the code. A
// modifier that no function took is an error, because ignoring it could change
// the result.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_PTX_DECODE_H
#define CKOPT_TEST_LIB_CUDASTANDIN_PTX_DECODE_H

#include "Program.h"

#include <initializer_list>

namespace standin::ptx {

/// PTX ISA, "Fundamental Types" and "Alternate Floating-Point Data Formats".
// clang-format off
enum class Type : uint8_t {
  None, Pred, B8, B16, B32, B64, U8, U16, U32, U64, S8, S16, S32, S64,
  F16, F16x2, BF16, BF16x2, TF32, F32, F64
};
// clang-format on
/// None if no type is called so.
Type typeNamed(std::string_view name);
/// Returns the bits of a register of the type; 1 for predicates.
unsigned bitsOf(Type type);
bool isFloat(Type type);
bool isSigned(Type type);

struct Operand {
  enum Kind { Register, Special, Immediate, Symbol, Address, Vector, Sink };
  Kind kind = Sink;
  std::string_view name;     ///< as written
  Slot slot = kNoSlot;       ///< of a register, or of an address's base
  unsigned bits = 0;         ///< of a register, or of an address's base
  bool negated = false;      ///< !%p
  Type literal = Type::None; ///< of an immediate: U64, F32 or F64
  uint64_t value = 0;        ///< immediate; offset of an address
  /// Elements of a vector; [0] also holds the operand after a '|'.
  std::vector<Operand> parts;
};

struct Statement {
  std::vector<std::string_view> opcode;
  std::vector<Operand> operands;
  unsigned line = 0;
};

class Decoder {
public:
  Decoder(Kernel &kernel, const Statement &statement);
  /// Decodes the statement; on failure returns false and sets `error`.
  bool decode();
  std::string error;

  Instruction in;
  const Statement &statement;
  std::string_view op;
  std::vector<Type> types;
  Kernel &kernel;

  /// Returns whether the modifier is there, and marks it as understood.
  bool take(std::string_view modifier);
  /// Returns which of these modifiers is there, or "".
  std::string_view takeOf(std::initializer_list<std::string_view> modifiers);
  bool fail(const std::string &why);
  bool unknownType() { return fail("a type that this instruction has not"); }
  size_t operands() const { return statement.operands.size(); }
  bool expect(size_t operands, size_t types);

  /// Operands as destinations and sources; the register may be wider than the
  /// type, up to `most` bits ("Operand Size Exceeding Instruction-Type Size").
  bool def(const Operand &operand, Type type, unsigned most = 0);
  bool use(const Operand &operand, Type type, unsigned most = 0);
  bool def(size_t i, Type type, unsigned most = 0) {
    return def(statement.operands[i], type, most);
  }
  bool use(size_t i, Type type, unsigned most = 0) {
    return use(statement.operands[i], type, most);
  }
  /// Defines operand 0 and uses the others.
  bool defUse(Type result, std::initializer_list<Type> sources);
  /// Uses an operand [address]: its base becomes a source.
  bool address(const Operand &operand);
  /// Returns the slot of a constant; a slot of 64 bits if `wide`.
  Slot constant(uint64_t value, bool wide);
  Slot freshSlot(bool wide);

private:
  bool push(Slot slot);
  std::vector<std::string_view> modifiers;
};

/// Decodes a statement of one family. Returns whether the family knows the
/// opcode; errors are in d.error.
using Family = bool (*)(Decoder &d);
// The code is compiled twice: for every x86-64, and for CPUs with AVX2 and FMA.
namespace plain {
bool decodeInteger(Decoder &d);
bool decodeBits(Decoder &d);
bool decodeFloat(Decoder &d);
bool decodeHalf(Decoder &d);
bool decodeCompare(Decoder &d);
bool decodeConvert(Decoder &d);
} // namespace plain
namespace fast {
bool decodeInteger(Decoder &d);
bool decodeBits(Decoder &d);
bool decodeFloat(Decoder &d);
bool decodeHalf(Decoder &d);
bool decodeCompare(Decoder &d);
bool decodeConvert(Decoder &d);
} // namespace fast
bool decodeMove(Decoder &d);
bool decodeMemory(Decoder &d);
bool decodeControl(Decoder &d);
bool decodeWarp(Decoder &d);
bool decodeMma(Decoder &d);
bool decodeCopies(Decoder &d);

} // namespace standin::ptx

#endif // CKOPT_TEST_LIB_CUDASTANDIN_PTX_DECODE_H
