//===- CudaSessionTest.cpp - steps on the stand-in driver -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CudaFixture.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

class CudaSession : public Cuda {};

std::string lastError() { return ckrt_last_error(); }

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_F(CudaSession, TrainsAndReadsBack) {
  inChild({}, [] {
    OnDevice on(deviceManifest());
    ASSERT_EQ(on.status, CKRT_OK) << lastError();
    EXPECT_EQ(ckrt_arena(on.session), nullptr);
    ASSERT_EQ(ckrt_init_parameters(on.session, 0), CKRT_OK);
    // w = 1: sum of (x + c).
    ASSERT_EQ(on.step(1, 0.5f), CKRT_OK) << lastError();
    EXPECT_EQ(on.loss(), 110.0f);
    // w = 1 - x / 2 = .5, 0, -.5, -1.
    ASSERT_EQ(on.step(2, 0), CKRT_OK);
    EXPECT_EQ(on.loss(), 100 + 2 * .5f - 4 * .5f - 5);
    ASSERT_EQ(ckrt_run(on.session, "eval"), CKRT_OK);
    float y[4], w[4];
    ASSERT_EQ(ckrt_tensor_read(on.session, 3, y, CKRT_F32, 4), CKRT_OK);
    ASSERT_EQ(ckrt_tensor_read(on.session, 0, w, CKRT_F32, 4), CKRT_OK);
    EXPECT_EQ(y[0], 11.0f);
    EXPECT_EQ(y[3], 35.0f);
    EXPECT_EQ(w[3], -1.0f);
  });
  expectClean();
  // One arena, one piece of pinned memory; a graph a function, replayed.
  EXPECT_EQ(count("cuMemAlloc "), 1);
  EXPECT_EQ(count("cuMemHostAlloc "), 1);
  EXPECT_EQ(count("cuGraphInstantiate"), 2);
  EXPECT_EQ(count("cuGraphLaunch"), 3);
  EXPECT_EQ(count("cuLaunchKernel"), 5);
}

// The stand-in does work as late as events allow: only these put copies before
// the step that reads them, and behind the step that still does.
TEST_F(CudaSession, EventsOrderCopiesAndSteps) {
  inChild({}, [] {
    OnDevice on(deviceManifest());
    ASSERT_EQ(on.status, CKRT_OK) << lastError();
    ASSERT_EQ(ckrt_init_parameters(on.session, 0), CKRT_OK);
    // No wait between them: the second batch must not overtake the first step.
    ASSERT_EQ(on.step(1, 1), CKRT_OK);
    ASSERT_EQ(on.step(100, 0), CKRT_OK);
    float w[4];
    ASSERT_EQ(ckrt_tensor_read(on.session, 0, w, CKRT_F32, 4), CKRT_OK);
    EXPECT_EQ(w[0], 0.0f);
    EXPECT_EQ(w[3], -3.0f);
    EXPECT_EQ(on.loss(), 100 + 0 - 101 - 2 * 102 - 3 * 103);
  });
  expectClean();
}

TEST_F(CudaSession, LaunchesGetWhatTheTableSays) {
  inChild({}, [] {
    OnDevice on(deviceManifest());
    ASSERT_EQ(ckrt_run(on.session, "step"), CKRT_OK);
    ASSERT_EQ(ckrt_synchronize(on.session), CKRT_OK);
  });
  expectClean();
  std::string text = log();
  size_t axpy =
      text.find("execute k_axpy D1+0 D1+128 D1+256 D1+384 4 D1+704\n");
  size_t sum = text.find("execute k_sum D1+384 D1+512 4 D1+704\n");
  size_t update =
      text.find("execute k_update D1+0 D1+128 D1+576 D1+0 D1+704\n");
  ASSERT_NE(update, std::string::npos) << text;
  EXPECT_LT(axpy, sum);
  EXPECT_LT(sum, update);
}

TEST_F(CudaSession, OneByOneGivesTheSameBits) {
  inChild({}, [] {
    float losses[2];
    for (bool oneByOne : {false, true}) {
      OnDevice on(deviceManifest(), false, oneByOne);
      ASSERT_EQ(ckrt_init_parameters(on.session, 0), CKRT_OK);
      ASSERT_EQ(on.step(0.1f, 0.01f), CKRT_OK);
      ASSERT_EQ(on.step(0.7f, 0.01f), CKRT_OK);
      losses[oneByOne] = on.loss();
    }
    EXPECT_EQ(losses[0], losses[1]);
  });
  expectClean();
}

