//===- SessionTest.cpp - loading, tensors, running, checking --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "SessionFixture.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

int32_t nothing(const ckrt_env *, char *) { return 0; }

bool lastErrorHas(const char *text) {
  return std::string(ckrt_last_error()).find(text) != std::string::npos;
}

/// c = a * b by primitive 0, then instrumented.
int32_t matmulStep(const ckrt_env *env, char *arena) {
  void *args[] = {arena, arena + 256, arena + 512};
  if (int32_t status = ckrt_execute(env, 0, args, arena + 1024))
    return status;
  return ckrt_call_done(env, 0, arena);
}

int rounds;

/// Two calls; the second is said to repeat the first. From the third step on
/// it does not.
int32_t recomputingStep(const ckrt_env *env, char *arena) {
  auto *first = reinterpret_cast<float *>(arena);
  auto *second = reinterpret_cast<float *>(arena + 64);
  ++rounds;
  for (int i = 0; i < 16; ++i)
    first[i] = second[i] = float(i + rounds);
  if (rounds > 2)
    second[5] += 1;
  if (int32_t status = ckrt_call_done(env, 0, arena))
    return status;
  return ckrt_call_done(env, 1, arena);
}

Manifest recomputing() {
  Manifest m = manifestOf({}, 128);
  CallInfo call;
  call.kernel = "relu", call.source = "/relu/Relu";
  call.results = {{DType::F32, 0, 64}};
  m.calls.push_back(call);
  call.originalCall = 0;
  call.results[0].offset = 64;
  m.calls.push_back(call);
  return m;
}

} // namespace

TEST(Session, RefusesWhatThisMachineCannotRun) {
  Manifest m = manifestOf({}, 64);
  m.cpuFeatures = {"sse2", "sse4.2", "avx9000"};
  Loaded run(m, nothing);
  EXPECT_EQ(run.status, CKRT_WRONG_MACHINE);
  EXPECT_TRUE(lastErrorHas("avx9000"));
  EXPECT_FALSE(lastErrorHas("sse2"));
  EXPECT_FALSE(lastErrorHas("sse4.2"));
}

TEST(Session, RefusesFilesThatAreNoArtifacts) {
  ckrt_program *program = nullptr;
  EXPECT_EQ(ckrt_program_load_file("/nowhere/step.so", &program),
            CKRT_BAD_ARTIFACT);
  EXPECT_EQ(ckrt_program_load_file("/lib/x86_64-linux-gnu/libm.so.6", &program),
            CKRT_BAD_ARTIFACT);
  EXPECT_TRUE(lastErrorHas("not a ckopt artifact"));
  EXPECT_EQ(program, nullptr);
}

TEST(Session, RefusesAManifestWithoutItsCodeOrData) {
  Manifest m =
      manifestOf({tensor("c", TensorRole::Constant, DType::F32, {4}, 0)}, 64);
  std::vector<uint8_t> blob = serialize(m);
  ckrt_program *program = nullptr;
  EXPECT_EQ(ckrt_program_load_memory(blob.data(), blob.size(), nullptr, 0,
                                     nullptr, 0, &program),
            CKRT_BAD_ARTIFACT);
  m.tensors[0].dataOffset = 8;
  float data[5] = {};
  Loaded run(m, nothing, false, false, data, 20);
  EXPECT_EQ(run.status, CKRT_BAD_ARTIFACT);
  EXPECT_TRUE(lastErrorHas("'c'"));
}

TEST(Session, ConstantsComeFromTheArtifact) {
  Manifest m =
      manifestOf({tensor("c", TensorRole::Constant, DType::F32, {4}, 0)}, 64);
  m.tensors[0].dataOffset = 4;
  float data[5] = {0, 1, 2, 3, 4}, back[4];
  Loaded run(m, nothing, false, false, data, sizeof(data));
  ASSERT_EQ(run.status, CKRT_OK) << ckrt_last_error();
  ASSERT_EQ(ckrt_tensor_read(run.session, 0, back, CKRT_F32, 4), CKRT_OK);
  EXPECT_EQ(std::memcmp(back, data + 1, sizeof(back)), 0);
}

