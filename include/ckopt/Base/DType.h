//===- DType.h - element types and their exact conversions ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The element types of files, host tensors and artifacts, in one table that
// compiler, runtime and tools share, with storage types for the two 16-bit
// floats. Rounding is to nearest, ties to even, in one step from double (a
// detour through float would round twice). The enum's values and width are
// part of the artifact ABI; ckrt_dtype repeats the values, as a check in the
// runtime shows.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_DTYPE_H
#define CKOPT_BASE_DTYPE_H

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <type_traits>

namespace ckopt {

enum class DType : uint32_t {
  F64 = 0,
  F32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  U8,
  Bool, ///< one byte, 0 or 1
  U64,
  U32,
  U16,
};

/// Bytes of an element, and its names: ckopt's, numpy's, C's (as ONNX has
/// them), and the codes of .npy and safetensors files.
struct DTypeRow {
  int64_t size;
  const char *name, *numpy, *onnx, *npy, *safetensors;
};
/// The table is indexed by the enum's value. bfloat16 is the two-byte void that
/// ml_dtypes writes.
inline constexpr DTypeRow dtypeTable[] = {
    {8, "f64", "float64", "double", "<f8", "F64"},
    {4, "f32", "float32", "float", "<f4", "F32"},
    {2, "f16", "float16", "half", "<f2", "F16"},
    {2, "bf16", "bfloat16", "bfloat16", "<V2", "BF16"},
    {8, "i64", "int64", "long", "<i8", "I64"},
    {4, "i32", "int32", "int", "<i4", "I32"},
    {2, "i16", "int16", "short", "<i2", "I16"},
    {1, "i8", "int8", "int8", "|i1", "I8"},
    {1, "u8", "uint8", "uint8", "|u1", "U8"},
    {1, "bool", "bool", "i1", "|b1", "BOOL"},
    {8, "u64", "uint64", "uint64", "<u8", "U64"},
    {4, "u32", "uint32", "uint32", "<u4", "U32"},
    {2, "u16", "uint16", "uint16", "<u2", "U16"},
};
inline constexpr uint32_t numDTypes = sizeof(dtypeTable) / sizeof(DTypeRow);
static_assert(uint32_t(DType::U16) + 1 == numDTypes);

/// Tells whether a number from outside is a type of the table; the functions
/// below take only such types.
constexpr bool isDType(DType t) { return uint32_t(t) < numDTypes; }
/// Bytes of one element.
constexpr int64_t dtypeSize(DType t) { return dtypeTable[uint32_t(t)].size; }
/// "f64", "f32", "f16", "bf16", "i64", ..., "u8", "bool"; "unknown" for others.
constexpr const char *dtypeName(DType t) {
  return isDType(t) ? dtypeTable[uint32_t(t)].name : "unknown";
}
/// The type whose row has `text` in one of `columns`; nothing for other text.
template <typename... Column>
constexpr std::optional<DType> findDType(std::string_view text,
                                         Column... columns) {
  for (uint32_t i = 0; i < numDTypes; ++i)
    if (((text == dtypeTable[i].*columns) || ...))
      return DType(i);
  return std::nullopt;
}
/// Finds a type by ckopt's name or by those of numpy and ONNX ("float32",
/// "float", "int64", ...).
constexpr std::optional<DType> parseDType(std::string_view text) {
  return findDType(text, &DTypeRow::name, &DTypeRow::numpy, &DTypeRow::onnx);
}

constexpr bool isFloat(DType t) { return t <= DType::BF16; }
constexpr bool isInteger(DType t) { return !isFloat(t) && t != DType::Bool; }
constexpr bool isSignedInteger(DType t) {
  return t >= DType::I64 && t <= DType::I8;
}

namespace detail {

/// Rounds to a 16-bit float of `mantissaBits` and the given exponent bias.
constexpr uint16_t doubleToSmall(double value, int mantissaBits, int bias) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint16_t sign = uint16_t((bits >> 48) & 0x8000);
  const int exponent = int((bits >> 52) & 0x7ff);
  const uint64_t fraction = bits & ((uint64_t(1) << 52) - 1);
  const uint16_t infinity = uint16_t((2 * bias + 1) << mantissaBits);
  if (exponent == 0x7ff) {
    if (!fraction)
      return sign | infinity;
    // A quiet NaN that keeps the top of its payload.
    return uint16_t(sign | infinity | (1u << (mantissaBits - 1)) |
                    (fraction >> (52 - mantissaBits)));
  }
  if (exponent == 0) // zero, or a double denormal: far below the smallest
    return sign;
  const int unbiased = exponent - 1023;
  if (unbiased > bias)
    return sign | infinity;
  const uint64_t mantissa = fraction | (uint64_t(1) << 52);
  const int smallest = 1 - bias;
  const int shift =
      52 - mantissaBits + (unbiased < smallest ? smallest - unbiased : 0);
  if (shift > 54)
    return sign;
  const uint64_t half = uint64_t(1) << (shift - 1);
  const uint64_t rest = mantissa & ((uint64_t(1) << shift) - 1);
  uint64_t rounded = mantissa >> shift;
  if (rest > half || (rest == half && (rounded & 1)))
    ++rounded;
  // The hidden bit adds one to the exponent field of a normal number; a carry
  // out of the mantissa lands there too, up to infinity.
  const uint64_t field =
      unbiased < smallest ? 0 : uint64_t(unbiased - smallest);
  return uint16_t(sign | ((field << mantissaBits) + rounded));
}

constexpr double smallToDouble(uint16_t bits, int mantissaBits, int bias) {
  const uint64_t sign = uint64_t(bits & 0x8000) << 48;
  const unsigned exponent = unsigned(bits & 0x7fff) >> mantissaBits;
  uint64_t fraction = bits & ((1u << mantissaBits) - 1);
  if (exponent == unsigned(2 * bias + 1))
    return std::bit_cast<double>(sign | (uint64_t(0x7ff) << 52) |
                                 (fraction << (52 - mantissaBits)));
  if (exponent == 0) {
    double value = double(fraction); // exact: times a power of two
    value *=
        std::bit_cast<double>(uint64_t(1023 + 1 - bias - mantissaBits) << 52);
    return sign ? -value : value;
  }
  return std::bit_cast<double>(sign |
                               (uint64_t(int(exponent) - bias + 1023) << 52) |
                               (fraction << (52 - mantissaBits)));
}

} // namespace detail

