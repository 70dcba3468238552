//===- CudaSearchTest.cpp - where CUDA's libraries are looked for ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A script in the place of Python says which folders it imports from.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/CudaSearch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace ckopt::runtime;

namespace {

class CudaSearch : public testing::Test {
protected:
  void SetUp() override {
    char name[] = "/tmp/ckopt-search-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    path = std::getenv("PATH") ? std::getenv("PATH") : "";
    setenv("PATH", folder.c_str(), 1);
  }
  void TearDown() override {
    setenv("PATH", path.c_str(), 1);
    std::filesystem::remove_all(folder);
  }
  void python(const std::string &name, const std::string &lines) {
    std::ofstream(folder + "/" + name) << "#!/bin/sh\n" << lines;
    std::filesystem::permissions(folder + "/" + name,
                                 std::filesystem::perms::owner_all);
  }
  void file(const std::string &name) {
    std::filesystem::create_directories(
        std::filesystem::path(folder + "/" + name).parent_path());
    std::ofstream(folder + "/" + name) << "x";
  }
  /// The folders that Python's packages have.
  std::vector<std::string> found() {
    std::vector<std::string> folders = cudaLibraryFolders();
    folders.erase(std::remove_if(folders.begin(), folders.end(),
                                 [&](const std::string &one) {
                                   return one.compare(0, folder.size(),
                                                      folder) != 0;
                                 }),
                  folders.end());
    return folders;
  }

  std::string folder, path;
};

} // namespace

// Packages are looked for in each folder of Python's own list, the newest
// first; a folder whose name has a meaning in patterns is that folder.
TEST_F(CudaSearch, AsksPython) {
  file("s[i]te/nvidia/cu12/lib/libcublasLt.so.12");
  file("s[i]te/nvidia/cu13/lib/libcublasLt.so.13");
  file("other/nvidia/cudnn/lib/libcudnn.so.9");
  python("python3", "echo\necho relative\necho " + folder + "/none\necho '" +
                        folder + "/s[i]te'\necho " + folder + "/other\n");
  std::vector<std::string> wanted = {folder + "/s[i]te/nvidia/cu13/lib",
                                     folder + "/s[i]te/nvidia/cu12/lib",
                                     folder + "/other/nvidia/cudnn/lib"};
  EXPECT_EQ(found(), wanted);
  EXPECT_EQ(findInFolders({"libcublasLt.so.13", "libcublasLt.so.12"}, found()),
            wanted[0] + "/libcublasLt.so.13");
  EXPECT_EQ(findInFolders({"libcublasLt.so.12"}, found()),
            wanted[1] + "/libcublasLt.so.12");
  EXPECT_EQ(findInFolders({"libcudnn.so.9"}, found()),
            wanted[2] + "/libcudnn.so.9");
  EXPECT_EQ(findInFolders({"libcudnn.so.8"}, found()), "");
}

// Without Python there is nothing to ask; `python` serves where python3 lacks.
TEST_F(CudaSearch, DoesWithoutPython) {
  EXPECT_TRUE(found().empty());
  file("site/nvidia/cudnn/lib/libcudnn.so.9");
  python("python", "echo " + folder + "/site\n");
  EXPECT_EQ(found().size(), 1u);
}

// What the user names stays.
TEST_F(CudaSearch, LeavesWhatIsSet) {
  file("site/nvidia/cudnn/lib/libcudnn.so.9");
  python("python3", "echo " + folder + "/site\n");
  setenv("CKOPT_CUDNN", "/mine", 1);
  Manifest manifest;
  manifest.primitives.resize(1);
  manifest.primitives[0].kind = PrimitiveKind::ConvForward;
  manifest.calls.resize(1);
  manifest.calls[0].launches.resize(1);
  manifest.calls[0].launches[0].primitive = 0;
  chooseCudaLibraries(manifest);
  EXPECT_STREQ(std::getenv("CKOPT_CUDNN"), "/mine");
  unsetenv("CKOPT_CUDNN");
  manifest.calls.clear(); // nothing is needed
  chooseCudaLibraries(manifest);
  EXPECT_EQ(std::getenv("CKOPT_CUDNN"), nullptr);
}
