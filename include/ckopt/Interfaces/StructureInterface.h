//===- StructureInterface.h - how results are made of operands --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_INTERFACES_STRUCTUREINTERFACE_H
#define CKOPT_INTERFACES_STRUCTUREINTERFACE_H

#include "ckopt/Base/Shards.h"
#include "mlir/IR/OpDefinition.h"

#include <array>

namespace ckopt {

/// What the elements at one place along a result's axis read of an operand.
struct AxisRelation {
  enum class Kind {
    Follows, ///< those at the same place along the operand's `axis`
    Whole,   ///< the operand, which does not run along the axis
    Other,   ///< other places, or not known
  };
  Kind kind = Kind::Other;
  int64_t axis = -1;

  static AxisRelation follows(int64_t axis) { return {Kind::Follows, axis}; }
  static AxisRelation whole() { return {Kind::Whole, -1}; }
  static AxisRelation other() { return {}; }
  /// Of ops that work along the dimension `along`, and leave the others.
  static AxisRelation apartFrom(int64_t along, int64_t axis) {
    return axis == along ? other() : follows(axis);
  }
  /// Of ops that work along the dimensions from `first` on.
  static AxisRelation apartBefore(int64_t first, int64_t axis) {
    return axis < first ? follows(axis) : other();
  }
  bool follows() const { return kind == Kind::Follows; }
};

enum class ContractionKind { Product, Convolution, Attention };

/// What an op says of its results. Linear, KeepsElements, NonNegative and
/// ReadsPart are promises, which nobody counts on where they are not given;
/// KeepsPoles and ReadsPlace are warnings, which an op owes.
namespace traits {
/// The sum of the results is the result of the sums of operands: so are shares
/// of a sum over ranks.
template <typename Op> struct Linear : mlir::OpTrait::TraitBase<Op, Linear> {};
/// The elements of the result are those of operand 0, which is the only one:
/// all of them and no others, moved or repeated.
template <typename Op>
struct KeepsElements : mlir::OpTrait::TraitBase<Op, KeepsElements> {};
/// No element of a result is below 0.
template <typename Op>
struct NonNegative : mlir::OpTrait::TraitBase<Op, NonNegative> {};
/// An element of an operand that is infinite can make one of the result so.
/// Other ops bring any number back to a bounded one, or mix too much to tell.
template <typename Op>
struct KeepsPoles : mlir::OpTrait::TraitBase<Op, KeepsPoles> {};
/// Of elementwise ops: an element depends on where in the tensor it lies.
template <typename Op>
struct ReadsPlace : mlir::OpTrait::TraitBase<Op, ReadsPlace> {};
/// Of operand 0 no more elements are read than the result has.
template <typename Op>
struct ReadsPart : mlir::OpTrait::TraitBase<Op, ReadsPart> {};
} // namespace traits

namespace detail {
/// Relates operands that broadcast to result 0.
AxisRelation relateBroadcast(mlir::Operation *op, unsigned operand,
                             int64_t axis);
/// Returns the smallest dimension that a contraction of the kind can have.
int64_t smallestDimension(mlir::Operation *op, ContractionKind kind);
/// Returns whether the result has the rank of result 0, and the axis is as
/// long.
bool haveEqualAxis(mlir::Operation *op, unsigned result, int64_t axis);
} // namespace detail
} // namespace ckopt

#include "ckopt/Interfaces/StructureInterface.h.inc"

#endif // CKOPT_INTERFACES_STRUCTUREINTERFACE_H
