//===- Link.cpp - an object to a shared library ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Conversion/Emit/Emit.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

using namespace ckopt;

/// Finds a linker on the PATH: lld first, then those of compilers.
static llvm::Expected<std::string> findLinker() {
  for (const char *name : {"ld.lld-22", "ld.lld", "ld.bfd", "ld"})
    if (auto path = llvm::sys::findProgramByName(name))
      return *path;
  return makeError(ExitIoError,
                   "no linker found to write a shared library; install lld-22 "
                   "(or binutils), or use 'ckopt train', which needs none");
}

llvm::Error ckopt::linkSharedLibrary(const std::vector<char> &object,
                                     const std::string &path) {
  auto linker = findLinker();
  if (!linker)
    return linker.takeError();
  llvm::SmallString<128> objectPath, libraryPath;
  if (auto code =
          llvm::sys::fs::createTemporaryFile("ckopt-step", "o", objectPath))
    return ioError("cannot make a temporary file: " + code.message());
  llvm::FileRemover removeObject(objectPath);
  if (llvm::Error error = writeFileAtomically(
          objectPath, llvm::StringRef(object.data(), object.size())))
    return error;
  if (auto code =
          llvm::sys::fs::createTemporaryFile("ckopt-step", "so", libraryPath))
    return ioError("cannot make a temporary file: " + code.message());
  llvm::FileRemover removeLibrary(libraryPath);
  std::string problem;
  llvm::StringRef arguments[] = {*linker, "-shared",   "--build-id=none",
                                 "-o",    libraryPath, objectPath};
  if (int code = llvm::sys::ExecuteAndWait(*linker, arguments, std::nullopt, {},
                                           0, 0, &problem))
    return makeError(ExitInternal, "linking '" + path + "' failed with code " +
                                       llvm::Twine(code) + " " + problem);
  auto library = llvm::MemoryBuffer::getFile(libraryPath);
  if (!library)
    return ioError("cannot read the linked library: " +
                   library.getError().message());
  return writeFileAtomically(path, (*library)->getBuffer());
}
