//===- CudaAttentionTest.cpp - attention by cuDNN's graphs ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tests the graphs that the runtime builds for attention and its gradient, by
// what their operations compute one by one, against plain loops in double. The
// bounds are those of probabilities, gradients of scores and results that are
// rounded to bf16.
//
//===----------------------------------------------------------------------===//
#include "AttentionFixture.h"
#include "CudaLibraryFixture.h"

#include "../../lib/Runtime/Cuda/LockFile.h"
#include "ckopt/Runtime/CudaLibraries.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

/// The library for devices has none, and no attention here drops anything.
float ckrt_dropout_uniform(uint64_t, uint64_t, uint64_t, uint64_t) {
  ADD_FAILURE();
  return 0;
}

namespace {

PrimitiveDesc attention(AttentionDesc a, bool gradient = false) {
  PrimitiveDesc desc;
  desc.kind =
      gradient ? PrimitiveKind::AttentionGrad : PrimitiveKind::Attention;
  desc.dtype = DType::BF16;
  a.planes = true;
  desc.attention = a;
  return desc;
}

/// Truncates to bf16, in which the tensors are.
std::vector<float> inHalves(std::vector<float> values) {
  for (float &value : values)
    value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffff0000u);
  return values;
}

/// A step of attention and its gradient, which share one workspace. Tensors are
/// q, k, v, o, lse, grad, dq, dk, dv.
Manifest stepOf(const AttentionDesc &a, const Tensors<float> &t) {
  Manifest m = deviceManifest();
  m.kernels.clear(), m.calls.clear(), m.tensors.clear();
  m.functions = {{"step", "ckopt_fn_step", {0, 1, 2, 5}, {3, 4, 6, 7, 8}}};
  const std::pair<const char *, size_t> tensors[] = {
      {"q", t.q.size()},   {"k", t.k.size()},     {"v", t.v.size()},
      {"o", t.o.size()},   {"lse", t.lse.size()}, {"grad", t.grad.size()},
      {"dq", t.dq.size()}, {"dk", t.dk.size()},   {"dv", t.dv.size()}};
  int64_t at = 0;
  std::vector<LaunchPointer> places;
  for (auto [name, size] : tensors) {
    size_t i = m.tensors.size();
    DType dtype = i == 4 ? DType::F32 : DType::BF16;
    int64_t bytes = int64_t(size) * dtypeSize(dtype);
    m.tensors.push_back(test::tensor(
        name, i < 3 || i == 5 ? TensorRole::Parameter : TensorRole::Output,
        dtype, {int64_t(size)}, at));
    places.push_back({at, bytes});
    at += aligned(bytes);
  }
  int64_t workspace = 0;
  for (bool gradient : {false, true}) {
    PrimitiveDesc desc = attention(a, gradient);
    CallInfo call;
    call.source = "/node/attention";
    call.primitive = int32_t(m.primitives.size());
    LaunchInfo launch;
    launch.primitive = call.primitive;
    launch.pointers.assign(places.begin(), places.begin() + (gradient ? 9 : 5));
    launch.scratchOffset = call.workspaceOffset = at;
    call.workspaceBytes = aligned(cudaLibraryWorkspace(desc));
    workspace = std::max(workspace, call.workspaceBytes);
    for (size_t i :
         gradient ? std::vector<size_t>{6, 7, 8} : std::vector<size_t>{3, 4})
      call.results.push_back(
          {m.tensors[i].dtype, m.tensors[i].offset, m.tensors[i].bytes});
    call.launches = {launch};
    m.calls.push_back(call);
    m.primitives.push_back(desc);
  }
  m.arenaBytes = at + workspace;
  return m;
}

