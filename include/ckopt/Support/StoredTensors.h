//===- StoredTensors.h - tensors in one file or in shares -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Readers of weights and checkpoints ask for parts of tensors, and need not
// know how many processes wrote them (ckopt/Base/ShardedFile.h). Files are
// mapped: only the parts that are read come into memory, and contiguous parts
// are views. Data with a checksum are compared with it before they are
// returned.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_STOREDTENSORS_H
#define CKOPT_SUPPORT_STOREDTENSORS_H

#include "ckopt/Support/FilePaths.h"
#include "ckopt/Support/Safetensors.h"
#include <optional>

namespace ckopt {

class StoredTensors {
public:
  /// Opens a safetensors file, or the index of several and all of them. Errors
  /// name a file that is missing, damaged or part of another checkpoint.
  static llvm::Expected<StoredTensors> open(llvm::StringRef path);
  /// Opens a file that open() takes, several of them by their index
  /// (model.safetensors.index.json), or the one of these that a folder has.
  static llvm::Expected<StoredTensors> openPublished(llvm::StringRef path);
  /// Returns the folder of the files that openPublished() reads.
  static std::string folderOf(llvm::StringRef path);

  const StringMetadata &metadata() const { return data; }
  llvm::ArrayRef<TensorSpec> specs() const { return tensors; }
  /// False if the values have no checksums: the file is another program's, or
  /// an earlier ckopt's.
  bool hasChecksums() const { return checksums; }
  /// Returns the elements [begin, begin + count), in row-major order, of the
  /// tensor with this number in specs(), as a vector.
  llvm::Expected<HostTensor> read(size_t number, int64_t begin,
                                  int64_t count) const;
  /// Returns a whole tensor.
  llvm::Expected<HostTensor> read(size_t number) const;
  /// Lets go of the memory that parts of mapped files take since they were
  /// read. Reading them again, also through views, brings them back.
  void letGo() const;
  /// Returns all tensors, whole.
  llvm::Expected<TensorMap> readAll() const;

private:
  /// Elements of a tensor from `begin` on.
  struct Piece {
    int64_t begin = 0;
    HostTensor value;
    size_t file = 0; ///< in `files`
    std::optional<uint64_t> hash;
    mutable bool checked = false;
  };
  StoredTensors() = default;
  /// Adds these tensors of another file.
  llvm::Error add(StoredTensors &&from, llvm::ArrayRef<std::string> names);
  llvm::Error openShares(llvm::StringRef path);
  llvm::Error openShare(const std::string &file, const struct ShardFile &share);
  llvm::Error checkWhole(llvm::StringRef path);
  llvm::Error check(const Piece &piece, llvm::StringRef tensor) const;

  StringMetadata data;
  std::vector<TensorSpec> tensors;
  std::vector<std::vector<Piece>> pieces; ///< of each tensor, by `begin`
  llvm::StringMap<size_t> numbers;
  std::vector<std::string> files; ///< their names
  /// What they hold.
  std::vector<std::shared_ptr<llvm::MemoryBuffer>> buffers;
  bool checksums = false;
};

} // namespace ckopt

#endif // CKOPT_SUPPORT_STOREDTENSORS_H
