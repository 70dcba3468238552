//===- CudaArtifactTest.cpp - device artifacts on disk, and ckopt-run -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CudaFixture.h"

#include <cstring>
#include <sys/stat.h>

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;
namespace fs = std::filesystem;

namespace {

class CudaArtifact : public Cuda {
protected:
  void SetUp() override {
    Cuda::SetUp();
    step = folder + "/step";
  }

  bool write(const Manifest &m) {
    return writeDeviceArtifact(step, m, kPtx, kConstants, sizeof(kConstants),
                               error);
  }
  /// The text of the failure of loading `step`; empty if it loads.
  std::string load() {
    ckrt_program *program = nullptr;
    ckrt_status status = ckrt_program_load_file(step.c_str(), &program);
    if (status == CKRT_OK) {
      ckrt_program_destroy(program);
      return "";
    }
    EXPECT_EQ(status, CKRT_BAD_ARTIFACT);
    return ckrt_last_error();
  }
  void put(const std::string &name, const std::string &bytes) {
    std::ofstream(step + "/" + name, std::ios::binary) << bytes;
  }
  std::vector<std::string> files(const std::string &in) {
    std::vector<std::string> names;
    for (const auto &entry : fs::directory_iterator(in))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  void npy(const std::string &name, const std::vector<float> &values) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                         std::to_string(values.size()) + ",), }";
    header.resize(117, ' ');
    header += '\n';
    std::ofstream(folder + "/" + name, std::ios::binary)
        << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header
        << std::string(reinterpret_cast<const char *>(values.data()),
                       values.size() * 4);
  }
  /// Runs ckopt-run on the artifact; its exit code, its text in `output`.
  int run(const std::string &arguments, const Environment &environment = {}) {
    fflush(nullptr);
    std::string out = folder + "/output";
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      setEnvironment(environment);
      std::string command = std::string(CKOPT_RUN) + " " + step +
                            " --input=x=" + folder + "/x.npy " + arguments +
                            " >" + out + " 2>&1";
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    int code = 0;
    waitpid(child, &code, 0);
    output = read(out);
    return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
  }
  bool has(const std::string &text) {
    return output.find(text) != std::string::npos;
  }

  std::string step, error, output;
};

} // namespace

TEST_F(CudaArtifact, IsAFolderOfFiveFiles) {
  ASSERT_TRUE(write(deviceManifest())) << error;
  EXPECT_EQ(files(step),
            (std::vector<std::string>{"README.txt", "data.bin", "kernels.ptx",
                                      "manifest.bin", "step.json"}));
  EXPECT_EQ(files(folder), std::vector<std::string>{"step"});
  EXPECT_EQ(read(step + "/kernels.ptx"), kPtx);
  EXPECT_EQ(load(), "");
  std::string summary = read(step + "/step.json");
  for (const char *text :
       {"\"target\": \"cuda\"", "\"sm\": 80", "\"ptx\": \"7.0\"",
        "\"oldest_driver\": 11000", "\"arena_bytes\": 708",
        "\"matmul_precision\": \"f32\"",
        "{\"name\": \"step\", \"launches\": 3}", "\"symbol\": \"k_axpy\""})
    EXPECT_NE(summary.find(text), std::string::npos) << summary;
  EXPECT_NE(read(step + "/README.txt")
                .find("8.0 or higher, a driver for CUDA "
                      "11.0"),
            std::string::npos);
  // The same input gives the same bytes; an older artifact is replaced.
  std::string first = read(step + "/manifest.bin");
  ASSERT_TRUE(write(deviceManifest())) << error;
  EXPECT_EQ(read(step + "/manifest.bin"), first);
  EXPECT_EQ(files(folder), std::vector<std::string>{"step"});
  // The description for users includes the precision of products.
  Manifest rounded = deviceManifest();
  rounded.device.precision = ProductPrecision::TF32;
  ASSERT_TRUE(write(rounded)) << error;
  EXPECT_NE(read(step + "/step.json").find("\"matmul_precision\": \"tf32\""),
            std::string::npos);
  EXPECT_NE(read(step + "/README.txt").find("operands rounded to tf32"),
            std::string::npos);
  EXPECT_EQ(load(), "");
}

