//===- TensorParts.h - tensors that are read in blocks ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files of weights may be larger than free memory, and than the part that one
// process has. Writers of such files therefore ask for blocks of tensors, one
// after another, and need not know where these lie.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_TENSORPARTS_H
#define CKOPT_SUPPORT_TENSORPARTS_H

#include "ckopt/Support/Safetensors.h"

namespace ckopt {

/// Bytes of a block: a writer holds one of them at a time.
constexpr int64_t kPieceBytes = int64_t(4) << 20;

class TensorParts {
public:
  virtual ~TensorParts() = default;
  virtual llvm::ArrayRef<TensorSpec> specs() const = 0;
  /// Returns the elements [begin, begin + count), in row-major order, of the
  /// tensor with this number in specs(), as a vector.
  virtual llvm::Expected<HostTensor> read(size_t number, int64_t begin,
                                          int64_t count) = 0;
};

/// Tensors that are in memory.
class MapParts : public TensorParts {
public:
  explicit MapParts(const TensorMap &tensors)
      : tensors(tensors), list(specsOf(tensors)) {}
  llvm::ArrayRef<TensorSpec> specs() const override { return list; }
  llvm::Expected<HostTensor> read(size_t number, int64_t begin,
                                  int64_t count) override;

private:
  const TensorMap &tensors;
  std::vector<TensorSpec> list;
};

/// Calls `take` with all elements of a tensor, block by block; `begin` is the
/// number of the block's first element.
llvm::Error forEachPiece(
    TensorParts &tensors, size_t number,
    llvm::function_ref<llvm::Error(const HostTensor &piece, int64_t begin)>
        take);

/// Writes the file that writeSafetensors() writes of the same tensors in
/// memory.
llvm::Error writeSafetensors(llvm::StringRef path, TensorParts &tensors,
                             const StringMetadata &metadata = {});

} // namespace ckopt

#endif // CKOPT_SUPPORT_TENSORPARTS_H
