//===- SizePolynomial.cpp - numbers that follow a size --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/SizePolynomial.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cmath>

using namespace ckopt;

std::optional<SizePolynomial>
SizePolynomial::through(llvm::ArrayRef<int64_t> sizes,
                        llvm::ArrayRef<int64_t> values) {
  using Wide = __int128;
  Wide x0 = sizes[0], x1 = sizes[1], x2 = sizes[2];
  Wide d1 = Wide(values[1]) - values[0], d2 = Wide(values[2]) - values[1];
  if (d1 % (x1 - x0) != 0 || d2 % (x2 - x1) != 0)
    return std::nullopt;
  Wide slope = d1 / (x1 - x0), change = d2 / (x2 - x1) - slope;
  if (change % (x2 - x0) != 0)
    return std::nullopt;
  Wide square = change / (x2 - x0), linear = slope - square * (x0 + x1),
       constant = values[0] - x0 * (linear + x0 * square);
  for (auto [size, value] : llvm::zip_equal(sizes, values))
    if (constant + size * (linear + size * square) != value)
      return std::nullopt;
  return SizePolynomial{int64_t(constant), int64_t(linear), int64_t(square)};
}

llvm::APFloat SizeReal::at(int64_t size, const llvm::APFloat &like) const {
  llvm::APFloat result(at(size));
  bool lost;
  result.convert(like.getSemantics(), llvm::APFloat::rmNearestTiesToEven,
                 &lost);
  return result;
}

std::optional<SizeReal>
SizeReal::through(llvm::ArrayRef<int64_t> sizes,
                  llvm::ArrayRef<llvm::APFloat> values) {
  llvm::SmallVector<double> numbers;
  for (const llvm::APFloat &value : values) {
    numbers.push_back(value.convertToDouble());
    if (!value.isFinite() || value.isZero())
      return std::nullopt;
  }
  auto holds = [&](const SizeReal &made) {
    return llvm::all_of(llvm::zip_equal(sizes, values), [&](auto pair) {
      auto [size, value] = pair;
      return made.at(size, value).bitwiseIsEqual(value);
    });
  };
  auto counted = [&](llvm::function_ref<double(double)> count,
                     double factor) -> std::optional<SizeReal> {
    llvm::SmallVector<int64_t> counts;
    for (double number : numbers)
      counts.push_back(std::llround(count(number)));
    auto found = SizePolynomial::through(sizes, counts);
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
  for (auto [size, number] : llvm::zip_equal(sizes, numbers))
    for (double factor :
         {number * double(size), double(float(number * double(size)))}) {
      SizeReal made{{0, 1, 0}, factor, true};
      if (holds(made))
        return made;
    }
  return std::nullopt;
}
