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

TEST(Error, NamesDoNotSteerTheTerminal) {
  std::string printed;
  llvm::raw_string_ostream os(printed);
  // ESC, BEL, DEL, C1's CSI, an override of direction; letters stay.
  reportError(
      inputError("'\x1b[31m\a\x7f\xc2\x9b\xe2\x80\xae\xc3\xa9'\nforged"),
      "ckopt", os);
  EXPECT_EQ(printed, "ckopt: error: '\\x1b[31m\\x07\\x7f\\xc2\\x9b"
                     "\\xe2\\x80\\xae\xc3\xa9'\nckopt: error: forged\n");
}

namespace {
/// Counts writes, as an unbuffered stream makes them.
class CountingStream : public llvm::raw_ostream {
public:
  CountingStream() : raw_ostream(/*unbuffered=*/true) {}
  int writes = 0;

private:
  void write_impl(const char *, size_t) override { ++writes; }
  uint64_t current_pos() const override { return 0; }
};
} // namespace

TEST(Error, AMessageIsOneWriteSoThatThoseOfSeveralProcessesStayApart) {
  CountingStream os;
  reportError(joinErrors(usageError("one"), inputError("two")), "ckopt", os);
  EXPECT_EQ(os.writes, 1);
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