TEST_F(CudaSession, FindsTheHighestByteThatAStepWrites) {
  inChild({}, [] {
    OnDevice on(deviceManifest(), /*pattern=*/true);
    ASSERT_EQ(on.status, CKRT_OK) << lastError();
    int64_t peak = 0;
    ASSERT_EQ(ckrt_measured_peak(on.session, &peak), CKRT_OK);
    EXPECT_EQ(peak, 272); // the constant
    ASSERT_EQ(ckrt_init_parameters(on.session, 0), CKRT_OK);
    ASSERT_EQ(on.step(1, 0.5f), CKRT_OK) << lastError();
    ASSERT_EQ(ckrt_measured_peak(on.session, &peak), CKRT_OK);
    EXPECT_EQ(peak, 708);
    ASSERT_EQ(ckrt_pattern_refill(on.session, 6), CKRT_OK);
    ASSERT_EQ(on.step(1, 0.5f), CKRT_OK);
    EXPECT_EQ(on.loss(), 95.0f) << "refilling must leave weights alone";
    ASSERT_EQ(ckrt_measured_peak(on.session, &peak), CKRT_OK);
    EXPECT_EQ(peak, 708);
  });
  expectClean();
}

// More than one of the blocks in which the arena is filled and read.
TEST_F(CudaSession, MeasuresLargeArenas) {
  inChild({}, [] {
    Manifest m = deviceManifest();
    m.arenaBytes = (int64_t(20) << 20) + 4;
    for (CallInfo &call : m.calls)
      call.launches[0].scratchOffset = int64_t(20) << 20;
    for (int64_t end : {m.arenaBytes, int64_t(9) << 20}) {
      OnDevice on(m, /*pattern=*/true);
      ASSERT_EQ(on.status, CKRT_OK) << lastError();
      ASSERT_EQ(ckrt_init_parameters(on.session, 0), CKRT_OK);
      int64_t peak = 0;
      ASSERT_EQ(ckrt_measured_peak(on.session, &peak), CKRT_OK);
      EXPECT_EQ(peak, 272);
      ASSERT_EQ(on.step(1, 0.5f), CKRT_OK) << lastError();
      ASSERT_EQ(ckrt_pattern_refill(on.session, 9), CKRT_OK);
      ASSERT_EQ(on.step(1, 0.5f), CKRT_OK) << lastError();
      EXPECT_EQ(on.loss(), 95.0f);
      ASSERT_EQ(ckrt_measured_peak(on.session, &peak), CKRT_OK);
      EXPECT_EQ(peak, end == m.arenaBytes ? m.arenaBytes : end + 4);
      for (CallInfo &call : m.calls)
        call.launches[0].scratchOffset = int64_t(9) << 20;
    }
  });
  expectClean();
}

// A part of a large weight is all that is copied for it, whatever the order of
// its elements in the arena: runs look at their whole state, part by part.
TEST_F(CudaSession, PartsAreReadAlone) {
  inChild({}, [] {
    Manifest m = deviceManifest();
    m.calls.clear(), m.kernels.clear();
    m.arenaBytes = 16384;
    m.tensors = {
        tensor("a", TensorRole::Parameter, DType::F32, {40, 30}, 0),
        tensor("b", TensorRole::Parameter, DType::F32, {40, 30}, 8192)};
    m.tensors[1].strides = {1, 40};
    m.functions = {{"step", "ckopt_fn_step", {0, 1}, {}}};
    OnDevice on(m);
    ASSERT_EQ(on.status, CKRT_OK) << lastError();
    std::vector<float> values(1200), part(75);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = float(i);
    for (int64_t t : {0, 1}) {
      ASSERT_EQ(ckrt_tensor_write(on.session, t, values.data(), CKRT_F32, 1200),
                CKRT_OK);
      ASSERT_EQ(
          ckrt_tensor_read_part(on.session, t, 555, part.data(), CKRT_F32, 75),
          CKRT_OK);
      EXPECT_EQ(part,
                std::vector<float>(values.begin() + 555, values.begin() + 630));
    }
  });
  // Elements 555 to 629 are in rows 18 to 20, 29 columns apart.
  std::istringstream lines(log());
  std::vector<std::string> copies;
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("cuMemcpyDtoHAsync", 0) == 0)
      copies.push_back(line);
  ASSERT_EQ(copies.size(), 2u) << log();
  EXPECT_NE(copies[0].find(" 300 "), std::string::npos) << copies[0];
  EXPECT_NE(copies[1].find(" 4648 "), std::string::npos) << copies[1];
  expectClean();
}

