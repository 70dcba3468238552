//===- LibrarySweep.cpp - finds out which kernels of oneDNN are right -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   LibrarySweep [--shapes=300] [--seed=1] [--isa=SET] [--rows]
//
// Runs each of the library's kernels on random products and convolutions, under
// each instruction set that the machine has (or the one named), and compares
// them with plain loops: results and workspace are NaN before, guards lie
// around all memory, and a second run has to give the same bits. Fails if a
// kernel is wrong that a step would take by KernelSweeps.inc. With --rows it
// prints the rows for KernelSweeps.inc: by kernel, the traits of shapes that it
// was right for; of a kernel that was wrong, without what its failures have in
// common. Kernels that allocate while they run have no row: what they take is
// in no plan.
//
// A kernel that ends the process ends a child, and counts as wrong.
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/Cpu/KernelEvidence.h"
#include "../../lib/Runtime/Cpu/OpenMP.h"
#include "../../lib/Runtime/allocations/AllocationHook.h"
#include "SweepCases.h"

#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

using namespace ckopt;
using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Takes the library's kernel number `wanted`.
class Nth final : public KernelEvidence {
public:
  explicit Nth(int64_t wanted) : wanted(wanted) {}
  std::optional<Finding> find(const PrimitiveDesc &desc,
                              std::string_view kernel) const override {
    if (seen++ != wanted)
      return std::nullopt;
    name = kernel;
    asked = desc;
    return Finding{"this sweep", readsUnwritten(desc)};
  }
  const int64_t wanted;
  mutable int64_t seen = 0;
  mutable std::string name;
  mutable PrimitiveDesc asked; ///< what the kernel computes
};

/// Allocations of a page or more, so far, while kernels ran.
int64_t allocations() {
  ckrt_allocation_stats stats = {};
  stats.size = sizeof(stats);
  ckopt_allocation_hook.read(stats);
  return stats.large;
}

/// Tries the kernels of shape `index` from `first` on, and writes a line before
/// and behind each.
void tryKernels(uint64_t seed, int64_t index, int64_t first,
                const KernelEvidence &table, std::ostream &os) {
  Case test = makeCase(seed, index);
  auto threads = int32_t(1 + (index * 7 + int64_t(seed)) % 4);
  omp_set_num_threads(threads); // kernels are made for a number of threads
  bool taken = first > 0;       // a step takes the first that is vouched for
  for (int64_t number = first;; ++number) {
    Nth nth(number);
    auto begin = [&](const PrimitiveDesc &desc, std::string_view name,
                     bool vouched) {
      os << "try\t" << index << "\t" << number << "\t"
         << kernelKindName(desc.kind) << "\t" << dtypeName(desc.dtype) << "\t"
         << name << "\t" << vouched << "\t";
      for (std::string_view trait : traitsOf(desc))
        os << trait << " ";
      os << "\t" << describe(test.desc) << " by " << threads << std::endl;
    };
    // A step that takes the first kernel would die with it here.
    begin(test.desc, "a kernel while it was made", number == 0);
    std::string error;
    auto primitive = createPrimitive(test.desc, threads, nth, error);
    os << "made" << std::endl;
    if (!primitive || nth.name.empty())
      return;
    bool takes = !taken && table.find(nth.asked, nth.name);
    taken |= takes;
    begin(nth.asked, nth.name, takes);
    std::vector<char> runs[2];
    error = runOnce(test, *primitive, runs[0]);
    int64_t before = allocations();
    if (error.empty())
      error = runOnce(test, *primitive, runs[1]);
    bool allocates = allocations() != before;
    if (error.empty() && runs[0] != runs[1])
      error = "two runs differ";
    if (error.empty())
      error = compare(test, runs[0]);
    if (allocates)
      os << "allocates" << std::endl;
    os << (error.empty() ? "right" : "wrong\t" + error) << std::endl;
  }
}

//===----------------------------------------------------------------------===//
// What was found
//===----------------------------------------------------------------------===//

using Traits = std::set<std::string>;

struct Record {
  int64_t tried = 0;
  bool allocates = false; ///< memory of its own, beside the plan's
  std::map<std::string, int64_t> traits;
  std::vector<Traits> wrong;
};

struct Found {
  std::map<std::vector<std::string>, Record> records; ///< kind, type, kernel
  std::string version;
  int64_t tried = 0, vouched = 0, wrong = 0, wrongAndVouched = 0;
};

