//===- IntegerLimits.h - what labels and indices may be ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a step clamps labels and indices to those that exist without a word,
// so whoever hands it a tensor must refuse others, in samples of a file as in a
// write to the arena. Method: the manifest has the limits of each tensor, and
// this is the one check that compares values with them. An op may read a part
// of a tensor alone (a column that picks rows of a table of its own): limits
// hold for all elements, or for places that repeat. Linear in the values that
// have limits, once for each.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_INTEGERLIMITS_H
#define CKOPT_BASE_INTEGERLIMITS_H

#include "ckopt/Base/DType.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ckopt {

/// The integers that labels and indices may be.
struct IntegerLimits {
  int64_t classes = 0;     ///< labels lie in [0, this); 0: these are none
  bool hasIgnored = false; ///< `ignored` is a label, too
  int64_t ignored = 0;     ///< that of elements that do not count
  int64_t rows = 0;        ///< indices lie in [-this, this); 0: these are none

  bool exist() const { return classes > 0 || rows > 0; }
  bool allowLabel(int64_t value) const {
    return classes == 0 || (value >= 0 && value < classes) ||
           (hasIgnored && value == ignored);
  }
  bool allowIndex(int64_t value) const {
    return rows == 0 || (value >= -rows && value < rows);
  }
  /// Makes these the limits of values that `other` limits, too.
  void narrow(const IntegerLimits &other);
  bool operator==(const IntegerLimits &) const = default;
};

/// Limits of the places [low, high) in each run of elements, in row-major
/// order, that dimensions from `axis` on count: of [4, 3, 2], places 2 and 3
/// from axis 1 on are [:, 1, :], and place 1 from axis 2 on is [:, :, 1].
struct PartLimits {
  int32_t axis = 0;
  int64_t low = 0, high = 0;
  IntegerLimits limits;
  bool operator==(const PartLimits &) const = default;
};

/// Limits of all elements of a tensor, and of parts of it: a value has to keep
/// all that hold where it stands.
struct TensorLimits {
  IntegerLimits all;
  std::vector<PartLimits> parts;

  bool exist() const { return all.exist() || !parts.empty(); }
  /// Makes these the limits of a tensor that `other` limits, too.
  void narrow(const TensorLimits &other);
};

/// A value that no label or index may be.
struct BeyondLimits {
  int64_t element = 0;  ///< in row-major order
  std::string value;    ///< as it was given
  bool isLabel = false; ///< else it is an index
  IntegerLimits limits; ///< those that it breaks
};

/// Returns the integer of that type as text; of a float, the integer part.
std::string integerText(DType dtype, const void *value);

/// Returns the product of the extents from `axis` on.
int64_t elementsFrom(std::span<const int64_t> shape, size_t axis);

/// Returns the first element of a dense tensor that is beyond its limits.
/// Floats count as the integers that they hold. Without `checkFirst` parts from
/// axis 0 on are left out: where that counts samples of a file, their places in
/// a batch are not known yet.
std::optional<BeyondLimits> findBeyond(const TensorLimits &limits, DType dtype,
                                       const void *values,
                                       std::span<const int64_t> shape,
                                       bool checkFirst = true);

} // namespace ckopt

#endif // CKOPT_BASE_INTEGERLIMITS_H
