//===- Bits.cpp - PTX ISA, "Logic and Shift Instructions" and bit fields --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "LaneWise.h"

#include <bit>

namespace standin::ptx::CKOPT_LANES {

template <typename T> struct Bit {
  static constexpr unsigned kBits = 8 * sizeof(T);
  static T And(T a, T b) { return T(a & b); }
  static T Or(T a, T b) { return T(a | b); }
  static T Xor(T a, T b) { return T(a ^ b); }
  static T Not(T a) { return T(~a); }
  static T cnot(T a) { return a == 0; }
  // "Shift amounts greater than the register width N are clamped to N."
  static T shl(T a, uint32_t n) { return n >= kBits ? T(0) : T(a << n); }
  static T shr(T a, uint32_t n) {
    if constexpr (std::is_signed_v<T>)
      return T(a >> (n >= kBits ? kBits - 1 : n));
    return n >= kBits ? T(0) : T(a >> n);
  }
  static uint32_t popc(T a) { return uint32_t(std::popcount(a)); }
  static uint32_t clz(T a) { return uint32_t(std::countl_zero(a)); }
  static T brev(T a) {
    T result = 0;
    for (unsigned i = 0; i < kBits; ++i)
      result = T(result << 1) | T(a >> i & 1);
    return result;
  }
};

/// "bfe": position and length are the lowest 8 bits of b and c.
template <typename T> static T bfe(T a, uint32_t b, uint32_t c) {
  constexpr unsigned msb = 8 * sizeof(T) - 1;
  using U = std::make_unsigned_t<T>;
  unsigned pos = b & 0xFF, len = c & 0xFF;
  U sign = 0;
  if (std::is_signed_v<T> && len != 0)
    sign = U(U(a) >> std::min(pos + len - 1, msb)) & 1;
  U result = 0;
  for (unsigned i = 0; i <= msb; ++i)
    result |= U(i < len && pos + i <= msb ? U(a) >> (pos + i) & 1 : sign) << i;
  return T(result);
}

/// "bfi": inserts the low bits of a into b.
template <typename T> static T bfi(T a, T b, uint32_t c, uint32_t d) {
  constexpr unsigned msb = 8 * sizeof(T) - 1;
  unsigned pos = c & 0xFF, len = d & 0xFF;
  for (unsigned i = 0; i < len && pos + i <= msb; ++i)
    b = T(b & ~(T(1) << (pos + i))) | T((a >> i & 1) << (pos + i));
  return b;
}

template <typename T> static uint32_t bfind(T a) {
  using U = std::make_unsigned_t<T>;
  U bits = std::is_signed_v<T> && a < 0 ? U(~a) : U(a);
  return bits ? 8 * sizeof(T) - 1 - uint32_t(std::countl_zero(bits))
              : 0xFFFFFFFFu;
}

static uint32_t shfLeft(uint32_t a, uint32_t b, unsigned n) {
  return n == 0 ? b : n >= 32 ? a : b << n | a >> (32 - n);
}
static uint32_t shfRight(uint32_t a, uint32_t b, unsigned n) {
  return n == 0 ? a : n >= 32 ? b : b << (32 - n) | a >> n;
}
static uint32_t shfLWrap(uint32_t a, uint32_t b, uint32_t c) {
  return shfLeft(a, b, c & 31);
}
static uint32_t shfLClamp(uint32_t a, uint32_t b, uint32_t c) {
  return shfLeft(a, b, std::min(c, 32u));
}
static uint32_t shfRWrap(uint32_t a, uint32_t b, uint32_t c) {
  return shfRight(a, b, c & 31);
}
static uint32_t shfRClamp(uint32_t a, uint32_t b, uint32_t c) {
  return shfRight(a, b, std::min(c, 32u));
}

/// "prmt": bytes 0-3 are a, 4-7 are b; bit 3 of a selector repeats the sign.
static uint32_t prmt(uint32_t a, uint32_t b, uint32_t c) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    unsigned selector = c >> (4 * i) & 0xF;
    auto byte = uint32_t(bytes >> (8 * (selector & 7)) & 0xFF);
    if (selector & 8)
      byte = byte & 0x80 ? 0xFF : 0;
    result |= byte << (8 * i);
  }
  return result;
}

/// "lop3": bit i of the table for i = a, b, c as a number of three bits.
static uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (unsigned i = 0; i < 8; ++i)
    if (table >> i & 1)
      result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return result;
}

static bool predAnd(bool a, bool b) { return a && b; }
static bool predOr(bool a, bool b) { return a || b; }
static bool predXor(bool a, bool b) { return a != b; }
static bool predNot(bool a) { return !a; }

