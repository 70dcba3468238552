//===- Npy.h - the bytes of numpy's .npy files ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reader takes formats 1.0, 2.0 and 3.0, C and Fortran order, little and
// big endian. bfloat16 is the two-byte void that ml_dtypes writes ("<V2"). Any
// bytes give either an array or a text that describes their defect.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_NPY_H
#define CKOPT_BASE_NPY_H

#include "ckopt/Base/DType.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ckopt {

/// An array as it lies in the bytes of a .npy file.
struct NpyArray {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  bool swapped = false;      ///< not in this machine's byte order
  bool fortranOrder = false; ///< first dimension fastest
  std::string_view data;     ///< exactly the array's bytes

  /// Writes the elements row-major, in this machine's byte order, over
  /// `data.size()` bytes.
  void copyTo(void *out) const;
};

/// Returns the number of bytes before the data, from the first 12 bytes of a
/// file; 0 if they are not of a .npy file.
size_t npyHeaderSize(std::string_view bytes);

/// Parses the bytes before the data, as parseNpyArray() does; `dataBytes` gets
/// the number of data bytes, and `array.data` stays empty.
std::string parseNpyHeader(std::string_view bytes, NpyArray &array,
                           uint64_t &dataBytes);

/// Parses a file. Returns "" on success, else a description of the defect.
/// `array` points into `bytes`.
std::string parseNpyArray(std::string_view bytes, NpyArray &array);

/// Returns the bytes that stand before the data in a .npy file; their number is
/// a multiple of 64.
std::string npyHeader(DType dtype, std::span<const int64_t> shape);

} // namespace ckopt

#endif // CKOPT_BASE_NPY_H
