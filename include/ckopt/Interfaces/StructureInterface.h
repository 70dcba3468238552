//===- StructureInterface.h - how results depend on operands ----*- C++ -*-===//
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

/// The elements of an operand that a place along a result's axis reads.
struct AxisRelation {
  enum class Kind {
    Follows, ///< the elements at the same place along the operand's `axis`
    Whole,   ///< the whole operand, which does not run along the axis
    Other,   ///< other places, or unknown
  };
  Kind kind = Kind::Other;
  int64_t axis = -1;

  static AxisRelation follows(int64_t axis) { return {Kind::Follows, axis}; }
  static AxisRelation whole() { return {Kind::Whole, -1}; }
  static AxisRelation other() { return {}; }
  /// For ops that work along the dimension `along`, and leave the others.
  static AxisRelation apartFrom(int64_t along, int64_t axis) {
    return axis == along ? other() : follows(axis);
  }
  /// For ops that work along the dimensions from `first` on.
  static AxisRelation apartBefore(int64_t first, int64_t axis) {
    return axis < first ? follows(axis) : other();
  }
  bool follows() const { return kind == Kind::Follows; }
};

enum class ContractionKind { Product, Convolution, Attention };

/// Traits that describe an op's results. Linear, KeepsElements, NonNegative and
/// ReadsPart are promises, which are not assumed if they are missing;
/// KeepsPoles and ReadsPlace are warnings, which an op must give.
namespace traits {
/// The sum of results is the result of the sums of operands, for example for
/// partial sums of ranks.
template <typename Op> struct Linear : mlir::OpTrait::TraitBase<Op, Linear> {};
/// The result has exactly the elements of operand 0, the only one, moved or
/// repeated.
template <typename Op>
struct KeepsElements : mlir::OpTrait::TraitBase<Op, KeepsElements> {};
/// No element of a result is below 0.
template <typename Op>
struct NonNegative : mlir::OpTrait::TraitBase<Op, NonNegative> {};
/// If an element of an operand is infinite, an element of the result can be.
/// Other ops bring any number back to a bounded one, or mix too much to tell.
template <typename Op>
struct KeepsPoles : mlir::OpTrait::TraitBase<Op, KeepsPoles> {};
/// For elementwise ops: an element depends on its place in the tensor.
template <typename Op>
struct ReadsPlace : mlir::OpTrait::TraitBase<Op, ReadsPlace> {};
/// No more elements of operand 0 are read than the result has.
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