class CudaAttention : public CudaLibrary {
protected:
  void expectWithin(const AttentionDesc &a) {
    ASSERT_EQ(cudaLibraryRefuses(attention(a)), "");
    ASSERT_EQ(cudaLibraryRefuses(attention(a, true)), "");
    inChild(libraries(), [&] {
      Tensors<float> t(a);
      for (auto *values : {&t.q, &t.k, &t.v, &t.grad})
        *values = inHalves(*values);
      Expected<float> e(a, t);
      OnDevice on(stepOf(a, t));
      ASSERT_EQ(on.status, CKRT_OK) << lastError();
      std::vector<float> *all[] = {&t.q,    &t.k,  &t.v,  &t.o, &t.lse,
                                   &t.grad, &t.dq, &t.dk, &t.dv};
      for (int i : {0, 1, 2, 4, 5})
        ASSERT_EQ(ckrt_tensor_write(on.session, i, all[i]->data(), CKRT_F32,
                                    int64_t(all[i]->size())),
                  CKRT_OK);
      ASSERT_EQ(ckrt_run(on.session, "step"), CKRT_OK) << lastError();
      for (int i : {3, 4, 6, 7, 8})
        ASSERT_EQ(ckrt_tensor_read(on.session, i, all[i]->data(), CKRT_F32,
                                   int64_t(all[i]->size())),
                  CKRT_OK);
      // Gradients of each query head's keys are rounded before they are added.
      if (a.heads != a.keyHeads)
        for (auto *off : {&e.dkOff, &e.dvOff})
          for (double &bound : *off)
            bound *= 2;
      within(t.o, e.o, e.oOff, "o");
      within(t.dq, e.dq, e.dqOff, "dq");
      within(t.dk, e.dk, e.dkOff, "dk");
      within(t.dv, e.dv, e.dvOff, "dv");
      for (size_t i = 0; i < e.lse.size(); ++i) {
        EXPECT_NEAR(t.lse[i], e.lse[i], 1e-5) << i;
        EXPECT_EQ(t.lse[e.lse.size() + i], 0) << "the second plane";
      }
    });
    expectClean();
  }

private:
  static void within(const std::vector<float> &got,
                     const std::vector<double> &expected,
                     const std::vector<double> &off, const char *what) {
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_LE(std::abs(got[i] - expected[i]), off[i] + 1e-6)
          << what << " " << i;
  }
};

} // namespace

TEST_F(CudaAttention, BothDirectionsInAllForms) {
  for (bool between : {false, true}) {
    expectWithin(sized(2, 2, 2, 5, 7, 8, 16, between));
    expectWithin(causal(sized(1, 2, 2, 9, 9, 16, 8, between), 0));
    expectWithin(causal(sized(2, 4, 2, 6, 6, 8, 8, between), 0)); // groups
    expectWithin(windowed(causal(sized(1, 2, 1, 12, 12, 8, 8, between), 0), 4));
  }
  expectWithin(sized(1, 1, 1, 3, 130, 8, 8));
}

TEST_F(CudaAttention, WhatIsLeftToOurOwn) {
  auto refused = [](AttentionDesc a) {
    return cudaLibraryRefuses(attention(a)) != "";
  };
  AttentionDesc plain = sized(1, 2, 2, 8, 8, 16, 16);
  EXPECT_FALSE(refused(plain));
  EXPECT_TRUE(refused(masked(plain, kNone)));
  EXPECT_TRUE(refused(dropped(plain, 0.5)));
  EXPECT_TRUE(refused(capped(plain, 3)));
  EXPECT_TRUE(refused(packed(plain)));
  EXPECT_TRUE(refused(causal(plain, 1)));
  EXPECT_TRUE(refused(causal(plain, -1))); // a row without keys
  EXPECT_TRUE(refused(windowed(plain, 3)));
  EXPECT_TRUE(refused(windowed(causal(sized(1, 2, 2, 9, 4, 16, 16), 0), 2)));
  EXPECT_TRUE(refused(sized(1, 2, 2, 8, 8, 12, 16)));
  EXPECT_TRUE(refused(sized(1, 2, 2, 8, 8, 264, 16)));
  EXPECT_TRUE(refused(sized(1, 2, 2, 1, 8, 16, 16)));
  PrimitiveDesc desc = attention(plain);
  desc.dtype = DType::F32;
  EXPECT_NE(cudaLibraryRefuses(desc), "");
  desc = attention(plain);
  desc.attention.planes = false;
  EXPECT_NE(cudaLibraryRefuses(desc), "");
}

