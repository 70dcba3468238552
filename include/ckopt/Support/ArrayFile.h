//===- ArrayFile.h - arrays in files, mapped rather than read ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Data sets are memory-mapped if a file has the bytes in the needed form:
// uncompressed members of an .npz, .npy files, raw numbers. They then take no
// memory that the system could not take back. A mapped file must not be
// truncated while it is in use.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_ARRAYFILE_H
#define CKOPT_SUPPORT_ARRAYFILE_H

#include "ckopt/Support/FilePaths.h"
#include "ckopt/Support/HostTensor.h"
#include "llvm/ADT/StringRef.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ckopt {

/// A row-major array in memory or in a mapped file. Elements need not be
/// aligned.
struct HostArray {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  const char *bytes = nullptr;
  std::shared_ptr<const void> keeper;
  bool mapped = false; ///< lies in a file

  static HostArray of(HostTensor tensor);
  int64_t numElements() const;
  int64_t sizeInBytes() const { return numElements() * dtypeSize(dtype); }
  /// Returns the whole array, as rows() does.
  HostTensor tensor() const {
    return HostTensor::view(dtype, shape, bytes, keeper);
  }
  /// Returns entries of the first dimension: a view, or a copy if elements are
  /// not aligned.
  HostTensor rows(int64_t begin, int64_t count) const;
  bool isAligned() const {
    return reinterpret_cast<uintptr_t>(bytes) % uintptr_t(dtypeSize(dtype)) ==
           0;
  }
};

/// Arrays by name, from one file.
struct ArrayFile {
  std::string name; ///< for messages
  std::vector<std::string> arrays;
  /// Reads or maps an array; if it is missing, the error lists the others.
  std::function<llvm::Expected<HostArray>(llvm::StringRef array)> read;

  bool contains(llvm::StringRef array) const;
};

/// Opens an .npz file, a .npy file (its array has the file's name without the
/// ending), or a folder of .npy files. Compressed arrays are unpacked to files
/// in the folder `cache`, or ("") into memory.
llvm::Expected<ArrayFile> openArrayFile(llvm::StringRef path,
                                        llvm::StringRef cache = "");

/// Maps a file of numbers without any header.
llvm::Expected<HostArray> mapNumbers(llvm::StringRef path, DType dtype);

} // namespace ckopt

#endif // CKOPT_SUPPORT_ARRAYFILE_H
