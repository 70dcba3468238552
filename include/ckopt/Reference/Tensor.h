//===- Tensor.h - tensors of the reference interpreter ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors of the interpreter are made for checking, not for speed: floats of
// any width are held as double, integers and booleans as 64-bit integers, in
// logical row-major order whatever the type's layout.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_REFERENCE_TENSOR_H
#define CKOPT_REFERENCE_TENSOR_H

#include "ckopt/Support/HostTensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include <cmath>
#include <string>
#include <vector>

namespace ckopt::reference {

class Tensor {
public:
  Tensor() = default;
  /// Makes zeros of a statically shaped type with float, integer or i1
  /// elements.
  explicit Tensor(mlir::RankedTensorType type);
  Tensor(mlir::RankedTensorType type, std::vector<double> values);
  Tensor(mlir::RankedTensorType type, std::vector<int64_t> values);

  /// Draws uniform numbers in [low, high): floats are rounded to the type,
  /// integers are rounded down, i1 compares with the middle. The same for the
  /// same seed on every machine.
  static Tensor random(mlir::RankedTensorType type, uint64_t seed,
                       double low = -1, double high = 1);
  /// Makes a tensor whose elements are all `value`.
  static Tensor splat(mlir::RankedTensorType type, double value);
  /// Reads a dense, splat or resource attribute; returns a null tensor for an
  /// attribute that cannot be read.
  static Tensor fromAttr(mlir::ElementsAttr attr);
  /// Rounds every element to its type; returns a splat if all elements have
  /// equal bits.
  mlir::DenseElementsAttr toAttr() const;
  /// Converts the elements of `host` to a tensor of `type`; equal counts
  /// (asserted), any element types.
  static Tensor fromHost(const HostTensor &host, mlir::RankedTensorType type);
  /// Converts to a host tensor of the element type's DType (i1 becomes bool).
  HostTensor toHost() const;

  explicit operator bool() const { return bool(type); }
  mlir::RankedTensorType getType() const { return type; }
  mlir::Type getElementType() const { return type.getElementType(); }
  llvm::ArrayRef<int64_t> getShape() const { return type.getShape(); }
  int64_t getRank() const { return type.getRank(); }
  int64_t getDimSize(int64_t dim) const { return type.getDimSize(dim); }
  int64_t size() const {
    return int64_t(floating ? reals.size() : ints.size());
  }
  bool isFloat() const { return floating; }
  /// Tells whether elements are unsigned; only ui64 does not fit into int64_t,
  /// and wraps.
  bool isUnsigned() const;

  /// Element `i` of the row-major order. `real` and `integer` are lvalues of
  /// the matching kind of tensor only; `get` reads either as double.
  double &real(int64_t i) { return reals[size_t(i)]; }
  double real(int64_t i) const { return reals[size_t(i)]; }
  int64_t &integer(int64_t i) { return ints[size_t(i)]; }
  int64_t integer(int64_t i) const { return ints[size_t(i)]; }
  double get(int64_t i) const;
  /// Stores a number: integers by truncation toward zero, i1 as value != 0.
  void set(int64_t i, double value);
  /// Copies one element of a tensor of the same kind.
  void copy(int64_t i, const Tensor &from, int64_t j) {
    if (floating)
      reals[size_t(i)] = from.reals[size_t(j)];
    else
      ints[size_t(i)] = from.ints[size_t(j)];
  }
  llvm::ArrayRef<double> getReals() const { return reals; }
  llvm::ArrayRef<int64_t> getInts() const { return ints; }

  /// The same values under a type with as many elements of the same kind.
  Tensor withType(mlir::RankedTensorType newType) const;
  /// Rounds floats to the element type; integers always wrap to it.
  void roundToType();

  /// "tensor<2xf32> [1, 2.5]", at most `limit` elements.
  std::string str(int64_t limit = 64) const;

private:
  mlir::RankedTensorType type;
  bool floating = false;
  std::vector<double> reals;
  std::vector<int64_t> ints;
};

/// Elements between neighbors of each dimension of a row-major tensor.
llvm::SmallVector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape);

/// Calls `fn` with every index vector of `shape` in row-major order, and its
/// number.
template <typename Fn> void forEachIndex(llvm::ArrayRef<int64_t> shape, Fn fn) {
  llvm::SmallVector<int64_t> index(shape.size(), 0);
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  for (int64_t i = 0; i < count; ++i) {
    fn(llvm::ArrayRef<int64_t>(index), i);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
  }
}

/// The differences between two tensors of one shape (element types may differ).
struct Comparison {
  double maxAbs = 0;      ///< largest |a - b|; infinite if one is NaN
  double maxRel = 0;      ///< largest |a - b| / max(|a|, |b|), 0 for 0 and 0
  double normRel = 0;     ///< |a - b| / max(|a|, |b|) of the whole, Euclidean
  int64_t where = -1;     ///< element of maxAbs, -1 if all are equal
  bool sameShape = true;  ///< if not, the other members mean nothing
  bool sameValues = true; ///< equal elements (NaN equals NaN, -0 equals +0)
  std::string str() const;
};
Comparison compare(const Tensor &a, const Tensor &b);
/// Same shape, and each element within `absolute` or within `relative` times
/// the larger magnitude (NaN only equals NaN).
bool allClose(const Tensor &a, const Tensor &b, double absolute,
              double relative);

} // namespace ckopt::reference

#endif // CKOPT_REFERENCE_TENSOR_H
