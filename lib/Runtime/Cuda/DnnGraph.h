//===- DnnGraph.h - an operation graph of cuDNN -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A graph of cuDNN's operations, the choice of an engine for it, and its
// execution. Tensors are numbers, operations are added one by one; the first
// status that is no success stays, and later calls do nothing. An engine is
// named by its index and its knobs: "12;0=3,5=1", from which a later load makes
// the same plan.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_DNNGRAPH_H
#define CKOPT_LIB_RUNTIME_CUDA_DNNGRAPH_H

#include "Cudnn.h"
#include "Library.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ckopt::runtime::cuda {

using Extents = std::vector<int64_t>;

/// Owns a descriptor.
class DnnDescriptor {
public:
  DnnDescriptor(const DnnEntries &dnn, void *raw) : dnn(&dnn), raw(raw) {}
  DnnDescriptor(DnnDescriptor &&other) noexcept
      : dnn(other.dnn), raw(std::exchange(other.raw, nullptr)) {}
  DnnDescriptor &operator=(DnnDescriptor &&other) noexcept {
    std::swap(raw, other.raw);
    return *this;
  }
  ~DnnDescriptor() {
    if (raw)
      (void)dnn->drop(raw);
  }
  void *get() const { return raw; }

private:
  const DnnEntries *dnn;
  void *raw;
};

class DnnGraph {
public:
  using Tensor = int;
  /// For an operation without this operand.
  static constexpr Tensor kNone = -1;

  /// Addresses of all tensors are multiples of `alignment` bytes.
  DnnGraph(const DnnEntries &dnn, void *handle, int64_t alignment)
      : dnn(dnn), handle(handle), alignment(alignment) {}

  /// A tensor at the address `place` of a launch, which is a multiple of fewer
  /// bytes if `most` is less than what all addresses are.
  Tensor argument(size_t place, int type, const Extents &sizes,
                  const Extents &strides, int64_t most = INT64_MAX);
  /// A tensor at the front of the workspace, behind earlier ones.
  Tensor inWorkspace(int type, const Extents &sizes, const Extents &strides);
  /// A tensor that only operations of this graph see; it may have no memory.
  Tensor between(int type, const Extents &sizes, const Extents &strides);
  /// A number of the rank of other tensors.
  Tensor number(float value, size_t rank);

  void matmul(Tensor a, Tensor b, Tensor c);
  /// y = mode(x, b, t), computed in `type`; `axis` is for indices.
  void pointwise(int mode, Tensor x, Tensor b, Tensor t, Tensor y,
                 int type = kDnnFloat, int64_t axis = -1);
  void reduce(int mode, Tensor x, Tensor y);
  /// y are x's elements with other sizes and strides.
  void reshape(Tensor x, Tensor y);
  void convolution(const ConvDesc &conv, PrimitiveKind kind, Tensor x, Tensor w,
                   Tensor y, int type);

  /// Takes the first engine of the library's heuristics, in their order, that
  /// has none of the notes and needs at most so many bytes; its name goes to
  /// `engine`.
  int choose(int64_t workspace, const std::vector<int> &notes,
             std::string &engine);
  /// Takes the engine of this name under the same conditions.
  int restore(int64_t workspace, const std::vector<int> &notes,
              const std::string &engine);
  /// Bytes of the workspace that the chosen engine and tensors in it need.
  int64_t workspaceBytes() const { return front + needed; }
  /// Executes the chosen engine.
  int enqueue(const DevicePointer *args, DevicePointer workspace,
              Stream stream) const;

private:
  struct Entry {
    DnnDescriptor descriptor;
    int64_t place = -1;  ///< of an argument
    int64_t offset = -1; ///< in the workspace
    float value = 0;     ///< of a number
    bool isNumber = false;
  };

  void *make(int kind);
  void set(void *descriptor, int attribute, int type, int64_t count,
           const void *values);
  void set(void *descriptor, int attribute, Tensor tensor);
  void finalize(void *descriptor);
  void addOperation(void *descriptor);
  Tensor add(int type, const Extents &sizes, const Extents &strides,
             bool isVirtual, bool isNumber, int64_t bytes);
  /// Makes the graph's descriptor, once.
  void *graph();
  /// Plans an engine's configuration; returns the status, 0 if it is taken.
  int plan(void *config, int64_t workspace);
  bool hasNote(void *engine, const std::vector<int> &notes) const;
  std::string nameOf(void *config, void *engine) const;

  const DnnEntries &dnn;
  void *handle;
  int64_t alignment;
  int status = 0;
  std::vector<Entry> tensors;
  std::vector<DnnDescriptor> kept; ///< all other descriptors
  std::vector<void *> operations;
  void *built = nullptr;
  void *chosen = nullptr;
  int64_t front = 0;  ///< bytes of tensors in the workspace
  int64_t needed = 0; ///< bytes of the engine
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_DNNGRAPH_H
