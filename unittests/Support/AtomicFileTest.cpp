//===- AtomicFileTest.cpp - whatever happens, the old file stays ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/AtomicFile.h"
#include "TestFiles.h"
#include <csignal>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ckopt;

class Atomic : public FilesTest {
protected:
  /// Runs `body` in a child process; returns its wait status.
  template <typename Body> int inChild(Body body) {
    const pid_t child = fork();
    if (child == 0) {
      body();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }
};

TEST_F(Atomic, WritesAndReplaces) {
  EXPECT_EQ(textOf(writeFileAtomically(file("a"), "one")), "");
  EXPECT_EQ(get("a"), "one");
  EXPECT_EQ(textOf(writeFileAtomically(file("a"), "two")), "");
  EXPECT_EQ(get("a"), "two");
  EXPECT_EQ(fileCount(), 1u);
}

TEST_F(Atomic, LargeAndManyPieces) {
  std::string all;
  EXPECT_EQ(textOf(writeFileAtomically(
                file("a"),
                [&](AtomicFile &out) -> llvm::Error {
                  for (int i = 0; i < 3000; ++i) {
                    std::string piece(size_t(i % 700), char('a' + i % 26));
                    if (i % 1000 == 0)
                      piece.assign(600000, 'z');
                    all += piece;
                    if (auto error = out.write(piece))
                      return error;
                  }
                  EXPECT_EQ(out.position(), all.size());
                  return llvm::Error::success();
                })),
            "");
  EXPECT_TRUE(get("a") == all);
}

TEST_F(Atomic, NothingIsLeftWithoutCommit) {
  put("a", "old");
  {
    AtomicFile out = valueOf(AtomicFile::create(file("a")));
    EXPECT_EQ(textOf(out.write("new")), "");
    EXPECT_EQ(fileCount(), 2u);
  }
  EXPECT_EQ(get("a"), "old");
  EXPECT_EQ(fileCount(), 1u);
}

TEST_F(Atomic, AnErrorOfTheWriterKeepsTheOldFile) {
  put("a", "old");
  EXPECT_EQ(textOf(writeFileAtomically(
                file("a"),
                [&](AtomicFile &) { return inputError("no such tensor"); })),
            "no such tensor");
  EXPECT_EQ(get("a"), "old");
  EXPECT_EQ(fileCount(), 1u);
}

TEST_F(Atomic, AFullDiskKeepsTheOldFile) {
  // A limit on the size of files fails as a full disk does, in the middle.
  put("a", "old");
  const int status = inChild([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {100000, 100000};
    setrlimit(RLIMIT_FSIZE, &limit);
    ErrorText error = takeErrorText(
        writeFileAtomically(file("a"), std::string(1000000, 'x')));
    const bool good =
        error.code == ExitIoError &&
        error.text.find("File too large") != std::string::npos &&
        error.text.find("previous file is unchanged") != std::string::npos;
    _exit(good ? 0 : 1);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(get("a"), "old");
  EXPECT_EQ(fileCount(), 1u);
}

TEST_F(Atomic, DevicesAreWrittenDirectly) {
  if (access("/dev/full", W_OK) != 0)
    GTEST_SKIP();
  ErrorText error = takeErrorText(writeFileAtomically("/dev/full", "x"));
  EXPECT_EQ(error.code, ExitIoError);
  expectContains(error.text, "No space left on device");
  EXPECT_EQ(textOf(writeFileAtomically("/dev/null", "x")), "");
  struct stat info;
  ASSERT_EQ(stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode)) << "the device was replaced";
}

TEST_F(Atomic, AKillInTheMiddleKeepsTheOldFile) {
  put("a", "old");
  const int status = inChild([&] {
    auto out = AtomicFile::create(file("a"));
    if (!out)
      _exit(1);
    llvm::consumeError(out->write(std::string(1000000, 'x')));
    raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(get("a"), "old");
}

TEST_F(Atomic, ATerminationRemovesTheTemporary) {
  put("a", "old");
  const int status = inChild([&] {
    auto out = AtomicFile::create(file("a"));
    if (!out)
      _exit(1);
    llvm::consumeError(out->write(std::string(1000000, 'x')));
    raise(SIGTERM);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(get("a"), "old");
  EXPECT_EQ(fileCount(), 1u);
}

TEST_F(Atomic, PathsThatCannotBeWritten) {
  EXPECT_EQ(codeOf(writeFileAtomically("", "x")), ExitIoError);
  const std::string missing =
      textOf(writeFileAtomically(file("no/such/a"), "x"));
  expectContains(missing, "no/such/a");
  expectContains(missing, "No such file or directory");
  expectContains(textOf(writeFileAtomically(folder, "x")), "it is a folder");
  put("plain", "x");
  expectContains(textOf(writeFileAtomically(file("plain/a"), "x")),
                 "Not a directory");
}

TEST_F(Atomic, TheLongestNameLeavesRoomForTheTemporary) {
  EXPECT_EQ(textOf(writeFileAtomically(file(std::string(255, 'n')), "x")), "");
  EXPECT_EQ(fileCount(), 1u);
}

TEST_F(Atomic, NoPermissionIsAnError) {
  if (geteuid() == 0)
    GTEST_SKIP() << "root may write anywhere";
  put("a", "old");
  chmod(file("a").c_str(), 0444);
  expectContains(textOf(writeFileAtomically(file("a"), "x")),
                 "Permission denied");
  EXPECT_EQ(get("a"), "old");
}

TEST_F(Atomic, LinksAndModesStay) {
  put("target", "old");
  chmod(file("target").c_str(), 0640);
  ASSERT_EQ(symlink("target", file("link").c_str()), 0);
  EXPECT_EQ(textOf(writeFileAtomically(file("link"), "new")), "");
  EXPECT_EQ(get("target"), "new");
  struct stat info;
  ASSERT_EQ(lstat(file("link").c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
  ASSERT_EQ(stat(file("target").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}
