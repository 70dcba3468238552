//===- Safetensors.h - weights and checkpoints in safetensors ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reader maps the file into memory and returns views of it, after it has
// checked the whole header (ckopt/Base/Safetensors.h). The writer is atomic and
// computes the checksums while it writes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_SAFETENSORS_H
#define CKOPT_SUPPORT_SAFETENSORS_H

#include "ckopt/Base/Safetensors.h"
#include "ckopt/Support/HostTensor.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <memory>

namespace llvm {
class MemoryBuffer;
}

namespace ckopt {

struct SafetensorsFile {
  TensorMap tensors; ///< in the order of their data
  StringMetadata metadata;
  /// Checksums of tensors, if the file has them; not compared yet.
  llvm::StringMap<uint64_t> hashes;
  bool hasChecksum = false; ///< the header has a checksum, which was compared
};

llvm::Expected<SafetensorsFile> readSafetensors(llvm::StringRef path);
/// Parses bytes in memory; `what` names them in errors.
llvm::Expected<SafetensorsFile>
parseSafetensors(std::shared_ptr<llvm::MemoryBuffer> buffer,
                 llvm::StringRef what);

/// A tensor without its values.
struct TensorSpec {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
};
std::vector<TensorSpec> specsOf(const TensorMap &tensors);
int64_t bytesOf(const TensorSpec &tensor);
/// Writes tensors that `read` returns by their number, one after another, so
/// that only one need be in memory. Returns the file's header, including its
/// length.
llvm::Expected<std::string> writeSafetensors(
    llvm::StringRef path, llvm::ArrayRef<TensorSpec> tensors,
    const StringMetadata &metadata,
    llvm::function_ref<llvm::Expected<HostTensor>(size_t number)> read);

/// Writes tensors with the widest elements first (so that all are aligned),
/// else in the map's order; equal contents give equal bytes.
llvm::Error writeSafetensors(llvm::StringRef path, const TensorMap &tensors,
                             const StringMetadata &metadata = {});

} // namespace ckopt

#endif // CKOPT_SUPPORT_SAFETENSORS_H