/// A kernel of which a line tells.
struct Attempt {
  int64_t shape = -1, number = -1;
  std::vector<std::string> key;
  bool vouched = false;
  Traits traits;
  std::string text;
};

Attempt parseAttempt(const std::string &line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');)
    fields.push_back(field);
  Attempt attempt;
  attempt.shape = std::stoll(fields[1]), attempt.number = std::stoll(fields[2]);
  attempt.key = {fields[3], fields[4], fields[5]};
  attempt.vouched = fields[6] == "1";
  std::istringstream traits(fields[7]);
  for (std::string trait; traits >> trait;)
    attempt.traits.insert(trait);
  attempt.text = fields[8] + ", " + fields[5];
  return attempt;
}

void note(Found &found, const Attempt &attempt, const std::string &error,
          const std::string &isa) {
  Record &record = found.records[attempt.key];
  ++record.tried, ++found.tried;
  found.vouched += attempt.vouched;
  for (const std::string &trait : attempt.traits)
    ++record.traits[trait];
  if (error.empty())
    return;
  record.wrong.push_back(attempt.traits);
  ++found.wrong;
  found.wrongAndVouched += attempt.vouched;
  std::cerr << (attempt.vouched ? "WRONG, AND TAKEN" : "wrong") << " on " << isa
            << ": " << attempt.text << ": " << error << "\n";
}

constexpr int kNoSuchSet = 77;

/// Runs shapes from (shape, number) on in a child; returns its last line's
/// attempt if that ended the child.
std::optional<Attempt> runChild(const std::string &isa, uint64_t seed,
                                int64_t shapes, int64_t shape, int64_t number,
                                Found &found, int &status) {
  int ends[2];
  if (pipe(ends) != 0)
    std::abort();
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    dup2(ends[1], STDOUT_FILENO);
    setenv("ONEDNN_MAX_CPU_ISA", isa.c_str(), 1);
    if (dnnlInstructionSet() != isa)
      _exit(kNoSuchSet);
    EvidenceTable table(evidenceRows(), dnnlVersion(), isa);
    ckopt_allocation_hook.start();
    ckopt_allocation_hook.setLarge(4096);
    std::cout << "version\t" << dnnlVersion() << std::endl;
    for (; shape < shapes; ++shape, number = 0)
      tryKernels(seed, shape, number, table, std::cout);
    _exit(0);
  }
  close(ends[1]);
  FILE *lines = fdopen(ends[0], "r");
  std::optional<Attempt> open;
  char *buffer = nullptr;
  size_t size = 0;
  for (ssize_t count; (count = getline(&buffer, &size, lines)) > 0;) {
    std::string line(buffer, size_t(count - 1));
    if (line.starts_with("try\t")) {
      open = parseAttempt(line);
    } else if (line.starts_with("version\t")) {
      found.version = line.substr(8);
    } else if (line == "made") {
      open.reset();
    } else if (line == "allocates" && open) {
      found.records[open->key].allocates = true;
    } else if (open) {
      note(found, *open, line == "right" ? "" : line.substr(6), isa);
      open.reset();
    }
  }
  free(buffer);
  fclose(lines);
  waitpid(child, &status, 0);
  return open;
}

/// Returns false where the machine has no such set.
bool sweep(const std::string &isa, uint64_t seed, int64_t shapes,
           Found &found) {
  int64_t shape = 0, number = 0;
  for (;;) {
    int status = 0;
    auto died = runChild(isa, seed, shapes, shape, number, found, status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSuchSet)
      return false;
    if (!died && WIFEXITED(status) && WEXITSTATUS(status) == 0)
      return true;
    if (!died) { // while a kernel was made
      std::cerr << "the sweep itself ended by status " << status << "\n";
      std::exit(1);
    }
    note(found, *died, "ended the process", isa);
    shape = died->shape, number = died->number + 1;
  }
}

