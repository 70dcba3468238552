//===- CudnnGraph.h - graphs of the stand-in's cuDNN -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_CUDNNGRAPH_H
#define CKOPT_TEST_LIB_CUDASTANDIN_CUDNNGRAPH_H

#include "../../../lib/Runtime/Cuda/Cudnn.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace standin {

using namespace ckopt::runtime::cuda;

/// Returns the bytes of a value of an attribute; 0 for an unknown type.
size_t sizeOfAttribute(int type);
/// Returns the bytes of an element.
size_t bytesOfType(int type);

/// An opaque descriptor: its attributes are the bytes that a caller set.
struct Descriptor {
  explicit Descriptor(int kind) : kind(kind) {}

  template <typename T> std::vector<T> all(int attribute) const {
    auto found = attributes.find(attribute);
    if (found == attributes.end())
      return {};
    const auto *first = reinterpret_cast<const T *>(found->second.data());
    return {first, first + found->second.size() / sizeof(T)};
  }
  /// The first value, or 0.
  template <typename T> T one(int attribute) const {
    auto found = attributes.find(attribute);
    return found == attributes.end() || found->second.size() < sizeof(T)
               ? T()
               : *reinterpret_cast<const T *>(found->second.data());
  }
  template <typename T> void set(int attribute, T value) {
    auto *first = reinterpret_cast<const char *>(&value);
    attributes[attribute].assign(first, first + sizeof(T));
  }
  /// Becomes one of the library's, which lives on with its owner.
  void copy(const Descriptor &other) {
    attributes = other.attributes;
    finalized = true;
  }

  int kind;
  bool finalized = false;
  std::map<int, std::vector<char>> attributes;
  std::vector<std::unique_ptr<Descriptor>> owned;
};

/// Returns whether every operation is known, and reads what is in memory or was
/// made by an earlier one.
bool checkOperations(const Descriptor &graph);

/// A graph with the addresses of one execution. It keeps no descriptor.
class Operations {
public:
  /// With `tensorCores` operands of f32 are rounded to TF32.
  Operations(const Descriptor &graph, bool tensorCores);
  /// Sets addresses; returns "", or what is wrong with them.
  std::string bind(const std::vector<int64_t> &ids,
                   const std::vector<void *> &pointers);
  std::string shape() const;
  void run() const;

  struct Tensor {
    int type = 0;
    std::vector<int64_t> sizes, strides;
    int64_t alignment = 1;
    bool isVirtual = false, isNumber = false;
    double number = 0; ///< read when the call is made, not when it runs
    void *at = nullptr;
  };
  struct Operation {
    int kind = 0, mode = 0;
    int64_t axis = -1;
    std::vector<int64_t> inputs, outputs; ///< ids; 0: none
    std::vector<int64_t> pads, strides, dilations;
  };

private:
  std::map<int64_t, Tensor> tensors;
  std::vector<Operation> operations;
  bool tensorCores;
};

} // namespace standin

#endif // CKOPT_TEST_LIB_CUDASTANDIN_CUDNNGRAPH_H