/// IEEE binary16 as stored.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit constexpr Half(double value)
      : bits(detail::doubleToSmall(value, 10, 15)) {}
  static constexpr Half fromBits(uint16_t bits) {
    Half half(0.0);
    half.bits = bits;
    return half;
  }
  explicit constexpr operator double() const {
    return detail::smallToDouble(bits, 10, 15);
  }
  explicit constexpr operator float() const { return float(double(*this)); }
};

/// bfloat16 as stored: the upper half of a float.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit constexpr BFloat16(double value)
      : bits(detail::doubleToSmall(value, 7, 127)) {}
  static constexpr BFloat16 fromBits(uint16_t bits) {
    BFloat16 result(0.0);
    result.bits = bits;
    return result;
  }
  explicit constexpr operator double() const {
    return detail::smallToDouble(bits, 7, 127);
  }
  explicit constexpr operator float() const { return float(double(*this)); }
};

constexpr float halfToFloat(uint16_t bits) {
  return float(Half::fromBits(bits));
}
constexpr uint16_t floatToHalf(float value) { return Half(value).bits; }
constexpr float bfloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}
/// Rounds in integer arithmetic, so that a floating-point mode which flushes
/// denormals to zero does not change the result.
constexpr uint16_t floatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) // a NaN stays one
    return uint16_t((bits >> 16) | 0x40u);
  return uint16_t((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

/// Calls `fn` with a value of the storage type of `dtype`:
/// `dispatchDType(t, [&](auto zero) { using T = decltype(zero); ... })`.
template <typename Fn>
constexpr decltype(auto) dispatchDType(DType t, Fn &&fn) {
  switch (t) {
  case DType::F64:
    return fn(double());
  case DType::F32:
    return fn(float());
  case DType::F16:
    return fn(Half());
  case DType::BF16:
    return fn(BFloat16());
  case DType::I64:
    return fn(int64_t());
  case DType::I32:
    return fn(int32_t());
  case DType::I16:
    return fn(int16_t());
  case DType::I8:
    return fn(int8_t());
  case DType::U64:
    return fn(uint64_t());
  case DType::U32:
    return fn(uint32_t());
  case DType::U16:
    return fn(uint16_t());
  case DType::U8:
    return fn(uint8_t());
  case DType::Bool:
    return fn(bool());
  }
  std::abort(); // a value outside of the enum is a defect, not input
}

/// The DType whose storage type is T.
template <typename T> constexpr DType dtypeOf() {
  if constexpr (std::is_same_v<T, double>)
    return DType::F64;
  else if constexpr (std::is_same_v<T, float>)
    return DType::F32;
  else if constexpr (std::is_same_v<T, Half>)
    return DType::F16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::BF16;
  else if constexpr (std::is_same_v<T, bool>)
    return DType::Bool;
  else {
    static_assert(std::is_integral_v<T>, "no DType has this storage type");
    constexpr DType sign[] = {DType::I8, DType::I16, DType::I32, DType::I64};
    constexpr DType none[] = {DType::U8, DType::U16, DType::U32, DType::U64};
    constexpr int log2 = std::bit_width(sizeof(T)) - 1;
    return std::is_signed_v<T> ? sign[log2] : none[log2];
  }
}

} // namespace ckopt

#endif // CKOPT_BASE_DTYPE_H
