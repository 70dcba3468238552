//===- Integer.cpp - PTX ISA, "Integer Arithmetic Instructions" -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integer arithmetic, which wraps. Division by zero, which the manual leaves
// undefined, is an error of the program.
//
//===----------------------------------------------------------------------===//
#include "LaneWise.h"

namespace standin::ptx::CKOPT_LANES {

template <typename T> struct Twice;
template <> struct Twice<uint16_t> {
  using type = uint32_t;
};
template <> struct Twice<int16_t> {
  using type = int32_t;
};
template <> struct Twice<uint32_t> {
  using type = uint64_t;
};
template <> struct Twice<int32_t> {
  using type = int64_t;
};
template <> struct Twice<uint64_t> {
  using type = unsigned __int128;
};
template <> struct Twice<int64_t> {
  using type = __int128;
};
template <typename T> using TwiceOf = typename Twice<T>::type;

/// Computes modulo 2^bits with unsigned numbers, which avoids the promotion of
/// 16 bits to int.
template <typename T>
using Ring = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T> struct Op {
  static T add(T a, T b) { return T(Ring<T>(a) + Ring<T>(b)); }
  static T sub(T a, T b) { return T(Ring<T>(a) - Ring<T>(b)); }
  static T mulLo(T a, T b) { return T(Ring<T>(a) * Ring<T>(b)); }
  static T mulHi(T a, T b) {
    return T((TwiceOf<T>(a) * TwiceOf<T>(b)) >> (8 * sizeof(T)));
  }
  static TwiceOf<T> mulWide(T a, T b) {
    return TwiceOf<T>(TwiceOf<T>(a) * TwiceOf<T>(b));
  }
  static T madLo(T a, T b, T c) { return add(mulLo(a, b), c); }
  static T madHi(T a, T b, T c) { return add(mulHi(a, b), c); }
  static TwiceOf<T> madWide(T a, T b, TwiceOf<T> c) {
    return Op<TwiceOf<T>>::add(mulWide(a, b), c);
  }
  static T min(T a, T b) { return a < b ? a : b; }
  static T max(T a, T b) { return a > b ? a : b; }
  static T neg(T a) { return T(0 - Ring<T>(a)); }
  static T abs(T a) { return a < 0 ? neg(a) : a; }
  // The lowest number divided by -1 wraps as well.
  static T div(T a, T b) {
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1))
        return neg(a);
    return b ? T(a / b) : T(0);
  }
  static T rem(T a, T b) {
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1))
        return 0;
    return b ? T(a % b) : T(0);
  }
};

static bool decodeMultiply(Decoder &d) {
  bool add = d.op == "mad";
  std::string_view part = d.takeOf({"lo", "hi", "wide"});
  if (part.empty())
    return d.fail("which part of the product: .lo, .hi or .wide?");
  if (!d.expect(add ? 4 : 3, 1))
    return false;
  Type type = d.types[0], result = type;
  if (part == "wide") {
    result = type == Type::U16   ? Type::U32
             : type == Type::S16 ? Type::S32
             : type == Type::U32 ? Type::U64
             : type == Type::S32 ? Type::S64
                                 : Type::None;
    if (result == Type::None)
      return d.unknownType();
  }
  d.in.run = byInteger(type, [&]<typename T>(T) -> Execute {
    if (part == "lo")
      return add ? lanewise<&Op<T>::madLo> : lanewise<&Op<T>::mulLo>;
    if (part == "hi")
      return add ? lanewise<&Op<T>::madHi> : lanewise<&Op<T>::mulHi>;
    if constexpr (sizeof(T) < 8)
      return add ? lanewise<&Op<T>::madWide> : lanewise<&Op<T>::mulWide>;
    return nullptr;
  });
  if (!d.in.run)
    return d.unknownType();
  return add ? d.defUse(result, {type, type, result})
             : d.defUse(result, {type, type});
}

/// The divisor must not be zero.
template <auto Fn> struct Dividing;
template <typename T, T (*Fn)(T, T)> struct Dividing<Fn> {
  static void run(const Instruction &in, Lanes &lanes) {
    Source<T> divisor(lanes, in.slots[2]);
    for (unsigned l = 0; l < kLanes; ++l)
      if ((lanes.active >> l & 1) && divisor[l] == 0) {
        lanes.fault = "an integer is divided by zero";
        lanes.faultLane = l;
        return;
      }
    LaneWise<Fn>::run(in, lanes);
  }
};

static Execute binary(std::string_view op, Type type) {
  return byInteger(type, [&]<typename T>(T) -> Execute {
    return op == "add"   ? lanewise<&Op<T>::add>
           : op == "sub" ? lanewise<&Op<T>::sub>
           : op == "min" ? lanewise<&Op<T>::min>
           : op == "max" ? lanewise<&Op<T>::max>
           : op == "div" ? &Dividing<&Op<T>::div>::run
           : op == "rem" ? &Dividing<&Op<T>::rem>::run
                         : nullptr;
  });
}

static Execute unary(std::string_view op, Type type) {
  if (!isSigned(type))
    return nullptr;
  return byInteger(type, [&]<typename T>(T) -> Execute {
    return op == "neg" ? lanewise<&Op<T>::neg> : lanewise<&Op<T>::abs>;
  });
}

static bool pickInteger(Decoder &d) {
  if (d.op == "mul" || d.op == "mad")
    return decodeMultiply(d);
  bool one = d.op == "neg" || d.op == "abs";
  if (!d.expect(one ? 2 : 3, 1))
    return false;
  Type type = d.types[0];
  d.in.run = one ? unary(d.op, type) : binary(d.op, type);
  if (!d.in.run)
    return d.unknownType();
  return one ? d.defUse(type, {type}) : d.defUse(type, {type, type});
}

bool decodeInteger(Decoder &d) {
  for (std::string_view op :
       {"add", "sub", "mul", "mad", "min", "max", "div", "rem", "neg", "abs"})
    if (op == d.op && d.types.size() == 1 && !isFloat(d.types[0])) {
      (void)pickInteger(d);
      return true;
    }
  return false;
}

} // namespace standin::ptx::CKOPT_LANES