/// Returns what the kernel is right for: the traits that shapes had, without
/// those that its failures have in common. Empty: nothing.
std::optional<std::vector<std::string>> soundTraits(const Record &record) {
  constexpr int64_t kLeastShapes = 20, kLeastOfTrait = 3;
  std::set<std::string> sound;
  for (const auto &[trait, count] : record.traits)
    if (count >= kLeastOfTrait)
      sound.insert(trait);
  std::vector<Traits> wrong = record.wrong;
  for (;;) {
    std::erase_if(wrong, [&](const Traits &traits) {
      return !std::includes(sound.begin(), sound.end(), traits.begin(),
                            traits.end());
    });
    if (wrong.empty())
      break;
    std::map<std::string, int64_t> counts;
    for (const Traits &traits : wrong)
      for (const std::string &trait : traits)
        ++counts[trait];
    if (counts.empty())
      return std::nullopt; // wrong for shapes without any trait
    // Of equal counts, the rarer trait.
    auto most = std::max_element(
        counts.begin(), counts.end(), [&](const auto &a, const auto &b) {
          return std::pair(a.second, -record.traits.at(a.first)) <
                 std::pair(b.second, -record.traits.at(b.first));
        });
    sound.erase(most->first);
  }
  bool hasRank = false;
  for (const std::string &trait : sound)
    hasRank |= trait.starts_with("rank");
  bool isProduct = !record.traits.count("rank1") &&
                   !record.traits.count("rank2") &&
                   !record.traits.count("rank3");
  if (record.tried < kLeastShapes || !(hasRank || isProduct))
    return std::nullopt;
  return std::vector<std::string>(sound.begin(), sound.end());
}

std::string cpuName() {
  std::ifstream info("/proc/cpuinfo");
  std::map<std::string, std::string> fields;
  for (std::string line; std::getline(info, line) && !line.empty();)
    if (size_t colon = line.find(':'); colon + 2 < line.size())
      fields[line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1)] =
          line.substr(colon + 2);
  return fields["model name"] + " (family " + fields["cpu family"] +
         ", model " + fields["model"] + ")";
}

void printRows(const Found &found, const std::string &isa, uint64_t seed,
               int64_t shapes) {
  std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof(date), "%Y-%m-%d", std::gmtime(&now));
  for (const auto &[key, record] : found.records) {
    // The library's plain loops are slower than ours.
    auto traits = soundTraits(record);
    if (!traits || record.allocates || key[2].starts_with("ref:"))
      continue;
    std::string text;
    for (const std::string &trait : *traits)
      text += (text.empty() ? "" : " ") + trait;
    std::cout << "{\"" << found.version << "\", \"" << isa << "\", \"" << key[0]
              << "\", \"" << key[1] << "\", \"" << key[2] << "\",\n \"" << text
              << "\",\n \"" << record.tried - int64_t(record.wrong.size())
              << " shapes of a sweep of " << shapes << ", seed " << seed << ", "
              << date << ", " << cpuName() << "\"},\n";
  }
}

} // namespace

int main(int argc, char **argv) {
  int64_t shapes = std::getenv("CKOPT_LONG_TESTS") ? 20000 : 300;
  uint64_t seed = 1;
  bool rows = false;
  std::vector<std::string> sets = {
      "SSE41",          "AVX", "AVX2", "AVX512_CORE", "AVX512_CORE_BF16",
      "AVX512_CORE_AMX"};
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg.starts_with("--shapes="))
      shapes = std::stoll(arg.substr(9));
    else if (arg.starts_with("--seed="))
      seed = std::stoull(arg.substr(7));
    else if (arg.starts_with("--isa="))
      sets = {arg.substr(6)};
    else if (arg == "--rows")
      rows = true;
    else
      return std::cerr << "LibrarySweep: what is " << arg << "?\n", 2;
  }
  // Waiting threads that spin would take the cores from those that work.
  if (setenv("OMP_WAIT_POLICY", "passive", 0) == 0 &&
      setenv("GOMP_SPINCOUNT", "0", 0) == 0 && !std::getenv("CKOPT_SWEEP")) {
    setenv("CKOPT_SWEEP", "1", 1); // libgomp has read the environment
    execv("/proc/self/exe", argv);
  }
  int64_t wrongAndVouched = 0;
  for (const std::string &isa : sets) {
    Found found;
    if (!sweep(isa, seed, shapes, found)) {
      std::cerr << isa << ": NOT swept, this machine has no such set\n";
      continue;
    }
    std::cerr << isa << ": oneDNN " << found.version << ", " << shapes
              << " shapes, " << found.tried << " runs of "
              << found.records.size() << " kernels, " << found.wrong
              << " wrong; " << found.vouched << " of them steps take, "
              << found.wrongAndVouched << " of these wrong\n";
    wrongAndVouched += found.wrongAndVouched;
    if (rows)
      printRows(found, isa, seed, shapes);
  }
  return wrongAndVouched ? 1 : 0;
}
