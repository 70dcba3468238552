//===- LockFile.h - the recorded algorithms of a device ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results on a device are equal to the bit for one device, driver, library
// versions and algorithms. The first load writes these next to the artifact;
// later loads take the same ones or fail. The file is text, with one entry a
// line:
//   ckopt-lock 1
//   NAME VALUE           device, driver, library versions
//   card VALUE           without libraries: where it was written, for people
//   algorithm KEY VALUE  KEY: the primitive's descriptor; VALUE: an algorithm
//                        of the library, or "own WHY" for a kernel of ours
//   sum HASH             of all bytes before this line
// A call that the file lacks is added to it (for an artifact of another
// budget), so without the checksum a lost line would silently be chosen again.
// Equal descriptors have one algorithm whatever the budget, so artifacts of one
// model may share a file. Loads in other threads and processes may add to it at
// the same time: each writer locks the folder (flock, where the file system has
// it), merges its lines into the current file, and replaces the whole file.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_LOCKFILE_H
#define CKOPT_LIB_RUNTIME_CUDA_LOCKFILE_H

#include "ckopt/Runtime/Primitive.h"

#include <map>
#include <string>

namespace ckopt::runtime::cuda {

/// Returns all parameters that decide an algorithm, without spaces.
std::string lockKey(const PrimitiveDesc &desc, int64_t workspace);
/// Returns the entry for a kernel of our own, and whether an entry is one.
std::string ownKernel(const std::string &why);
bool isOwnKernel(const std::string &algorithm);

class LockFile {
public:
  enum class Written {
    Yes,
    Differs, ///< another load wrote other facts or algorithms meanwhile
    No       ///< an I/O error
  };

  /// The path of a file beside this one, which ends with `suffix` in place of
  /// ".lock"; "" where there is no file.
  std::string beside(const std::string &suffix) const;
  /// Names the file.
  void place(const std::string &at) { path = at; }
  /// Returns whether the algorithms are kept in a file.
  bool isFile() const { return !path.empty(); }
  /// Reads the file; a missing file counts as empty, and an empty path means no
  /// file. On failure returns false and sets the reason.
  bool read(const std::string &path, std::string &error);
  /// Writes the file if anything was added. On failure `error` has the reason.
  Written write(std::string &error) const;

  /// Records a fact of the machine. Returns false, with the difference, if the
  /// file says otherwise.
  bool fact(const std::string &name, const std::string &value,
            std::string &error);
  /// Names the device of the first load, on which nothing depends.
  void noteCard(const std::string &name);
  /// Returns the algorithm of a descriptor, or "" if there is none yet.
  std::string algorithm(const std::string &key) const;
  void setAlgorithm(const std::string &key, const std::string &value);

private:
  /// Adds the lines of the other file; returns false, with the difference, if
  /// they contradict.
  bool merge(const LockFile &other, std::string &error);
  std::string text() const;
  bool parse(const std::string &text);

  std::string path;
  std::map<std::string, std::string> facts, algorithms;
  bool changed = false;
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_LOCKFILE_H
