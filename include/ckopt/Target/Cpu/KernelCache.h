//===- KernelCache.h - compiled kernels on the disk -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cache is a folder of compiled kernels, one file each, named by a hash of
// everything that decides the code (its LLVM IR before optimization, the
// processor, the level, the compiler's build). So entries are never out of
// date, and an artifact has the same bytes with and without it. Files appear
// whole or not at all, so that processes may share a folder; one that was
// damaged is recognized by a checksum. If the folder cannot be written, nothing
// is cached.
//
// The folder contains machine code that steps run, so nobody else should be
// able to write to it.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_CPU_KERNELCACHE_H
#define CKOPT_TARGET_CPU_KERNELCACHE_H

#include "ckopt/Base/MessageText.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

class KernelCache {
public:
  /// `where` is a folder or "off"; "" means $CKOPT_CACHE_DIR (which may be
  /// "off", too), else ckopt/ in $XDG_CACHE_HOME or ~/.cache. `warn` gets
  /// messages on damaged files and, once, on a folder that cannot be written.
  KernelCache(llvm::StringRef where,
              std::function<void(const MessageText &)> warn);
  /// Removes the files that were read longest ago if all together have more
  /// than `kMostBytes`, at most every 20 minutes, and only after a store().
  ~KernelCache();
  KernelCache(const KernelCache &) = delete;

  static constexpr uint64_t kMostBytes = uint64_t(1) << 30;

  /// Returns the folder; "" if there is none.
  const std::string &folder() const { return path; }

  /// Returns the bytes that this build stored under a key, which is hexadecimal
  /// digits.
  std::optional<std::vector<char>> find(llvm::StringRef key);
  void store(llvm::StringRef key, llvm::ArrayRef<char> bytes);

  /// Removes files as the destructor does, but immediately and whatever their
  /// size.
  void prune(uint64_t mostBytes);

private:
  std::string fileOf(llvm::StringRef key) const;
  void giveUpWriting(const std::string &reason);

  std::string path;
  std::function<void(const MessageText &)> warn;
  bool writes = false; ///< whether store() writes files
  bool stored = false;
};

/// Returns what identifies the build of ckopt and of LLVM in this process; ""
/// if their files have no build id, so that nothing can be cached.
std::string compilerBuild();

} // namespace ckopt

#endif // CKOPT_TARGET_CPU_KERNELCACHE_H
