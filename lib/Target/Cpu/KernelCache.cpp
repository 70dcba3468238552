//===- KernelCache.cpp - compiled kernels on the disk ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Target/Cpu/KernelCache.h"
#include "ckopt/Support/InputBuffer.h"
#include "llvm-c/Core.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <cstdlib>
#include <link.h>

using namespace ckopt;
namespace fs = llvm::sys::fs;

/// What a file begins with; then come its checksum and the bytes.
static constexpr llvm::StringLiteral kMagic = "ckopt-kernel-1\n";
/// LLVM prunes files whose names begin so, and no others.
static constexpr llvm::StringLiteral kPrefix = "llvmcache-";

/// Covers the key as well, so that a file under another's name is recognized.
static uint64_t checksum(llvm::StringRef key, llvm::StringRef bytes) {
  uint64_t sums[2] = {llvm::xxh3_64bits(key), llvm::xxh3_64bits(bytes)};
  return llvm::xxh3_64bits(
      llvm::ArrayRef(reinterpret_cast<const uint8_t *>(sums), sizeof(sums)));
}

static std::string defaultFolder() {
  const char *own = std::getenv("CKOPT_CACHE_DIR");
  if (own && *own)
    return own;
  llvm::SmallString<128> path;
  if (!llvm::sys::path::cache_directory(path))
    return "off";
  llvm::sys::path::append(path, "ckopt");
  return path.str().str();
}

KernelCache::KernelCache(llvm::StringRef where,
                         std::function<void(const MessageText &)> warn)
    : warn(std::move(warn)) {
  path = where.empty() ? defaultFolder() : where.str();
  if (path == "off" || compilerBuild().empty())
    path.clear();
  writes = !path.empty();
}

KernelCache::~KernelCache() {
  if (!stored)
    return;
  llvm::CachePruningPolicy policy;
  policy.Expiration = std::chrono::seconds(0);
  policy.MaxSizePercentageOfAvailableSpace = 0;
  policy.MaxSizeBytes = kMostBytes;
  llvm::pruneCache(path, policy);
}

void KernelCache::prune(uint64_t mostBytes) {
  llvm::CachePruningPolicy policy;
  policy.Interval = std::chrono::seconds(0);
  policy.Expiration = std::chrono::seconds(0);
  policy.MaxSizePercentageOfAvailableSpace = 0;
  policy.MaxSizeBytes = mostBytes;
  llvm::pruneCache(path, policy);
}

std::string KernelCache::fileOf(llvm::StringRef key) const {
  llvm::SmallString<128> file(path);
  static const std::string build =
      llvm::utohexstr(llvm::xxh3_64bits(compilerBuild()), /*LowerCase=*/true);
  llvm::sys::path::append(file, kPrefix + key + "-" + build);
  return file.str().str();
}

std::optional<std::vector<char>> KernelCache::find(llvm::StringRef key) {
  if (path.empty())
    return std::nullopt;
  std::string file = fileOf(key);
  auto buffer = openInputBuffer(file);
  if (!buffer) {
    llvm::consumeError(buffer.takeError());
    return std::nullopt;
  }
  llvm::StringRef bytes = (*buffer)->getBuffer();
  if (bytes.consume_front(kMagic) && bytes.size() >= sizeof(uint64_t)) {
    uint64_t sum = llvm::support::endian::read64le(bytes.data());
    bytes = bytes.drop_front(sizeof(uint64_t));
    if (sum == checksum(key, bytes))
      return std::vector<char>(bytes.begin(), bytes.end());
  }
  warn("the compiled kernel in '" + file + "' is damaged, and compiled again");
  return std::nullopt;
}

void KernelCache::giveUpWriting(const std::string &reason) {
  writes = false;
  warn("cannot keep compiled kernels in '" + path + "' (" + reason + "); " +
       Setting("kernel-cache") +
       " or CKOPT_CACHE_DIR names another folder, or 'off'");
}

void KernelCache::store(llvm::StringRef key, llvm::ArrayRef<char> bytes) {
  if (!writes)
    return;
  if (auto code = fs::create_directories(path))
    return giveUpWriting(code.message());
  llvm::SmallString<128> temporary;
  int handle = -1;
  if (auto code =
          fs::createUniqueFile(fileOf("tmp-%%%%%%%%%%%%"), handle, temporary))
    return giveUpWriting(code.message());
  llvm::raw_fd_ostream os(handle, /*shouldClose=*/true);
  char sum[sizeof(uint64_t)];
  llvm::StringRef text(bytes.data(), bytes.size());
  llvm::support::endian::write64le(sum, checksum(key, text));
  os << kMagic << llvm::StringRef(sum, sizeof(sum)) << text;
  os.close();
  std::error_code code = os.error();
  os.clear_error(); // or its destructor ends the program
  if (!code)
    code = fs::rename(temporary, fileOf(key));
  if (code) {
    fs::remove(temporary);
    return giveUpWriting(code.message());
  }
  stored = true;
}

//===----------------------------------------------------------------------===//
// The build
//===----------------------------------------------------------------------===//

namespace {
struct BuildIdSearch {
  ElfW(Addr) address = 0; ///< in the module that is looked for
  std::string id;
};
} // namespace

/// Reads the GNU build id of the module, among its notes.
static std::string buildIdOf(const dl_phdr_info &module) {
  for (int i = 0; i < module.dlpi_phnum; ++i) {
    const auto &header = module.dlpi_phdr[i];
    if (header.p_type != PT_NOTE)
      continue;
    const char *at =
        reinterpret_cast<const char *>(module.dlpi_addr + header.p_vaddr);
    const char *end = at + header.p_memsz;
    auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto &note = *reinterpret_cast<const ElfW(Nhdr) *>(at);
      const char *name = at + sizeof(note);
      const char *value = name + padded(note.n_namesz);
      if (value + note.n_descsz > end)
        break;
      if (note.n_type == NT_GNU_BUILD_ID &&
          llvm::StringRef(name, note.n_namesz) == llvm::StringRef("GNU\0", 4))
        return llvm::toHex(llvm::StringRef(value, note.n_descsz));
      at = value + padded(note.n_descsz);
    }
  }
  return "";
}

static int visitModule(dl_phdr_info *module, size_t, void *data) {
  auto &search = *static_cast<BuildIdSearch *>(data);
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const auto &header = module->dlpi_phdr[i];
    ElfW(Addr) begin = module->dlpi_addr + header.p_vaddr;
    if (header.p_type != PT_LOAD || search.address < begin ||
        search.address >= begin + header.p_memsz)
      continue;
    search.id = buildIdOf(*module);
    return 1;
  }
  return 0;
}

/// Returns the build id of the module that holds an address.
static std::string buildIdAt(const void *address) {
  BuildIdSearch search;
  search.address = reinterpret_cast<ElfW(Addr)>(address);
  dl_iterate_phdr(visitModule, &search);
  return search.id;
}

std::string ckopt::compilerBuild() {
  static const std::string build = [] {
    std::string own = buildIdAt(reinterpret_cast<const void *>(&buildIdAt));
    std::string llvm =
        buildIdAt(reinterpret_cast<const void *>(&LLVMGetVersion));
    if (own.empty() || llvm.empty())
      return std::string();
    return own + " " + llvm + " " + LLVM_VERSION_STRING;
  }();
  return build;
}
