//===- DeviceArtifact.cpp - writing a compiled step for a device ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes an artifact so that a crash leaves the old or the new one. Files go to
// a folder beside the target and are forced to disk, then the folder is moved
// into place. An older artifact is exchanged with it in one step if the file
// system can do that, else it is moved aside first. If anything fails, the old
// artifact stays and the temporary folder is removed.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/DeviceArtifact.h"
#include "ckopt/Base/MessageText.h"

#include "DeviceHash.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <unistd.h>

using namespace ckopt::runtime;
namespace fs = std::filesystem;

namespace {

std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", c);
      result += escape;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string versionText(int64_t version, int64_t unit) {
  return std::to_string(version / unit) + "." +
         std::to_string(version % unit / (unit / 10 > 1 ? unit / 100 : 1));
}

std::string precisionText(ProductPrecision precision) {
  std::string name(productPrecisionName(precision));
  if (precision == ProductPrecision::F32)
    return "Products and convolutions: f32.\n\n";
  return "Products and convolutions of f32: operands rounded to " + name +
         ", sums in f32 (" + ckopt::foreignFlag("matmul-precision") + "=" +
         name + ").\n\n";
}

std::string readme(const Manifest &m) {
  const DeviceInfo &d = m.device;
  return "A training step compiled by " + m.producer +
         " for CUDA devices.\n\n"
         "Needs: compute capability " +
         versionText(d.sm, 10) + " or higher, a driver for CUDA " +
         versionText(d.minDriver, 1000) + " or later (cuDriverGetVersion " +
         std::to_string(d.minDriver) + "), " + std::to_string(m.arenaBytes) +
         " bytes of device memory for its arena,\nbeside what the driver takes "
         "(ckopt-run " +
         ckopt::foreignFlag("inspect") + " tells).\n\n" +
         precisionText(d.precision) + "Run: ckopt-run FOLDER " +
         ckopt::foreignFlag("input") + "=NAME=FILE.npy ...   (" +
         ckopt::foreignFlag("list") +
         " shows the "
         "names)\n\nmanifest.bin, kernels.ptx and data.bin belong together; "
         "step.json is for people and scripts.\n";
}

/// A file whose contents are on disk once finish() succeeds.
class NewFile {
public:
  NewFile(const fs::path &path) : path(path) {
    fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  ~NewFile() {
    if (fd >= 0)
      ::close(fd);
  }
  bool write(const void *data, size_t size) {
    auto *next = static_cast<const char *>(data);
    while (fd >= 0 && size > 0) {
      ssize_t wrote = ::write(fd, next, size);
      if (wrote < 0 && errno == EINTR)
        continue;
      if (wrote <= 0)
        return false;
      next += wrote;
      size -= static_cast<size_t>(wrote);
    }
    return fd >= 0;
  }
  bool finish() { return fd >= 0 && fsync(fd) == 0; }

private:
  fs::path path;
  int fd = -1;
};

bool writeWhole(const fs::path &path, const void *data, size_t size,
                std::string &error) {
  NewFile file(path);
  if (file.write(data, size) && file.finish())
    return true;
  error = path.string() + ": " + std::strerror(errno);
  return false;
}

bool writeData(const fs::path &path, DataSource *data, uint64_t &hash,
               std::string &error) {
  constexpr int64_t kBlock = 8 << 20;
  int64_t total = data ? data->bytes() : 0;
  std::vector<char> block(static_cast<size_t>(std::min(kBlock, total)));
  NewFile file(path);
  DeviceHash running;
  bool sound = true;
  for (int64_t at = 0; sound && at < total; at += kBlock) {
    auto size = static_cast<size_t>(std::min(kBlock, total - at));
    if (!data->read(at, block.data(), size, error))
      return false;
    running.add(block.data(), size);
    sound = file.write(block.data(), size);
  }
  if (!sound || !file.finish()) {
    error = path.string() + ": " + std::strerror(errno);
    return false;
  }
  hash = running.value();
  return true;
}

/// Returns whether the folder may be replaced: it is empty, or an artifact of
/// ckopt.
bool isReplaceable(const fs::path &folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code))
    return false;
  for (const auto &entry : fs::directory_iterator(folder, code)) {
    std::string name = entry.path().filename().string();
    if (name != artifact::kManifest && name != artifact::kCode &&
        name != artifact::kData && name != artifact::kSummary &&
        name != artifact::kReadme)
      return false;
  }
  return !code;
}

void syncFolder(const fs::path &folder) {
  int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return;
  (void)fsync(fd);
  ::close(fd);
}

/// Moves `made` to `target`, replacing what is there.
bool moveIntoPlace(const fs::path &made, const fs::path &target,
                   std::string &error) {
  std::error_code code;
  if (!fs::exists(fs::symlink_status(target, code))) {
    if (::rename(made.c_str(), target.c_str()) == 0)
      return true;
  } else if (renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, target.c_str(),
                       RENAME_EXCHANGE) == 0) {
    fs::remove_all(made, code); // the old one
    return true;
  } else {
    fs::path old = made.string() + "-old";
    if (::rename(target.c_str(), old.c_str()) == 0) {
      if (::rename(made.c_str(), target.c_str()) == 0) {
        fs::remove_all(old, code);
        return true;
      }
      int reason = errno;
      (void)::rename(old.c_str(), target.c_str());
      errno = reason;
    }
  }
  error = target.string() + ": " + std::strerror(errno);
  return false;
}

