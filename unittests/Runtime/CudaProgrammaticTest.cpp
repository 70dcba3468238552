//===- CudaProgrammaticTest.cpp - kernels that begin early ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CudaFixture.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

class CudaProgrammatic : public Cuda {
protected:
  static Manifest manifest() {
    Manifest m = deviceManifest();
    m.device.programmatic = true;
    m.device.sm = 90, m.device.ptxIsa = 78, m.device.minDriver = 11080;
    return m;
  }
  /// Counts launches in the step's graph: (all, early).
  std::pair<int, int> launches() {
    return {count("cuLaunchKernel"), count("cuLaunchKernelEx")};
  }
  /// The fixture's kernels for 9.0, with what each begins with.
  static std::string code(const std::string &begin) {
    std::string text = kPtx;
    auto replace = [&](const std::string &old, const std::string &by) {
      for (size_t at = text.find(old); at != std::string::npos;
           at = text.find(old, at + by.size()))
        text.replace(at, old.size(), by);
    };
    replace(".version 7.0\n.target sm_80", ".version 7.8\n.target sm_90");
    replace("  ret;", begin + "  ret;");
    return text;
  }
};

} // namespace

// The first kernel of a graph begins when all before has ended; each behind a
// kernel begins early.
TEST_F(CudaProgrammatic, KernelsBehindKernelsBeginEarly) {
  float plain = 0, early = 1;
  for (bool programmatic : {false, true})
    inChild({}, [&] {
      OnDevice on(programmatic ? manifest() : deviceManifest(), false, false, 0,
                  code(""));
      ASSERT_EQ(on.status, CKRT_OK) << ckrt_last_error();
      EXPECT_EQ(on.step(1, 0.5f), CKRT_OK) << ckrt_last_error();
      std::ofstream(folder + (programmatic ? "/early" : "/plain")) << on.loss();
    });
  std::ifstream(folder + "/plain") >> plain;
  std::ifstream(folder + "/early") >> early;
  EXPECT_EQ(plain, early);
  // The step has three kernels, the evaluation two.
  EXPECT_EQ(launches(), std::pair(5, 3)) << log();
  EXPECT_EQ(count("cuLaunchKernelEx k_sum 1 32 S1 early"), 2) << log();
  EXPECT_EQ(count("cuLaunchKernelEx k_update 1 32 S1 early"), 1) << log();
  expectClean();
}

// The host waits for each kernel here, so that none could begin early.
TEST_F(CudaProgrammatic, OneByOneNothingBeginsEarly) {
  inChild({}, [&] {
    OnDevice on(manifest(), false, /*oneByOne=*/true, 0, code(""));
    EXPECT_EQ(on.step(1, 0.5f), CKRT_OK) << ckrt_last_error();
  });
  EXPECT_EQ(launches().second, 0) << log();
  expectClean();
}

// Drivers before CUDA 12.3 have no graphs with such an order.
TEST_F(CudaProgrammatic, OlderDriversLaunchAsEver) {
  inChild({{"CKOPT_STANDIN_DRIVER", "12020"}}, [&] {
    OnDevice on(manifest(), false, false, 0, code(""));
    EXPECT_EQ(on.step(1, 0.5f), CKRT_OK) << ckrt_last_error();
  });
  EXPECT_EQ(launches(), std::pair(5, 0)) << log();
  expectClean();
}

TEST_F(CudaProgrammatic, AKernelThatDoesNotWaitIsSeen) {
  for (bool waits : {true, false}) {
    inChild({{"CKOPT_STANDIN_KERNELS", "ptx"}}, [&] {
      OnDevice on(manifest(), false, false, 0,
                  code(waits ? "griddepcontrol.wait;\n" : ""));
      ASSERT_EQ(on.status, CKRT_OK) << ckrt_last_error();
      EXPECT_EQ(on.step(1, 0.5f), CKRT_OK) << ckrt_last_error();
      (void)on.loss();
      EXPECT_EQ(on.status == CKRT_OK, waits) << ckrt_last_error();
    });
    EXPECT_EQ(count("VIOLATION kernel 'k_sum'") == 0, waits) << log();
  }
}

TEST_F(CudaProgrammatic, CodeForOlderDevicesIsRefused) {
  Manifest m = manifest();
  m.device.sm = 80;
  inChild({}, [&] {
    OnDevice on(m);
    EXPECT_NE(on.status, CKRT_OK);
    EXPECT_NE(std::string(ckrt_last_error())
                  .find("programmatic launches below sm_90"),
              std::string::npos)
        << ckrt_last_error();
  });
}