TEST(Session, RefusesAWorkspaceThatWasPlannedTooSmall) {
  Manifest m = manifestOf({}, 1 << 20);
  PrimitiveDesc conv;
  conv.kind = PrimitiveKind::ConvWeightGrad;
  conv.conv.batch = 2, conv.conv.inChannels = conv.conv.outChannels = 16;
  for (int d = 0; d < 2; ++d) {
    conv.conv.in[d] = conv.conv.out[d] = 8;
    conv.conv.kernel[d] = 3, conv.conv.padsLo[d] = conv.conv.padsHi[d] = 1;
  }
  m.primitives = {conv};
  CallInfo call;
  call.source = "/conv1/Conv", call.primitive = 0;
  m.calls = {call};
  Loaded run(m, nothing);
  EXPECT_EQ(run.status, CKRT_WRONG_MACHINE);
  EXPECT_TRUE(lastErrorHas("/conv1/Conv"));
  EXPECT_TRUE(lastErrorHas("workspace"));
}

TEST(Session, TensorsKeepTheirLogicalOrder) {
  // Logical [2,3,4], channels last in memory, rows padded.
  TensorInfo t = tensor("x", TensorRole::Input, DType::F32, {2, 3, 4}, 64);
  t.strides = {20, 1, 5};
  t.bytes = 40 * 4;
  Loaded run(manifestOf({t}, 1024), nothing);
  std::vector<float> x(24), back(24);
  for (int i = 0; i < 24; ++i)
    x[i] = float(i);
  ASSERT_EQ(ckrt_tensor_write(run.session, 0, x.data(), CKRT_F32, 24), CKRT_OK);
  auto *memory = reinterpret_cast<float *>(ckrt_arena(run.session) + 64);
  EXPECT_EQ(memory[20 * 1 + 1 * 2 + 5 * 3], x[(1 * 3 + 2) * 4 + 3]);
  ASSERT_EQ(ckrt_tensor_read(run.session, 0, back.data(), CKRT_F32, 24),
            CKRT_OK);
  EXPECT_EQ(back, x);
  EXPECT_EQ(ckrt_tensor_find(run.session, "x"), 0);
  EXPECT_EQ(ckrt_tensor_find(run.session, "y"), -1);
  EXPECT_EQ(ckrt_tensor_find_in(run.session, "step", "x"), 0);
  EXPECT_EQ(ckrt_tensor_find_in(run.session, "eval", "x"), -1);
  EXPECT_EQ(ckrt_tensor_rank(run.session, 0), 3);
  EXPECT_EQ(ckrt_tensor_shape(run.session, 0)[1], 3);
  EXPECT_STREQ(ckrt_tensor_role(run.session, 0), "input");
  EXPECT_EQ(ckrt_tensor_write(run.session, 0, x.data(), CKRT_F32, 23),
            CKRT_MISMATCH);
  EXPECT_TRUE(lastErrorHas("24 elements"));
}

// On the CPU a tensor lies in the arena; streams and other devices' arrays are
// said not to be there.
TEST(Session, TensorsAreLocated) {
  Manifest m = manifestOf(
      {tensor("w", TensorRole::Parameter, DType::F32, {2, 3}, 64)}, 128);
  m.tensors[0].strides = {1, 2};
  Loaded run(m, nothing);
  ckrt_tensor_place place = {};
  place.size = sizeof(place);
  ASSERT_EQ(ckrt_tensor_locate(run.session, 0, &place), CKRT_OK);
  EXPECT_EQ(place.data, ckrt_arena(run.session) + 64);
  EXPECT_EQ(place.device, -1);
  EXPECT_EQ(place.strides[1], 2);
  EXPECT_EQ(ckrt_tensor_locate(run.session, 1, &place), CKRT_INVALID_ARGUMENT);
  for (ckrt_status status :
       {ckrt_wait_for_stream(run.session, nullptr),
        ckrt_let_stream_wait(run.session, nullptr),
        ckrt_tensor_write_array(run.session, 0, nullptr)}) {
    EXPECT_EQ(status, CKRT_INVALID_ARGUMENT);
    EXPECT_TRUE(lastErrorHas("the step runs on the CPU"));
  }
}