// A device looks for numbers that are not finite itself, in each type of
// floats: one word comes back, and the last number of an odd number of halves.
TEST_F(CudaSession, NumbersAreLookedAtWhereTheyLie) {
  inChild({}, [] {
    Manifest m = deviceManifest();
    m.calls.clear(), m.kernels.clear();
    m.arenaBytes = 1 << 20;
    m.tensors = {tensor("a", TensorRole::Parameter, DType::F32, {40, 1000}, 0),
                 tensor("b", TensorRole::Parameter, DType::F64, {77}, 163840),
                 tensor("c", TensorRole::Parameter, DType::F16, {33}, 164608),
                 tensor("d", TensorRole::Parameter, DType::BF16, {64}, 164864),
                 tensor("e", TensorRole::Parameter, DType::I64, {2}, 165120)};
    m.functions = {{"step", "ckopt_fn_step", {0, 1, 2, 3, 4}, {}}};
    OnDevice on(m);
    ASSERT_EQ(on.status, CKRT_OK) << lastError();
    const std::vector<int64_t> all = {0, 1, 2, 3, 4};
    auto isFinite = [&] {
      int finite = -1;
      EXPECT_EQ(ckrt_tensors_finite(on.session, all.data(), 5, &finite),
                CKRT_OK)
          << lastError();
      return finite == 1;
    };
    for (int64_t t : all)
      ASSERT_EQ(ckrt_tensor_fill(on.session, t, -1), CKRT_OK);
    EXPECT_TRUE(isFinite());
    for (int64_t t : {0, 1, 2, 3}) {
      int64_t count = ckrt_tensor_elements(on.session, t);
      std::vector<float> values(static_cast<size_t>(count), 3e4f);
      for (int64_t at : {int64_t(0), count / 2 | 1, count - 1})
        for (float bad :
             {__builtin_inff(), -__builtin_inff(), __builtin_nanf("")}) {
          auto &value = values[static_cast<size_t>(at)];
          value = bad;
          ASSERT_EQ(
              ckrt_tensor_write(on.session, t, values.data(), CKRT_F32, count),
              CKRT_OK);
          EXPECT_FALSE(isFinite()) << t << " at " << at << ": " << bad;
          value = 3e4f;
        }
      ASSERT_EQ(
          ckrt_tensor_write(on.session, t, values.data(), CKRT_F32, count),
          CKRT_OK);
      EXPECT_TRUE(isFinite());
    }
    int64_t none = 5;
    int finite;
    EXPECT_EQ(ckrt_tensors_finite(on.session, &none, 1, &finite),
              CKRT_INVALID_ARGUMENT);
  });
  std::istringstream lines(log());
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("cuMemcpyDtoHAsync", 0) == 0)
      EXPECT_TRUE(contains(line, " 4 ") || contains(line, " 2 ")) << line;
  expectClean();
}

// Without memory for the kernel the host looks.
TEST_F(CudaSession, TheHostLooksWhereThereIsNoMemory) {
  inChild({{"CKOPT_STANDIN_FAIL", "cuMemAlloc:2+:2"}}, [] {
    OnDevice on(deviceManifest());
    ASSERT_EQ(on.status, CKRT_OK) << lastError();
    ASSERT_EQ(ckrt_init_parameters(on.session, 0), CKRT_OK);
    int64_t w = ckrt_tensor_find(on.session, "w");
    int finite = -1;
    ASSERT_EQ(ckrt_tensors_finite(on.session, &w, 1, &finite), CKRT_OK);
    EXPECT_EQ(finite, 1);
    ASSERT_EQ(ckrt_tensor_fill(on.session, w, __builtin_nan("")), CKRT_OK);
    ASSERT_EQ(ckrt_tensors_finite(on.session, &w, 1, &finite), CKRT_OK);
    EXPECT_EQ(finite, 0);
  });
  expectClean();
}

