//===- LockFile.cpp - which algorithms a device runs ----------------------===//
#include "LockFile.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace ckopt::runtime::cuda;

static const char kHead[] = "ckopt-lock 1";

bool LockFile::read(const std::string &from, std::string &error) {
  path = from;
  if (path.empty() || access(path.c_str(), F_OK) != 0)
    return true;
  std::ifstream in(path);
  std::string line;
  bool sound = static_cast<bool>(std::getline(in, line)) && line == kHead;
  while (sound && std::getline(in, line)) {
    size_t space = line.find(' ');
    sound = space != std::string::npos && space > 0;
    if (!sound)
      break;
    std::string name = line.substr(0, space), value = line.substr(space + 1);
    if (name != "algorithm") {
      facts[name] = value;
      continue;
    }
    space = value.find(' ');
    sound = space != std::string::npos && space > 0 && space + 1 < value.size();
    if (sound)
      algorithms[value.substr(0, space)] = value.substr(space + 1);
  }
  // A file without its last line break was cut.
  if (sound) {
    in.clear();
    in.seekg(-1, std::ios::end);
    sound = in.get() == '\n';
  }
  if (!sound)
    error = path + " is no lock file of ckopt, or damaged; remove it to choose "
                   "algorithms again";
  return sound;
}

bool LockFile::write(std::string &error) const {
  if (path.empty() || !changed)
    return true;
  std::ostringstream text;
  text << kHead << "\n";
  for (const auto &[name, value] : facts)
    text << name << " " << value << "\n";
  for (const auto &[key, value] : algorithms)
    text << "algorithm " << key << " " << value << "\n";
  std::string all = text.str();
  std::string made =
      path + ".tmp-" + std::to_string(static_cast<long>(getpid()));
  std::FILE *file = std::fopen(made.c_str(), "wx");
  bool sound = file &&
               std::fwrite(all.data(), 1, all.size(), file) == all.size() &&
               std::fflush(file) == 0 && fsync(fileno(file)) == 0;
  int reason = errno;
  if (file && std::fclose(file) != 0 && sound) {
    reason = errno;
    sound = false;
  }
  if (sound && std::rename(made.c_str(), path.c_str()) != 0) {
    reason = errno;
    sound = false;
  }
  if (!sound) {
    if (file)
      (void)unlink(made.c_str());
    error = "cannot write the lock file " + path + ": " + std::strerror(reason);
  }
  return sound;
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

std::string LockFile::algorithm(const std::string &key) const {
  auto found = algorithms.find(key);
  return found == algorithms.end() ? "" : found->second;
}

void LockFile::setAlgorithm(const std::string &key, const std::string &value) {
  changed |= algorithms[key] != value;
  algorithms[key] = value;
}