TEST(Session, ConvertsTypesOrSaysWhyNot) {
  Loaded run(manifestOf({tensor("f", TensorRole::Input, DType::F32, {3}, 0),
                         tensor("l", TensorRole::Target, DType::I64, {3}, 64),
                         tensor("b", TensorRole::Input, DType::BF16, {3}, 128),
                         tensor("h", TensorRole::Input, DType::F16, {3}, 192),
                         tensor("u", TensorRole::Input, DType::U8, {3}, 256)},
                        512),
             nothing);
  uint8_t bytes[3] = {0, 128, 255};
  float floats[3];
  ASSERT_EQ(ckrt_tensor_write(run.session, 0, bytes, CKRT_U8, 3), CKRT_OK);
  ASSERT_EQ(ckrt_tensor_read(run.session, 0, floats, CKRT_F32, 3), CKRT_OK);
  EXPECT_EQ(floats[2], 255.0f);
  int32_t labels[3] = {-1, 2, 1 << 30};
  int64_t wide[3];
  ASSERT_EQ(ckrt_tensor_write(run.session, 1, labels, CKRT_I32, 3), CKRT_OK);
  ASSERT_EQ(ckrt_tensor_read(run.session, 1, wide, CKRT_I64, 3), CKRT_OK);
  EXPECT_EQ(wide[0], -1);
  EXPECT_EQ(wide[2], 1 << 30);
  EXPECT_EQ(ckrt_tensor_write(run.session, 1, floats, CKRT_F32, 3),
            CKRT_MISMATCH);
  EXPECT_TRUE(lastErrorHas("will not turn f32 into i64"));
  EXPECT_EQ(ckrt_tensor_write(run.session, 4, labels, CKRT_I32, 3),
            CKRT_MISMATCH);
  EXPECT_TRUE(lastErrorHas("element 0 (-1) does not fit in u8"));
  // Rounding to nearest, ties to even; range; NaN stays NaN.
  float half[3] = {1.00390625f, 1.01171875f,
                   std::numeric_limits<float>::quiet_NaN()};
  ASSERT_EQ(ckrt_tensor_write(run.session, 2, half, CKRT_F32, 3), CKRT_OK);
  ASSERT_EQ(ckrt_tensor_read(run.session, 2, floats, CKRT_F32, 3), CKRT_OK);
  EXPECT_EQ(floats[0], 1.0f);
  EXPECT_EQ(floats[1], 1.015625f);
  EXPECT_TRUE(std::isnan(floats[2]));
  float sixteen[3] = {65519.0f, 65520.0f, 0x1.8p-24f};
  ASSERT_EQ(ckrt_tensor_write(run.session, 3, sixteen, CKRT_F32, 3), CKRT_OK);
  ASSERT_EQ(ckrt_tensor_read(run.session, 3, floats, CKRT_F32, 3), CKRT_OK);
  EXPECT_EQ(floats[0], 65504.0f);
  EXPECT_TRUE(std::isinf(floats[1]));
  EXPECT_EQ(floats[2], 0x1p-23f);
  // Every f16 value survives the trip through f32.
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    auto raw = static_cast<uint16_t>(bits);
    uint16_t three[3] = {raw, raw, raw}, back[3];
    ckrt_tensor_write(run.session, 3, three, CKRT_F16, 3);
    ckrt_tensor_read(run.session, 3, floats, CKRT_F32, 3);
    ckrt_tensor_write(run.session, 3, floats, CKRT_F32, 3);
    ckrt_tensor_read(run.session, 3, back, CKRT_F16, 3);
    ASSERT_EQ(back[1], raw);
  }
}

