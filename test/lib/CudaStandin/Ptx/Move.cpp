//===- Move.cpp - PTX ISA, "Data Movement": mov and cvta ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Decode.h"

#include <cstring>

using namespace standin::ptx;

static void movePredicate(const Instruction &in, Lanes &lanes) {
  uint32_t *to = lanes.slot(in.slots[0]);
  *to = (*to & ~lanes.active) | (*lanes.slot(in.slots[1]) & lanes.active);
}

template <typename T>
static void moveWords(const Instruction &in, Lanes &lanes) {
  auto *to = reinterpret_cast<T *>(lanes.slot(in.slots[0]));
  auto *from = reinterpret_cast<const T *>(lanes.slot(in.slots[1]));
  for (unsigned l = 0; l < kLanes; ++l)
    if (lanes.active >> l & 1)
      to[l] = from[l];
}

/// Adds the offset to a 64-bit source.
static void moveAddress(const Instruction &in, Lanes &lanes) {
  auto *to = reinterpret_cast<uint64_t *>(lanes.slot(in.slots[0]));
  auto *from = reinterpret_cast<const uint64_t *>(lanes.slot(in.slots[1]));
  for (unsigned l = 0; l < kLanes; ++l)
    if (lanes.active >> l & 1)
      to[l] = from[l] + uint64_t(in.offset);
}

// Reads {a, b} of mov.b64 d, {a, b}, where a is the low part. The detail holds
// the bits of a part.
static uint64_t wordOf(const Lanes &lanes, Slot slot, unsigned bits,
                       unsigned l) {
  uint32_t *words = lanes.slot(slot);
  return bits == 64 ? reinterpret_cast<uint64_t *>(words)[l] : words[l];
}
static void setWord(const Lanes &lanes, Slot slot, unsigned bits, unsigned l,
                    uint64_t value) {
  uint32_t *words = lanes.slot(slot);
  if (bits == 64)
    reinterpret_cast<uint64_t *>(words)[l] = value;
  else
    words[l] = uint32_t(value);
}

static void packVector(const Instruction &in, Lanes &lanes) {
  unsigned part = in.detail;
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(lanes.active >> l & 1))
      continue;
    uint64_t value = 0;
    for (unsigned i = 0; i < in.srcs; ++i)
      value |= wordOf(lanes, in.slots[1 + i], part, l) << (i * part);
    setWord(lanes, in.slots[0], part * in.srcs, l, value);
  }
}

static void unpackVector(const Instruction &in, Lanes &lanes) {
  unsigned part = in.detail;
  uint64_t mask = (uint64_t(1) << part) - 1;
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(lanes.active >> l & 1))
      continue;
    uint64_t value = wordOf(lanes, in.slots[in.dsts], part * in.dsts, l);
    for (unsigned i = 0; i < in.dsts; ++i)
      setWord(lanes, in.slots[i], part, l, value >> (i * part) & mask);
  }
}

static bool moveVector(Decoder &d, Type type) {
  const Operand &to = d.statement.operands[0], &from = d.statement.operands[1];
  bool pack = from.kind == Operand::Vector;
  if (pack && to.kind == Operand::Vector)
    return d.fail("only one side can be a vector");
  const std::vector<Operand> &parts = pack ? from.parts : to.parts;
  unsigned bits = bitsOf(type) / unsigned(parts.size());
  Type part = bits == 32   ? Type::B32
              : bits == 16 ? Type::B16
              : bits == 8  ? Type::B8
                           : Type::None;
  if (part == Type::None || bits * parts.size() != bitsOf(type))
    return d.fail("the parts do not make up the whole");
  d.in.detail = bits;
  d.in.run = pack ? &packVector : &unpackVector;
  d.in.packs = pack;
  d.in.moves = pack ? uint8_t((1u << parts.size()) - 1) : 1;
  if (pack && !d.def(to, type))
    return false;
  for (const Operand &one : parts)
    if (!(pack ? d.use(one, part) : d.def(one, part)))
      return false;
  return pack || d.use(from, type);
}

static bool move(Decoder &d) {
  if (!d.expect(2, 1))
    return false;
  Type type = d.types[0];
  for (const Operand &operand : d.statement.operands)
    if (operand.kind == Operand::Vector)
      return moveVector(d, type);
  if (bitsOf(type) == 8)
    return d.unknownType();
  d.in.moves = type != Type::Pred;
  d.in.run = type == Type::Pred   ? &movePredicate
             : bitsOf(type) == 64 ? &moveWords<uint64_t>
                                  : &moveWords<uint32_t>;
  return d.defUse(type, {type});
}

/// Generic addresses equal those of global memory; shared memory has a window.
static bool convertAddress(Decoder &d) {
  bool to = d.take("to");
  std::string_view space = d.takeOf({"global", "shared", "const", "param"});
  if (!d.expect(2, 1))
    return false;
  if (space.empty() || space == "param" || d.types[0] != Type::U64)
    return d.fail("cvta{.to}.{global,shared,const}.u64 is needed");
  d.in.offset = space != "shared" ? 0
                : to              ? -int64_t(kSharedWindow)
                                  : int64_t(kSharedWindow);
  d.in.run = &moveAddress;
  return d.defUse(Type::U64, {Type::U64});
}

bool standin::ptx::decodeMove(Decoder &d) {
  if (d.op == "mov")
    (void)move(d);
  else if (d.op == "cvta")
    (void)convertAddress(d);
  else
    return false;
  return true;
}
