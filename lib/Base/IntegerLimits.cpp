//===- IntegerLimits.cpp - what labels and indices may be -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/IntegerLimits.h"

#include <algorithm>
#include <cstring>
#include <limits>

using namespace ckopt;

/// Returns the smaller of two sizes of which 0 means none.
static int64_t smaller(int64_t a, int64_t b) {
  return a && b ? std::min(a, b) : a + b;
}

void IntegerLimits::narrow(const IntegerLimits &other) {
  int64_t both = smaller(classes, other.classes);
  // Of two ignored labels that both take one lies among the classes of both.
  auto rank = [&](const IntegerLimits &own, const IntegerLimits &others) {
    bool taken = own.hasIgnored && others.allowLabel(own.ignored);
    return !taken ? 0 : own.ignored >= 0 && own.ignored < both ? 1 : 2;
  };
  int own = rank(*this, other), others = rank(other, *this);
  hasIgnored = own || others;
  if (others > own)
    ignored = other.ignored;
  classes = both;
  rows = smaller(rows, other.rows);
}

void TensorLimits::narrow(const TensorLimits &other) {
  all.narrow(other.all);
  for (const PartLimits &part : other.parts)
    if (std::find(parts.begin(), parts.end(), part) == parts.end())
      parts.push_back(part);
}

/// Reads one element as an integer; those beyond 2^63 are its largest.
template <typename T> static int64_t integerAt(const char *at) {
  if constexpr (std::is_same_v<T, bool>) {
    return *at != 0; // the host's byte may have any value
  } else {
    T value;
    std::memcpy(&value, at, sizeof(T));
    constexpr int64_t most = std::numeric_limits<int64_t>::max();
    if constexpr (std::is_same_v<T, uint64_t>) {
      return value > uint64_t(most) ? most : int64_t(value);
    } else if constexpr (std::is_integral_v<T>) {
      return int64_t(value);
    } else {
      double number = double(value);
      return number >= 0x1p63   ? most
             : number < -0x1p63 ? std::numeric_limits<int64_t>::min()
                                : int64_t(number);
    }
  }
}

std::string ckopt::integerText(DType dtype, const void *value) {
  return dispatchDType(dtype, [&](auto zero) {
    if constexpr (std::is_same_v<decltype(zero), uint64_t>) {
      std::memcpy(&zero, value, sizeof(zero));
      return std::to_string(zero);
    } else {
      return std::to_string(
          integerAt<decltype(zero)>(static_cast<const char *>(value)));
    }
  });
}

int64_t ckopt::elementsFrom(std::span<const int64_t> shape, size_t axis) {
  int64_t elements = 1;
  for (int64_t size : shape.subspan(axis))
    elements *= size;
  return elements;
}

std::optional<BeyondLimits> ckopt::findBeyond(const TensorLimits &limits,
                                              DType dtype, const void *values,
                                              std::span<const int64_t> shape,
                                              bool checkFirst) {
  std::optional<BeyondLimits> found;
  int64_t end = elementsFrom(shape, 0), size = dtypeSize(dtype);
  if (end == 0)
    return found;
  auto *bytes = static_cast<const char *>(values);
  // Looks at elements [low, high) of every `step`, before those found already.
  auto check = [&](const IntegerLimits &own, int64_t low, int64_t high,
                   int64_t step) {
    dispatchDType(dtype, [&](auto zero) {
      for (int64_t run = 0; run + low < end; run += step)
        for (int64_t i = run + low; i < std::min(run + high, end); ++i) {
          int64_t value = integerAt<decltype(zero)>(bytes + i * size);
          bool label = own.allowLabel(value);
          if (label && own.allowIndex(value))
            continue;
          found = {i, integerText(dtype, bytes + i * size), !label, own};
          end = i;
        }
    });
  };
  if (limits.all.exist())
    check(limits.all, 0, end, end);
  for (const PartLimits &part : limits.parts)
    if (size_t(part.axis) < shape.size() && (part.axis > 0 || checkFirst))
      check(part.limits, part.low, part.high,
            elementsFrom(shape, size_t(part.axis)));
  return found;
}
