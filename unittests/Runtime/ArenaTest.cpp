//===- ArenaTest.cpp - guard page, pattern, allocation counters -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "SessionFixture.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

int64_t writeBegin, writeEnd;
unsigned char writeValue;

int32_t writeStep(const ckrt_env *, char *arena) {
  std::memset(arena + writeBegin, writeValue,
              static_cast<size_t>(writeEnd - writeBegin));
  return 0;
}

int64_t allocationBytes;

int32_t allocatingStep(const ckrt_env *, char *) {
  for (int i = 0; i < 3; ++i) {
    void *volatile block = std::malloc(static_cast<size_t>(allocationBytes));
    std::free(block);
  }
  return 0;
}

int32_t mappingStep(const ckrt_env *, char *) {
  auto size = static_cast<size_t>(allocationBytes);
  void *at = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(at, size);
  return 0;
}

// Sanitizers answer allocation calls inside the program, not through slots.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

int32_t generatingStep(const ckrt_env *, char *) {
  auto size = static_cast<size_t>(allocationBytes);
  void *at = nullptr;
  if (posix_memalign(&at, 4096, size) != 0)
    return 1;
  mprotect(at, size, PROT_READ | PROT_EXEC);
  mprotect(at, size, PROT_READ | PROT_WRITE);
  std::free(at);
  return 0;
}

Manifest empty(int64_t bytes) { return manifestOf({}, bytes); }

} // namespace

TEST(Arena, EndsAtAGuardPage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int64_t bytes : {64, 4096, 4160, 100000}) {
    Loaded run(empty(bytes), writeStep);
    ASSERT_EQ(run.status, CKRT_OK) << ckrt_last_error();
    char *arena = ckrt_arena(run.session);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena) % 64, 0u);
    int64_t rounded = (bytes + 63) / 64 * 64;
    auto end = reinterpret_cast<uintptr_t>(arena + rounded);
    EXPECT_EQ(end % static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), 0u);
    arena[rounded - 1] = 1;
    EXPECT_DEATH(arena[rounded] = 1, "");
  }
}

TEST(Arena, PatternShowsTheHighestByteThatAStepChanged) {
  const int64_t size = 100032;
  Loaded run(empty(size), writeStep, true);
  ASSERT_EQ(run.status, CKRT_OK) << ckrt_last_error();
  int64_t peak = -1;
  ASSERT_EQ(ckrt_measured_peak(run.session, &peak), CKRT_OK);
  EXPECT_EQ(peak, 0);
  // Ends at every position within a word, with the values that numbers end in.
  for (unsigned char value : {0x00, 0x01, 0x3F, 0xBF, 0x40, 0xFF, 0x7F})
    for (int64_t end = 1001; end < 1018; ++end) {
      Loaded one(empty(size), writeStep, true);
      writeBegin = 900, writeEnd = end, writeValue = value;
      ASSERT_EQ(ckrt_run(one.session, "step"), CKRT_OK);
      ASSERT_EQ(ckrt_measured_peak(one.session, &peak), CKRT_OK);
      EXPECT_EQ(peak, end) << int(value);
    }
  writeBegin = 0, writeEnd = size, writeValue = 0;
  ASSERT_EQ(ckrt_run(run.session, "step"), CKRT_OK);
  ASSERT_EQ(ckrt_measured_peak(run.session, &peak), CKRT_OK);
  EXPECT_EQ(peak, size);
}

