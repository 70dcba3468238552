//===- LockFileTest.cpp - lock files that several loads write -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/Cuda/LockFile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace ckopt::runtime::cuda;

namespace {

class LockFiles : public testing::Test {
protected:
  void SetUp() override {
    char name[] = "/tmp/ckopt-lock-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    path = folder + "/step.lock";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  /// A load on `driver` that found one algorithm.
  LockFile loaded(const std::string &driver, const std::string &key,
                  const std::string &algorithm) {
    LockFile file;
    std::string error;
    EXPECT_TRUE(file.read(path, error)) << error;
    EXPECT_TRUE(file.fact("driver", driver, error)) << error;
    file.setAlgorithm(key, algorithm);
    return file;
  }
  std::string algorithm(const std::string &key) {
    LockFile file;
    std::string error;
    EXPECT_TRUE(file.read(path, error)) << error;
    return file.algorithm(key);
  }
  size_t files() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder), {}));
  }
  std::string folder, path, error;
};

} // namespace

// Two loads that both began before either wrote: both algorithms stay.
TEST_F(LockFiles, LoadsAtTheSameTimeAddToEachOther) {
  LockFile one = loaded("12040", "a", "1"), two = loaded("12040", "b", "2");
  EXPECT_EQ(one.write(error), LockFile::Written::Yes) << error;
  EXPECT_EQ(two.write(error), LockFile::Written::Yes) << error;
  EXPECT_EQ(algorithm("a"), "1");
  EXPECT_EQ(algorithm("b"), "2");
  EXPECT_EQ(files(), 1u);
}

// The second of two loads that disagree gets an error; the file of the first
// one stays.
TEST_F(LockFiles, LoadsThatDisagreeAreTold) {
  LockFile one = loaded("12040", "a", "1"), two = loaded("12040", "a", "2"),
           other = loaded("13000", "b", "2");
  EXPECT_EQ(one.write(error), LockFile::Written::Yes) << error;
  EXPECT_EQ(two.write(error), LockFile::Written::Differs);
  EXPECT_NE(error.find("another algorithm for a"), std::string::npos) << error;
  EXPECT_EQ(other.write(error), LockFile::Written::Differs);
  EXPECT_NE(error.find("driver 12040, here it is 13000"), std::string::npos)
      << error;
  EXPECT_EQ(algorithm("a"), "1");
  EXPECT_EQ(algorithm("b"), "");
}

// A pipe would be waited for.
TEST_F(LockFiles, ArePlainFiles) {
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  alarm(60);
  LockFile file;
  EXPECT_FALSE(file.read(path, error));
  alarm(0);
  EXPECT_NE(error.find("is no regular file"), std::string::npos) << error;
}

TEST_F(LockFiles, ThreadsDoNotLoseEntries) {
  std::vector<LockFile> loads;
  for (int i = 0; i < 8; ++i)
    loads.push_back(loaded("12040", "k" + std::to_string(i), "7"));
  std::vector<LockFile::Written> results(8, LockFile::Written::No);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      std::string reason;
      results[i] = loads[i].write(reason);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(std::count(results.begin(), results.end(), LockFile::Written::Yes),
            8);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(algorithm("k" + std::to_string(i)), "7");
  EXPECT_EQ(files(), 1u);
}

// A file left by a crashed process with the same process id causes no problem.
TEST_F(LockFiles, LeftoversDoNotMatter) {
  for (int i = 0; i < 100; ++i)
    std::ofstream(path + ".tmp-" + std::to_string(getpid()) + "-" +
                  std::to_string(i))
        << "ckopt-lo";
  LockFile one = loaded("12040", "a", "1");
  EXPECT_EQ(one.write(error), LockFile::Written::Yes) << error;
  EXPECT_EQ(algorithm("a"), "1");
}

TEST_F(LockFiles, AFolderThatIsNotThereIsAnIOError) {
  path = folder + "/none/step.lock";
  LockFile one = loaded("12040", "a", "1");
  EXPECT_EQ(one.write(error), LockFile::Written::No);
  EXPECT_NE(error.find("cannot write the lock file " + path), std::string::npos)
      << error;
}
