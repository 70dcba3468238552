//===- Library.h - kernels of NVIDIA's libraries ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuBLASLt and cuDNN as the runtime sees them: given a descriptor and the bytes
// of workspace that the plan reserved, either a kernel with one algorithm,
// fixed from then on, or a reason why not. Algorithms are the first
// deterministic ones that fit, in the library's own order; nothing is timed.
// What was chosen is a short text, from which a later load makes the same one.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_LIBRARY_H
#define CKOPT_LIB_RUNTIME_CUDA_LIBRARY_H

#include "Driver.h"

#include "ckopt/Runtime/Primitive.h"

#include <initializer_list>
#include <memory>
#include <string>

namespace ckopt::runtime::cuda {

/// Where a launch finds its operands and puts its result: device addresses.
struct Places {
  DevicePointer args[3]; ///< in the order of PrimitiveKind
  DevicePointer workspace;
};

class LibraryKernel {
public:
  virtual ~LibraryKernel() = default;
  /// Puts the kernel into the stream; false with the library's reason.
  virtual bool enqueue(const Places &places, Stream stream,
                       std::string &error) = 0;
};

/// An opened library with a handle for the context that was current then.
class Library {
public:
  virtual ~Library() = default;
  virtual std::string version() const = 0;
  /// A kernel that needs at most `workspace` bytes. `algorithm`: the text of
  /// the one to take, or empty, and then that of the one chosen. Null with the
  /// reason.
  virtual std::unique_ptr<LibraryKernel> make(const PrimitiveDesc &desc,
                                              int64_t workspace,
                                              std::string &algorithm,
                                              std::string &error) = 0;
};

/// Null with the reason where the library or its handle cannot be had.
/// CKOPT_CUBLASLT and CKOPT_CUDNN name other files to open.
std::unique_ptr<Library> openBlasLt(std::string &error);
std::unique_ptr<Library> openCudnn(std::string &error);

/// Empty, or what about the descriptor the library has no kernel for.
std::string blasLtRefuses(const MatMulDesc &desc);
std::string cudnnRefuses(const PrimitiveDesc &desc);
/// The same for the bytes of workspace that the plan reserves.
std::string cudnnRefuses(const PrimitiveDesc &desc, int64_t workspace);

/// Opens the first of `names` that there is, or the file that the environment
/// variable names; null with the reason.
void *openFirst(const char *variable, std::initializer_list<const char *> names,
                std::string &error);

/// A library's status: its number and the library's own words for it.
std::string statusText(int status, const char *(*words)(int));

/// Bytes as hexadecimal digits, and back (false if they are not `size` bytes).
std::string hexText(const void *data, size_t size);
bool parseHex(const std::string &text, void *data, size_t size);

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_LIBRARY_H
