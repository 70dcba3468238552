//===- DnnlProgram.h - oneDNN primitives over planned memory ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A short fixed sequence of oneDNN primitives (reorder in, compute, reorder
// out). Every buffer is an argument or lies in the planned workspace. Memory
// objects are made once, and get their addresses before each run.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CPU_DNNLPROGRAM_H
#define CKOPT_LIB_RUNTIME_CPU_DNNLPROGRAM_H

#include "DnnlApi.h"
#include "PrimitiveImpl.h"

#include <vector>

namespace ckopt::runtime {

/// Returns the process-wide CPU engine.
dnnl_engine_t dnnlEngine();

/// Returns oneDNN's type, or dnnl_data_type_undef.
dnnl_data_type_t dnnlType(DType dtype);

/// Returns the type of the tensor that a primitive makes.
inline DType resultType(const PrimitiveDesc &desc) {
  return desc.wideResult ? DType::F32 : desc.dtype;
}

/// Returns "unimplemented", "invalid arguments", ...
std::string dnnlStatusText(dnnl_status_t status);

class DnnlProgram final : public Primitive {
public:
  ~DnnlProgram() override;
  int64_t workspaceBytes() const override;
  bool execute(void *const *args, void *workspace, std::string &error) override;
  std::string implementation() const override {
    return source.empty() ? name : name + ", right for " + source;
  }

  /// Makes a memory object for argument `arg`.
  dnnl_memory_t argument(DnnlLayoutRef desc, int arg);
  /// Makes a memory object in fresh workspace.
  dnnl_memory_t scratch(DnnlLayoutRef desc);
  /// Makes another memory object of the bytes of `of`.
  dnnl_memory_t view(DnnlLayoutRef desc, dnnl_memory_t of);
  /// Appends a computation on the given memories and a scratchpad, whose bytes
  /// all computations share, one after the other, and which is zeroed first
  /// where the finding says so; takes ownership of `desc`. On failure returns
  /// false and sets `error`.
  bool append(dnnl_primitive_desc_t desc, std::vector<dnnl_exec_arg_t> args,
              std::string &error, const KernelEvidence::Finding &finding = {});
  /// Appends a copy from one order to another.
  bool appendReorder(DnnlLayoutRef fromDesc, dnnl_memory_t from,
                     DnnlLayoutRef toDesc, dnnl_memory_t to,
                     std::string &error);
  /// Appends a copy from argument `from` to argument `to`, which lie alike; it
  /// is left out of runs where they are one.
  bool appendCopy(DnnlLayoutRef desc, int from, int to, std::string &error);

private:
  static constexpr int kWorkspace = -1, kPad = -2;
  struct Binding {
    dnnl_memory_t memory;
    int arg; ///< or kWorkspace, kPad
    int64_t offset;
  };
  struct Stage {
    dnnl_primitive_t primitive;
    std::vector<dnnl_exec_arg_t> args;
    int64_t zeroed = 0;    ///< bytes of the scratchpad
    int from = 0, to = -1; ///< arguments that appendCopy() was given
  };
  dnnl_memory_t bind(DnnlLayoutRef desc, int arg, int64_t offset);

  std::vector<Binding> bindings;
  std::vector<Stage> stages;
  int64_t workspace = 0, pads = 0; ///< scratchpads lie behind the workspace
  std::string name, source;
};

/// Takes the first of the library's kernels that somebody vouches for; null:
/// there is none, and `error` says so.
dnnl_primitive_desc_t chooseKernel(DnnlKernels &kernels,
                                   const PrimitiveDesc &desc,
                                   const KernelEvidence &evidence,
                                   KernelEvidence::Finding &finding,
                                   std::string &error);

/// Attributes of every primitive: the scratchpad is the caller's.
class DnnlAttributes {
public:
  DnnlAttributes();
  ~DnnlAttributes();
  DnnlAttributes(const DnnlAttributes &) = delete;
  DnnlAttributes &operator=(const DnnlAttributes &) = delete;
  const_dnnl_primitive_attr_t get() const { return attr; }
  /// Adds the result to what the destination holds.
  dnnl_status_t addSum();

private:
  dnnl_primitive_attr_t attr = nullptr;
};

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CPU_DNNLPROGRAM_H
