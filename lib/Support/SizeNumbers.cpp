//===- SizeNumbers.cpp - what explains a number at all sizes
//----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/SizeNumbers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <cmath>

using namespace ckopt;

using Wide = __int128;

/// Whether the polynomial has the values at all points.
static bool explains(const SizePolynomial &p, llvm::ArrayRef<SizePoint> points,
                     llvm::ArrayRef<int64_t> values) {
  return llvm::all_of(llvm::zip_equal(points, values), [&](auto pair) {
    auto [point, value] = pair;
    Wide n = point.size, r = point.rows;
    return p.constant + n * (p.linear + n * p.square) +
               r * (p.rowsLinear + r * p.rowsSquare) ==
           value;
  });
}

/// Returns constant, linear and square of a parabola through the first three.
static std::optional<std::array<int64_t, 3>>
parabola(llvm::ArrayRef<int64_t> x, llvm::ArrayRef<int64_t> values) {
  Wide x0 = x[0], x1 = x[1], x2 = x[2];
  if (x0 == x1 || x1 == x2 || x0 == x2)
    return std::nullopt;
  Wide d1 = Wide(values[1]) - values[0], d2 = Wide(values[2]) - values[1];
  if (d1 % (x1 - x0) != 0 || d2 % (x2 - x1) != 0)
    return std::nullopt;
  Wide slope = d1 / (x1 - x0), change = d2 / (x2 - x1) - slope;
  if (change % (x2 - x0) != 0)
    return std::nullopt;
  Wide square = change / (x2 - x0), linear = slope - square * (x0 + x1);
  return std::array{int64_t(values[0] - x0 * (linear + x0 * square)),
                    int64_t(linear), int64_t(square)};
}

/// Returns the plane through the first three points.
static std::optional<SizePolynomial> plane(llvm::ArrayRef<SizePoint> points,
                                           llvm::ArrayRef<int64_t> values) {
  Wide n1 = points[1].size - points[0].size,
       n2 = points[2].size - points[0].size,
       r1 = points[1].rows - points[0].rows,
       r2 = points[2].rows - points[0].rows, v1 = Wide(values[1]) - values[0],
       v2 = Wide(values[2]) - values[0], area = n1 * r2 - n2 * r1,
       linear = v1 * r2 - v2 * r1, rows = n1 * v2 - n2 * v1;
  if (area == 0 || linear % area != 0 || rows % area != 0)
    return std::nullopt;
  linear /= area, rows /= area;
  Wide constant = values[0] - linear * points[0].size - rows * points[0].rows;
  return SizePolynomial{int64_t(constant), int64_t(linear), 0, int64_t(rows),
                        0};
}

std::optional<SizePolynomial>
ckopt::polynomialThrough(llvm::ArrayRef<SizePoint> points,
                         llvm::ArrayRef<int64_t> values) {
  llvm::SmallVector<int64_t> sizes, rows;
  for (SizePoint point : points) {
    sizes.push_back(point.size);
    rows.push_back(point.rows);
  }
  auto holds = [&](const SizePolynomial &p) {
    return explains(p, points, values);
  };
  if (auto p = parabola(sizes, values))
    if (SizePolynomial made{(*p)[0], (*p)[1], (*p)[2]}; holds(made))
      return made;
  if (auto p = parabola(rows, values))
    if (SizePolynomial made{(*p)[0], 0, 0, (*p)[1], (*p)[2]}; holds(made))
      return made;
  if (auto p = plane(points, values); p && holds(*p))
    return p;
  return std::nullopt;
}

llvm::APFloat SizeReal::at(SizePoint point, const llvm::APFloat &like) const {
  llvm::APFloat result(at(point));
  bool lost;
  result.convert(like.getSemantics(), llvm::APFloat::rmNearestTiesToEven,
                 &lost);
  return result;
}

std::optional<SizeReal>
SizeReal::through(llvm::ArrayRef<SizePoint> points,
                  llvm::ArrayRef<llvm::APFloat> values) {
  llvm::SmallVector<double> numbers;
  for (const llvm::APFloat &value : values) {
    numbers.push_back(value.convertToDouble());
    if (!value.isFinite() || value.isZero())
      return std::nullopt;
  }
  auto holds = [&](const SizeReal &made) {
    return llvm::all_of(llvm::zip_equal(points, values), [&](auto pair) {
      auto [point, value] = pair;
      return made.at(point, value).bitwiseIsEqual(value);
    });
  };
  auto counted = [&](llvm::function_ref<double(double)> count,
                     double factor) -> std::optional<SizeReal> {
    llvm::SmallVector<int64_t> counts;
    for (double number : numbers)
      counts.push_back(std::llround(count(number)));
    auto found = polynomialThrough(points, counts);
    if (!found)
      return std::nullopt;
    SizeReal made{*found, factor, factor != 0};
    return holds(made) ? std::optional(made) : std::nullopt;
  };
  if (auto made = counted([](double x) { return x; }, 0))
    return made;
  if (auto made = counted([](double x) { return 1 / x; }, 1))
    return made;
  if (auto made = counted([](double x) { return -1 / x; }, -1))
    return made;
  // c / size, whatever c is.
  for (auto [point, number] : llvm::zip_equal(points, numbers))
    for (double factor : {number * double(point.size),
                          double(float(number * double(point.size)))}) {
      SizeReal made{{0, 1, 0}, factor, true};
      if (holds(made))
        return made;
    }
  return std::nullopt;
}
