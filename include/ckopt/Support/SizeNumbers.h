//===- SizeNumbers.h - what explains a number at all sizes ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model at several sizes of one dimension has numbers that differ. Three
// sizes give a polynomial of the second degree (tokens, pairs of tokens); it
// explains the numbers only if it has them at all sizes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_SIZENUMBERS_H
#define CKOPT_SUPPORT_SIZENUMBERS_H

#include "ckopt/Base/SizePolynomial.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace ckopt {

/// Returns the polynomial that has these values at these points, of which there
/// are at least four, of different sizes: one of the size alone, of the rows of
/// a block alone, or of the first degree in both.
std::optional<SizePolynomial>
polynomialThrough(llvm::ArrayRef<SizePoint> points,
                  llvm::ArrayRef<int64_t> values);

/// A float that is a count, or a factor over a count, rounded once from double.
struct SizeReal {
  SizePolynomial count;
  double factor = 1;
  bool isReciprocal = false;

  double at(SizePoint point) const {
    double n = double(count.at(point));
    return isReciprocal ? factor / n : n;
  }
  /// The same in the type of another number.
  llvm::APFloat at(SizePoint point, const llvm::APFloat &like) const;
  /// Returns the one that has the bits of these values at these points.
  static std::optional<SizeReal> through(llvm::ArrayRef<SizePoint> points,
                                         llvm::ArrayRef<llvm::APFloat> values);
};

} // namespace ckopt

#endif // CKOPT_SUPPORT_SIZENUMBERS_H
