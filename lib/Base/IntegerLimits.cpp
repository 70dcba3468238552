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

namespace {
/// The limits that hold for elements [0, inner) of every `step` from `begin`.
struct Places {
  IntegerLimits limits;
  int64_t begin = 0, inner = 0, step = 0;

  bool hold(int64_t element) const {
    int64_t place = element % step;
    return place >= begin && place < begin + inner;
  }
};
} // namespace

static std::vector<Places> placesOf(const TensorLimits &limits,
                                    std::span<const int64_t> shape,
                                    bool checkFirst) {
  std::vector<Places> places;
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  if (elements == 0)
    return places;
  if (limits.all.exist())
    places.push_back({limits.all, 0, elements, elements});
  for (const PartLimits &part : limits.parts) {
    if (size_t(part.axis) >= shape.size() || (part.axis == 0 && !checkFirst))
      continue;
    int64_t inner = 1;
    for (int64_t size : shape.subspan(size_t(part.axis) + 1))
      inner *= size;
    places.push_back({part.limits, part.low * inner,
                      (part.high - part.low) * inner,
                      shape[size_t(part.axis)] * inner});
  }
  return places;
}

std::optional<BeyondLimits> ckopt::findBeyond(const TensorLimits &limits,
                                              DType dtype, const void *values,
                                              std::span<const int64_t> shape,
                                              bool checkFirst) {
  std::vector<Places> places = placesOf(limits, shape, checkFirst);
  if (places.empty())
    return std::nullopt;
  int64_t elements = 1, size = dtypeSize(dtype);
  for (int64_t extent : shape)
    elements *= extent;
  return dispatchDType(dtype, [&](auto zero) -> std::optional<BeyondLimits> {
    for (int64_t i = 0; i < elements; ++i) {
      int64_t value = integerAt<decltype(zero)>(
          static_cast<const char *>(values) + i * size);
      for (const Places &part : places) {
        bool label = part.limits.allowLabel(value);
        if ((!label || !part.limits.allowIndex(value)) && part.hold(i))
          return BeyondLimits{i, value, !label, part.limits};
      }
    }
    return std::nullopt;
  });
}
