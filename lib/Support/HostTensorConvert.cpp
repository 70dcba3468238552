//===- HostTensorConvert.cpp - checked conversion of element types --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Converting must never turn a value into another one silently. Rounding of
// floats is allowed, and integers that fit. Values outside the target's range
// are refused, and so is float to integer unless the caller asked for it. Every
// value is checked (one pass, O(elements)), then converted (another pass).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Error.h"
#include "ckopt/Support/HostTensor.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace llvm;

namespace ckopt {

template <typename To, typename From> static To convertOne(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (std::is_same_v<To, bool>)
    return double(value) != 0;
  else if constexpr (std::is_integral_v<From> && std::is_integral_v<To>)
    return To(value);
  else if constexpr (std::is_integral_v<From>)
    // 64-bit integers go to float directly, so that they round once.
    return std::is_same_v<To, float> ? To(float(value)) : To(double(value));
  else
    return To(double(value));
}

/// Returns why `value` cannot become a To, or nullptr if it can.
template <typename To, typename From> static const char *whyNot(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return nullptr;
  } else if constexpr (std::is_integral_v<To>) {
    if constexpr (std::is_integral_v<From>) {
      if constexpr (std::is_same_v<From, bool>)
        return nullptr;
      else if constexpr (std::is_same_v<To, bool>)
        return value == 0 || value == 1 ? nullptr : "is neither 0 nor 1";
      else
        return std::in_range<To>(value) ? nullptr : "is out of range";
    } else {
      const double wide = std::trunc(double(value));
      if (std::isnan(wide))
        return "is not a number";
      if constexpr (std::is_same_v<To, bool>) {
        return double(value) == 0 || double(value) == 1 ? nullptr
                                                        : "is neither 0 nor 1";
      } else {
        // Both bounds are powers of two (or 0), hence exact as doubles.
        const double low = double(std::numeric_limits<To>::min());
        const double above = std::ldexp(1.0, std::numeric_limits<To>::digits);
        return wide >= low && wide < above ? nullptr : "is out of range";
      }
    }
  } else {
    const double from = double(value);
    return std::isfinite(from) &&
                   !std::isfinite(double(convertOne<To, From>(value)))
               ? "is out of range"
               : nullptr;
  }
}

Error HostTensor::checkConvertible(DType to, Conversion how) const {
  if (to == type)
    return Error::success();
  if (isFloat(type) && !isFloat(to) && how != Conversion::AllowTruncation)
    return inputError(Twine("cannot convert ") + dtypeName(type) + " to " +
                      dtypeName(to) + ": fractions would be lost; store " +
                      dtypeName(to) + " (or another integer type) instead");
  const char *reason = nullptr;
  int64_t where = 0;
  dispatchDType(type, [&](auto fromZero) {
    using From = decltype(fromZero);
    dispatchDType(to, [&](auto toZero) {
      using To = decltype(toZero);
      ArrayRef<From> values = data<From>();
      for (size_t i = 0; i < values.size(); ++i)
        if (const char *why = whyNot<To, From>(values[i])) {
          reason = why;
          where = int64_t(i);
          return;
        }
    });
  });
  if (!reason)
    return Error::success();
  std::string value;
  if (type == DType::U64)
    value = std::to_string(data<uint64_t>()[size_t(where)]);
  else if (isFloat(type))
    value = std::to_string(getDouble(where));
  else
    value = std::to_string(getInt(where));
  return inputError(Twine("cannot convert ") + dtypeName(type) + " to " +
                    dtypeName(to) + ": element " + indexString(where, extents) +
                    " = " + value + " " + reason);
}

void convertElements(DType fromType, const void *from, DType toType, void *to,
                     int64_t count) {
  if (fromType == toType) {
    if (count)
      std::memcpy(to, from, size_t(count * dtypeSize(fromType)));
    return;
  }
  dispatchDType(fromType, [&](auto fromZero) {
    using From = decltype(fromZero);
    dispatchDType(toType, [&](auto toZero) {
      using To = decltype(toZero);
      const char *source = static_cast<const char *>(from);
      char *target = static_cast<char *>(to);
      for (int64_t i = 0; i < count; ++i) {
        From value;
        std::memcpy(&value, source + size_t(i) * sizeof(From), sizeof(From));
        const To converted = convertOne<To, From>(value);
        std::memcpy(target + size_t(i) * sizeof(To), &converted, sizeof(To));
      }
    });
  });
}

Expected<HostTensor> HostTensor::convertTo(DType to, Conversion how) const {
  if (to == type)
    return *this;
  if (Error error = checkConvertible(to, how))
    return std::move(error);
  HostTensor result(to, extents);
  convertElements(type, bytes, to, result.mutableRawData(), count);
  return result;
}

} // namespace ckopt
