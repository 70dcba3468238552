//===- Session.h - programs and sessions ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CORE_SESSION_H
#define CKOPT_LIB_RUNTIME_CORE_SESSION_H

#include "Backend.h"

#include "ckopt/Runtime/Manifest.h"

struct ckrt_program {
  ckopt::runtime::Manifest manifest;
  /// The manifest's functions, compiled for the CPU; empty for a device.
  std::vector<ckrt_fn> functions;
  std::string deviceCode; ///< PTX text
  std::string folder;     ///< the folder that it was loaded from, or empty
  const char *data = nullptr;
  void *library = nullptr; ///< dlopen's handle, or null
  /// The mapping of the file that holds `data`, or null.
  void *mapping = nullptr;
  size_t mapped = 0;
};

struct ckrt_session {
  explicit ckrt_session(ckrt_program &program)
      : program(program), checker(program.manifest) {}
  ckrt_program &program;
  std::unique_ptr<ckopt::runtime::Backend> backend;
  ckopt::runtime::CallChecker checker;
  int64_t fetching = -1; ///< the tensor of ckrt_tensor_fetch

  const ckopt::runtime::Manifest &manifest() const { return program.manifest; }
  bool valid(int64_t tensor) const {
    return tensor >= 0 &&
           tensor < static_cast<int64_t>(manifest().tensors.size());
  }
};

namespace ckopt::runtime {

/// Fails if the manifest is for another target than the code.
ckrt_status checkTarget(const Manifest &manifest, Target target);
/// Parses the manifest and checks it against the code and data.
ckrt_status makeProgram(const void *manifest, size_t manifestSize,
                        Target target, uint64_t dataSize,
                        std::unique_ptr<ckrt_program> &program);

/// Opens a tensor of the session for the host. close() ends it and reports
/// failures; the destructor ends it if close() was not reached.
class OpenTensor {
public:
  OpenTensor(const ckrt_session &session, const TensorInfo &tensor,
             Access access)
      : backend(*session.backend), tensor(tensor), access(access) {
    if (access != Access::Read)
      backend.copies.written(tensor);
    status = backend.open(tensor, access, bytes);
    isOpen = status == CKRT_OK;
  }
  ~OpenTensor() {
    if (isOpen)
      (void)backend.close(tensor, access);
  }
  OpenTensor(const OpenTensor &) = delete;
  OpenTensor &operator=(const OpenTensor &) = delete;

  ckrt_status close() {
    isOpen = false;
    return backend.close(tensor, access);
  }

  ckrt_status status; ///< result of opening it
  char *bytes = nullptr;

private:
  Backend &backend;
  const TensorInfo &tensor;
  Access access;
  bool isOpen = false;
};

/// Calls fn(logical index, byte offset within the tensor) for each sequence of
/// `count` elements whose physical distance is `step` elements.
template <typename Fn> void forEachRun(const TensorInfo &t, Fn fn) {
  int64_t rank = static_cast<int64_t>(t.shape.size());
  int64_t total = 1;
  for (int64_t extent : t.shape)
    total *= extent;
  if (total == 0)
    return;
  int64_t count = rank ? t.shape[rank - 1] : 1;
  int64_t step = rank ? t.strides[rank - 1] : 1;
  std::vector<int64_t> index(rank, 0);
  int64_t offset = 0;
  for (int64_t logical = 0; logical < total; logical += count) {
    fn(logical, offset, count, step);
    for (int64_t d = rank - 2; d >= 0; --d) {
      offset += t.strides[d];
      if (++index[d] < t.shape[d])
        break;
      offset -= t.strides[d] * t.shape[d];
      index[d] = 0;
    }
  }
}

inline int64_t elementCount(const TensorInfo &t) {
  int64_t total = 1;
  for (int64_t extent : t.shape)
    total *= extent;
  return total;
}

/// Returns whether there are no bytes between a tensor's elements.
inline bool isDense(const TensorInfo &t) {
  return elementCount(t) * dtypeSize(t.dtype) == t.bytes;
}

/// Returns how to open a tensor whose elements are all written: if there are
/// bytes between them, these belong to other tensors and must be kept.
inline Access accessToWrite(const TensorInfo &t) {
  return isDense(t) ? Access::Write : Access::Update;
}

/// Copies elements of `size` bytes without conversion; steps are in elements.
void copySame(int64_t size, char *dst, int64_t dstStep, const char *src,
              int64_t srcStep, int64_t count);

/// Writes `value` as an element of type `dtype`.
void storeElement(DType dtype, char *at, double value);
double loadElement(DType dtype, const char *at);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CORE_SESSION_H