TEST(Arena, ASecondPatternShowsBytesThatCoincidedWithTheFirst) {
  const int64_t size = 8192;
  std::vector<TensorInfo> tensors = {
      tensor("w", TensorRole::Parameter, DType::F32, {16}, 256)};
  Loaded run(manifestOf(tensors, size), writeStep, true);
  char *arena = ckrt_arena(run.session);
  std::vector<float> w(16, 2.5f), back(16);
  ASSERT_EQ(ckrt_tensor_write(run.session, 0, w.data(), CKRT_F32, 16), CKRT_OK);
  // A step that writes the very byte that the pattern holds there.
  writeBegin = 5000, writeEnd = 5001;
  writeValue = static_cast<unsigned char>(arena[5000]);
  ASSERT_EQ(ckrt_run(run.session, "step"), CKRT_OK);
  int64_t peak = -1;
  ASSERT_EQ(ckrt_measured_peak(run.session, &peak), CKRT_OK);
  EXPECT_EQ(peak, 320);
  int found = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    ASSERT_EQ(ckrt_pattern_refill(run.session, seed), CKRT_OK);
    ASSERT_EQ(ckrt_tensor_read(run.session, 0, back.data(), CKRT_F32, 16),
              CKRT_OK);
    EXPECT_EQ(back, w);
    ASSERT_EQ(ckrt_run(run.session, "step"), CKRT_OK);
    ASSERT_EQ(ckrt_measured_peak(run.session, &peak), CKRT_OK);
    found += peak == 5001;
  }
  EXPECT_GE(found, 3);
  EXPECT_EQ(peak, 5001);
}

// The arena gets its pattern late, so that it takes memory where it is written.
TEST(Arena, TakesMemoryAsTensorsAreWritten) {
  const int64_t size = int64_t(64) << 20;
  auto resident = [] {
    long pages = 0;
    FILE *file = std::fopen("/proc/self/statm", "r");
    EXPECT_EQ(std::fscanf(file, "%*ld %ld", &pages), 1);
    std::fclose(file);
    return int64_t(pages) * sysconf(_SC_PAGESIZE);
  };
  std::vector<float> w(1024, 2.5f);
  Loaded run(
      manifestOf({tensor("w", TensorRole::Parameter, DType::F32, {1024}, 8192)},
                 size),
      writeStep, true);
  const int64_t before = resident();
  ASSERT_EQ(ckrt_tensor_write(run.session, 0, w.data(), CKRT_F32, 1024),
            CKRT_OK);
  EXPECT_LT(resident() - before, size / 4); // a large page, and others' noise
  writeBegin = 0, writeEnd = 1, writeValue = 0;
  ASSERT_EQ(ckrt_run(run.session, "step"), CKRT_OK);
  EXPECT_GT(resident() - before, size / 2);
}

TEST(Arena, APatternThatComesLateIsThatOfTheBeginning) {
  const int64_t size = 4096;
  TensorInfo rows = tensor("r", TensorRole::Parameter, DType::F32, {4, 3}, 512);
  rows.strides = {16, 1}; // other bytes lie between its rows
  rows.bytes = (3 * 16 + 3) * 4;
  const Manifest m =
      manifestOf({tensor("w", TensorRole::Parameter, DType::F32, {16}, 256),
                  rows, tensor("x", TensorRole::Input, DType::F32, {8}, 528)},
                 size);
  Loaded early(m, writeStep, true), late(m, writeStep, true);
  char *filled = ckrt_arena(early.session); // asks for all of it
  std::vector<float> values(16, 2.5f), back(8), expected(8);
  for (Loaded *run : {&early, &late}) {
    ASSERT_EQ(ckrt_tensor_write(run->session, 1, values.data(), CKRT_F32, 12),
              CKRT_OK);
    ASSERT_EQ(ckrt_tensor_write(run->session, 0, values.data(), CKRT_F32, 16),
              CKRT_OK);
  }
  ASSERT_EQ(ckrt_tensor_read(early.session, 2, expected.data(), CKRT_F32, 8),
            CKRT_OK);
  ASSERT_EQ(ckrt_tensor_read(late.session, 2, back.data(), CKRT_F32, 8),
            CKRT_OK);
  EXPECT_EQ(std::memcmp(back.data(), expected.data(), 32), 0);
  EXPECT_EQ(std::memcmp(ckrt_arena(late.session), filled, size_t(size)), 0);
}

