//===- OnnxFuzzTest.cpp - mutated models are refused or planned -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entry that libFuzzer drives (fuzz/), over mutations of the models in
// test/data. Each block of mutations runs in a process of its own with limits
// on memory and time: a crash, a hang or a huge allocation names the seed that
// shows it.
//
// CKOPT_FUZZ_RUNS=N and CKOPT_FUZZ_SEED=S set how many and from where on;
// CKOPT_FUZZ_CORPUS=DIR adds all *.onnx below a folder; CKOPT_FUZZ_FOUND=DIR
// gets the models that fail.
//
//===----------------------------------------------------------------------===//
#include "OnnxFuzz.h"
#include "TestUtils.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ckopt;
using namespace ckopt::test;

namespace {

uint64_t fromEnvironment(const char *name, uint64_t missing) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : missing;
}

/// Models of up to 64 KiB below `folder`, by path.
void addModels(const std::string &folder, std::vector<std::string> &corpus) {
  std::vector<std::string> paths;
  std::error_code error;
  for (llvm::sys::fs::recursive_directory_iterator it(folder, error), end;
       it != end && !error; it.increment(error)) {
    uint64_t size = 0;
    if (llvm::StringRef(it->path()).ends_with(".onnx") &&
        !llvm::sys::fs::file_size(it->path(), size) && size <= 64 << 10)
      paths.push_back(it->path());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths)
    if (auto buffer = llvm::MemoryBuffer::getFile(path))
      corpus.push_back((*buffer)->getBuffer().str());
}

struct Counts {
  int64_t reached[4] = {};
};

std::string mutation(const std::vector<std::string> &corpus, uint64_t seed) {
  return mutateOnnx(corpus[seed % corpus.size()], seed);
}

struct Failure {
  uint64_t seed;
  std::string how;
};

/// Runs [begin, end) in a child. Returns the failure, if there was one.
std::optional<Failure> runBlock(const std::vector<std::string> &corpus,
                                uint64_t begin, uint64_t end, Counts &counts) {
  int channel[2];
  if (pipe(channel))
    return Failure{begin, "no pipe"};
  pid_t child = fork();
  if (child == 0) {
    close(channel[0]);
    // Sanitizers reserve terabytes of addresses.
#if !__has_feature(address_sanitizer)
    rlimit memory{rlim_t(4) << 30, rlim_t(4) << 30};
    setrlimit(RLIMIT_AS, &memory);
#endif
    for (uint64_t seed = begin; seed < end; ++seed) {
      // Time of the processor: on a busy machine the clock says little.
      itimerval limit{{0, 0}, {10, 0}};
      setitimer(ITIMER_PROF, &limit, nullptr);
      std::string bytes = mutation(corpus, seed), wrong;
      int64_t record[2] = {int64_t(seed), 0};
      FuzzReach reach = fuzzOnnx(
          reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size(), wrong);
      record[1] = int64_t(reach);
      if (!wrong.empty()) {
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed,
                wrong.c_str());
        _exit(1);
      }
      if (write(channel[1], record, sizeof(record)) != sizeof(record))
        _exit(1);
    }
    _exit(0);
  }
  close(channel[1]);
  int64_t record[2];
  uint64_t next = begin;
  while (read(channel[0], record, sizeof(record)) == sizeof(record)) {
    ++counts.reached[record[1]];
    next = uint64_t(record[0]) + 1;
  }
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return std::nullopt;
  if (!WIFSIGNALED(status))
    return Failure{next, "a failure without a message, or a sanitizer's"};
  if (WTERMSIG(status) == SIGPROF)
    return Failure{next, "more than 10 s"};
  return Failure{next, std::string("a crash (more than 4 GiB?): ") +
                           strsignal(WTERMSIG(status))};
}

/// Keeps the model that failed where the caller asked for it.
void keepFailure(const std::vector<std::string> &corpus, uint64_t seed) {
  const char *folder = std::getenv("CKOPT_FUZZ_FOUND");
  if (!folder)
    return;
  std::error_code error;
  llvm::raw_fd_ostream os(
      std::string(folder) + "/" + std::to_string(seed) + ".onnx", error);
  os << mutation(corpus, seed);
}

} // namespace

// Models that once crashed the importer (fuzz/corpus/onnx).
TEST(OnnxFuzz, FoundModelsStayMended) {
  std::vector<std::string> found;
  addModels(dataFile("../../fuzz/corpus/onnx"), found);
  ASSERT_FALSE(found.empty());
  for (const std::string &bytes : found) {
    std::string wrong;
    (void)fuzzOnnx(reinterpret_cast<const uint8_t *>(bytes.data()),
                   bytes.size(), wrong);
    EXPECT_EQ(wrong, "");
  }
}

TEST(OnnxFuzz, MutationsAreRefusedOrPlanned) {
  std::vector<std::string> corpus;
  addModels(dataFile(""), corpus);
  addModels(dataFile("../../fuzz/corpus/onnx"), corpus);
  if (const char *folder = std::getenv("CKOPT_FUZZ_CORPUS"))
    addModels(folder, corpus);
  ASSERT_GT(corpus.size(), 50u);
  uint64_t first = fromEnvironment("CKOPT_FUZZ_SEED", 1),
           number = fromEnvironment("CKOPT_FUZZ_RUNS", 400);
  Counts counts;
  constexpr uint64_t kBlock = 200;
  for (uint64_t at = first; at < first + number;) {
    uint64_t end = std::min(at + kBlock, first + number);
    if (auto failed = runBlock(corpus, at, end, counts)) {
      ADD_FAILURE() << "CKOPT_FUZZ_SEED=" << failed->seed
                    << " CKOPT_FUZZ_RUNS=1: " << failed->how;
      keepFailure(corpus, failed->seed);
      at = failed->seed + 1;
    } else {
      at = end;
    }
  }
  printf("refused %lld, imported %lld, differentiated %lld, planned %lld\n",
         (long long)counts.reached[0], (long long)counts.reached[1],
         (long long)counts.reached[2], (long long)counts.reached[3]);
  EXPECT_GT(counts.reached[int(FuzzReach::Planned)], 0)
      << "no mutation reaches planning: the test shows little";
}
