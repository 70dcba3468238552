//===- Library.h - kernels of NVIDIA's libraries ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface of cuBLASLt and cuDNN. Given a descriptor and the bytes of
// workspace that the plan reserved, a library returns a kernel with a fixed
// algorithm, or the reason why it has none. The algorithm is the first
// deterministic one that fits, in the library's own order; nothing is timed.
// Its choice is described by a short text, from which a later load makes the
// same kernel.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_LIBRARY_H
#define CKOPT_LIB_RUNTIME_CUDA_LIBRARY_H

#include "Driver.h"

#include "ckopt/Base/MessageText.h"
#include "ckopt/Runtime/Primitive.h"

#include <initializer_list>
#include <memory>
#include <string>

namespace ckopt::runtime::cuda {

/// Device addresses of a launch's operands and result.
struct Places {
  DevicePointer
      args[9]; ///< in the order of PrimitiveKind; this is the most of any kind
  DevicePointer workspace;
};

/// The plan's limits for each launch of a kernel.
struct Room {
  int64_t workspace;  ///< bytes at most
  int64_t alignment;  ///< alignment of operands, result and workspace, in bytes
  int32_t capability; ///< of the device: 90 is 9.0
};

struct DeviceRange {
  DevicePointer at = 0;
  size_t bytes = 0;
};

class LibraryKernel {
public:
  virtual ~LibraryKernel() = default;
  /// Puts the kernel into the stream; false with the library's reason.
  virtual bool enqueue(const Places &places, Stream stream,
                       std::string &error) = 0;
  /// Bytes of the results that are 0, which the kernel does not write.
  virtual DeviceRange zeros(const Places &places) const {
    (void)places;
    return {};
  }
};

/// An opened library with a handle for the context that was current then.
class Library {
public:
  virtual ~Library() = default;
  virtual std::string version() const = 0;
  /// Makes a kernel that needs no more than the room. `algorithm` names the
  /// algorithm to use; if it is empty, it receives the name of the chosen one.
  /// On failure returns null with the reason.
  virtual std::unique_ptr<LibraryKernel> make(const PrimitiveDesc &desc,
                                              const Room &room,
                                              std::string &algorithm,
                                              MessageText &error) = 0;
};

/// Opens the library and a handle; on failure returns null and sets `error`, a
/// text that continues a sentence after "is". CKOPT_CUBLASLT and CKOPT_CUDNN
/// name other files to open.
std::unique_ptr<Library> openBlasLt(std::string &error);
std::unique_ptr<Library> openCudnn(std::string &error);

/// Returns "", or the property of the descriptor for which the library has no
/// kernel.
std::string blasLtRefuses(const MatMulDesc &desc);
std::string cudnnRefuses(const PrimitiveDesc &desc);
/// Returns the bytes of workspace that cuDNN needs for it at most; 0 if that
/// depends on the engine.
int64_t cudnnWorkspace(const PrimitiveDesc &desc);

/// Opens the first of `names` that exists, or the file that the environment
/// variable names; on failure returns null and sets the reason, a text that
/// continues a sentence after "is".
void *openFirst(const char *variable, std::initializer_list<const char *> names,
                std::string &error);

/// Returns the text of a library's status: its number and the library's
/// message.
std::string statusText(int status, const char *(*words)(int));

/// Converts bytes to hexadecimal digits, and back (false if they are not `size`
/// bytes).
std::string hexText(const void *data, size_t size);
bool parseHex(const std::string &text, void *data, size_t size);

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_LIBRARY_H
