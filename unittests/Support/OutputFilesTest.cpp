//===- OutputFilesTest.cpp - two results, one name ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/OutputFiles.h"
#include "TestFiles.h"
#include <sys/wait.h>
#include <unistd.h>

using namespace ckopt;

class OutputFiles : public FilesTest {
protected:
  std::string check(const std::string &a, const std::string &b) {
    return textOf(checkDistinct({{"--a", a}, {"--b", b}}, {}));
  }
};

TEST_F(OutputFiles, OneFileUnderTwoNamesIsAUsageError) {
  ASSERT_FALSE(llvm::sys::fs::create_directory(file("d")));
  ASSERT_EQ(symlink("d", file("link").c_str()), 0);
  ASSERT_EQ(symlink("later", file("dangling").c_str()), 0);
  const std::string x = file("x");
  for (const auto &[a, b] : {std::pair(x, x),
                             {x, file("./x")},
                             {x, file("d/../x")},
                             {file("d/x"), file("link/x")},
                             {file("later"), file("dangling")}}) {
    llvm::Error error = checkDistinct({{"--a", a}, {"--b", b}}, {});
    ErrorText text = takeErrorText(std::move(error));
    EXPECT_EQ(text.code, ExitUsage) << a << " " << b;
    expectContains(text.text, "--a and --b both write");
  }
  EXPECT_EQ(check(x, file("d/x")), "");
  EXPECT_EQ(check("", ""), "");
  expectContains(check("-", "-"), "--a and --b both write standard output");
  EXPECT_EQ(check("/dev/null", "/dev/null"), "");
}

TEST_F(OutputFiles, NoResultReplacesWhatIsRead) {
  put("m", "model");
  ASSERT_EQ(symlink("m", file("link").c_str()), 0);
  ASSERT_EQ(::link(file("m").c_str(), file("hard").c_str()), 0);
  for (const char *name : {"m", "./m", "link", "hard"})
    expectContains(
        textOf(checkDistinct({{"-o", file(name)}}, {{"the model", file("m")}})),
        "would replace the model");
  EXPECT_EQ(
      textOf(checkDistinct({{"-o", file("n")}}, {{"the model", file("m")}})),
      "");
}

TEST_F(OutputFiles, AnOutputMayRenewTheInputThatItGoesOnFrom) {
  put("c", "checkpoint");
  auto check = [&](const char *input) {
    return textOf(checkDistinct({{"--checkpoint", file("c"), "--resume"}},
                                {{input, file("c")}}));
  };
  EXPECT_EQ(check("--resume"), "");
  expectContains(check("--weights"), "would replace --weights");
}

TEST_F(OutputFiles, TwoProcessesDoNotWriteOneFile) {
  const std::vector<NamedFile> outputs{{"-o", file("x")}};
  auto lockElsewhere = [&] {
    const pid_t child = fork();
    if (child == 0) {
      OutputLocks locks;
      _exit(codeOf(locks.lock(outputs)));
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  {
    OutputLocks locks;
    ASSERT_EQ(textOf(locks.lock(outputs)), "");
    EXPECT_EQ(lockElsewhere(), ExitIoError);
  }
  EXPECT_EQ(fileCount(), 0u);
  // This one ends without cleaning up, and leaves the file, not the lock.
  EXPECT_EQ(lockElsewhere(), ExitOk);
  OutputLocks locks;
  EXPECT_EQ(textOf(locks.lock(outputs)), "");
}
