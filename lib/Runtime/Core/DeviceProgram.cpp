//===- DeviceProgram.cpp - loading a compiled step for a device -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads a program from a folder or from memory. Nothing in the folder is
// trusted: every file must have the size and hash that the manifest states,
// every tensor's data must lie inside the data file, and the manifest's own
// checks hold every address inside the arena. Loading needs no device, so that
// an artifact can be inspected anywhere.
//
//===----------------------------------------------------------------------===//
#include "DeviceHash.h"
#include "Session.h"

#include "ckopt/Runtime/DeviceArtifact.h"
#include "ckopt/Runtime/LastFailure.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

using namespace ckopt::runtime;

namespace {

// Larger than any real step's files; below this limit, reading whole files is
// cheap.
constexpr int64_t kMaxSmallFile = int64_t(1) << 30;

/// A file mapped for reading.
class MappedFile {
public:
  ~MappedFile() {
    if (memory)
      munmap(memory, size);
  }
  /// Maps the file; on failure returns false and sets `error`.
  bool map(const std::string &path, int64_t most, std::string &error) {
    // A blocking open of a pipe would wait for a writer that may never come.
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info = {};
    bool sound = fd >= 0 && fstat(fd, &info) == 0;
    if (sound && !S_ISREG(info.st_mode)) {
      ::close(fd);
      error = path + " is no regular file";
      return false;
    }
    if (sound && info.st_size > most) {
      errno = EFBIG;
      sound = false;
    }
    if (sound && info.st_size > 0) {
      size = static_cast<size_t>(info.st_size);
      memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
      if (memory == MAP_FAILED) {
        memory = nullptr;
        sound = false;
      }
    }
    if (!sound)
      error = path + ": " + std::strerror(errno);
    if (fd >= 0)
      ::close(fd);
    return sound;
  }
  const char *data() const { return static_cast<const char *>(memory); }
  uint64_t hash() const {
    DeviceHash hash;
    hash.add(memory, size);
    return hash.value();
  }
  /// Transfers ownership of the mapping.
  void *release() {
    void *taken = memory;
    memory = nullptr;
    return taken;
  }
  size_t size = 0;

private:
  void *memory = nullptr;
};

/// Returns "", or how the file differs from the manifest.
std::string compare(const MappedFile &file, int64_t bytes, uint64_t hash) {
  if (file.size != static_cast<uint64_t>(bytes))
    return "holds " + std::to_string(file.size) +
           " bytes where the manifest says " + std::to_string(bytes);
  return file.hash() == hash ? "" : "is damaged (its hash differs)";
}

} // namespace

ckrt_status ckopt::runtime::loadDeviceFolder(const std::string &path,
                                             ckrt_program **program) {
  MappedFile manifest, code, data;
  std::string error, in = path + "/";
  if (!manifest.map(in + artifact::kManifest, kMaxSmallFile, error))
    return fail(CKRT_BAD_ARTIFACT,
                path + " is a folder but no ckopt artifact: " + error);
  std::unique_ptr<ckrt_program> made;
  Manifest checked;
  if (!parse(manifest.data(), manifest.size, checked, error))
    return fail(CKRT_BAD_ARTIFACT, in + artifact::kManifest + ": " + error);
  if (ckrt_status status = checkTarget(checked, Target::Cuda))
    return fail(status, path + ": " + lastFailure());
  for (auto [file, name, most] :
       {std::tuple(&code, artifact::kCode, kMaxSmallFile),
        std::tuple(&data, artifact::kData, INT64_MAX)})
    if (!file->map(in + name, most, error))
      return fail(CKRT_BAD_ARTIFACT,
                  "cannot read a file of the artifact: " + error);
  const DeviceInfo &info = checked.device;
  for (auto [file, name, bytes, hash] :
       {std::tuple(&code, artifact::kCode, info.codeBytes, info.codeHash),
        std::tuple(&data, artifact::kData, info.dataBytes, info.dataHash)})
    if (std::string what = compare(*file, bytes, hash); !what.empty())
      return fail(CKRT_BAD_ARTIFACT, in + name + " " + what);
  if (ckrt_status status = makeProgram(manifest.data(), manifest.size,
                                       Target::Cuda, data.size, made))
    return fail(status, path + ": " + lastFailure());
  made->deviceCode.assign(code.data() ? code.data() : "", code.size);
  made->folder = path;
  made->mapped = data.size;
  made->mapping = data.release();
  made->data = static_cast<const char *>(made->mapping);
  *program = made.release();
  return CKRT_OK;
}

ckrt_status ckrt_program_load_device(const void *manifest, size_t manifest_size,
                                     const char *code, size_t code_size,
                                     const void *data, size_t data_size,
                                     ckrt_program **program) {
  if (!program || (!code && code_size))
    return fail(CKRT_INVALID_ARGUMENT,
                "ckrt_program_load_device: null argument");
  std::unique_ptr<ckrt_program> made;
  if (ckrt_status status = makeProgram(manifest, manifest_size, Target::Cuda,
                                       data ? data_size : 0, made))
    return status;
  made->deviceCode.assign(code ? code : "", code_size);
  made->data = static_cast<const char *>(data);
  *program = made.release();
  return CKRT_OK;
}
