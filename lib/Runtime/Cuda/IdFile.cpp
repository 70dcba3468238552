//===- IdFile.cpp - ranks that connect through a file ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "IdFile.h"

#include "Library.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/random.h>
#include <thread>
#include <unistd.h>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

namespace {

constexpr const char kHead[] = "ckopt-ranks-1", kEnd[] = "end";

/// A rank's entry about itself.
struct RankLine {
  std::string number; ///< a random number of the rank
  std::string run;    ///< rank 0's number, once this rank has its id
  RankProcess process;
};

/// A file of this format: rank 0's, with all ranks, or another rank's, with
/// itself.
struct Sheet {
  std::string run, id;
  int32_t ranks = 0;
  bool go = false;
  std::vector<RankLine> lines; ///< ranks by number; a rank without a random
                               ///< number was not seen yet
};

std::string word(const std::string &text) { return text.empty() ? "-" : text; }
std::string unword(const std::string &text) { return text == "-" ? "" : text; }

std::string format(const Sheet &sheet) {
  std::ostringstream out;
  out << kHead << " " << word(sheet.run) << " " << word(sheet.id) << " "
      << sheet.ranks << " " << sheet.go << " " << sheet.lines.size() << "\n";
  for (const RankLine &line : sheet.lines)
    out << word(line.number) << " " << word(line.run) << " "
        << word(line.process.host) << " " << word(line.process.machine) << " "
        << line.process.pid << " " << line.process.started << "\n";
  out << kEnd << "\n";
  return out.str();
}

/// Reads a file; false: it does not exist, or has another format.
bool read(const std::string &path, Sheet &sheet) {
  std::ifstream in(path);
  std::string head, end;
  size_t count = 0;
  sheet = {};
  if (!(in >> head >> sheet.run >> sheet.id >> sheet.ranks >> sheet.go >>
        count) ||
      head != kHead || count > (1 << 16))
    return false;
  sheet.run = unword(sheet.run);
  for (size_t i = 0; i < count; ++i) {
    RankLine line;
    if (!(in >> line.number >> line.run >> line.process.host >>
          line.process.machine >> line.process.pid >> line.process.started))
      return false;
    line.number = unword(line.number);
    line.run = unword(line.run);
    line.process.machine = unword(line.process.machine);
    sheet.lines.push_back(std::move(line));
  }
  return (in >> end) && end == kEnd;
}

bool write(const std::string &path, const Sheet &sheet, std::string &error) {
  std::string temporary = path + ".tmp" + std::to_string(getpid());
  std::string text = format(sheet);
  std::FILE *file = std::fopen(temporary.c_str(), "w");
  bool written =
      file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int reason = errno;
  if (file && std::fclose(file) != 0) {
    reason = errno;
    written = false;
  }
  if (written && std::rename(temporary.c_str(), path.c_str()) == 0)
    return true;
  if (written)
    reason = errno;
  std::remove(temporary.c_str());
  error = "cannot write " + path +
          ", by which the ranks meet: " + std::strerror(reason);
  return false;
}

std::string drawNumber() {
  unsigned char bytes[16] = {};
  // Calls for so few bytes are never interrupted.
  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
    std::snprintf(reinterpret_cast<char *>(bytes), sizeof(bytes), "%lld",
                  static_cast<long long>(
                      std::chrono::system_clock::now().time_since_epoch() /
                      std::chrono::nanoseconds(1)));
  return hexText(bytes, sizeof(bytes));
}

std::string fileOf(const IdFile &file, size_t rank) {
  return file.path + ".rank-" + std::to_string(rank);
}

/// The end of waiting for others.
class Deadline {
public:
  explicit Deadline(double seconds)
      : end(std::chrono::steady_clock::now() +
            std::chrono::milliseconds(
                static_cast<int64_t>(std::min(seconds, 1e9) * 1000))) {}
  /// Waits a little; false: it is too late.
  bool nap() const {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return std::chrono::steady_clock::now() < end;
  }

private:
  std::chrono::steady_clock::time_point end;
};

std::string seconds(const IdFile &file) {
  std::ostringstream text;
  text << file.timeout;
  return text.str() + " seconds";
}

/// Removes a file of this process in the destructor.
struct OwnFile {
  std::string path;
  ~OwnFile() { std::remove(path.c_str()); }
};

class Main {
public:
  Main(const IdFile &file, const NcclId &id) : file(file) {
    sheet.run = drawNumber();
    sheet.id = hexText(&id, sizeof(id));
    sheet.ranks = file.ranks;
    sheet.lines.resize(static_cast<size_t>(file.ranks));
    sheet.lines[0].number = sheet.run;
    sheet.lines[0].process = RankProcess::own();
  }
  bool meet(std::vector<RankProcess> &processes, std::string &error);

private:
  /// Reads all ranks' files; returns a rank that does not have the id yet, or
  /// the number of ranks.
  size_t look(bool &changed, std::string &error);