// Bytes between a tensor's elements belong to others.
TEST_F(CudaSession, StridedTensorsLeaveTheirNeighboursAlone) {
  inChild({}, [] {
    Manifest m = deviceManifest();
    m.calls.clear(), m.kernels.clear();
    auto strided = [](const char *name, TensorRole role, int64_t offset) {
      TensorInfo t = tensor(name, role, DType::F32, {3}, offset);
      t.strides = {2}, t.bytes = 20;
      return t;
    };
    m.tensors = {strided("a", TensorRole::Input, 0),
                 strided("b", TensorRole::Parameter, 4)};
    m.tensors[1].bytes = 20;
    m.functions = {{"step", "ckopt_fn_step", {0, 1}, {}}};
    OnDevice on(m);
    ASSERT_EQ(on.status, CKRT_OK) << lastError();
    const float a[3] = {1, 2, 3}, b[3] = {4, 5, 6};
    ASSERT_EQ(ckrt_tensor_write(on.session, 0, a, CKRT_F32, 3), CKRT_OK);
    ASSERT_EQ(ckrt_tensor_write(on.session, 1, b, CKRT_F32, 3), CKRT_OK);
    ASSERT_EQ(ckrt_tensor_fill(on.session, 0, 7), CKRT_OK);
    ASSERT_EQ(ckrt_run(on.session, "step"), CKRT_OK) << "nothing to launch";
    float got[3];
    ASSERT_EQ(ckrt_tensor_read(on.session, 1, got, CKRT_F32, 3), CKRT_OK);
    EXPECT_EQ(std::vector<float>(got, got + 3), std::vector<float>(b, b + 3));
    ASSERT_EQ(ckrt_tensor_read(on.session, 0, got, CKRT_F32, 3), CKRT_OK);
    EXPECT_EQ(got[2], 7.0f);
  });
  expectClean();
}

TEST_F(CudaSession, AWriteBehindTheArenaIsNamed) {
  inChild({}, [] {
    Manifest m = deviceManifest();
    m.kernels.push_back(kernelOf("k_spill", 0, 0));
    CallInfo call = callOf(3, "k_spill", {}, {}, {DType::F32, 0, 0});
    m.arenaBytes = 768;
    call.launches[0].scratchOffset = 768;
    m.calls.insert(m.calls.begin() + 3, call);
    {
      OnDevice on(m, /*pattern=*/true);
      ASSERT_EQ(on.status, CKRT_OK) << lastError();
      EXPECT_EQ(on.step(1, 1), CKRT_EXECUTION);
      EXPECT_TRUE(contains(lastError(), "step wrote behind the arena, up to 4 "
                                        "bytes beyond its end"))
          << lastError();
    }
    OnDevice on(m, /*pattern=*/true, /*oneByOne=*/true);
    EXPECT_EQ(on.step(1, 1), CKRT_EXECUTION);
    EXPECT_TRUE(contains(lastError(), "k_spill (from /node/k_spill) wrote"))
        << lastError();
  });
  expectClean();
}

TEST_F(CudaSession, ChecksValuesBetweenCalls) {
  inChild({}, [] {
    OnDevice on(deviceManifest());
    ASSERT_EQ(ckrt_set_check_finite(on.session, 1), CKRT_OK);
    ASSERT_EQ(ckrt_init_parameters(on.session, 0), CKRT_OK);
    EXPECT_EQ(on.step(1, 0), CKRT_OK) << lastError();
    EXPECT_EQ(on.step(__builtin_inff(), 1), CKRT_NON_FINITE);
    EXPECT_TRUE(contains(lastError(), "k_axpy")) << lastError();
    EXPECT_TRUE(contains(lastError(), "infinite")) << lastError();
  });
  expectClean();
}

