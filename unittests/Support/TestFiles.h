//===- TestFiles.h - helpers of Support's tests -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A folder of its own for each test, and errors as text.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_SUPPORT_TESTFILES_H
#define CKOPT_UNITTESTS_SUPPORT_TESTFILES_H

#include "ckopt/Support/Error.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

namespace ckopt {

/// The text of an error; "" for success.
inline std::string textOf(llvm::Error error) {
  return takeErrorText(std::move(error)).text;
}
template <typename T> std::string textOf(llvm::Expected<T> value) {
  return value ? std::string() : textOf(value.takeError());
}
inline ExitCode codeOf(llvm::Error error) {
  return takeErrorText(std::move(error)).code;
}
template <typename T> ExitCode codeOf(llvm::Expected<T> value) {
  return value ? ExitOk : codeOf(value.takeError());
}
/// The value, or a failed test with the error's text.
template <typename T> T valueOf(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  ADD_FAILURE() << textOf(value.takeError());
  std::abort();
}

inline void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "'" << part << "' is not in '" << text << "'";
}

class FilesTest : public ::testing::Test {
protected:
  FilesTest() { (void)llvm::sys::fs::createUniqueDirectory("ckopt", folder); }
  ~FilesTest() override { llvm::sys::fs::remove_directories(folder); }

  std::string file(llvm::StringRef name) const {
    return (folder + "/" + name).str();
  }
  void put(llvm::StringRef name, llvm::StringRef bytes) const {
    std::error_code code;
    llvm::raw_fd_ostream os(file(name), code);
    ASSERT_FALSE(code);
    os << bytes;
  }
  std::string get(llvm::StringRef name) const {
    auto buffer = llvm::MemoryBuffer::getFile(file(name), false, false);
    return buffer ? (*buffer)->getBuffer().str() : std::string("<none>");
  }
  size_t fileCount() const {
    std::error_code code;
    size_t count = 0;
    for (llvm::sys::fs::directory_iterator it(folder, code), end;
         it != end && !code; it.increment(code))
      ++count;
    return count;
  }

  llvm::SmallString<64> folder;
};

/// A copy of `bytes` with nothing behind it, so that a sanitizer sees any read
/// past the end.
inline std::unique_ptr<llvm::MemoryBuffer>
exactBuffer(llvm::StringRef bytes, std::vector<char> &storage) {
  storage.assign(bytes.begin(), bytes.end());
  storage.shrink_to_fit();
  return llvm::MemoryBuffer::getMemBuffer(
      llvm::StringRef(storage.data(), storage.size()), "bytes", false);
}

} // namespace ckopt

#endif // CKOPT_UNITTESTS_SUPPORT_TESTFILES_H