TEST_F(CudaArtifact, WritesWholeOrNotAtAll) {
  fs::create_directory(step);
  put("thesis.tex", "years of work");
  EXPECT_FALSE(write(deviceManifest()));
  EXPECT_NE(error.find("no ckopt artifact; not replaced"), std::string::npos);
  EXPECT_EQ(read(step + "/thesis.tex"), "years of work");
  fs::remove_all(step);
  Manifest m = deviceManifest();
  m.tensors[2].dataOffset = 4;
  EXPECT_FALSE(write(m));
  EXPECT_NE(error.find("data of tensor 'c'"), std::string::npos) << error;
  m = deviceManifest();
  m.kernels[0].block = 0;
  EXPECT_FALSE(write(m));
  EXPECT_NE(error.find("k_axpy"), std::string::npos) << error;
  m = deviceManifest();
  m.target = Target::Cpu;
  EXPECT_FALSE(write(m));
  EXPECT_TRUE(files(folder).empty());
  step = folder + "/no/such/step";
  EXPECT_FALSE(write(deviceManifest()));
  EXPECT_NE(error.find("No such file"), std::string::npos) << error;
  step = "";
  EXPECT_FALSE(write(deviceManifest()));
}

TEST_F(CudaArtifact, EveryTruncationAndFlipIsAnError) {
  for (const char *name : {"manifest.bin", "kernels.ptx", "data.bin"}) {
    ASSERT_TRUE(write(deviceManifest())) << error;
    std::string path = step + "/" + name;
    // In place: files that are made anew again and again wait for the disk.
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    auto size = static_cast<int64_t>(fs::file_size(path));
    for (int64_t at = 0; at < size; ++at) {
      // Bytes 12 to 15 of the manifest are reserved.
      if (std::strcmp(name, "manifest.bin") == 0 && at >= 12 && at < 16)
        continue;
      file.seekg(at);
      auto byte = static_cast<char>(file.get());
      file.seekp(at).put(static_cast<char>(byte ^ 0x20)).flush();
      EXPECT_NE(load(), "") << name << " changed at " << at;
      file.seekp(at).put(byte).flush();
    }
    EXPECT_EQ(load(), "");
    file.seekp(size).put('x').flush();
    EXPECT_NE(load().find(name), std::string::npos);
    for (int64_t length = size - 1; length >= 0; --length) {
      fs::resize_file(path, static_cast<uint64_t>(length));
      EXPECT_NE(load(), "") << name << " cut to " << length;
    }
    fs::remove(path);
    EXPECT_NE(load().find(name), std::string::npos) << load();
  }
}

// A pipe would be waited for: a loader must look before it reads.
TEST_F(CudaArtifact, TakesRegularFilesAlone) {
  for (const char *name : {"manifest.bin", "kernels.ptx", "data.bin"}) {
    ASSERT_TRUE(write(deviceManifest())) << error;
    std::string path = step + "/" + name;
    fs::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(run("--list"), 1) << output;
    EXPECT_TRUE(has(std::string(name) + " is no regular file")) << output;
    fs::remove(path);
    fs::create_directory(path);
    EXPECT_EQ(run("--list"), 1) << output;
    EXPECT_TRUE(has(std::string(name) + " is no regular file")) << output;
    fs::remove_all(step);
  }
  ASSERT_EQ(mkfifo(step.c_str(), 0600), 0);
  EXPECT_EQ(run("--list"), 1) << output;
  EXPECT_TRUE(has("no regular file")) << output;
  fs::remove(step);
}

TEST_F(CudaArtifact, SaysWhatAFolderLacks) {
  fs::create_directory(step);
  EXPECT_NE(load().find("is a folder but no ckopt artifact"),
            std::string::npos);
  ASSERT_TRUE(write(deviceManifest())) << error;
  Manifest cpu;
  cpu.functions.push_back({"step", "ckopt_fn_step", {}, {}});
  std::vector<uint8_t> blob = serialize(cpu);
  put("manifest.bin", std::string(blob.begin(), blob.end()));
  put("kernels.ptx", ""), put("data.bin", "");
  EXPECT_NE(load().find("made for target cpu"), std::string::npos) << load();
}