TEST_F(CudaSession, ReportsTheDevice) {
  inChild({{"CKOPT_STANDIN_DEVICES", "2"}}, [] {
    OnDevice on(deviceManifest(), false, false, 1);
    ASSERT_EQ(on.status, CKRT_OK) << lastError();
    ckrt_device_report report = {};
    report.size = sizeof(report);
    ASSERT_EQ(ckrt_device(on.session, &report), CKRT_OK);
    EXPECT_STREQ(report.name, "Stand-in 1");
    EXPECT_EQ(report.ordinal, 1);
    EXPECT_EQ(report.compute_capability, 90);
    EXPECT_EQ(report.driver_version, 12040);
    EXPECT_EQ(report.total_bytes, int64_t(8) << 30);
    EXPECT_EQ(report.arena_bytes, 2 << 20); // the driver's unit
    EXPECT_EQ(report.used_bytes, 256 << 20);
    EXPECT_EQ(report.context_bytes, 256 << 20);
    EXPECT_EQ(report.kernels, 3);
    EXPECT_GT(report.pinned_bytes, 0);
    // The context that was measured is gone.
    ckrt_device_report again = {};
    again.size = sizeof(again);
    ASSERT_EQ(ckrt_device(on.session, &again), CKRT_OK);
    EXPECT_EQ(again.context_bytes, 256 << 20);
    EXPECT_EQ(on.step(1, 0), CKRT_OK) << lastError();
  });
  expectClean();
  // No room for a second one: its size is unknown, and the session goes on.
  inChild({{"CKOPT_STANDIN_MEMORY", "400000000"}}, [] {
    OnDevice on(deviceManifest());
    ASSERT_EQ(on.status, CKRT_OK) << lastError();
    ckrt_device_report report = {};
    report.size = sizeof(report);
    ASSERT_EQ(ckrt_device(on.session, &report), CKRT_OK);
    EXPECT_EQ(report.context_bytes, -1);
    EXPECT_EQ(report.used_bytes, 256 << 20);
    EXPECT_EQ(on.step(1, 0), CKRT_OK) << lastError();
  });
  expectClean();
}

TEST_F(CudaSession, DevicesAndDriversThatDoNotDo) {
  struct Case {
    Environment environment;
    int device;
    ckrt_status status;
    const char *text;
  };
  const Case cases[] = {
      {{{"CKOPT_CUDA_DRIVER", "/nowhere/libcuda.so.1"}},
       0,
       CKRT_NO_DEVICE,
       "cannot load /nowhere/libcuda.so.1"},
      {{{"CKOPT_CUDA_DRIVER", "libm.so.6"}},
       0,
       CKRT_NO_DEVICE,
       "libm.so.6 is no CUDA driver: it has no entry cuInit"},
      {{{"CKOPT_CUDA_DRIVER", CKOPT_OLD_DRIVER}},
       0,
       CKRT_DEVICE_TOO_OLD,
       "OldDriver.so has no entry "},
      {{{"CKOPT_STANDIN_DEVICES", "0"}}, 0, CKRT_NO_DEVICE, "finds no device"},
      {{}, 1, CKRT_NO_DEVICE, "no device cuda:1: this machine has cuda:0"},
      {{{"CKOPT_STANDIN_SM", "75"}},
       0,
       CKRT_DEVICE_TOO_OLD,
       "compute capability 7.5, the artifact needs 8.0"},
      {{{"CKOPT_STANDIN_DRIVER", "10020"}},
       0,
       CKRT_DEVICE_TOO_OLD,
       "supports CUDA 10.2, the artifact (PTX 7.0) needs one for CUDA 11.0"},
      {{{"CKOPT_STANDIN_MEMORY", "271000000"}},
       0,
       CKRT_DEVICE_MEMORY,
       "the arena needs 768 bytes, 467392 of 271000000 are free"},
      {{{"CKOPT_STANDIN_MEMORY", "268436000"}},
       0,
       CKRT_DEVICE_MEMORY,
       "no memory for the code: 544 of 268436000 bytes are free, and the arena "
       "needs 708 more"},
      {{{"CKOPT_STANDIN_FAIL", "cuInit:1:803"}},
       0,
       CKRT_NO_DEVICE,
       "needs a restart"},
      {{{"CKOPT_STANDIN_FAIL", "cuDevicePrimaryCtxRetain:1:46"}},
       0,
       CKRT_NO_DEVICE,
       "another process has the device to itself"},
  };
  for (const Case &c : cases) {
    inChild(c.environment, [&] {
      OnDevice on(deviceManifest(), false, false, c.device);
      EXPECT_EQ(on.status, c.status) << lastError();
      EXPECT_TRUE(contains(lastError(), c.text)) << lastError();
    });
    if (count("end"))
      expectClean();
  }
}