// Many heads are computed in parts: halves of a sample's heads, then halves of
// the samples.
TEST_F(CudaAttention, PartsOfManyHeads) {
  expectWithin(causal(sized(2, 600, 300, 3, 3, 8, 8, true), 0));
  EXPECT_EQ(count("execute cudnnBackendExecute"), 1 + 4);
  expectWithin(sized(300, 2, 2, 3, 4, 8, 8));
  EXPECT_EQ(count("execute cudnnBackendExecute"), 1 + 2);
}

// Of one part: gradients of scores, rounded up to blocks, are most of what it
// takes (counted with cuDNN 9.14 and 9.28 for an H200).
TEST_F(CudaAttention, TheWorkspaceIsKnownBeforehand) {
  auto bytes = [](AttentionDesc a) {
    return cudaLibraryWorkspace(attention(a, true));
  };
  EXPECT_GE(bytes(sized(8, 12, 12, 256, 256, 64, 64)), 12681472);
  EXPECT_GE(bytes(sized(2, 8, 4, 17, 33, 40, 40)), 348160);
  EXPECT_LT(bytes(sized(8, 12, 12, 256, 256, 64, 64)), 12681472 * 1.001);
  // 8 of 64 heads: more rows, and more heads, take no more than rows do.
  int64_t part = int64_t(8) * 4096 * 4096 * 2;
  EXPECT_GE(bytes(sized(2, 32, 8, 4096, 4096, 64, 64)), part);
  EXPECT_LT(bytes(sized(2, 32, 8, 4096, 4096, 64, 64)), part * 1.1);
  EXPECT_EQ(bytes(sized(2, 32, 8, 4096, 4096, 64, 64)),
            bytes(sized(8, 64, 16, 4096, 4096, 64, 64)));
  EXPECT_LT(bytes(sized(2, 32, 8, 8192, 8192, 64, 64)), 2.2 * part);
  EXPECT_GE(cudaLibraryWorkspace(attention(sized(8, 12, 12, 256, 256, 64, 64))),
            256);
}

// An engine that was chosen for one layout need not run another.
TEST_F(CudaAttention, LockFilesTellLayoutsApart) {
  auto key = [](AttentionDesc a) { return cuda::lockKey(attention(a), 0); };
  AttentionDesc heads = sized(1, 2, 2, 8, 8, 16, 16), rows = heads;
  std::swap(rows.v[1], rows.v[2]);
  EXPECT_EQ(key(heads), key(sized(1, 2, 2, 8, 8, 16, 16)));
  EXPECT_NE(key(heads), key(rows));
  EXPECT_NE(key(causal(heads, 0)), key(causal(heads, 1)));
}

// Versions whose faults are known are not asked.
TEST_F(CudaAttention, OldVersionsAreNotAsked) {
  AttentionDesc a = causal(sized(1, 2, 2, 8, 8, 16, 16), 0);
  Tensors<float> t(a);
  auto refused = [&](const char *version, const char *capability) {
    inChild(
        libraries({{"CKOPT_STANDIN_LIBRARY", version},
                   {"CKOPT_STANDIN_SM", capability}}),
        [&] {
          OnDevice on(stepOf(a, t));
          EXPECT_EQ(on.status, CKRT_NO_LIBRARY);
          EXPECT_NE(lastError().find("is not asked for it"), std::string::npos)
              << lastError();
        });
    expectClean();
  };
  refused("91002", "90");
  refused("91700", "100");
}
