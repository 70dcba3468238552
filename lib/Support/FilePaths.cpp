//===- FilePaths.cpp - the files that a path means ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/FilePaths.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ckopt {

std::string targetOfLink(StringRef path) {
  SmallString<256> target;
  bool isLink = false;
  if (!sys::fs::is_symlink_file(path, isLink) && isLink &&
      !sys::fs::real_path(path, target))
    return target.str().str();
  return path.str();
}

Expected<std::vector<std::string>> listFiles(StringRef pattern) {
  const StringRef name = sys::path::filename(pattern);
  if (name.find_first_of("*?[") == StringRef::npos || sys::fs::exists(pattern))
    return std::vector<std::string>{pattern.str()};
  Expected<GlobPattern> glob = GlobPattern::create(name);
  if (!glob)
    return usageError("'" + pattern +
                      "' is no pattern: " + toString(glob.takeError()));
  const StringRef folder = sys::path::parent_path(pattern);
  std::vector<std::string> found;
  std::error_code code;
  for (sys::fs::directory_iterator
           it(folder.empty() ? StringRef(".") : folder, code),
       end;
       it != end && !code; it.increment(code)) {
    const StringRef file = sys::path::filename(it->path());
    if (glob->match(file)) {
      SmallString<128> path(folder);
      sys::path::append(path, file);
      found.push_back(path.str().str());
    }
  }
  if (found.empty())
    return inputError("no file matches '" + pattern + "'" +
                      (code ? ": " + code.message() : ""));
  llvm::sort(found);
  return found;
}

} // namespace ckopt