static bool decodeLogic(Decoder &d) {
  bool one = d.op == "not" || d.op == "cnot";
  if (!d.expect(one ? 2 : 3, 1))
    return false;
  Type type = d.types[0];
  if (type == Type::Pred)
    d.in.run = d.op == "and"   ? lanewise<&predAnd>
               : d.op == "or"  ? lanewise<&predOr>
               : d.op == "xor" ? lanewise<&predXor>
               : d.op == "not" ? lanewise<&predNot>
                               : nullptr;
  else {
    d.in.moves = d.op == "and" || d.op == "or" ? 3 : d.op == "not";
    d.in.run = byBits(type, [&]<typename T>(T) -> Execute {
      return d.op == "and"   ? lanewise<&Bit<T>::And>
             : d.op == "or"  ? lanewise<&Bit<T>::Or>
             : d.op == "xor" ? lanewise<&Bit<T>::Xor>
             : d.op == "not" ? lanewise<&Bit<T>::Not>
                             : lanewise<&Bit<T>::cnot>;
    });
  }
  if (!d.in.run)
    return d.unknownType();
  return one ? d.defUse(type, {type}) : d.defUse(type, {type, type});
}

static bool decodeShift(Decoder &d) {
  if (!d.expect(3, 1))
    return false;
  Type type = d.types[0];
  d.in.moves = 1;
  if (d.op == "shl")
    d.in.run =
        byBits(type, []<typename T>(T) { return lanewise<&Bit<T>::shl>; });
  else if (type >= Type::U16)
    d.in.run =
        byInteger(type, []<typename T>(T) { return lanewise<&Bit<T>::shr>; });
  else
    d.in.run =
        byBits(type, []<typename T>(T) { return lanewise<&Bit<T>::shr>; });
  return d.in.run ? d.defUse(type, {type, Type::U32}) : d.unknownType();
}

static bool decodeFunnel(Decoder &d) {
  std::string_view side = d.takeOf({"l", "r"}),
                   mode = d.takeOf({"wrap", "clamp"});
  if (!d.expect(4, 1))
    return false;
  if (side.empty() || mode.empty() || d.types[0] != Type::B32)
    return d.fail("shf.{l,r}.{wrap,clamp}.b32 is needed");
  bool wrap = mode == "wrap";
  d.in.moves = 3;
  d.in.run = side == "l" ? wrap ? lanewise<&shfLWrap> : lanewise<&shfLClamp>
             : wrap      ? lanewise<&shfRWrap>
                         : lanewise<&shfRClamp>;
  return d.defUse(Type::B32, {Type::B32, Type::B32, Type::U32});
}

/// Picks an implementation for instructions of 32 or 64 bits only.
template <typename F> static Execute byWide(Type type, F pick) {
  return bitsOf(type) >= 32 ? byInteger(type, pick) : nullptr;
}

static bool decodeField(Decoder &d) {
  if (d.op == "prmt" || d.op == "lop3") {
    if (d.types.size() != 1 || d.types[0] != Type::B32)
      return d.unknownType();
    Type b = Type::B32;
    d.in.moves = d.op == "prmt" ? 3 : 0;
    d.in.run = d.op == "prmt" ? lanewise<&prmt> : lanewise<&lop3>;
    return d.op == "prmt" ? d.defUse(b, {b, b, b}) : d.defUse(b, {b, b, b, b});
  }
  if (d.types.size() != 1)
    return d.unknownType();
  Type type = d.types[0], b = Type::U32;
  if (d.op == "bfe") {
    d.in.moves = 1;
    d.in.run = byWide(type, []<typename T>(T) { return lanewise<&bfe<T>>; });
    return d.in.run ? d.defUse(type, {type, b, b}) : d.unknownType();
  }
  if (d.op == "bfind") {
    d.in.run = byWide(type, []<typename T>(T) { return lanewise<&bfind<T>>; });
    return d.in.run ? d.defUse(b, {type}) : d.unknownType();
  }
  bool wide = type == Type::B64;
  if (!wide && type != Type::B32)
    return d.unknownType();
  using W = Bit<uint64_t>;
  using N = Bit<uint32_t>;
  if (d.op == "bfi") {
    d.in.moves = 3;
    d.in.run = wide ? lanewise<&bfi<uint64_t>> : lanewise<&bfi<uint32_t>>;
    return d.defUse(type, {type, type, b, b});
  }
  d.in.run = d.op == "popc"  ? wide ? lanewise<&W::popc> : lanewise<&N::popc>
             : d.op == "clz" ? wide ? lanewise<&W::clz> : lanewise<&N::clz>
             : wide          ? lanewise<&W::brev>
                             : lanewise<&N::brev>;
  return d.defUse(d.op == "brev" ? type : b, {type});
}

bool decodeBits(Decoder &d) {
  for (std::string_view op : {"and", "or", "xor", "not", "cnot"})
    if (op == d.op) {
      (void)decodeLogic(d);
      return true;
    }
  for (std::string_view op :
       {"prmt", "lop3", "bfe", "bfi", "bfind", "popc", "clz", "brev"})
    if (op == d.op) {
      (void)decodeField(d);
      return true;
    }
  if (d.op == "shl" || d.op == "shr") {
    (void)decodeShift(d);
    return true;
  }
  if (d.op == "shf") {
    (void)decodeFunnel(d);
    return true;
  }
  return false;
}

} // namespace standin::ptx::CKOPT_LANES
