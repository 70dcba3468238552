//===- CodeFile.h - machine code beside an artifact -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A driver takes seconds to compile an artifact's PTX, and its own cache is
// lost with a container. The first load therefore keeps the machine code beside
// the lock file, under the compute capability and the driver that it is of:
//   ckopt-cubin 1 HASH-OF-PTX HASH-OF-CODE
//   the code
// A file that is of other PTX, or damaged, is made again; where none can be
// written, each load compiles. Files appear whole or not at all.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_CODEFILE_H
#define CKOPT_LIB_RUNTIME_CUDA_CODEFILE_H

#include <string>

namespace ckopt::runtime::cuda {

class CodeFile {
public:
  /// An empty path: there is no file.
  CodeFile(std::string path, const std::string &ptx);

  /// Returns the code, or "" if the file has none of this PTX.
  std::string read() const;
  void write(const std::string &code) const;
  /// Whether there may be a file.
  bool exists() const { return !path.empty(); }

private:
  std::string head(const std::string &code) const;

  std::string path, ptxHash;
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_CODEFILE_H
