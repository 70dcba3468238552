//===- ModelStream.h - a model without its large numbers --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_READER_MODELSTREAM_H
#define CKOPT_LIB_FRONTEND_ONNX_READER_MODELSTREAM_H

#include "ModelFile.h"
#include "ckopt/Support/AtomicFile.h"
#include <functional>
#include <vector>

namespace ckopt::onnx_frontend {

/// A message whose tensors of many bytes hold none: they come from a mapped
/// file, or from whoever makes them, when the message is written.
class ModelStream {
public:
  /// Tensors of fewer bytes are in the message.
  static constexpr uint64_t kLarge = 4096;
  using Fill = std::function<llvm::Error(AtomicFile &)>;

  static llvm::Expected<ModelStream> open(llvm::StringRef path);

  onnx::ModelProto &model() { return *proto; }
  /// Lets `tensor` have the `bytes` that `fill` writes, for its raw data.
  void setNumbers(onnx::TensorProto &tensor, uint64_t bytes, Fill fill);
  /// Returns the bytes of its raw data.
  uint64_t sizeOfNumbers(const onnx::TensorProto &tensor) const;
  llvm::Error writeNumbers(const onnx::TensorProto &tensor,
                           AtomicFile &file) const;

  /// Returns the bytes of the file that write() writes.
  llvm::Expected<uint64_t> size() const;
  /// Writes what the message with all its numbers serializes to.
  llvm::Error write(AtomicFile &file) const;

private:
  struct Numbers {
    uint64_t bytes;
    Fill fill;
  };
  class Skeleton;
  class Splice;

  ModelStream();
  /// Returns what stands for numbers in the message.
  std::string add(Numbers numbers);
  const Numbers *find(llvm::StringRef rawData) const;
  llvm::Error serialize(std::string &bytes) const;

  std::shared_ptr<onnx::ModelProto> proto;
  std::vector<Numbers> numbers;
  std::string mark; ///< of this object: no file can have it
};

/// Lets an external tensor of the model at `path` become an internal one.
llvm::Error storeInside(ModelStream &stream, onnx::TensorProto &tensor,
                        llvm::StringRef path);

/// Writes the model, all files or none. An ONNX file holds 2 GiB at most:
/// numbers of one with more than `mostBytes` go to a file beside it.
llvm::Error writeModel(ModelStream &stream, llvm::StringRef outPath,
                       uint64_t mostBytes);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_READER_MODELSTREAM_H