TEST_F(CudaSession, CodeThatTheDriverRefuses) {
  inChild({}, [] {
    std::string ptx = kPtx;
    OnDevice cut(deviceManifest(), false, false, 0,
                 ptx.substr(0, ptx.size() - 3));
    EXPECT_EQ(cut.status, CKRT_DEVICE_CODE);
    EXPECT_TRUE(contains(lastError(), "cannot compile the code"))
        << lastError();
    EXPECT_TRUE(contains(lastError(), "entry k_spill does not end"))
        << "the driver's own words: " << lastError();
    Manifest m = deviceManifest();
    m.kernels[1].symbol = "k_none";
    OnDevice none(m);
    EXPECT_EQ(none.status, CKRT_DEVICE_CODE);
    EXPECT_TRUE(contains(lastError(), "no usable kernel k_none"));
    m = deviceManifest();
    m.kernels[0].block = 64;
    OnDevice wide(m);
    EXPECT_EQ(wide.status, CKRT_DEVICE_CODE);
    EXPECT_TRUE(contains(lastError(), "at most 32 threads")) << lastError();
    // More shared memory and more parameters than any kernel has.
    std::string shared = kPtx, parameters = kPtx;
    shared.insert(shared.find("  ret;"), "  .shared .align 16 .b8 s[49153];\n");
    OnDevice large(deviceManifest(), false, false, 0, shared);
    EXPECT_EQ(large.status, CKRT_DEVICE_CODE);
    EXPECT_TRUE(contains(lastError(), "too much shared data (49153 bytes"))
        << lastError();
    std::string more;
    for (int i = 0; i < 512; ++i)
      more += "  .param .u64 q" + std::to_string(i) + ",\n";
    parameters.insert(parameters.find("  .param"), more);
    OnDevice many(deviceManifest(), false, false, 0, parameters);
    EXPECT_EQ(many.status, CKRT_DEVICE_CODE);
    EXPECT_TRUE(contains(lastError(), "4144 bytes required, max 4096"))
        << lastError();
  });
  expectClean();
  // A driver that does not know the PTX, whatever the manifest says.
  inChild({{"CKOPT_STANDIN_DRIVER", "11070"}}, [] {
    std::string ptx = kPtx;
    ptx.replace(ptx.find("7.0"), 3, "7.8");
    OnDevice newer(deviceManifest(), false, false, 0, ptx);
    EXPECT_EQ(newer.status, CKRT_DEVICE_CODE);
    EXPECT_TRUE(contains(lastError(), "cannot compile the code"))
        << lastError();
    ptx.replace(ptx.find("7.8"), 3, "7.7");
    OnDevice known(deviceManifest(), false, false, 0, ptx);
    EXPECT_EQ(known.status, CKRT_OK) << lastError();
  });
  expectClean();
  // Drivers may compile a kernel when it is looked up, not before: there is no
  // compiler (a container without it), or the environment turned it off.
  for (const char *code : {"221", "223"}) {
    inChild(
        {{"CKOPT_STANDIN_FAIL", std::string("cuModuleGetFunction:2:") + code}},
        [] {
          OnDevice on(deviceManifest());
          EXPECT_EQ(on.status, CKRT_DEVICE_CODE) << lastError();
          EXPECT_TRUE(contains(lastError(), "k_sum")) << lastError();
        });
    expectClean();
  }
}

