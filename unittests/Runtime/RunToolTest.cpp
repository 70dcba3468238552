//===- RunToolTest.cpp - ckopt-run as its users call it -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <vector>

namespace {

/// A folder that goes away with the test.
class RunTool : public testing::Test {
protected:
  void SetUp() override {
    char name[] = "/tmp/ckopt-run-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    npy("x.npy", {1, 2, 3, 4});
    npy("t.npy", {1, 1, 1, 1});
    weights("w.safetensors", {2, 2, 2, 2});
    base = std::string(CKOPT_TEST_ARTIFACT) + " --input x=" + file("x.npy") +
           " --input=t=" + file("t.npy");
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string file(const std::string &name) { return folder + "/" + name; }

  void write(const std::string &name, const std::string &bytes) {
    std::ofstream(file(name), std::ios::binary) << bytes;
  }
  static std::string raw(const std::vector<float> &values) {
    return std::string(reinterpret_cast<const char *>(values.data()),
                       values.size() * 4);
  }
  void npy(const std::string &name, const std::vector<float> &values) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                         std::to_string(values.size()) + ",), }";
    header.resize(117, ' ');
    header += '\n';
    write(name,
          std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + raw(values));
  }
  void weights(const std::string &name, const std::vector<float> &values) {
    std::string header =
        R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[4],)"
        R"("data_offsets":[0,16]}})";
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(header.size());
    write(name, bytes + header + raw(values));
  }

  /// Runs the tool; its exit code, with both streams in `output`.
  int run(const std::string &arguments) {
    std::string command = std::string(CKOPT_RUN) + " " + arguments + " 2>&1";
    std::FILE *pipe = popen(command.c_str(), "r");
    output.clear();
    char block[4096];
    while (size_t got = std::fread(block, 1, sizeof(block), pipe))
      output.append(block, got);
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  bool has(const std::string &text) {
    return output.find(text) != std::string::npos;
  }

  std::string folder, base, output;
};

} // namespace

TEST_F(RunTool, TrainsAndWritesWhatItMade) {
  ASSERT_EQ(run(base + " --weights=" + file("w.safetensors") +
                " --steps=40 --lr=0.05 --print-loss --outputs=" + file("out")),
            0)
      << output;
  // (2-1)^2, (4-1)^2, (6-1)^2, (8-1)^2: mean 21.
  EXPECT_TRUE(has("step 1 loss 21\n")) << output;
  EXPECT_TRUE(has("step 40 loss ")) << output;
  std::ifstream in(file("out/out_y.npy"), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  ASSERT_EQ(bytes.size() % 64, 16u);
  float y[4];
  std::memcpy(y, bytes.data() + bytes.size() - 16, 16);
  for (float value : y)
    EXPECT_NEAR(value, 1.0f, 0.4f);
  EXPECT_TRUE(std::filesystem::exists(file("out/loss.npy")));
}

TEST_F(RunTool, ListsAndMeasures) {
  ASSERT_EQ(run(std::string(CKOPT_TEST_ARTIFACT) + " --list"), 0) << output;
  EXPECT_TRUE(has("parameter"));
  EXPECT_TRUE(has("out/y"));
  EXPECT_TRUE(has("function step: 6 inputs, 2 outputs"));
  ASSERT_EQ(run(base + " --measure --weights=" + file("w.safetensors")), 0);
  EXPECT_TRUE(has("planned peak 512 bytes")) << output;
  EXPECT_TRUE(has("measured peak 464 bytes")) << output;
  EXPECT_TRUE(has("64 KiB or more during steps: 0")) << output;
}

TEST_F(RunTool, MeasuringWithoutTheCounterIsRefused) {
  std::string arguments = base + " --weights=" + file("w.safetensors");
  write("libckopt_allocations.so.1", "no library");
  setenv("LD_LIBRARY_PATH", folder.c_str(), 1);
  EXPECT_EQ(run(arguments + " --measure"), 1);
  EXPECT_TRUE(has("cannot count allocations by libckopt_allocations.so.1"))
      << output;
  EXPECT_EQ(run(arguments), 0) << output; // no other function needs it
  unsetenv("LD_LIBRARY_PATH");
}

TEST_F(RunTool, NamesAllMissingDataAtOnce) {
  EXPECT_EQ(run(std::string(CKOPT_TEST_ARTIFACT) +
                " --weights=" + file("w.safetensors")),
            1);
  EXPECT_TRUE(has("--input=x=x.npy --input=t=t.npy")) << output;
  EXPECT_TRUE(has("--random=x:-1:1 --random=t:-1:1")) << output;
  EXPECT_EQ(run(base), 1);
  EXPECT_TRUE(has("no values for 'w'; give --weights")) << output;
}

TEST_F(RunTool, RefusesBadFiles) {
  std::string good = " --weights=" + file("w.safetensors");
  npy("short.npy", {1, 2, 3});
  EXPECT_EQ(run(base + good + " --input=x=" + file("short.npy")), 1);
  EXPECT_TRUE(has("shape 3, but 'x' is 4")) << output;
  EXPECT_EQ(run(base + good + " --input=z=" + file("x.npy")), 1);
  EXPECT_TRUE(has("no input 'z'")) << output;
  EXPECT_EQ(run(base + good + " --input=x=" + file("none.npy")), 1);
  EXPECT_TRUE(has("No such file")) << output;
  write("bad.npy", "not numpy at all");
  EXPECT_EQ(run(base + good + " --input=x=" + file("bad.npy")), 1);
  EXPECT_TRUE(has("not a .npy array")) << output;
  // Every truncation of a good weight file is refused, none crashes.
  std::ifstream in(file("w.safetensors"), std::ios::binary);
  std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (size_t size : {size_t(0), size_t(7), size_t(20), whole.size() - 20,
                      whole.size() - 1}) {
    write("cut.safetensors", whole.substr(0, size));
    EXPECT_EQ(run(base + " --weights=" + file("cut.safetensors")), 1) << size;
    EXPECT_TRUE(has("safetensors")) << output;
  }
  write("step.so", "garbage");
  EXPECT_EQ(run(file("step.so")), 1);
  EXPECT_TRUE(has("cannot load")) << output;
}

TEST_F(RunTool, ExitCodesSayWhatHappened) {
  EXPECT_EQ(run(""), 64);
  EXPECT_EQ(run(base + " --steps=many"), 64);
  EXPECT_TRUE(has("cannot read --steps=many")) << output;
  EXPECT_EQ(run(base + " --frobnicate"), 64);
  weights("nan.safetensors", {1, 1, 1, __builtin_nanf("")});
  EXPECT_EQ(run(base + " --weights=" + file("nan.safetensors")), 5);
  EXPECT_TRUE(has("not finite at step 1")) << output;
  EXPECT_EQ(run(base + " --weights=" + file("w.safetensors") +
                " --outputs=/proc/nowhere"),
            74);
  EXPECT_EQ(
      run(base + " --weights=" + file("w.safetensors") + " --function=eval"),
      1);
}
