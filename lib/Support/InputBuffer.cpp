//===- InputBuffer.cpp - files that users and folders name ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/InputBuffer.h"
#include "ckopt/Base/InputFile.h"
#include "ckopt/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include <unistd.h>

using namespace llvm;

namespace ckopt {

Expected<std::unique_ptr<MemoryBuffer>> openInputBuffer(StringRef path,
                                                        bool endsWithZero) {
  std::string why;
  const int file = openInput(path.str(), why);
  if (file < 0)
    return inputError(why);
  auto buffer = MemoryBuffer::getOpenFile(file, path, /*FileSize=*/-1,
                                          /*RequiresNullTerminator=*/
                                          endsWithZero);
  ::close(file);
  if (!buffer)
    return inputError(buffer.getError().message());
  return std::move(*buffer);
}

Expected<std::unique_ptr<MemoryBuffer>> readInput(StringRef path,
                                                  bool endsWithZero) {
  auto buffer = openInputBuffer(path, endsWithZero);
  if (!buffer)
    return withContext(buffer.takeError(), "cannot read '" + path + "'");
  return buffer;
}

} // namespace ckopt