  const IdFile &file;
  Sheet sheet;
};

size_t Main::look(bool &changed, std::string &error) {
  size_t missing = sheet.lines.size();
  for (size_t rank = 1; rank < sheet.lines.size(); ++rank) {
    Sheet other;
    bool there = read(fileOf(file, rank), other) && other.lines.size() == 1;
    RankLine &known = sheet.lines[rank];
    if (there && other.lines[0].number != known.number) {
      known = other.lines[0];
      known.run.clear();
      changed = true;
    }
    // The file may be an earlier run's, so only a rank that answers counts.
    if (there && other.lines[0].run == sheet.run) {
      known.run = sheet.run;
      if (other.ranks != file.ranks)
        error = "rank " + std::to_string(rank) + " was started for " +
                std::to_string(other.ranks) + " ranks, rank 0 for " +
                std::to_string(file.ranks);
    }
    if (known.run != sheet.run)
      missing = std::min(missing, rank);
  }
  return missing;
}

bool Main::meet(std::vector<RankProcess> &processes, std::string &error) {
  OwnFile own{file.path};
  Deadline deadline(file.timeout);
  for (bool changed = true;; changed = false) {
    size_t missing = look(changed, error);
    if (!error.empty() || (changed && !write(file.path, sheet, error)))
      return false;
    if (!changed && missing == sheet.lines.size())
      break;
    if (!deadline.nap()) {
      error = "rank " + std::to_string(missing) + " has not come within " +
              seconds(file) + ": it writes " + fileOf(file, missing);
      return false;
    }
  }
  sheet.go = true;
  if (!write(file.path, sheet, error))
    return false;
  for (size_t rank = 1; rank < sheet.lines.size(); ++rank) {
    processes.push_back(sheet.lines[rank].process);
    // The rank removes its file after it has read that it may start.
    while (access(fileOf(file, rank).c_str(), F_OK) == 0)
      if (!deadline.nap()) {
        error = "rank " + std::to_string(rank) + " has not started within " +
                seconds(file);
        return false;
      }
  }
  processes.insert(processes.begin(), sheet.lines[0].process);
  return true;
}

bool meetMain(const IdFile &file, NcclId &id,
              std::vector<RankProcess> &processes, std::string &error) {
  OwnFile own{fileOf(file, static_cast<size_t>(file.rank))};
  Sheet mine, sheet;
  mine.ranks = file.ranks;
  mine.lines.resize(1);
  mine.lines[0].number = drawNumber();
  mine.lines[0].process = RankProcess::own();
  if (!write(own.path, mine, error))
    return false;
  Deadline deadline(file.timeout);
  auto rank = static_cast<size_t>(file.rank);
  for (;;) {
    bool ours = read(file.path, sheet) && rank < sheet.lines.size() &&
                sheet.lines[rank].number == mine.lines[0].number;
    if (ours && mine.lines[0].run != sheet.run) {
      mine.lines[0].run = sheet.run;
      if (!write(own.path, mine, error))
        return false;
    } else if (ours && sheet.go) {
      break;
    }
    if (!deadline.nap()) {
      error = (ours ? "not all ranks have come within "
                    : "rank 0 has not come within ") +
              seconds(file) +
              (ours ? "; rank 0 says which" : ": it writes " + file.path);
      return false;
    }
  }
  if (sheet.ranks != file.ranks || !parseHex(sheet.id, &id, sizeof(id))) {
    error = "rank 0 was started for " + std::to_string(sheet.ranks) +
            " ranks, rank " + std::to_string(file.rank) + " for " +
            std::to_string(file.ranks);
    return false;
  }
  for (const RankLine &line : sheet.lines)
    processes.push_back(line.process);
  return true;
}

} // namespace

bool ckopt::runtime::cuda::meet(const IdFile &file, NcclId &id,
                                std::vector<RankProcess> &processes,
                                std::string &error) {
  return file.rank == 0 ? Main(file, id).meet(processes, error)
                        : meetMain(file, id, processes, error);
}
