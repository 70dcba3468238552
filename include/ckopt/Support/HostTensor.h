//===- HostTensor.h - a dense row-major tensor in host memory ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A host tensor, from a file or for a step, has an element type, a shape, and
// bytes. These are owned (64-byte aligned), or a view into a mapped file that
// the tensor keeps open. Copies share bytes; the first write to shared or
// mapped bytes takes a private copy, so a view of a file is never written.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_HOSTTENSOR_H
#define CKOPT_SUPPORT_HOSTTENSOR_H

#include "ckopt/Base/DType.h"
#include "ckopt/Base/Shape.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <cassert>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ckopt {

/// Which conversions `convertTo` may do.
enum class Conversion {
  /// Integer to integer and to float, float to float, bool to anything: values
  /// are rounded, but never out of range.
  Checked,
  /// The same, and float to integer by truncation towards zero.
  AllowTruncation,
};

/// Returns the product of `shape`, or an error if an extent is negative or the
/// product times `elementSize` exceeds 2^63 - 1 bytes.
llvm::Expected<int64_t> checkedNumElements(llvm::ArrayRef<int64_t> shape,
                                           int64_t elementSize = 1);

class HostTensor {
public:
  /// Makes an f32 tensor of shape [0].
  HostTensor() : extents{0} {}
  /// Makes a tensor of zeros. The caller has checked shapes that come from
  /// files (`checkedNumElements`).
  HostTensor(DType dtype, std::vector<int64_t> shape);
  /// Makes a view of `data`, which `keeper` keeps alive; copies if `data` is
  /// not aligned for its element type.
  static HostTensor view(DType dtype, std::vector<int64_t> shape,
                         const void *data, std::shared_ptr<const void> keeper);
  template <typename T>
  static HostTensor of(std::vector<int64_t> shape, llvm::ArrayRef<T> values) {
    HostTensor result(dtypeOf<T>(), std::move(shape));
    assert(int64_t(values.size()) == result.numElements());
    std::copy(values.begin(), values.end(), result.mutableData<T>().begin());
    return result;
  }
  template <typename T> static HostTensor scalar(T value) {
    return of<T>({}, llvm::ArrayRef<T>(value));
  }

  DType dtype() const { return type; }
  llvm::ArrayRef<int64_t> shape() const { return extents; }
  int64_t rank() const { return int64_t(extents.size()); }
  int64_t dim(int64_t i) const { return extents[size_t(i)]; }
  int64_t numElements() const { return count; }
  int64_t sizeInBytes() const { return count * dtypeSize(type); }
  /// Formats type and shape: "f32 [2, 3]".
  std::string typeString() const;

  const void *rawData() const { return bytes; }
  void *mutableRawData() {
    makeUnique();
    return const_cast<void *>(bytes);
  }
  /// Returns the elements; T is the storage type of `dtype()`.
  template <typename T> llvm::ArrayRef<T> data() const {
    assert(dtypeOf<T>() == type && "typed access with another type");
    return llvm::ArrayRef<T>(static_cast<const T *>(bytes), size_t(count));
  }
  template <typename T> llvm::MutableArrayRef<T> mutableData() {
    assert(dtypeOf<T>() == type && "typed access with another type");
    return llvm::MutableArrayRef<T>(static_cast<T *>(mutableRawData()),
                                    size_t(count));
  }

  /// Returns element `i` in row-major order as double (64-bit integers may
  /// round).
  double getDouble(int64_t i) const;
  /// Returns element `i` of an integer or bool tensor (u64 above 2^63 - 1
  /// wraps); floats are truncated.
  int64_t getInt(int64_t i) const;
  void setDouble(int64_t i, double value);

  /// Returns the same elements under another shape with as many.
  HostTensor reshaped(std::vector<int64_t> shape) const;

  /// Converts every element. Errors name the first element that does not fit
  /// and say why; converting to the own type shares the bytes.
  llvm::Expected<HostTensor>
  convertTo(DType to, Conversion how = Conversion::Checked) const;
  /// Checks whether `convertTo` would succeed, without making the result.
  llvm::Error checkConvertible(DType to,
                               Conversion how = Conversion::Checked) const;

  /// Compares type, shape and bytes (so NaN equals the same NaN, +0 is not -0).
  bool bitEqual(const HostTensor &other) const;

private:
  void makeUnique();

  DType type = DType::F32;
  bool writable = false; ///< `owner` is an own allocation
  int64_t count = 0;
  std::vector<int64_t> extents;
  const void *bytes = nullptr;
  std::shared_ptr<const void> owner;
};

/// Converts `count` elements at `from` into `to` without any check: for data
/// that `checkConvertible` has passed. Neither pointer need be aligned.
void convertElements(DType fromType, const void *from, DType toType, void *to,
                     int64_t count);

/// Formats the row-major index `i` of `shape` as "[1, 2, 3]".
std::string indexString(int64_t i, llvm::ArrayRef<int64_t> shape);

/// Tensors by name, in order of insertion.
class TensorMap {
public:
  using Entry = std::pair<std::string, HostTensor>;

  /// Adds a tensor; returns false and changes nothing if the name is taken.
  bool insert(llvm::StringRef name, HostTensor tensor);
  /// Replaces the tensor of that name, or adds it.
  void set(llvm::StringRef name, HostTensor tensor);
  const HostTensor *find(llvm::StringRef name) const;
  HostTensor *find(llvm::StringRef name);
  bool contains(llvm::StringRef name) const { return find(name); }
  size_t size() const { return entries.size(); }
  bool empty() const { return entries.empty(); }
  std::vector<Entry>::const_iterator begin() const { return entries.begin(); }
  std::vector<Entry>::const_iterator end() const { return entries.end(); }
  std::vector<Entry>::iterator begin() { return entries.begin(); }
  std::vector<Entry>::iterator end() { return entries.end(); }

private:
  std::vector<Entry> entries;
  llvm::StringMap<size_t> index;
};

} // namespace ckopt

#endif // CKOPT_SUPPORT_HOSTTENSOR_H
