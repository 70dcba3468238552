//===- Link.cpp - objects to a shared library -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/MessageText.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Cpu/Emit.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace ckopt;

static Linker linkerInside = nullptr;

void ckopt::setLinker(Linker linker) { linkerInside = linker; }

/// Finds a linker on the PATH: lld first, then those of compilers.
static llvm::Expected<std::string> findLinker() {
  if (linkerInside)
    return "ld.lld";
  for (const char *name : {"ld.lld-22", "ld.lld", "ld.bfd", "ld"})
    if (auto path = llvm::sys::findProgramByName(name))
      return *path;
  return makeError(ExitIoError,
                   "no linker found to write a shared library; install lld-22 "
                   "(or binutils), or use 'ckopt train', which needs none");
}

/// Returns the exit code; a negative one with the problem where the linker does
/// not run.
static int runLinker(llvm::ArrayRef<llvm::StringRef> arguments,
                     std::string &problem) {
  if (!linkerInside)
    return llvm::sys::ExecuteAndWait(arguments.front(), arguments, std::nullopt,
                                     {}, 0, 0, &problem);
  std::vector<std::string> texts(arguments.begin(), arguments.end());
  std::vector<const char *> pointers;
  for (const std::string &text : texts)
    pointers.push_back(text.c_str());
  return linkerInside(pointers);
}

/// An archive of the kernels: one file for the linker, which takes from it what
/// the main object refers to.
static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
archiveOf(const std::vector<std::vector<char>> &kernels) {
  std::vector<llvm::NewArchiveMember> members;
  for (const std::vector<char> &kernel : kernels)
    members.emplace_back(llvm::MemoryBufferRef(
        llvm::StringRef(kernel.data(), kernel.size()), "kernel.o"));
  return llvm::writeArchiveToBuffer(members,
                                    llvm::SymtabWritingMode::NormalSymtab,
                                    llvm::object::Archive::K_GNU,
                                    /*Deterministic=*/true, /*Thin=*/false);
}

namespace {

/// A file that is removed with the object.
struct TemporaryFile {
  llvm::Error make(llvm::StringRef suffix) {
    if (auto code =
            llvm::sys::fs::createTemporaryFile("ckopt-step", suffix, path)) {
      llvm::SmallString<128> folder;
      llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, folder);
      return ioError("cannot make a temporary file in '" + folder +
                     "': " + code.message() + "; TMPDIR names another folder");
    }
    remover.setFile(path);
    return llvm::Error::success();
  }
  llvm::Error make(llvm::StringRef suffix, llvm::StringRef bytes) {
    if (llvm::Error error = make(suffix))
      return error;
    return writeFileAtomically(path, bytes);
  }

  llvm::SmallString<128> path;
  llvm::FileRemover remover;
};

} // namespace

llvm::Error ckopt::linkSharedLibrary(const StepObjects &objects,
                                     const std::string &path) {
  auto linker = findLinker();
  if (!linker)
    return linker.takeError();
  TemporaryFile main, kernels, linked;
  if (llvm::Error error = main.make(
          "o", llvm::StringRef(objects.main.data(), objects.main.size())))
    return error;
  if (llvm::Error error = linked.make("so"))
    return error;
  const std::string noId = foreignFlag("build-id") + "=none";
  const std::string oneThread = foreignFlag("threads") + "=1";
  llvm::SmallVector<llvm::StringRef> arguments = {
      *linker, "-shared", noId, "-o", linked.path, main.path};
  // Its threads would take longer to make than the work, where a limit allows
  // any.
  if (llvm::sys::path::filename(*linker).starts_with("ld.lld"))
    arguments.push_back(oneThread);
  if (!objects.kernels.empty()) {
    auto archive = archiveOf(objects.kernels);
    if (!archive)
      return archive.takeError();
    if (llvm::Error error = kernels.make("a", (*archive)->getBuffer()))
      return error;
    arguments.push_back(kernels.path);
  }
  std::string problem;
  int code = runLinker(arguments, problem);
  // Negative: it could not be started, or a signal ended it.
  if (code < 0)
    return ioError("cannot link '" + path + "': '" + *linker +
                   "' does not run here: " + problem);
  if (code)
    return makeError(ExitInternal, "linking '" + path + "' failed with code " +
                                       llvm::Twine(code) + " " + problem);
  auto library = llvm::MemoryBuffer::getFile(linked.path);
  if (!library)
    return ioError("cannot read the linked library: " +
                   library.getError().message());
  return writeFileAtomically(path, (*library)->getBuffer());
}
