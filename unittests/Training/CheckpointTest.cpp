//===- CheckpointTest.cpp - runs that stop and go on ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Training/Checkpoint.h"
#include "TestFiles.h"
#include <csignal>
#include <limits>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ckopt;

class Checkpoints : public FilesTest {
protected:
  static Checkpoint some() {
    Checkpoint checkpoint;
    checkpoint.tensors.insert("w", HostTensor::of<float>({2}, {1, -0.0f}));
    checkpoint.tensors.insert("adamw.m/w", HostTensor::of<float>({2}, {3, 4}));
    checkpoint.tensors.insert("count", HostTensor::scalar(int64_t(9)));
    checkpoint.state.step = 123;
    checkpoint.state.data = {4, 256};
    checkpoint.state.seed = ~uint64_t(0);
    checkpoint.state.options = {{"optimizer", "adamw"}, {"batch", "64"}};
    return checkpoint;
  }
  static const std::vector<TensorSpec> &specs() {
    static const std::vector<TensorSpec> result = {
        {"w", DType::F32, {2}},
        {"adamw.m/w", DType::F32, {2}},
        {"count", DType::I64, {}}};
    return result;
  }
};

TEST_F(Checkpoints, RoundTrip) {
  const Checkpoint saved = some();
  EXPECT_EQ(textOf(writeCheckpoint(file("c"), saved)), "");
  Checkpoint read = valueOf(readCheckpoint(file("c")));
  EXPECT_EQ(read.state.step, 123);
  EXPECT_EQ(read.state.data, (DataPosition{4, 256}));
  EXPECT_EQ(read.state.seed, ~uint64_t(0));
  EXPECT_EQ(read.state.options, saved.state.options);
  for (const auto &[name, tensor] : saved.tensors)
    EXPECT_TRUE(read.tensors.find(name)->bitEqual(tensor)) << name;
  EXPECT_FALSE(read.state.best);
  Checkpoint judged = some();
  judged.state.best = BestEvaluation{"accuracy", 1.0 / 3, 120, 2};
  EXPECT_EQ(textOf(writeCheckpoint(file("b"), judged)), "");
  EXPECT_EQ(valueOf(readCheckpoint(file("b"))).state.best, judged.state.best);
  EXPECT_EQ(textOf(checkTensors(specsOf(read.tensors), specs(), "c")), "");
  EXPECT_EQ(textOf(checkOptions(read.state.options, saved.state.options, "c")),
            "");
}

TEST_F(Checkpoints, MayBeReplacedWhileRead) {
  // The tensors are views of the old file, which stays until they go.
  EXPECT_EQ(textOf(writeCheckpoint(file("c"), some())), "");
  Checkpoint read = valueOf(readCheckpoint(file("c")));
  Checkpoint next = some();
  next.tensors.find("w")->setDouble(0, 77);
  EXPECT_EQ(textOf(writeCheckpoint(file("c"), next)), "");
  EXPECT_EQ(read.tensors.find("w")->getDouble(0), 1);
  EXPECT_EQ(valueOf(readCheckpoint(file("c"))).tensors.find("w")->getDouble(0),
            77);
}

TEST_F(Checkpoints, AFullDiskKeepsThePreviousOne) {
  EXPECT_EQ(textOf(writeCheckpoint(file("c"), some())), "");
  const std::string before = get("c");
  Checkpoint large = some();
  large.tensors.insert("big", HostTensor(DType::F64, {100000}));
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {100000, 100000};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(codeOf(writeCheckpoint(file("c"), large)));
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), ExitIoError);
  EXPECT_EQ(get("c"), before);
  EXPECT_EQ(fileCount(), 1u);
}

TEST_F(Checkpoints, WhatDiffersIsNamedAtOnce) {
  Checkpoint checkpoint = some();
  checkpoint.tensors.set("w", HostTensor(DType::F32, {3}));
  checkpoint.tensors.set("count", HostTensor::scalar(int32_t(9)));
  checkpoint.tensors.insert("extra", HostTensor::scalar(1.0f));
  std::vector<TensorSpec> expected = specs();
  expected.push_back({"fc.bias", DType::F32, {10}});
  const std::string text =
      textOf(checkTensors(specsOf(checkpoint.tensors), expected, "c"));
  expectContains(text, "tensor 'w' is f32 [3], the model needs f32 [2]");
  expectContains(text, "tensor 'count' is i32 [], the model needs i64 []");
  expectContains(text, "missing tensors: fc.bias");
  expectContains(text, "tensors that the model does not have: extra");
}

TEST_F(Checkpoints, LongListsAreCut) {
  std::vector<TensorSpec> expected;
  for (int i = 0; i < 30; ++i)
    expected.push_back({"t" + std::to_string(i), DType::F32, {}});
  expectContains(textOf(checkTensors({}, expected, "c")), "t9 and 20 more");
}

TEST_F(Checkpoints, OptionsThatChanged) {
  StringMetadata now = {{"optimizer", "sgd"}, {"lr", "0.1"}};
  const std::string text = textOf(checkOptions(some().state.options, now, "c"));
  expectContains(text, "option 'optimizer' was 'adamw' when the run was saved, "
                       "now it is 'sgd'");
  expectContains(text, "option 'lr' was not set");
  expectContains(text, "option 'batch' was '64' when the run was saved, now it "
                       "is not set");
}

TEST_F(Checkpoints, FilesThatAreNone) {
  EXPECT_EQ(textOf(writeSafetensors(file("w"), some().tensors)), "");
  expectContains(textOf(readCheckpoint(file("w"))), "not a checkpoint");
  EXPECT_EQ(textOf(writeSafetensors(file("w"), some().tensors,
                                    {{"ckopt.format", "checkpoint-9"}})),
            "");
  expectContains(textOf(readCheckpoint(file("w"))), "format 'checkpoint-9'");
  StringMetadata metadata = {{"ckopt.format", "checkpoint-1"},
                             {"ckopt.step", "1"},
                             {"ckopt.epoch", "0"},
                             {"ckopt.position", "0"}};
  EXPECT_EQ(textOf(writeSafetensors(file("w"), some().tensors, metadata)), "");
  expectContains(textOf(readCheckpoint(file("w"))), "'ckopt.seed' is missing");
  for (const char *step : {"-1", "x", "", "99999999999999999999"}) {
    metadata["ckopt.seed"] = "0";
    metadata["ckopt.step"] = step;
    EXPECT_EQ(textOf(writeSafetensors(file("w"), some().tensors, metadata)),
              "");
    expectContains(textOf(readCheckpoint(file("w"))),
                   "damaged checkpoint: 'ckopt.step'");
  }
}
