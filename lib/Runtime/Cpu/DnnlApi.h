//===- DnnlApi.h - what oneDNN 2 and 3 call differently ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// oneDNN 3 hides its memory descriptors behind pointers, makes primitive
// descriptors without a descriptor of the operation, and steps through kernels
// by changing the primitive descriptor. Everything else is called alike.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CPU_DNNLAPI_H
#define CKOPT_LIB_RUNTIME_CPU_DNNLAPI_H

#include "ckopt/Runtime/Primitive.h"

#include <dnnl.h>
#include <optional>

namespace ckopt::runtime {

#if DNNL_VERSION_MAJOR >= 3
using DnnlLayoutRef = const_dnnl_memory_desc_t;
#else
using DnnlLayoutRef = const dnnl_memory_desc_t *;
#endif

/// How a tensor lies in memory.
class DnnlLayout {
public:
  /// Returns whether the library takes such a tensor.
  bool setStrided(int rank, const int64_t *dims, dnnl_data_type_t type,
                  const int64_t *strides);
  /// Leaves the order to the library.
  bool setAny(int rank, const int64_t *dims, dnnl_data_type_t type);
  DnnlLayoutRef get() const;

private:
#if DNNL_VERSION_MAJOR >= 3
  std::shared_ptr<dnnl_memory_desc> desc;
#else
  dnnl_memory_desc_t desc = {};
#endif
};

struct DnnlConvolution {
  DnnlLayoutRef x, weights, y;
  const int64_t *strides, *dilates, *padsLo, *padsHi;
};

/// The library's kernels for a computation, the one that it prefers first.
/// Empty where it has none; status() says why.
class DnnlKernels {
public:
  /// A gradient wants a kernel of the forward convolution as a hint.
  DnnlKernels(PrimitiveKind kind, const DnnlConvolution &convolution,
              const_dnnl_primitive_attr_t attributes,
              const_dnnl_primitive_desc_t hint);
  /// Products c = a b.
  DnnlKernels(DnnlLayoutRef a, DnnlLayoutRef b, DnnlLayoutRef c,
              const_dnnl_primitive_attr_t attributes);
  ~DnnlKernels();
  DnnlKernels(const DnnlKernels &) = delete;
  DnnlKernels &operator=(const DnnlKernels &) = delete;

  dnnl_status_t status() const { return state; }
  dnnl_primitive_desc_t get() const { return kernel; }
  std::string_view name() const;
  void next();
  /// Hands the kernel to the caller.
  dnnl_primitive_desc_t take();

private:
  void setKernel();

  dnnl_status_t state;
  dnnl_primitive_desc_t kernel = nullptr;
#if DNNL_VERSION_MAJOR < 3
  dnnl_primitive_desc_iterator_t all = nullptr;
#endif
};

dnnl_status_t appendSum(dnnl_post_ops_t ops);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CPU_DNNLAPI_H
