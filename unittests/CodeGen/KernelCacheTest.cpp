//===- KernelCacheTest.cpp - compiled kernels on the disk -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Target/Cpu/KernelCache.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <gtest/gtest.h>

using namespace ckopt;

namespace {

class KernelCacheTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("kernel-cache", folder));
  }
  void TearDown() override { (void)llvm::sys::fs::remove_directories(folder); }
  KernelCache open() {
    return KernelCache(folder, [this](const MessageText &text) {
      said.push_back(text.inShell());
    });
  }
  std::vector<std::string> files() const {
    std::vector<std::string> result;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(folder, code), end;
         !code && it != end; it.increment(code))
      if (llvm::sys::path::filename(it->path()).starts_with("llvmcache-"))
        result.push_back(it->path());
    return result;
  }

  llvm::SmallString<128> folder;
  std::vector<std::string> said;
};

std::vector<char> bytesOf(size_t size, char value) {
  return std::vector<char>(size, value);
}

} // namespace

/// What is stored is found by its key, by this object and by others.
TEST_F(KernelCacheTest, FindsWhatWasStored) {
  {
    KernelCache cache = open();
    EXPECT_FALSE(cache.find("aa"));
    cache.store("aa", bytesOf(100, 1));
    cache.store("bb", {});
    EXPECT_EQ(cache.find("aa"), bytesOf(100, 1));
  }
  KernelCache other = open();
  EXPECT_EQ(other.find("aa"), bytesOf(100, 1));
  EXPECT_EQ(other.find("bb"), bytesOf(0, 0));
  EXPECT_FALSE(other.find("cc"));
  EXPECT_TRUE(said.empty());
}

/// A whole file under the name of another is no kernel.
TEST_F(KernelCacheTest, ChecksTheName) {
  KernelCache cache = open();
  cache.store("aa", bytesOf(100, 1));
  std::string file = files().at(0), other = file;
  other.replace(other.find("llvmcache-aa"), 12, "llvmcache-bb");
  ASSERT_FALSE(llvm::sys::fs::rename(file, other));
  EXPECT_FALSE(cache.find("bb"));
  EXPECT_EQ(said.size(), 1u);
}

/// Pruning keeps the folder below the limit and leaves whole files.
TEST_F(KernelCacheTest, PrunesToTheLimit) {
  KernelCache cache = open();
  for (char key = 'a'; key < 'k'; ++key)
    cache.store(std::string(2, key), bytesOf(10000, key));
  ASSERT_EQ(files().size(), 10u);
  cache.prune(55000);
  EXPECT_GT(files().size(), 0u);
  EXPECT_LE(files().size(), 5u);
  size_t found = 0;
  for (char key = 'a'; key < 'k'; ++key)
    if (auto bytes = cache.find(std::string(2, key))) {
      ++found;
      EXPECT_EQ(*bytes, bytesOf(10000, key));
    }
  EXPECT_EQ(found, files().size());
  EXPECT_TRUE(said.empty());
}

TEST_F(KernelCacheTest, OffKeepsNothing) {
  KernelCache cache("off", [](const MessageText &) {});
  cache.store("aa", bytesOf(1, 1));
  EXPECT_FALSE(cache.find("aa"));
  EXPECT_EQ(cache.folder(), "");
}
