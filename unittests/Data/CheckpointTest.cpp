//===- CheckpointTest.cpp - runs that stop and go on ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/Checkpoint.h"
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

TEST_F(Checkpoints, NameWhatTheyLeaveOut) {
  Checkpoint saved = some();
  saved.state.frozen = {{{"a b", DType::BF16, {3, 0}}, ~uint64_t(0)},
                        {{"c", DType::F32, {}}, 5}};
  EXPECT_EQ(textOf(writeCheckpoint(file("c"), saved)), "");
  Checkpoint read = valueOf(readCheckpoint(file("c")));
  ASSERT_EQ(read.state.frozen.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const FrozenTensor &was = saved.state.frozen[i], &is = read.state.frozen[i];
    EXPECT_EQ(is.spec.name, was.spec.name);
    EXPECT_EQ(is.spec.dtype, was.spec.dtype);
    EXPECT_EQ(is.spec.shape, was.spec.shape);
    EXPECT_EQ(is.hash, was.hash);
    EXPECT_FALSE(is.isConstant);
  }
  // An earlier ckopt, which would look for them, refuses the format.
  EXPECT_EQ(
      valueOf(openCheckpoint(file("c"))).tensors.metadata().at(kFormatKey),
      "checkpoint-2");
  // A constant was never in checkpoints.
  saved.state.frozen = {{{"d", DType::U8, {64}}, 7, /*isConstant=*/true}};
  EXPECT_EQ(textOf(writeCheckpoint(file("c"), saved)), "");
  OpenCheckpoint opened = valueOf(openCheckpoint(file("c")));
  EXPECT_EQ(opened.tensors.metadata().at(kFormatKey), "checkpoint-1");
  ASSERT_EQ(opened.state.frozen.size(), 1u);
  EXPECT_TRUE(opened.state.frozen[0].isConstant);
  for (const char *bad : {"f32", "f33 0123456789abcdef", "f32 123", "f32 x 2",
                          "f32 0123456789abcdef 2 -1"}) {
    SCOPED_TRACE(bad);
    EXPECT_EQ(textOf(writeSafetensors(file("w"), some().tensors,
                                      {{kFormatKey, "checkpoint-2"},
                                       {"ckopt.step", "1"},
                                       {"ckopt.epoch", "0"},
                                       {"ckopt.position", "0"},
                                       {"ckopt.seed", "0"},
                                       {"ckopt.frozen.x", bad}})),
              "");
    expectContains(textOf(readCheckpoint(file("w"))),
                   "damaged checkpoint: 'ckopt.frozen.x' is '");
  }
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

TEST_F(Checkpoints, NoFlippedBitChangesARun) {
  const Checkpoint saved = some();
  EXPECT_EQ(textOf(writeCheckpoint(file("c"), saved)), "");
  const std::string whole = get("c");
  // Each position within a byte comes up: 8 does not divide the stride.
  for (size_t bit = 0; bit < whole.size() * 8; bit += 37) {
    std::string broken = whole;
    broken[bit / 8] = char(broken[bit / 8] ^ (1 << (bit % 8)));
    put("broken", broken);
    auto read = readCheckpoint(file("broken"));
    if (!read) {
      expectContains(textOf(read.takeError()), "broken");
      continue;
    }
    ASSERT_EQ(read->state.step, saved.state.step) << bit;
    ASSERT_EQ(read->state.data, saved.state.data) << bit;
    ASSERT_EQ(read->state.seed, saved.state.seed) << bit;
    ASSERT_EQ(read->state.options, saved.state.options) << bit;
    for (const auto &[name, tensor] : saved.tensors)
      ASSERT_TRUE(read->tensors.find(name)->bitEqual(tensor)) << bit;
  }
  std::string broken = whole;
  broken[whole.size() - 1] ^= 1; // of the narrowest type's last tensor
  put("broken", broken);
  expectContains(textOf(readCheckpoint(file("broken"))),
                 "is damaged: tensor 'adamw.m/w' has another checksum");
}

TEST_F(Checkpoints, OfEarlierVersionsHaveNoChecksum) {
  EXPECT_EQ(textOf(writeCheckpoint(file("c"), some())), "");
  EXPECT_TRUE(valueOf(openCheckpoint(file("c"))).tensors.hasChecksums());
  std::string bytes = get("c");
  const std::string key = "ckopt.checksum";
  for (size_t at = 0; (at = bytes.find(key, at)) != std::string::npos;)
    bytes.replace(at, key.size(), "other.checksum");
  put("old", bytes);
  OpenCheckpoint old = valueOf(openCheckpoint(file("old")));
  EXPECT_FALSE(old.tensors.hasChecksums());
  EXPECT_EQ(valueOf(old.tensors.readAll()).find("w")->getDouble(0), 1);
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
  StringMetadata now = {{"optimizer", "sgd"}, {"lr", "0.10000000000000001"}};
  const std::string text = textOf(checkOptions(some().state.options, now, "c"));
  expectContains(text, "--optimizer was 'adamw' when the run was saved, "
                       "now it is 'sgd'");
  expectContains(text,
                 "--lr was not set when the run was saved, now it is '0.1'");
  expectContains(text, "--batch was '64' when the run was saved, now it "
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

/// Writes a share of "m" [4, 3] (0, 1, 2, ...), "v" [5] and "none" [0]: the
/// first `cut` elements of m and all of "none", or the others and v.
static ShardFile share(const std::string &path, int64_t save, int64_t rank,
                       int64_t cut) {
  std::vector<ShardPart> parts = {
      {"m", DType::F32, {4, 3}, rank ? cut : 0, rank ? 12 - cut : cut, 0}};
  if (rank)
    parts.push_back({"v", DType::F32, {5}, 0, 5, 0});
  else
    parts.push_back({"none", DType::F32, {0}, 0, 0, 0});
  return valueOf(
      writeShare(path, save, rank, 2, parts, [](const ShardPart &part) {
        HostTensor value(part.dtype, {part.count});
        for (int64_t i = 0; i < part.count; ++i)
          value.setDouble(i, double(part.begin + i));
        return value;
      }));
}

TEST_F(Checkpoints, OfSeveralRanksAreReadInAnyParts) {
  for (int64_t cut : {6, 7}) { // whole rows, and in the middle of one
    int64_t save = valueOf(beginSave(file("c")));
    EXPECT_EQ(save, cut - 5);
    std::vector<ShardFile> shares = {share(file("c"), save, 0, cut),
                                     share(file("c"), save, 1, cut)};
    put("c.shards/.save9-rank0of2.safetensors.tmp-1-0", "left by a kill");
    put("c.shards/notes.txt", "not ours");
    EXPECT_EQ(textOf(finishSave(file("c"), some().state, shares)), "");
    OpenCheckpoint read = valueOf(openCheckpoint(file("c")));
    EXPECT_EQ(read.state.step, 123);
    TensorMap all = valueOf(read.tensors.readAll());
    EXPECT_EQ(all.find("m")->shape(), llvm::ArrayRef<int64_t>({4, 3}));
    EXPECT_EQ(all.find("none")->numElements(), 0);
    EXPECT_EQ(all.find("v")->getDouble(4), 4);
    for (int64_t begin = 0; begin <= 12; ++begin)
      for (int64_t end = begin; end <= 12; ++end) {
        HostTensor part = valueOf(read.tensors.read(0, begin, end - begin));
        ASSERT_EQ(part.numElements(), end - begin);
        for (int64_t i = begin; i < end; ++i)
          EXPECT_EQ(part.getDouble(i - begin), double(i));
      }
    // The shares, and nobody else's file, but for what a kill left.
    EXPECT_TRUE(llvm::sys::fs::exists(file("c.shards/notes.txt")));
    EXPECT_FALSE(llvm::sys::fs::exists(
        file("c.shards/.save9-rank0of2.safetensors.tmp-1-0")));
  }
  EXPECT_FALSE(
      llvm::sys::fs::exists(file("c.shards/save1-rank0of2.safetensors")));
  EXPECT_EQ(textOf(writeCheckpoint(file("c"), some())), "");
  EXPECT_FALSE(
      llvm::sys::fs::exists(file("c.shards/save2-rank0of2.safetensors")));
}

TEST_F(Checkpoints, SharesThatAreNotWholeAreNoCheckpoint) {
  int64_t save = valueOf(beginSave(file("c")));
  ShardFile first = share(file("c"), save, 0, 6),
            second = share(file("c"), save, 1, 7);
  // No index: a run that was killed here has no checkpoint.
  EXPECT_NE(textOf(openCheckpoint(file("c"))), "");
  EXPECT_EQ(textOf(finishSave(file("c"), some().state, {first, second})), "");
  expectContains(textOf(openCheckpoint(file("c"))),
                 "tensor 'm' is not whole in its shares");
  ShardFile elsewhere = first;
  elsewhere.name = shardName(save, 0, 3);
  expectContains(textOf(finishSave(file("c"), some().state, {elsewhere})),
                 "which rank 0 has written, is not seen by rank 0");
}
