//===- CudaFixture.h - a hand-made device artifact --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// y = w * x + c; loss = sum(y); w = w - lr * x: three launches that depend on
// each other, over an arena of 768 bytes. The stand-in driver plays the device.
// It reads its environment once a process, so each case runs in a child.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_RUNTIME_CUDAFIXTURE_H
#define CKOPT_UNITTESTS_RUNTIME_CUDAFIXTURE_H

#include "SessionFixture.h"

#include "ckopt/Runtime/DeviceArtifact.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace ckopt::runtime::test {

inline const char kPtx[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                           ".visible .entry k_axpy(\n"
                           "  .param .u64 .ptr .align 64 k_axpy_p0,\n"
                           "  .param .u64 .ptr .align 64 k_axpy_p1,\n"
                           "  .param .u64 .ptr .align 64 k_axpy_p2,\n"
                           "  .param .u64 .ptr .align 64 k_axpy_p3,\n"
                           "  .param .u64 k_axpy_p4,\n"
                           "  .param .u64 .ptr .align 64 k_axpy_p5\n"
                           ")\n.maxntid 32\n{\n  ret;\n}\n"
                           ".visible .entry k_sum(\n"
                           "  .param .u64 .ptr .align 64 k_sum_p0,\n"
                           "  .param .u64 .ptr .align 64 k_sum_p1,\n"
                           "  .param .u64 k_sum_p2,\n"
                           "  .param .u64 .ptr .align 64 k_sum_p3\n"
                           ")\n.maxntid 32\n{\n  ret;\n}\n"
                           ".visible .entry k_update(\n"
                           "  .param .u64 .ptr .align 64 k_update_p0,\n"
                           "  .param .u64 .ptr .align 64 k_update_p1,\n"
                           "  .param .u64 .ptr .align 64 k_update_p2,\n"
                           "  .param .u64 .ptr .align 64 k_update_p3,\n"
                           "  .param .u64 .ptr .align 64 k_update_p4\n"
                           ")\n.maxntid 32\n{\n  ret;\n}\n"
                           ".visible .entry k_spill(\n"
                           "  .param .u64 .ptr .align 64 k_spill_p0\n"
                           ")\n.maxntid 32\n{\n  ret;\n}\n";

inline const float kConstants[4] = {10, 20, 30, 40};

/// A kernel of `pointers` pointers and `scalars` scalars on one small block.
inline KernelInfo kernelOf(const char *symbol, int pointers, int scalars) {
  KernelInfo kernel;
  kernel.symbol = symbol;
  kernel.block = 32;
  kernel.pointers = pointers, kernel.scalars = scalars;
  kernel.sources = {std::string("/node/") + symbol};
  return kernel;
}

inline CallInfo callOf(int32_t kernel, const char *symbol,
                       std::vector<LaunchPointer> pointers,
                       std::vector<int64_t> scalars, CallResult result) {
  CallInfo call;
  call.kernel = symbol;
  call.source = std::string("/node/") + symbol;
  call.results = {result};
  LaunchInfo launch;
  launch.kernel = kernel;
  launch.pointers = std::move(pointers), launch.scalars = std::move(scalars);
  launch.scratchOffset = 704;
  call.launches = {launch};
  call.workspaceOffset = 704, call.workspaceBytes = 64;
  return call;
}

inline Manifest deviceManifest() {
  Manifest m;
  m.target = Target::Cuda;
  m.device.sm = 80, m.device.ptxIsa = 70, m.device.minDriver = 11000;
  m.alignment = kDeviceAlignment;
  m.arenaBytes = 708; // the scratch's first float is the last byte written
  m.producer = "the unit tests";
  m.tensors = {tensor("w", TensorRole::Parameter, DType::F32, {4}, 0),
               tensor("x", TensorRole::Input, DType::F32, {4}, 128),
               tensor("c", TensorRole::Constant, DType::F32, {4}, 256),
               tensor("y", TensorRole::Output, DType::F32, {4}, 384),
               tensor("loss", TensorRole::Loss, DType::F32, {}, 512),
               tensor("lr", TensorRole::LearningRate, DType::F32, {}, 576)};
  m.tensors[0].init = "ones";
  m.tensors[2].dataOffset = 0;
  m.functions = {{"step", "ckopt_fn_step", {0, 1, 2, 5}, {3, 4}},
                 {"eval", "ckopt_fn_eval", {0, 1, 2}, {3, 4}}};
  m.kernels = {kernelOf("k_axpy", 4, 1), kernelOf("k_sum", 2, 1),
               kernelOf("k_update", 4, 0)};
  for (int32_t f : {0, 1}) {
    auto axpy = callOf(0, "k_axpy", {{0, 16}, {128, 16}, {256, 16}, {384, 16}},
                       {4}, {DType::F32, 384, 16});
    auto sum =
        callOf(1, "k_sum", {{384, 16}, {512, 4}}, {4}, {DType::F32, 512, 4});
    axpy.workspaceBytes = sum.workspaceBytes = 4;
    axpy.function = sum.function = f;
    m.calls.push_back(axpy);
    m.calls.push_back(sum);
    if (f == 0) {
      auto update =
          callOf(2, "k_update", {{0, 16}, {128, 16}, {576, 4}, {0, 16}}, {},
                 {DType::F32, 0, 16});
      update.workspaceBytes = 0;
      m.calls.push_back(update);
    }
  }
  return m;
}

/// A program from memory and a session on the stand-in's device.
class OnDevice {
public:
  explicit OnDevice(const Manifest &m, bool pattern = false,
                    bool oneByOne = false, int device = 0,
                    const std::string &ptx = kPtx) {
    std::vector<uint8_t> blob = serialize(m);
    status = ckrt_program_load_device(blob.data(), blob.size(), ptx.data(),
                                      ptx.size(), kConstants,
                                      sizeof(kConstants), &program);
    if (status != CKRT_OK)
      return;
    ckrt_session_options options = {};
    options.size = sizeof(options);
    options.pattern_fill = pattern, options.pattern_seed = 5;
    options.one_by_one = oneByOne, options.device = device;
    status = ckrt_session_create(program, &options, &session);
  }
  ~OnDevice() {
    ckrt_session_destroy(session);
    ckrt_program_destroy(program);
  }
  /// Writes x and lr, runs the step.
  ckrt_status step(float x, float lr) {
    float values[4] = {x, x + 1, x + 2, x + 3};
    ckrt_status wrote = ckrt_tensor_write(session, 1, values, CKRT_F32, 4);
    if (wrote == CKRT_OK)
      wrote = ckrt_tensor_fill(session, 5, lr);
    return wrote == CKRT_OK ? ckrt_run(session, "step") : wrote;
  }
  float loss() {
    float value = -1;
    status = ckrt_tensor_read(session, 4, &value, CKRT_F32, 1);
    return value;
  }
  ckrt_status status = CKRT_OK;
  ckrt_program *program = nullptr;
  ckrt_session *session = nullptr;
};

/// A folder for each case, with the stand-in's log.
class Cuda : public testing::Test {
protected:
  void SetUp() override {
    char name[] = "/tmp/ckopt-cuda-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  using Environment = std::vector<std::pair<std::string, std::string>>;

  void setEnvironment(const Environment &environment) {
    setenv("CKOPT_CUDA_DRIVER", CKOPT_STANDIN, 1);
    setenv("CKOPT_STANDIN_KERNELS", CKOPT_STANDIN_TEST_KERNELS, 1);
    setenv("CKOPT_STANDIN_LOG", (folder + "/log").c_str(), 1);
    for (const auto &[name, value] : environment)
      setenv(name.c_str(), value.c_str(), 1);
  }

  /// Runs the body in a child; its failures are the test's. A body that hangs
  /// is ended after a minute, which is a failure, too.
  template <typename Fn> void inChild(const Environment &environment, Fn body) {
    std::fflush(nullptr);
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      setEnvironment(environment);
      body();
      std::exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int code = 0;
    ASSERT_EQ(waitpid(child, &code, 0), child);
    EXPECT_TRUE(WIFEXITED(code) && WEXITSTATUS(code) == 0)
        << "the child's failures are above; status " << code << "\n"
        << log();
  }

  std::string read(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  std::string log() { return read(folder + "/log"); }
  /// How often the log has lines that begin with `start`.
  int count(const std::string &start) {
    std::istringstream in(log());
    std::string line;
    int found = 0;
    while (std::getline(in, line))
      found += line.rfind(start, 0) == 0;
    return found;
  }
  void expectClean() {
    EXPECT_EQ(count("VIOLATION"), 0) << log();
    EXPECT_EQ(count("LEAK"), 0) << log();
    EXPECT_EQ(count("end"), 1) << log();
  }

  std::string folder;
};

} // namespace ckopt::runtime::test

#endif // CKOPT_UNITTESTS_RUNTIME_CUDAFIXTURE_H