// A step would clamp them. Nothing is written where one is refused.
TEST(Session, RefusesLabelsAndIndicesOutOfRange) {
  TensorInfo labels = tensor("y", TensorRole::Target, DType::I64, {3}, 0);
  labels.limits.all = {10, true, -100, 0};
  TensorInfo tokens = tensor("x", TensorRole::Input, DType::I32, {3}, 64);
  tokens.limits.all = {0, false, 0, 7};
  TensorInfo both = tensor("t", TensorRole::Input, DType::U8, {3}, 128);
  both.limits.all = {5, false, 0, 7};
  Loaded run(manifestOf({labels, tokens, both}, 256), nothing);
  ASSERT_EQ(run.status, CKRT_OK);
  auto write = [&](int64_t index, std::vector<int64_t> values) {
    return ckrt_tensor_write(run.session, index, values.data(), CKRT_I64, 3);
  };
  EXPECT_EQ(write(0, {0, 9, -100}), CKRT_OK);
  EXPECT_EQ(write(0, {1, 2, 10}), CKRT_MISMATCH);
  EXPECT_TRUE(lastErrorHas("tensor 'y': element 2 is 10, but labels lie in "
                           "[0, 10), or are -100"));
  int64_t kept[3];
  ASSERT_EQ(ckrt_tensor_read(run.session, 0, kept, CKRT_I64, 3), CKRT_OK);
  EXPECT_EQ(kept[0], 0);
  EXPECT_EQ(write(0, {-1, 2, 3}), CKRT_MISMATCH);
  EXPECT_EQ(write(1, {-7, 6, 0}), CKRT_OK);
  EXPECT_EQ(write(1, {0, -8, 0}), CKRT_MISMATCH);
  EXPECT_TRUE(lastErrorHas("element 1 is -8, but indices lie in [-7, 7)"));
  EXPECT_EQ(write(1, {0, 0, 7}), CKRT_MISMATCH);
  EXPECT_EQ(write(2, {0, 4, 3}), CKRT_OK);
  EXPECT_EQ(write(2, {0, 5, 3}), CKRT_MISMATCH);
  EXPECT_TRUE(lastErrorHas("element 1 is 5, but labels lie in [0, 5)"));
  EXPECT_EQ(write(2, {INT64_MAX, 0, 0}), CKRT_MISMATCH);
  const uint64_t beyond[3] = {0, UINT64_MAX, 0}; // not the index -1
  EXPECT_EQ(ckrt_tensor_write(run.session, 1, beyond, CKRT_U64, 3),
            CKRT_MISMATCH);
  EXPECT_TRUE(lastErrorHas("element 1 is 18446744073709551615, but indices"));
  EXPECT_EQ(ckrt_tensor_fill(run.session, 0, 10), CKRT_MISMATCH);
  EXPECT_EQ(ckrt_tensor_fill(run.session, 0, -100), CKRT_OK);
}

// Column 0 picks rows of a table of 3, column 1 of one of 9, column 2 none.
TEST(Session, RefusesIndicesByTheirPlace) {
  TensorInfo columns = tensor("x", TensorRole::Input, DType::I64, {2, 3}, 0);
  columns.limits.parts = {{1, 0, 1, {0, false, 0, 3}},
                          {1, 1, 2, {0, false, 0, 9}}};
  Loaded run(manifestOf({columns}, 64), nothing);
  ASSERT_EQ(run.status, CKRT_OK);
  auto write = [&](std::vector<int64_t> values) {
    return ckrt_tensor_write(run.session, 0, values.data(), CKRT_I64, 6);
  };
  EXPECT_EQ(write({2, 8, 500, -3, -9, -500}), CKRT_OK);
  EXPECT_EQ(write({2, 8, 500, 3, 0, 0}), CKRT_MISMATCH);
  EXPECT_TRUE(lastErrorHas("element 3 is 3, but indices lie in [-3, 3)"));
  EXPECT_EQ(write({0, 9, 0, 0, 0, 0}), CKRT_MISMATCH);
  EXPECT_TRUE(lastErrorHas("element 1 is 9, but indices lie in [-9, 9)"));
  EXPECT_EQ(ckrt_tensor_fill(run.session, 0, 2), CKRT_OK);
  EXPECT_EQ(ckrt_tensor_fill(run.session, 0, 3), CKRT_MISMATCH);
}

