//===- ErrorTest.cpp - messages and exit codes ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestFiles.h"

using namespace ckopt;

TEST(Error, ContextKeepsTheExitCode) {
  llvm::Error error = withContext(ioError("disk full"), "out.npz");
  ErrorText text = takeErrorText(std::move(error));
  EXPECT_EQ(text.text, "out.npz: disk full");
  EXPECT_EQ(text.code, ExitIoError);
}

TEST(Error, SeveralErrorsAreOneLineEachAndTheFirstGivesTheCode) {
  std::string printed;
  llvm::raw_string_ostream os(printed);
  EXPECT_EQ(reportError(joinErrors(usageError("one"), inputError("two")),
                        "ckopt", os),
            ExitUsage);
  EXPECT_EQ(printed, "ckopt: error: one\nckopt: error: two\n");
}

TEST(Error, SuccessPrintsNothing) {
  std::string printed;
  llvm::raw_string_ostream os(printed);
  EXPECT_EQ(reportError(llvm::Error::success(), "ckopt", os), ExitOk);
  EXPECT_EQ(printed, "");
}

TEST(Error, ForeignErrorsAreInputErrors) {
  EXPECT_EQ(codeOf(llvm::createStringError("x")), ExitInputError);
}