TEST(Arena, LoaderWritesCount) {
  std::vector<TensorInfo> tensors = {
      tensor("w", TensorRole::Parameter, DType::F32, {8}, 0),
      tensor("x", TensorRole::Input, DType::F32, {4}, 640)};
  Loaded run(manifestOf(tensors, 1024), writeStep, true);
  float x[4] = {};
  ASSERT_EQ(ckrt_tensor_write(run.session, 1, x, CKRT_F32, 4), CKRT_OK);
  int64_t peak = -1;
  ASSERT_EQ(ckrt_measured_peak(run.session, &peak), CKRT_OK);
  EXPECT_EQ(peak, 656);
}

TEST(Arena, WritesInFrontAreCaught) {
  Loaded run(empty(128), writeStep, true);
  writeBegin = -1, writeEnd = 0, writeValue = 1;
  EXPECT_EQ(ckrt_run(run.session, "step"), CKRT_EXECUTION);
  EXPECT_NE(std::string(ckrt_last_error()).find("in front"), std::string::npos);
}

TEST(Arena, NoPatternNoMeasurement) {
  Loaded run(empty(128), writeStep);
  int64_t peak;
  EXPECT_EQ(ckrt_measured_peak(run.session, &peak), CKRT_INVALID_ARGUMENT);
}

TEST(Allocations, OnlyStepsCountAndLargeOnesAreNamed) {
  if (kSanitized)
    GTEST_SKIP();
  Loaded run(empty(128), allocatingStep, false, true);
  ASSERT_EQ(run.status, CKRT_OK) << ckrt_last_error();
  ckrt_allocation_stats stats = {};
  stats.size = sizeof(stats);
  void *volatile outside = std::malloc(1 << 20);
  std::free(outside);
  ASSERT_EQ(ckrt_allocations(run.session, &stats), CKRT_OK);
  EXPECT_EQ(stats.calls, 0);
  allocationBytes = 100;
  ASSERT_EQ(ckrt_run(run.session, "step"), CKRT_OK);
  ASSERT_EQ(ckrt_allocations(run.session, &stats), CKRT_OK);
  EXPECT_EQ(stats.calls, 3);
  EXPECT_EQ(stats.large, 0);
  allocationBytes = 70000;
  ASSERT_EQ(ckrt_run(run.session, "step"), CKRT_OK);
  ASSERT_EQ(ckrt_allocations(run.session, &stats), CKRT_OK);
  EXPECT_EQ(stats.large, 3);
  EXPECT_EQ(stats.largest, 70000);
  EXPECT_EQ(stats.large_bytes, 210000);
  EXPECT_NE(std::string(stats.largest_by).find("RuntimeTests"),
            std::string::npos)
      << stats.largest_by;
}

TEST(Allocations, MappingsCount) {
  if (kSanitized)
    GTEST_SKIP();
  Loaded run(empty(128), mappingStep, false, true);
  allocationBytes = 1 << 20;
  ASSERT_EQ(ckrt_run(run.session, "step"), CKRT_OK);
  ckrt_allocation_stats stats = {};
  stats.size = sizeof(stats);
  ASSERT_EQ(ckrt_allocations(run.session, &stats), CKRT_OK);
  EXPECT_EQ(stats.largest, 1 << 20);
}

TEST(Allocations, GeneratedCodeIsCountedApart) {
  if (kSanitized)
    GTEST_SKIP();
  Loaded run(empty(128), generatingStep, false, true);
  allocationBytes = 262144;
  ASSERT_EQ(ckrt_run(run.session, "step"), CKRT_OK);
  ckrt_allocation_stats stats = {};
  stats.size = sizeof(stats);
  ASSERT_EQ(ckrt_allocations(run.session, &stats), CKRT_OK);
  EXPECT_EQ(stats.calls, 1);
  EXPECT_EQ(stats.large, 0);
  EXPECT_EQ(stats.largest, 0);
  EXPECT_EQ(stats.large_bytes, 0);
  EXPECT_EQ(stats.code_bytes, 262144);
}
