//===- SizePolynomial.h - numbers that follow a size ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model at several sizes of one dimension has numbers that differ. Three
// sizes give a polynomial of the second degree (tokens, pairs of tokens); it
// explains the numbers only if it has them at all sizes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_SIZEPOLYNOMIAL_H
#define CKOPT_SUPPORT_SIZEPOLYNOMIAL_H

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <optional>

namespace ckopt {

/// constant + linear * size + square * size^2.
struct SizePolynomial {
  int64_t constant = 0, linear = 0, square = 0;

  bool isConstant() const { return !linear && !square; }
  int64_t at(int64_t size) const {
    return constant + size * (linear + size * square);
  }
  /// Returns the polynomial that has these values at these sizes, of which
  /// there are at least three, all different.
  static std::optional<SizePolynomial> through(llvm::ArrayRef<int64_t> sizes,
                                               llvm::ArrayRef<int64_t> values);
};

/// A float that is a count, or a factor over a count, rounded once from double.
struct SizeReal {
  SizePolynomial count;
  double factor = 1;
  bool isReciprocal = false;

  double at(int64_t size) const {
    double n = double(count.at(size));
    return isReciprocal ? factor / n : n;
  }
  /// The same in the type of another number.
  llvm::APFloat at(int64_t size, const llvm::APFloat &like) const;
  /// Returns the one that has the bits of these values at these sizes.
  static std::optional<SizeReal> through(llvm::ArrayRef<int64_t> sizes,
                                         llvm::ArrayRef<llvm::APFloat> values);
};

} // namespace ckopt

#endif // CKOPT_SUPPORT_SIZEPOLYNOMIAL_H
