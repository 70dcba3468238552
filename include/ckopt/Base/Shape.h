//===- Shape.h - sizes of tensors from outside ------------------*- C++ -*-===//
#ifndef CKOPT_BASE_SHAPE_H
#define CKOPT_BASE_SHAPE_H

#include <cstdint>
#include <span>
#include <string>

namespace ckopt {

/// "[2, 3]".
std::string shapeString(std::span<const int64_t> shape);

/// The product of `shape`; "" or, where an extent is negative or the product
/// times `elementSize` passes 2^63 - 1 bytes, what is wrong.
std::string countElements(std::span<const int64_t> shape, int64_t elementSize,
                          int64_t &count);

} // namespace ckopt

#endif // CKOPT_BASE_SHAPE_H
