//===- OutputFiles.cpp - what a command writes ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A lock file is removed while it is locked. So who has locked one looks
// whether the name still leads to it, and else begins again.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/OutputFiles.h"
#include "ckopt/Base/ShardedFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/FilePaths.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include <cerrno>
#include <fcntl.h>
#include <map>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace ckopt {

/// The file that a name leads to, whether it is there or not: links are
/// followed, and the folder's name is the real one. Empty: it is no file.
static std::string targetOf(StringRef given) {
  SmallString<256> path(given.size() > 1 ? given.rtrim('/') : given);
  sys::fs::file_status status;
  if (path.empty() || path == "-" ||
      (!sys::fs::status(path, status) && !sys::fs::is_regular_file(status) &&
       !sys::fs::is_directory(status)))
    return "";
  // A link that leads nowhere yet is followed by hand.
  char link[4096];
  for (int links = 0; links < 40; ++links) {
    const ssize_t size = readlink(path.c_str(), link, sizeof(link));
    if (size <= 0)
      break;
    SmallString<256> next(StringRef(link, size_t(size)));
    if (sys::path::is_relative(next)) {
      SmallString<256> base(sys::path::parent_path(path));
      sys::path::append(base, next);
      next = base;
    }
    path = next;
  }
  SmallString<256> folder(sys::path::parent_path(path)), real;
  if (folder.empty())
    folder = ".";
  if (sys::fs::real_path(folder, real))
    real = folder;
  sys::path::append(real, sys::path::filename(path));
  return real.str().str();
}

/// Calls `visit` for the files in a folder that data are read from: arrays in
/// it, and, where there are none, images below.
static void forEachOfFolder(StringRef folder,
                            function_ref<void(StringRef)> visit) {
  std::set<sys::fs::UniqueID> seen; // links may lead back
  bool hasArrays = false;
  std::vector<std::string> folders{folder.str()};
  while (!folders.empty()) {
    const std::string top = std::move(folders.back());
    folders.pop_back();
    std::error_code code;
    for (sys::fs::directory_iterator it(top, code), end; it != end && !code;
         it.increment(code)) {
      const StringRef path = it->path(), ending = sys::path::extension(path);
      sys::fs::file_status status;
      const bool isArray = ending == ".npy";
      hasArrays |= isArray && top == folder;
      if (isArray || ending.equals_insensitive(".png") ||
          ending.equals_insensitive(".jpg") ||
          ending.equals_insensitive(".jpeg"))
        visit(path);
      else if (!sys::fs::status(path, status) &&
               sys::fs::is_directory(status) &&
               seen.insert(status.getUniqueID()).second)
        folders.push_back(path.str());
    }
    if (hasArrays)
      return;
  }
}

/// Calls `visit` for all files that are read where an input is named.
static void forEachRead(StringRef path, function_ref<void(StringRef)> visit) {
  Expected<std::vector<std::string>> files =
      listFiles(path == "-" ? "/dev/stdin" : path);
  if (!files)
    return consumeError(files.takeError()); // whoever reads it says so
  for (const std::string &file : *files) {
    visit(file);
    if (sys::fs::is_directory(file))
      forEachOfFolder(file, visit);
    std::error_code code;
    for (sys::fs::directory_iterator it(shardFolder(targetOfLink(file)), code),
         end;
         it != end && !code; it.increment(code))
      if (saveOfShard(sys::path::filename(it->path())) >= 0)
        visit(it->path());
  }
}

/// Refuses outputs that are there already, and read.
static Error checkKeepsInputs(ArrayRef<NamedFile> outputs,
                              ArrayRef<NamedFile> inputs) {
  std::map<sys::fs::UniqueID, std::vector<const NamedFile *>> existing;
  for (const NamedFile &output : outputs) {
    sys::fs::UniqueID id;
    if (!targetOf(output.path).empty() &&
        !sys::fs::getUniqueID(output.path, id))
      existing[id].push_back(&output);
  }
  Error errors = Error::success();
  if (existing.empty())
    return errors;
  for (const NamedFile &input : inputs)
    forEachRead(input.path, [&](StringRef file) {
      sys::fs::UniqueID id;
      auto found = existing.end();
      if (!sys::fs::getUniqueID(file, id))
        found = existing.find(id);
      if (found == existing.end())
        return;
      for (const NamedFile *output : found->second)
        if (output->renews.empty() || output->renews != input.flag)
          errors = joinErrors(
              std::move(errors),
              usageError(output->flag + "=" + output->path + " would replace " +
                         (file == input.path ? "" : "a file of ") + input.flag +
                         ", '" + file + "': give the result another name"));
    });
  return errors;
}

Error checkDistinct(ArrayRef<NamedFile> outputs, ArrayRef<NamedFile> inputs) {
  Error errors = checkKeepsInputs(outputs, inputs);
  StringMap<const NamedFile *> known;
  for (const NamedFile &output : outputs) {
    const bool isStream = output.path == "-";
    const std::string target = isStream ? "-" : targetOf(output.path);
    if (target.empty())
      continue;
    auto [place, isNew] = known.try_emplace(target, &output);
    if (!isNew)
      errors = joinErrors(
          std::move(errors),
          usageError(place->second->flag + " and " + output.flag +
                     " both write " +
                     (isStream ? "standard output" : "'" + output.path + "'") +
                     ": give each a name of its own"));
  }
  return errors;
}

/// Opens a lock file and locks it; returns its descriptor, or -1 and errno.
static int openLocked(const std::string &path) {
  while (true) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
      return -1;
    struct stat opened, named;
    if (flock(file, LOCK_EX | LOCK_NB) != 0) {
      const int reason = errno;
      ::close(file);
      errno = reason;
      return -1;
    }
    if (fstat(file, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
        opened.st_ino == named.st_ino && opened.st_dev == named.st_dev)
      return file;
    ::close(file); // its owner has just removed it
  }
}

Error OutputLocks::lock(ArrayRef<NamedFile> outputs) {
  for (const NamedFile &output : outputs) {
    const std::string target = targetOf(output.path);
    if (target.empty())
      continue;
    std::string path = (sys::path::parent_path(target) + "/." +
                        sys::path::filename(target).take_front(240) + ".lock")
                           .str();
    const int file = openLocked(path);
    if (file < 0 && errno == EWOULDBLOCK)
      return ioError("cannot write '" + output.path +
                     "': another ckopt is running that writes it (it holds '" +
                     path + "')");
    if (file < 0)
      continue;
    sys::RemoveFileOnSignal(path);
    held.push_back({file, std::move(path)});
  }
  return Error::success();
}

OutputLocks::~OutputLocks() {
  for (const Held &one : held) {
    unlink(one.path.c_str());
    sys::DontRemoveFileOnSignal(one.path);
    ::close(one.file);
  }
}

} // namespace ckopt