TEST(Session, RunsPrimitivesAndChecksThatValuesAreFinite) {
  Manifest m =
      manifestOf({tensor("a", TensorRole::Input, DType::F32, {4, 4}, 0),
                  tensor("b", TensorRole::Input, DType::F32, {4, 4}, 256),
                  tensor("c", TensorRole::Output, DType::F32, {4, 4}, 512)},
                 65536);
  PrimitiveDesc matmul;
  matmul.matmul.m = matmul.matmul.n = matmul.matmul.k = 4;
  matmul.matmul.aRow = matmul.matmul.bRow = matmul.matmul.cRow = 4;
  matmul.matmul.aCol = matmul.matmul.bCol = matmul.matmul.cCol = 1;
  m.primitives = {matmul};
  std::string error;
  CallInfo call;
  call.kernel = "mm", call.source = "/fc/Gemm", call.primitive = 0;
  call.workspaceOffset = 1024;
  call.workspaceBytes = primitiveWorkspace(matmul, m.threads, error);
  call.results = {{DType::F32, 512, 64}};
  m.calls = {call};
  Loaded run(m, matmulStep);
  ASSERT_EQ(run.status, CKRT_OK) << ckrt_last_error();
  ASSERT_EQ(ckrt_tensor_fill(run.session, 0, 2.0), CKRT_OK);
  ASSERT_EQ(ckrt_tensor_fill(run.session, 1, 3.0), CKRT_OK);
  ASSERT_EQ(ckrt_run(run.session, "step"), CKRT_OK) << ckrt_last_error();
  float c[16];
  ASSERT_EQ(ckrt_tensor_read(run.session, 2, c, CKRT_F32, 16), CKRT_OK);
  EXPECT_EQ(c[7], 24.0f);
  EXPECT_EQ(ckrt_run(run.session, "eval"), CKRT_NOT_FOUND);

  ckrt_set_check_finite(run.session, 1);
  EXPECT_EQ(ckrt_run(run.session, "step"), CKRT_OK);
  ASSERT_EQ(ckrt_tensor_fill(run.session, 1, INFINITY), CKRT_OK);
  EXPECT_EQ(ckrt_run(run.session, "step"), CKRT_NON_FINITE);
  EXPECT_TRUE(lastErrorHas("/fc/Gemm")) << ckrt_last_error();
  EXPECT_TRUE(lastErrorHas("infinite"));
  ckrt_set_check_finite(run.session, 0);
  EXPECT_EQ(ckrt_run(run.session, "step"), CKRT_OK);

  int seen = 0;
  ckrt_set_profile(
      run.session,
      [](void *user, int64_t index, double seconds) {
        EXPECT_EQ(index, 0);
        EXPECT_GT(seconds, 0.0);
        ++*static_cast<int *>(user);
      },
      &seen);
  EXPECT_EQ(ckrt_run(run.session, "step"), CKRT_OK);
  EXPECT_EQ(seen, 1);
}

TEST(Session, VerifiesRecomputedValues) {
  for (int keep : {0, 1}) {
    rounds = 0;
    Loaded run(recomputing(), recomputingStep);
    ASSERT_EQ(run.status, CKRT_OK) << ckrt_last_error();
    ckrt_set_verify_remat(run.session, 1, keep);
    EXPECT_EQ(ckrt_run(run.session, "step"), CKRT_OK) << ckrt_last_error();
    EXPECT_EQ(ckrt_run(run.session, "step"), CKRT_OK) << ckrt_last_error();
    EXPECT_EQ(ckrt_run(run.session, "step"), CKRT_VERIFY);
    EXPECT_TRUE(lastErrorHas("/relu/Relu")) << ckrt_last_error();
    EXPECT_EQ(lastErrorHas("element 5"), keep == 1) << ckrt_last_error();
  }
}

TEST(Session, InitialValuesDependOnSeedNameAndElementAlone) {
  auto make = [](const char *init, const char *name, bool turned) {
    TensorInfo t = tensor(name, TensorRole::Parameter, DType::F32, {64, 48}, 0);
    if (turned)
      t.strides = {1, 64};
    t.init = init;
    return t;
  };
  auto run = [&](const TensorInfo &t, uint64_t seed) {
    Loaded loaded(manifestOf({t}, 16384), nothing);
    EXPECT_EQ(ckrt_init_parameters(loaded.session, seed), CKRT_OK);
    std::vector<float> values(64 * 48);
    ckrt_tensor_read(loaded.session, 0, values.data(), CKRT_F32, 64 * 48);
    return values;
  };
  auto base = run(make("kaiming", "w", false), 1);
  EXPECT_EQ(base, run(make("kaiming", "w", true), 1));
  EXPECT_NE(base, run(make("kaiming", "w", false), 2));
  EXPECT_NE(base, run(make("kaiming", "v", false), 1));
  double bound = std::sqrt(6.0 / 48), sum = 0, largest = 0;
  for (float value : base) {
    sum += value;
    largest = std::max(largest, std::fabs(double(value)));
  }
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.99 * bound);
  EXPECT_NEAR(sum / base.size(), 0, 0.02);
  largest = 0;
  for (float value : run(make("xavier", "w", false), 1))
    largest = std::max(largest, std::fabs(double(value)));
  EXPECT_NEAR(largest, std::sqrt(6.0 / 112), 0.01);
  double squares = 0;
  for (float value : run(make("normal", "w", false), 1))
    squares += double(value) * value;
  EXPECT_NEAR(std::sqrt(squares / base.size()), 0.02, 0.001);
  EXPECT_EQ(run(make("ones", "w", false), 1)[100], 1.0f);
}
