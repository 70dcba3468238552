//===- ModelFile.h - protobuf side of reading and writing -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions that the reader and the writer share. No other header includes
// protobuf.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_READER_MODELFILE_H
#define CKOPT_LIB_FRONTEND_ONNX_READER_MODELFILE_H

#include "OnnxModel.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <onnx/onnx_pb.h>
#include <optional>

namespace ckopt::onnx_frontend {

/// Maps the file; errors name it.
llvm::Expected<std::shared_ptr<llvm::MemoryBuffer>>
mapModelFile(llvm::StringRef path);
/// Refuses names with control characters, in the message and all within it.
llvm::Error checkNames(llvm::StringRef path,
                       const google::protobuf::Message &from);
/// Parses the file's bytes.
llvm::Expected<std::shared_ptr<onnx::ModelProto>>
parseModel(llvm::StringRef path, llvm::StringRef bytes);
/// Parses the file; errors name it.
llvm::Expected<std::shared_ptr<onnx::ModelProto>>
parseModelFile(llvm::StringRef path);

/// Returns ckopt's type for the TensorProto.DataType `type`.
std::optional<DType> dtypeFromOnnx(int32_t type);
int32_t dtypeToOnnx(DType type);
/// Returns the name of the file beside the model that holds the tensor's
/// numbers; empty: the model does.
std::string externalFile(const onnx::TensorProto &tensor,
                         llvm::StringRef modelPath);
/// Reads the value of `tensor`; external data is looked for beside `modelPath`
/// and never outside of its folder. Of nibbles it is the bytes, a list of u8,
/// if `nibbles` allows them. `what` names the tensor in errors; `keeper`
/// keeps `tensor` alive, so that its bytes need not be copied.
llvm::Expected<HostTensor> readTensor(const onnx::TensorProto &tensor,
                                      llvm::StringRef modelPath,
                                      const llvm::Twine &what,
                                      std::shared_ptr<const void> keeper,
                                      bool nibbles = false);

/// Returns the shape and the sign of a tensor of int4 or uint4; nothing for
/// other types.
llvm::Expected<std::optional<Nibbles>>
readNibbles(const onnx::TensorProto &tensor, const llvm::Twine &what);

/// Stores `value` in `tensor` as bytes inside the message, under its old name.
void storeTensor(onnx::TensorProto &tensor, const HostTensor &value);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_READER_MODELFILE_H