bool writeFiles(const fs::path &folder, Manifest manifest,
                std::string_view code, DataSource *data, std::string &error) {
  DeviceInfo &info = manifest.device;
  DeviceHash hash;
  hash.add(code.data(), code.size());
  info.codeHash = hash.value();
  info.codeBytes = static_cast<int64_t>(code.size());
  info.dataBytes = data ? data->bytes() : 0;
  if (!writeData(folder / artifact::kData, data, info.dataHash, error))
    return false;
  for (const TensorInfo &t : manifest.tensors)
    if (t.dataOffset >= 0 && (t.dataBytes() > info.dataBytes ||
                              t.dataOffset > info.dataBytes - t.dataBytes())) {
      error = "the data of tensor '" + t.name + "' is missing";
      return false;
    }
  if (!validate(manifest, error))
    return false;
  std::vector<uint8_t> blob = serialize(manifest);
  std::string summary = deviceSummary(manifest), text = readme(manifest);
  return writeWhole(folder / artifact::kCode, code.data(), code.size(),
                    error) &&
         writeWhole(folder / artifact::kSummary, summary.data(), summary.size(),
                    error) &&
         writeWhole(folder / artifact::kReadme, text.data(), text.size(),
                    error) &&
         writeWhole(folder / artifact::kManifest, blob.data(), blob.size(),
                    error);
}

/// Data in memory.
class MemorySource final : public DataSource {
public:
  MemorySource(const void *data, size_t size)
      : data(static_cast<const char *>(data)), size(size) {}
  int64_t bytes() const override { return static_cast<int64_t>(size); }
  bool read(int64_t offset, void *to, size_t count, std::string &) override {
    std::memcpy(to, data + offset, count);
    return true;
  }

private:
  const char *data;
  size_t size;
};

} // namespace

std::string ckopt::runtime::deviceSummary(const Manifest &m) {
  const DeviceInfo &d = m.device;
  std::string text =
      "{\n  \"target\": " + quoted(std::string(targetName(m.target))) +
      ",\n  \"sm\": " + std::to_string(d.sm) +
      ",\n  \"ptx\": " + quoted(versionText(d.ptxIsa, 10)) +
      ",\n  \"oldest_driver\": " + std::to_string(d.minDriver) +
      ",\n  \"matmul_precision\": " +
      quoted(std::string(productPrecisionName(d.precision))) +
      ",\n  \"multiprocessors\": " + std::to_string(d.multiprocessors) +
      (d.programmatic ? ",\n  \"programmatic_launches\": true" : "") +
      ",\n  \"arena_bytes\": " + std::to_string(m.arenaBytes) +
      ",\n  \"data_bytes\": " + std::to_string(d.dataBytes) +
      ",\n  \"producer\": " + quoted(m.producer) + ",\n  \"functions\": [";
  for (size_t f = 0; f < m.functions.size(); ++f) {
    size_t launches = 0;
    for (const CallInfo &call : m.calls)
      if (static_cast<size_t>(call.function) == f)
        launches += call.launches.size();
    text += std::string(f ? ", " : "") +
            "{\"name\": " + quoted(m.functions[f].name) +
            ", \"launches\": " + std::to_string(launches) + "}";
  }
  text += "],\n  \"kernels\": [";
  for (size_t k = 0; k < m.kernels.size(); ++k) {
    const KernelInfo &kernel = m.kernels[k];
    text += std::string(k ? "," : "") +
            "\n    {\"symbol\": " + quoted(kernel.symbol) +
            ", \"grid\": " + std::to_string(kernel.grid) +
            ", \"block\": " + std::to_string(kernel.block) +
            ", \"shared_bytes\": " + std::to_string(kernel.sharedBytes) +
            ", \"sources\": [";
    for (size_t s = 0; s < kernel.sources.size(); ++s)
      text += (s ? ", " : "") + quoted(kernel.sources[s]);
    text += "]}";
  }
  return text + "\n  ]\n}\n";
}

bool ckopt::runtime::writeDeviceArtifact(const std::string &folder,
                                         const Manifest &manifest,
                                         std::string_view code,
                                         DataSource *data, std::string &error) {
  std::error_code failure;
  fs::path target = fs::absolute(folder, failure).lexically_normal();
  if (!target.has_filename())
    target = target.parent_path();
  if (folder.empty() || failure || !target.has_filename()) {
    error = "'" + folder + "' names no folder to write";
    return false;
  }
  if (manifest.target != Target::Cuda) {
    error = "the manifest is not for a device";
    return false;
  }
  if (fs::exists(fs::symlink_status(target, failure)) &&
      !isReplaceable(target)) {
    error = folder + ": exists and is no ckopt artifact; not replaced";
    return false;
  }
  fs::path made =
      target.string() + ".tmp-" + std::to_string(static_cast<long>(getpid()));
  fs::create_directory(made, failure);
  if (failure) {
    error = made.string() + ": " + failure.message();
    return false;
  }
  bool sound = writeFiles(made, manifest, code, data, error);
  if (sound) {
    syncFolder(made);
    sound = moveIntoPlace(made, target, error);
  }
  if (!sound)
    fs::remove_all(made, failure);
  else
    syncFolder(target.parent_path());
  return sound;
}

bool ckopt::runtime::writeDeviceArtifact(const std::string &folder,
                                         const Manifest &manifest,
                                         std::string_view code,
                                         const void *data, size_t dataBytes,
                                         std::string &error) {
  MemorySource source(data, dataBytes);
  return writeDeviceArtifact(folder, manifest, code, &source, error);
}