// A kernel that fails while a graph runs is named with its source node.
TEST_F(CudaSession, NamesTheKernelThatFails) {
  // The first of two runs in the graph is sound, the search sees it alone.
  inChild({{"CKOPT_STANDIN_FAIL", "kernel=k_sum:1:700"}}, [] {
    OnDevice on(deviceManifest());
    ASSERT_EQ(on.step(1, 1), CKRT_OK) << "a replay does not wait";
    EXPECT_EQ(ckrt_synchronize(on.session), CKRT_KERNEL);
    EXPECT_TRUE(contains(lastError(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    // It failed once only: the search cannot see it again, and says so.
    EXPECT_TRUE(contains(lastError(), "no kernel fails when run alone"))
        << lastError();
    EXPECT_EQ(on.step(1, 1), CKRT_KERNEL) << "a broken session stays broken";
    on.loss();
    EXPECT_EQ(on.status, CKRT_KERNEL);
  });
  expectClean();
  inChild({{"CKOPT_STANDIN_FAIL", "kernel=k_sum:1+:700"}}, [] {
    OnDevice on(deviceManifest());
    ASSERT_EQ(on.step(1, 1), CKRT_OK);
    on.loss();
    EXPECT_EQ(on.status, CKRT_KERNEL);
    EXPECT_TRUE(contains(lastError(),
                         "kernel k_sum (from /node/k_sum) fails when it runs "
                         "alone"))
        << lastError();
  });
  expectClean();
  inChild({{"CKOPT_STANDIN_FAIL", "kernel=k_sum:1:700"},
           {"CKOPT_STANDIN_STICKY", "process"}},
          [] {
            OnDevice on(deviceManifest());
            ASSERT_EQ(on.step(1, 1), CKRT_OK);
            EXPECT_EQ(ckrt_synchronize(on.session), CKRT_KERNEL);
            EXPECT_TRUE(contains(lastError(), "ckopt-run --one-by-one"))
                << lastError();
          });
  expectClean();
  for (const char *failure : {"kernel=k_sum:1:719", "kernel=k_sum:1:721"}) {
    inChild({{"CKOPT_STANDIN_FAIL", failure}}, [] {
      OnDevice on(deviceManifest(), false, /*oneByOne=*/true);
      EXPECT_EQ(on.step(1, 1), CKRT_KERNEL);
      EXPECT_TRUE(contains(lastError(), "kernel k_sum (from /node/k_sum): "))
          << lastError();
    });
    expectClean();
  }
  inChild({{"CKOPT_STANDIN_FAIL", "cuStreamSynchronize:5:999"}}, [] {
    OnDevice on(deviceManifest());
    ckrt_status status = on.status;
    for (int i = 0; i < 10 && status == CKRT_OK; ++i) {
      status = on.step(1, 1);
      if (status == CKRT_OK)
        status = ckrt_synchronize(on.session);
    }
    EXPECT_EQ(status, CKRT_DEVICE_LOST) << lastError();
  });
  expectClean();
}

// Whichever call fails: the result is a status and a text, without a crash, a
// hang or a leak.
TEST_F(CudaSession, EveryCallFailsOnce) {
  inChild({}, [] {
    OnDevice on(deviceManifest(), true);
    ASSERT_EQ(ckrt_init_parameters(on.session, 0), CKRT_OK);
    ASSERT_EQ(on.step(1, 1), CKRT_OK);
    on.loss();
  });
  std::map<std::string, int> calls;
  std::istringstream in(log());
  for (std::string line; std::getline(in, line);)
    if (line.rfind("cu", 0) == 0)
      ++calls[line.substr(0, line.find(' '))];
  EXPECT_GT(calls.size(), 25u);
  for (const auto &[name, times] : calls) {
    // Releasing never fails in the stand-in, because no caller could react.
    if (name.find("Destroy") != std::string::npos ||
        name.find("Free") != std::string::npos ||
        name.find("Release") != std::string::npos || name == "cuModuleUnload")
      continue;
    // The last three waits belong to the end of the session.
    int last = name == "cuStreamSynchronize" ? times - 3 : times;
    for (int nth : {1, last}) {
      inChild(
          {{"CKOPT_STANDIN_FAIL", name + ":" + std::to_string(nth) + ":999"}},
          [&] {
            OnDevice on(deviceManifest(), true);
            ckrt_status status = on.status;
            if (status == CKRT_OK)
              status = ckrt_init_parameters(on.session, 0);
            if (status == CKRT_OK)
              status = on.step(1, 1);
            if (status == CKRT_OK) {
              on.loss();
              status = on.status;
            }
            // The report does without free bytes; all else matters.
            if (name != "cuMemGetInfo" || nth == 1)
              EXPECT_NE(status, CKRT_OK) << name << " " << nth;
            if (status != CKRT_OK)
              EXPECT_NE(lastError(), "");
          });
      expectClean();
    }
  }
}
