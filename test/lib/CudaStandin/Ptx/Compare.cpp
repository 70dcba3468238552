//===- Compare.cpp - PTX ISA, "Comparison and Selection Instructions" -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Formats.h"

namespace standin::ptx::CKOPT_LANES {

template <typename T> struct Compare {
  static bool eq(T a, T b) { return a == b; }
  static bool ne(T a, T b) { return a != b; }
  static bool lt(T a, T b) { return a < b; }
  static bool le(T a, T b) { return a <= b; }
  static bool gt(T a, T b) { return a > b; }
  static bool ge(T a, T b) { return a >= b; }
};

/// Halves are compared as numbers; bf16 has no .ftz.
template <bool Ftz> static double input(Half x) {
  bool flush = Ftz && (x.bits & 0x7C00) == 0;
  return widen(flush ? x.bits & 0x8000 : x.bits, formatOf(Type::F16));
}
template <bool> static double input(BHalf x) {
  return widen(x.bits, formatOf(Type::BF16));
}

/// Ordered comparisons are false for NaN, comparisons with a `u` are true.
template <typename T, bool Ftz> struct FloatCompare {
  static bool nan(T a, T b) {
    auto x = input<Ftz>(a), y = input<Ftz>(b);
    return x != x || y != y;
  }
  static bool num(T a, T b) { return !nan(a, b); }
  static bool eq(T a, T b) { return input<Ftz>(a) == input<Ftz>(b); }
  static bool ne(T a, T b) { return num(a, b) && !eq(a, b); }
  static bool lt(T a, T b) { return input<Ftz>(a) < input<Ftz>(b); }
  static bool le(T a, T b) { return input<Ftz>(a) <= input<Ftz>(b); }
  static bool gt(T a, T b) { return lt(b, a); }
  static bool ge(T a, T b) { return le(b, a); }
  static bool equ(T a, T b) { return nan(a, b) || eq(a, b); }
  static bool neu(T a, T b) { return nan(a, b) || ne(a, b); }
  static bool ltu(T a, T b) { return nan(a, b) || lt(a, b); }
  static bool leu(T a, T b) { return nan(a, b) || le(a, b); }
  static bool gtu(T a, T b) { return nan(a, b) || gt(a, b); }
  static bool geu(T a, T b) { return nan(a, b) || ge(a, b); }
};

/// The lower halves' result goes to p, the upper ones' to q of "p|q".
template <auto Fn> struct PairWise;
template <typename H, bool (*Fn)(H, H)> struct PairWise<Fn> {
  static void run(const Instruction &in, Lanes &lanes) {
    for (unsigned half = 0; half < 2; ++half) {
      Source<uint32_t> a(lanes, in.slots[2]), b(lanes, in.slots[3]);
      writeLanes<bool>(lanes, in.slots[half], [&](unsigned l) {
        return Fn({uint16_t(a[l] >> (16 * half))},
                  {uint16_t(b[l] >> (16 * half))});
      });
    }
  }
};

template <template <auto> typename Over, typename T, bool Ftz>
static Execute pickFloat(std::string_view op) {
  using C = FloatCompare<T, Ftz>;
  return op == "eq"    ? &Over<&C::eq>::run
         : op == "ne"  ? &Over<&C::ne>::run
         : op == "lt"  ? &Over<&C::lt>::run
         : op == "le"  ? &Over<&C::le>::run
         : op == "gt"  ? &Over<&C::gt>::run
         : op == "ge"  ? &Over<&C::ge>::run
         : op == "equ" ? &Over<&C::equ>::run
         : op == "neu" ? &Over<&C::neu>::run
         : op == "ltu" ? &Over<&C::ltu>::run
         : op == "leu" ? &Over<&C::leu>::run
         : op == "gtu" ? &Over<&C::gtu>::run
         : op == "geu" ? &Over<&C::geu>::run
         : op == "num" ? &Over<&C::num>::run
         : op == "nan" ? &Over<&C::nan>::run
                       : nullptr;
}

/// lo, ls, hi, hs are lt, le, gt, ge of unsigned integers; untyped bits are
/// compared for equality only.
static Execute pickInteger(std::string_view op, Type type) {
  bool equality = op == "eq" || op == "ne";
  bool isUnsigned = type >= Type::U16 && type <= Type::U64;
  if (op[0] == 'l' || op[0] == 'h') {
    if (op == "lo" || op == "ls" || op == "hi" || op == "hs") {
      if (!isUnsigned)
        return nullptr;
      op = op == "lo" ? "lt" : op == "ls" ? "le" : op == "hi" ? "gt" : "ge";
    }
  }
  auto choose = [&]<typename T>(T) -> Execute {
    using C = Compare<T>;
    return op == "eq"   ? lanewise<&C::eq>
           : op == "ne" ? lanewise<&C::ne>
           : op == "lt" ? lanewise<&C::lt>
           : op == "le" ? lanewise<&C::le>
           : op == "gt" ? lanewise<&C::gt>
           : op == "ge" ? lanewise<&C::ge>
                        : nullptr;
  };
  if (type <= Type::B64)
    return equality ? byBits(type, choose) : nullptr;
  return byInteger(type, choose);
}

static Execute floatCompare(Decoder &d, Type type, std::string_view op) {
  bool ftz = type != Type::F64 && type != Type::BF16 && type != Type::BF16x2 &&
             d.take("ftz");
  switch (type) {
  case Type::F64:
    return pickFloat<LaneWise, double, false>(op);
  case Type::F32:
    return ftz ? pickFloat<LaneWise, float, true>(op)
               : pickFloat<LaneWise, float, false>(op);
  case Type::F16:
    return ftz ? pickFloat<LaneWise, Half, true>(op)
               : pickFloat<LaneWise, Half, false>(op);
  case Type::BF16:
    return pickFloat<LaneWise, BHalf, false>(op);
  case Type::F16x2:
    return ftz ? pickFloat<PairWise, Half, true>(op)
               : pickFloat<PairWise, Half, false>(op);
  case Type::BF16x2:
    return pickFloat<PairWise, BHalf, false>(op);
  default:
    return nullptr;
  }
}

static bool setp(Decoder &d) {
  if (!d.expect(3, 1))
    return false;
  std::string_view op =
      d.takeOf({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs",
                "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  if (op.empty())
    return d.fail("no comparison");
  Type type = d.types[0];
  const Operand &result = d.statement.operands[0];
  bool pair = type == Type::F16x2 || type == Type::BF16x2;
  if (pair != !result.parts.empty())
    return d.fail("two results are for f16x2 and bf16x2, one is for others");
  d.in.run = isFloat(type) ? floatCompare(d, type, op) : pickInteger(op, type);
  if (!d.in.run)
    return d.unknownType();
  return d.def(result, Type::Pred) &&
         (!pair || d.def(result.parts[0], Type::Pred)) && d.use(1, type) &&
         d.use(2, type);
}

template <typename T> static T select(T a, T b, bool c) { return c ? a : b; }
template <typename T> static T bySign(T a, T b, int32_t c) {
  return c >= 0 ? a : b;
}
template <typename T, bool Ftz> static T byFloatSign(T a, T b, float c) {
  return input<Ftz>(c) >= 0 ? a : b;
}

static bool selp(Decoder &d) {
  if (!d.expect(4, 1))
    return false;
  Type type = d.types[0];
  unsigned bits = bitsOf(type);
  if (bits < 16)
    return d.unknownType();
  d.in.run = bits == 64   ? lanewise<&select<uint64_t>>
             : bits == 32 ? lanewise<&select<uint32_t>>
                          : lanewise<&select<uint16_t>>;
  d.in.moves = 3;
  d.in.lazy = true; // the source that is not selected may be undefined
  return d.defUse(type, {type, type, Type::Pred});
}

static bool slct(Decoder &d) {
  bool ftz = d.take("ftz");
  if (!d.expect(4, 2))
    return false;
  Type type = d.types[0];
  unsigned bits = bitsOf(type);
  if (bits < 32 || (d.types[1] != Type::S32 && d.types[1] != Type::F32))
    return d.unknownType();
  using W = uint64_t;
  using N = uint32_t;
  if (d.types[1] == Type::S32)
    d.in.run = bits == 64 ? lanewise<&bySign<W>> : lanewise<&bySign<N>>;
  else if (ftz)
    d.in.run = bits == 64 ? lanewise<&byFloatSign<W, true>>
                          : lanewise<&byFloatSign<N, true>>;
  else
    d.in.run = bits == 64 ? lanewise<&byFloatSign<W, false>>
                          : lanewise<&byFloatSign<N, false>>;
  return d.defUse(type, {type, type, d.types[1]});
}

bool decodeCompare(Decoder &d) {
  if (d.op == "setp")
    (void)setp(d);
  else if (d.op == "selp")
    (void)selp(d);
  else if (d.op == "slct")
    (void)slct(d);
  else
    return false;
  return true;
}

} // namespace standin::ptx::CKOPT_LANES
