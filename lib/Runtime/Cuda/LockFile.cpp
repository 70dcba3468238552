//===- LockFile.cpp - the recorded algorithms of a device -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "LockFile.h"
#include "Core/DeviceHash.h"
#include "WholeFile.h"

#include "ckopt/Base/MessageText.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

static const char kHead[] = "ckopt-lock 1";
static constexpr char kCard[] = "card";

std::string ckopt::runtime::cuda::lockKey(const PrimitiveDesc &desc,
                                          int64_t workspace) {
  std::string key = describe(desc);
  auto add = [&](std::initializer_list<int64_t> values) {
    for (int64_t value : values)
      key += "_" + std::to_string(value);
  };
  const MatMulDesc &m = desc.matmul;
  const AttentionDesc &a = desc.attention;
  if (desc.kind == PrimitiveKind::MatMul)
    add({m.aBatch[0], m.aBatch[1], m.aRow, m.aCol, m.bBatch[0], m.bBatch[1],
         m.bRow, m.bCol, m.cBatch[0], m.cBatch[1], m.cRow, m.cCol});
  else if (isConvolution(desc.kind))
    for (int64_t d = 0; d < desc.conv.rank; ++d)
      add({desc.conv.padsLo[d], desc.conv.padsHi[d], desc.conv.dilations[d]});
  else if (isAttention(desc.kind)) {
    add({a.offset});
    for (const auto &strides :
         {a.q, a.k, a.v, a.o, a.grad, a.qGrad, a.kGrad, a.vGrad})
      add({strides[0], strides[1], strides[2]});
  }
  add({workspace});
  std::replace(key.begin(), key.end(), ' ', '_');
  return key;
}

std::string ckopt::runtime::cuda::ownKernel(const std::string &why) {
  std::string line = "own " + why;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

bool ckopt::runtime::cuda::isOwnKernel(const std::string &algorithm) {
  return algorithm == "own" || algorithm.rfind("own ", 0) == 0;
}

/// Returns whether two entries choose the same; reasons may differ.
static bool agree(const std::string &a, const std::string &b) {
  return a == b || (isOwnKernel(a) && isOwnKernel(b));
}

static std::string sumLine(const std::string &text) {
  DeviceHash hash;
  hash.add(text.data(), text.size());
  char line[32];
  std::snprintf(line, sizeof(line), "sum %016llx\n",
                static_cast<unsigned long long>(hash.value()));
  return line;
}

/// Extracts the lines before the sum if the sum is right.
static bool checkedText(const std::string &all, std::string &text) {
  size_t length = sumLine("").size();
  if (all.size() < length)
    return false;
  text = all.substr(0, all.size() - length);
  return all.substr(text.size()) == sumLine(text);
}

bool LockFile::parse(const std::string &text) {
  std::istringstream in(text);
  std::string line;
  if (!std::getline(in, line) || line != kHead)
    return false;
  while (std::getline(in, line)) {
    size_t space = line.find(' ');
    if (space == std::string::npos || space == 0)
      return false;
    std::string name = line.substr(0, space), value = line.substr(space + 1);
    if (name != "algorithm") {
      facts[name] = value;
      continue;
    }
    space = value.find(' ');
    if (space == std::string::npos || space == 0 || space + 1 >= value.size())
      return false;
    algorithms[value.substr(0, space)] = value.substr(space + 1);
  }
  return true;
}

bool LockFile::read(const std::string &from, std::string &error) {
  path = from;
  if (path.empty() || access(path.c_str(), F_OK) != 0)
    return true;
  // Opening a pipe would wait for a writer that may never come.
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    error = path + " is no regular file: it cannot be the lock file";
    return false;
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    error = "cannot read the lock file " + path + ": " + std::strerror(errno);
    return false;
  }
  std::stringstream all;
  all << in.rdbuf();
  std::string text;
  if (checkedText(all.str(), text) && parse(text))
    return true;
  error = path + " is no lock file of ckopt, or damaged or changed; remove it "
                 "to choose algorithms again";
  return false;
}

std::string LockFile::beside(const std::string &suffix) const {
  static const std::string kLock = ".lock";
  bool ends =
      path.size() > kLock.size() &&
      path.compare(path.size() - kLock.size(), kLock.size(), kLock) == 0;
  return path.empty()
             ? ""
             : path.substr(0, path.size() - (ends ? kLock.size() : 0)) + suffix;
}

bool LockFile::merge(const LockFile &other, std::string &error) {
  for (const auto &[name, value] : other.facts)
    if (name == kCard)
      noteCard(value);
    else if (!fact(name, value, error))
      return false;
  for (const auto &[key, value] : other.algorithms)
    if (!agree(algorithms.emplace(key, value).first->second, value)) {
      error = "another load wrote " + path +
              " at the same time, with another algorithm for " + key +
              ": load again to take that one";
      return false;
    }
  return true;
}

std::string LockFile::text() const {
  std::ostringstream text;
  text << kHead << "\n";
  for (const auto &[name, value] : facts)
    text << name << " " << value << "\n";
  for (const auto &[key, value] : algorithms)
    text << "algorithm " << key << " " << value << "\n";
  return text.str() + sumLine(text.str());
}

namespace {

/// Lets one process at a time write in a folder; does nothing if the file
/// system has no such locks.
class FolderLock {
public:
  explicit FolderLock(const std::string &path) {
    size_t slash = path.rfind('/');
    std::string folder = slash == std::string::npos ? "."
                         : slash == 0               ? "/"
                                                    : path.substr(0, slash);
    descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (descriptor >= 0 && flock(descriptor, LOCK_EX) != 0 && errno == EINTR)
      ;
  }
  ~FolderLock() {
    if (descriptor >= 0)
      (void)close(descriptor); // which releases the lock
  }
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

private:
  int descriptor;
};

} // namespace

LockFile::Written LockFile::write(std::string &error) const {
  if (path.empty() || !changed)
    return Written::Yes;
  FolderLock alone(path);
  LockFile now;
  if (!now.read(path, error) || !now.merge(*this, error))
    return Written::Differs;
  int reason = replaceFile(path, now.text());
  if (!reason)
    return Written::Yes;
  error = "cannot write the lock file " + path + ": " + std::strerror(reason) +
          "; " + foreignFlag("lock") + "=FILE puts it elsewhere, " +
          foreignFlag("lock") + "= nowhere";
  return Written::No;
}

bool LockFile::fact(const std::string &name, const std::string &value,
                    std::string &error) {
  auto [known, isNew] = facts.emplace(name, value);
  changed |= isNew;
  if (isNew || known->second == value)
    return true;
  error = path + " was made with " + name + " " + known->second +
          ", here it is " + value +
          ": results would have other bits; remove the file to choose "
          "algorithms again";
  return false;
}

void LockFile::noteCard(const std::string &name) {
  changed |= facts.emplace(kCard, name).second;
}

std::string LockFile::algorithm(const std::string &key) const {
  auto found = algorithms.find(key);
  return found == algorithms.end() ? "" : found->second;
}

void LockFile::setAlgorithm(const std::string &key, const std::string &value) {
  changed |= algorithms[key] != value;
  algorithms[key] = value;
}
