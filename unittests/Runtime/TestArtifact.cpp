//===- TestArtifact.cpp - a hand-made step.so -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// y = x * w element by element, loss = mean (y - t)^2, w -= lr * gradient: what
// the compiler would emit, written by hand, so that loading and ckopt-run are
// tested without it.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/Manifest.h"
#include "ckopt/Runtime/ckrt.h"

#include <cstring>

using namespace ckopt::runtime;

extern "C" {
uint8_t ckopt_manifest[4096];
uint64_t ckopt_manifest_size = 0;
extern const float ckopt_data[4];
const float ckopt_data[4] = {10, 20, 30, 40};
extern const uint64_t ckopt_data_size;
const uint64_t ckopt_data_size = sizeof(ckopt_data);

int32_t ckopt_fn_step(const ckrt_env *env, char *arena) {
  auto at = [&](int64_t offset) {
    return reinterpret_cast<float *>(arena + offset);
  };
  float *w = at(0), *x = at(64), *t = at(128), *y = at(192), *loss = at(256);
  float rate = *at(320);
  *loss = 0;
  for (int i = 0; i < 4; ++i) {
    y[i] = x[i] * w[i];
    *loss += (y[i] - t[i]) * (y[i] - t[i]) / 4;
    w[i] -= rate * (y[i] - t[i]) * x[i] / 2;
  }
  return ckrt_call_done(env, 0, arena);
}
}

namespace {

TensorInfo info(const char *name, TensorRole role, int64_t offset,
                DType dtype = DType::F32) {
  TensorInfo t;
  t.name = name, t.role = role, t.dtype = dtype, t.offset = offset;
  bool scalar = role == TensorRole::Loss || role == TensorRole::LearningRate ||
                role == TensorRole::Step;
  if (!scalar)
    t.shape = {4}, t.strides = {1};
  t.bytes = (scalar ? 1 : 4) * dtypeSize(dtype);
  return t;
}

[[maybe_unused]] const bool filled = [] {
  Manifest m;
  m.cpuFeatures = {"sse2"};
  m.threads = 2;
  m.arenaBytes = 512;
  m.producer = "hand";
  m.tensors = {info("w", TensorRole::Parameter, 0),
               info("x", TensorRole::Input, 64),
               info("t", TensorRole::Target, 128),
               info("out/y", TensorRole::Output, 192),
               info("loss", TensorRole::Loss, 256),
               info("lr", TensorRole::LearningRate, 320),
               info("step", TensorRole::Step, 384, DType::I64),
               info("c", TensorRole::Constant, 448)};
  m.tensors[7].dataOffset = 0;
  m.functions.push_back({"step", "ckopt_fn_step", {0, 1, 2, 5, 6, 7}, {4, 3}});
  CallInfo call;
  call.kernel = "all", call.source = "/Mul";
  m.calls.push_back(call);
  std::vector<uint8_t> blob = serialize(m);
  if (blob.size() <= sizeof(ckopt_manifest)) {
    std::memcpy(ckopt_manifest, blob.data(), blob.size());
    ckopt_manifest_size = blob.size();
  }
  return true;
}();

} // namespace
