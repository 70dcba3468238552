//===- Shape.h - checks of shapes from files --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_SHAPE_H
#define CKOPT_BASE_SHAPE_H

#include <cstdint>
#include <span>
#include <string>

namespace ckopt {

/// Formats a shape as "[2, 3]".
std::string shapeString(std::span<const int64_t> shape);

/// Stores the product of `shape` in `count`. Returns "" on success, else a
/// description of the defect: a negative extent, or more than 2^63 - 1 bytes in
/// elements of `elementSize`.
std::string countElements(std::span<const int64_t> shape, int64_t elementSize,
                          int64_t &count);

} // namespace ckopt

#endif // CKOPT_BASE_SHAPE_H
