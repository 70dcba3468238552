//===- Compare.cpp - PTX ISA, "Comparison and Selection Instructions" -----===//
#include "FloatBits.h"

namespace standin::ptx::CKOPT_LANES {

template <typename T> struct Compare {
  static bool eq(T a, T b) { return a == b; }
  static bool ne(T a, T b) { return a != b; }
  static bool lt(T a, T b) { return a < b; }
  static bool le(T a, T b) { return a <= b; }
  static bool gt(T a, T b) { return a > b; }
  static bool ge(T a, T b) { return a >= b; }
};

/// Ordered comparisons are false with a NaN, those with a `u` are true.
template <typename T, bool Ftz> struct FloatCompare {
  static bool nan(T a, T b) { return a != a || b != b; }
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

template <typename T, bool Ftz> static Execute pickFloat(std::string_view op) {
  using C = FloatCompare<T, Ftz>;
  return op == "eq"    ? lanewise<&C::eq>
         : op == "ne"  ? lanewise<&C::ne>
         : op == "lt"  ? lanewise<&C::lt>
         : op == "le"  ? lanewise<&C::le>
         : op == "gt"  ? lanewise<&C::gt>
         : op == "ge"  ? lanewise<&C::ge>
         : op == "equ" ? lanewise<&C::equ>
         : op == "neu" ? lanewise<&C::neu>
         : op == "ltu" ? lanewise<&C::ltu>
         : op == "leu" ? lanewise<&C::leu>
         : op == "gtu" ? lanewise<&C::gtu>
         : op == "geu" ? lanewise<&C::geu>
         : op == "num" ? lanewise<&C::num>
         : op == "nan" ? lanewise<&C::nan>
                       : nullptr;
}

/// lo, ls, hi, hs are lt, le, gt, ge of unsigned integers; bits are compared
/// for equality alone.
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

static bool setp(Decoder &d) {
  if (!d.expect(3, 1))
    return false;
  std::string_view op =
      d.takeOf({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs",
                "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  if (op.empty())
    return d.fail("no comparison");
  if (!d.statement.operands[0].parts.empty())
    return d.fail("a second result is not known");
  Type type = d.types[0];
  bool ftz = type == Type::F32 && d.take("ftz");
  d.in.run = type == Type::F64   ? pickFloat<double, false>(op)
             : type == Type::F32 ? ftz ? pickFloat<float, true>(op)
                                       : pickFloat<float, false>(op)
                                 : pickInteger(op, type);
  return d.in.run ? d.defUse(Type::Pred, {type, type}) : d.unknownType();
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
  d.in.lazy = true; // the one that is not taken need not have a value
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
