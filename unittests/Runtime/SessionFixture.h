//===- SessionFixture.h - a hand-made artifact ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_RUNTIME_SESSIONFIXTURE_H
#define CKOPT_UNITTESTS_RUNTIME_SESSIONFIXTURE_H

#include "ckopt/Runtime/Manifest.h"
#include "ckopt/Runtime/ckrt.h"

#include <gtest/gtest.h>

namespace ckopt::runtime::test {

/// A row-major tensor at `offset`.
inline TensorInfo tensor(const char *name, TensorRole role, DType dtype,
                         std::vector<int64_t> shape, int64_t offset) {
  TensorInfo t;
  t.name = name, t.role = role, t.dtype = dtype, t.offset = offset;
  t.strides.assign(shape.size(), 1);
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    t.strides[d] = step;
    step *= shape[d];
  }
  t.bytes = step * dtypeSize(dtype);
  t.shape = std::move(shape);
  return t;
}

/// A manifest with one function "step" over all tensors.
inline Manifest manifestOf(std::vector<TensorInfo> tensors,
                           int64_t arenaBytes) {
  Manifest m;
  m.threads = 2;
  m.arenaBytes = arenaBytes;
  m.tensors = std::move(tensors);
  FunctionInfo f;
  f.name = "step", f.symbol = "ckopt_fn_step";
  for (size_t i = 0; i < m.tensors.size(); ++i)
    f.inputs.push_back(static_cast<int32_t>(i));
  m.functions.push_back(f);
  return m;
}

/// A program and a session over in-memory code.
class Loaded {
public:
  Loaded(const Manifest &m, ckrt_fn fn, bool pattern = false,
         bool allocations = false, const void *data = nullptr,
         size_t dataSize = 0) {
    std::vector<uint8_t> blob = serialize(m);
    std::vector<ckrt_fn> fns(m.functions.size(), fn);
    status = ckrt_program_load_memory(blob.data(), blob.size(), fns.data(),
                                      fns.size(), data, dataSize, &program);
    if (status != CKRT_OK)
      return;
    ckrt_session_options options = {};
    options.size = sizeof(options);
    options.pattern_fill = pattern, options.pattern_seed = 99;
    options.count_allocations = allocations;
    status = ckrt_session_create(program, &options, &session);
  }
  ~Loaded() {
    ckrt_session_destroy(session);
    ckrt_program_destroy(program);
  }
  ckrt_status status = CKRT_OK;
  ckrt_program *program = nullptr;
  ckrt_session *session = nullptr;
};

} // namespace ckopt::runtime::test

#endif // CKOPT_UNITTESTS_RUNTIME_SESSIONFIXTURE_H