TEST_F(CudaArtifact, TheSmallLibraryRunsNothingOnTheCpu) {
  ckrt_program *program = nullptr;
  EXPECT_EQ(ckrt_program_load_file("/tmp/step.so", &program), CKRT_UNSUPPORTED);
  EXPECT_NE(std::string(ckrt_last_error()).find("libckopt_runtime"),
            std::string::npos);
}

TEST_F(CudaArtifact, RunsFromTheCommandLine) {
  ASSERT_TRUE(write(deviceManifest())) << error;
  npy("x.npy", {1, 2, 3, 4});
  ASSERT_EQ(run("--steps=2 --lr=0.5 --print-loss --time --outputs=" + folder +
                "/out"),
            0)
      << output;
  EXPECT_TRUE(has("step 1 loss 110\nstep 2 loss 95\n")) << output;
  EXPECT_TRUE(has("best step ")) << output;
  EXPECT_EQ(read(folder + "/out/y.npy").size(), 128u + 16u);
  expectClean();
  ASSERT_EQ(run("--list"), 0) << output;
  EXPECT_TRUE(has("compute capability 8.0 or higher, with a driver for CUDA "
                  "11.0 or later\n3 kernels\narena 708 bytes\n"))
      << output;
  ASSERT_EQ(run("--device=cuda:1 --inspect", {{"CKOPT_STANDIN_DEVICES", "2"}}),
            0)
      << output;
  EXPECT_TRUE(has("cuda:1 Stand-in 1, compute capability 9.0")) << output;
  EXPECT_TRUE(has("taken by the arena                                2097152"))
      << output;
  ASSERT_EQ(run("--one-by-one --steps=2 --lr=0.5 --print-loss"), 0) << output;
  EXPECT_TRUE(has("step 2 loss 95\n")) << output;
}

TEST_F(CudaArtifact, ChecksItsArenaFromTheCommandLine) {
  Manifest m = deviceManifest();
  ASSERT_TRUE(write(m)) << error;
  npy("x.npy", {1, 2, 3, 4});
  ASSERT_EQ(run("--check-arena"), 0) << output;
  EXPECT_TRUE(has("planned peak 708 bytes\nhighest byte written plus one 708"))
      << output;
  expectClean();
  // A kernel that is given more than it writes.
  m.arenaBytes = 768;
  m.calls[1].workspaceBytes = 64;
  ASSERT_TRUE(write(m)) << error;
  EXPECT_EQ(run("--check-arena"), 70);
  EXPECT_TRUE(has("does not use exactly the bytes")) << output;
}

TEST_F(CudaArtifact, ExitCodesSayWhatHappened) {
  ASSERT_TRUE(write(deviceManifest())) << error;
  npy("x.npy", {1, 2, 3, 4});
  struct Case {
    std::string arguments;
    Environment environment;
    int code;
    const char *text;
  };
  const Case cases[] = {
      {"", {{"CKOPT_CUDA_DRIVER", "/none.so"}}, 10, "no CUDA driver"},
      {"--device=cuda:3", {}, 10, "no device cuda:3"},
      {"", {{"CKOPT_STANDIN_SM", "61"}}, 11, "compute capability 6.1"},
      {"", {{"CKOPT_STANDIN_MEMORY", "271000000"}}, 12, "the arena needs"},
      {"",
       {{"CKOPT_STANDIN_FAIL", "cuModuleLoadDataEx:1+:222"}},
       13,
       "compile"},
      {"", {{"CKOPT_STANDIN_FAIL", "cuGraphLaunch:1:46"}}, 14, "cannot start"},
      {"", {{"CKOPT_STANDIN_FAIL", "kernel=k_update:1+:716"}}, 15, "k_update"},
      {"--device=gpu", {}, 64, "cannot read --device=gpu"},
      {"--device=cuda:x", {}, 64, "cannot read --device=cuda:x"},
  };
  for (const Case &c : cases) {
    EXPECT_EQ(run(c.arguments, c.environment), c.code) << output;
    EXPECT_TRUE(has(c.text)) << output;
  }
}
