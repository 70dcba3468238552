//===- IntegerLimits.h - limits of labels and indices -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a step silently clamps labels and indices to their limits, so any
// code that hands it a tensor must refuse others, both for samples of a file
// and for a write to the arena. Method: the manifest has the limits of each
// tensor, and this is the only check that compares values with them. An op may
// read only a part of a tensor (a column that picks rows of a separate table),
// so limits hold for all elements, or for places that repeat. Linear in the
// values that have limits, once for each.
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

/// The range of labels and indices.
struct IntegerLimits {
  int64_t classes = 0;     ///< labels lie in [0, this); 0: values are no labels
  bool hasIgnored = false; ///< `ignored` is also a valid label
  int64_t ignored = 0;     ///< the label of elements that do not count
  int64_t rows = 0; ///< indices lie in [-this, this); 0: values are no indices

  bool exist() const { return classes > 0 || rows > 0; }
  bool allowLabel(int64_t value) const {
    return classes == 0 || (value >= 0 && value < classes) ||
           (hasIgnored && value == ignored);
  }
  bool allowIndex(int64_t value) const {
    return rows == 0 || (value >= -rows && value < rows);
  }
  /// Adds the limits `other` of the same values.
  void narrow(const IntegerLimits &other);
  bool operator==(const IntegerLimits &) const = default;
};

/// Limits of the places [low, high) in each run of elements, in row-major
/// order, over the dimensions from `axis` on. In [4, 3, 2], places 2 and 3 from
/// axis 1 on are [:, 1, :], and place 1 from axis 2 on is [:, :, 1].
struct PartLimits {
  int32_t axis = 0;
  int64_t low = 0, high = 0;
  IntegerLimits limits;
  bool operator==(const PartLimits &) const = default;
};

/// Limits of all elements of a tensor, and of parts of it: a value must keep
/// all limits that hold for its place.
struct TensorLimits {
  IntegerLimits all;
  std::vector<PartLimits> parts;

  bool exist() const { return all.exist() || !parts.empty(); }
  /// Adds the limits `other` of the same tensor.
  void narrow(const TensorLimits &other);
};

/// A label or index out of its limits.
struct BeyondLimits {
  int64_t element = 0;  ///< in row-major order
  std::string value;    ///< the value as it was given
  bool isLabel = false; ///< a label; else an index
  IntegerLimits limits; ///< the limits that it breaks
};

/// Returns the integer of that type as text; for a float, its integer part.
std::string integerText(DType dtype, const void *value);

/// Returns the product of the extents from `axis` on.
int64_t elementsFrom(std::span<const int64_t> shape, size_t axis);

/// Returns the first element of a dense tensor that is beyond its limits.
/// Floats are compared by their integer values. Without `checkFirst` parts from
/// axis 0 on are not checked: if axis 0 counts samples of a file, their places
/// in a batch are not known yet.
std::optional<BeyondLimits> findBeyond(const TensorLimits &limits, DType dtype,
                                       const void *values,
                                       std::span<const int64_t> shape,
                                       bool checkFirst = true);

} // namespace ckopt

#endif // CKOPT_BASE_INTEGERLIMITS_H
