//===- BadInputTest.cpp - wrong input gives an error and loses nothing ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the ckopt tool as a user does and checks its exit code and its message:
// the code is documented, and the text names the problem.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Npz.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace ckopt;
using namespace ckopt::test;

namespace {

struct ToolResult {
  int code = 0;
  std::string text; ///< stdout and stderr
};

class BadInput : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("ckopt-test", folder));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string path(llvm::StringRef name) const {
    llvm::SmallString<128> result(folder);
    llvm::sys::path::append(result, name);
    return result.str().str();
  }

  ToolResult ckopt(std::vector<std::string> arguments) const {
    std::string tool = CKOPT_TOOL, out = path("out.txt");
    std::vector<llvm::StringRef> all{tool};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::optional<llvm::StringRef> redirects[] = {
        llvm::StringRef(""), llvm::StringRef(out), llvm::StringRef(out)};
    ToolResult result;
    result.code =
        llvm::sys::ExecuteAndWait(tool, all, std::nullopt, redirects, 300);
    if (auto buffer = llvm::MemoryBuffer::getFile(out))
      result.text = (*buffer)->getBuffer().str();
    return result;
  }

  std::vector<std::string> digits(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"train",
                                          dataPath("models/digits_cnn.onnx"),
                                          "--inputs=x=images",
                                          "--targets=labels",
                                          "--loss=cross_entropy",
                                          "--batch=64",
                                          "--quiet",
                                          "--max-steps=2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::string digitsData() const { return "--data=" + dataPath("digits.npz"); }

  /// The digits with an array changed.
  std::string changedData(llvm::StringRef name, HostTensor value) const {
    TensorMap arrays = get(readNpz(dataPath("digits.npz")));
    arrays.set(name, std::move(value));
    check(writeNpz(path("data.npz"), arrays));
    return "--data=" + path("data.npz");
  }

  llvm::SmallString<128> folder;
};

#define EXPECT_FAILS(RESULT, CODE, ...)                                        \
  do {                                                                         \
    ToolResult failed = (RESULT);                                              \
    EXPECT_EQ(failed.code, CODE) << failed.text;                               \
    for (const char *part : {__VA_ARGS__})                                     \
      EXPECT_NE(failed.text.find(part), std::string::npos)                     \
          << "no '" << part << "' in: " << failed.text;                        \
  } while (false)

TEST_F(BadInput, MissingModel) {
  EXPECT_FAILS(ckopt({"plan", path("none.onnx"), "--loss=mse"}), ExitInputError,
               "none.onnx");
}

TEST_F(BadInput, GarbageAndTruncatedModels) {
  check(
      writeFileAtomically(path("garbage.onnx"), "this is no protobuf at all"));
  EXPECT_FAILS(ckopt({"plan", path("garbage.onnx"), "--loss=mse"}),
               ExitInputError, "garbage.onnx");
  auto whole = llvm::MemoryBuffer::getFile(goldenPath("lenet", "model.onnx"));
  ASSERT_TRUE(bool(whole));
  check(writeFileAtomically(
      path("half.onnx"),
      (*whole)->getBuffer().take_front((*whole)->getBufferSize() / 2)));
  EXPECT_FAILS(ckopt({"plan", path("half.onnx"), "--loss=cross_entropy"}),
               ExitInputError, "half.onnx");
}

TEST_F(BadInput, UsageErrorsHaveTheirOwnCode) {
  EXPECT_FAILS(ckopt({"trian"}), ExitUsage, "trian");
  EXPECT_FAILS(ckopt({"train"}), ExitUsage, "no model");
  EXPECT_FAILS(ckopt(digits({digitsData(), "--epoch=3"})), ExitUsage,
               "--epochs");
  EXPECT_FAILS(ckopt(digits({digitsData(), "--lr=fast"})), ExitUsage, "fast");
  EXPECT_FAILS(ckopt(digits({digitsData(), "--optimizer=lbfgs"})), ExitUsage,
               "adamw");
}

TEST_F(BadInput, BudgetsThatDoNotParseOrDoNotFit) {
  EXPECT_FAILS(ckopt(digits({digitsData(), "--memory-budget=2GX"})), ExitUsage,
               "2GX");
  EXPECT_FAILS(ckopt(digits({digitsData(), "--memory-budget=-1"})), ExitUsage,
               "-1");
  // The error names a budget that fits, and a proven bound.
  EXPECT_FAILS(ckopt(digits({digitsData(), "--memory-budget=64KiB"})),
               ExitInfeasible, "smallest", "proven");
}

TEST_F(BadInput, DataFilesWithoutWhatTheModelNeeds) {
  EXPECT_FAILS(ckopt(digits({"--data=" + path("none.npz")})), ExitInputError,
               "none.npz");
  EXPECT_FAILS(ckopt({"train", dataPath("models/digits_cnn.onnx"), digitsData(),
                      "--inputs=x=pictures", "--targets=labels",
                      "--loss=cross_entropy", "--batch=64", "--quiet"}),
               ExitInputError, "pictures", "images");
  EXPECT_FAILS(ckopt(digits({changedData(
                   "images", HostTensor(DType::U8, {1797, 1, 9, 8}))})),
               ExitInputError, "images");
  EXPECT_FAILS(ckopt(digits({changedData(
                   "images", HostTensor(DType::U8, {0, 1, 8, 8}))})),
               ExitInputError, "images");
}

TEST_F(BadInput, LabelsOutOfRangeAndNaNs) {
  HostTensor labels(DType::I64, {1797});
  labels.setDouble(1234, 10);
  EXPECT_FAILS(ckopt(digits({changedData("labels", labels)})), ExitInputError,
               "labels", "1234", "10");
  HostTensor images(DType::F32, {1797, 1, 8, 8});
  images.setDouble(64 * 5 + 3, std::numeric_limits<double>::quiet_NaN());
  EXPECT_FAILS(ckopt(digits({changedData("images", images)})), ExitInputError,
               "images", "5");
}

TEST_F(BadInput, TokensBeyondTheTable) {
  TensorMap arrays;
  HostTensor tokens(DType::I64, {4, 128});
  tokens.setDouble(3 * 128 + 5, 1000);
  arrays.set("x", tokens);
  arrays.set("y", HostTensor(DType::I64, {4, 128}));
  check(writeNpz(path("tokens.npz"), arrays));
  EXPECT_FAILS(ckopt({"train", dataPath("models/byte_gpt.onnx"), "--batch=2",
                      "--data=" + path("tokens.npz"), "--loss=cross_entropy",
                      "--quiet"}),
               ExitInputError, "'x'", "sample 3", "1000", "rows");
}

TEST_F(BadInput, WithoutBatchTheSymbolIsNamed) {
  EXPECT_FAILS(ckopt({"plan", dataPath("models/digits_cnn.onnx"),
                      "--loss=cross_entropy"}),
               ExitInputError, "batch", "--batch");
}

TEST_F(BadInput, OutputsThatCannotBeWritten) {
  EXPECT_FAILS(ckopt(digits({digitsData(), "-o", path("no/such/dir/t.onnx")})),
               ExitIoError, "no/such/dir");
  EXPECT_FAILS(ckopt(digits({digitsData(), "--checkpoint=/dev/full"})),
               ExitIoError, "/dev/full");
}

} // namespace
