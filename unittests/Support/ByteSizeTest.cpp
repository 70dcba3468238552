//===- ByteSizeTest.cpp - budgets as people write them --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/ByteSize.h"
#include "TestFiles.h"
#include <limits>

using namespace ckopt;

TEST(ByteSize, Forms) {
  const std::pair<const char *, int64_t> cases[] = {
      {"0", 0},
      {"4096", 4096},
      {"512B", 512},
      {"512MiB", int64_t(512) << 20},
      {"2GB", 2000000000},
      {"1.5GiB", int64_t(3) << 29},
      {"1KiB", 1024},
      {"1KB", 1000},
      {"1kb", 1000},
      {"3mib", 3 << 20},
      {"2TiB", int64_t(2) << 40},
      {"0.5TB", 500000000000},
      {" 3 MiB ", 3 << 20},
      {"1.1GiB", 1181116006}, // floor(11 * 2^30 / 10)
      {"0.000000000000000000000001TiB", 0},
      {"0000000000000000000000012", 12},
      {"9223372036854775807", std::numeric_limits<int64_t>::max()},
      {"8388607.9TiB", int64_t(8388607) * (int64_t(1) << 40) + 989560464998},
  };
  for (const auto &[text, bytes] : cases) {
    auto parsed = parseByteSize(text);
    ASSERT_TRUE(bool(parsed)) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(ByteSize, Malformed) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "empty"},
      {"   ", "empty"},
      {"-5", "negative"},
      {"-1GiB", "negative"},
      {"nan", "does not start with a number"},
      {"inf", "does not start with a number"},
      {"GiB", "does not start with a number"},
      {"1e9", "'e9' is no unit"},
      {"0x10", "'x10' is no unit"},
      {"2G", "'G' is no unit"},
      {"2GBx", "'GBx' is no unit"},
      {"2GB 3", "is no unit"},
      {"1.GiB", "no digits follow the point"},
      {"1.5", "a byte has no fractions"},
      {"1.5B", "a byte has no fractions"},
      {"1.2.3GiB", "is no unit"},
      {"9223372036854775808", "more than 2^63 - 1"},
      {"8388608TiB", "more than 2^63 - 1"},
      {"99999999999999999999999999", "more than 2^63 - 1"},
      {"+5", "does not start with a number"},
  };
  for (const auto &[text, part] : cases) {
    auto parsed = parseByteSize(text);
    ASSERT_FALSE(bool(parsed)) << text;
    ErrorText error = takeErrorText(parsed.takeError());
    EXPECT_EQ(error.code, ExitUsage);
    expectContains(error.text, part);
    expectContains(error.text, "512MiB");
  }
}

TEST(ByteSize, Budgets) {
  EXPECT_EQ(valueOf(parseMemoryBudget("min")).kind,
            MemoryBudget::Kind::Minimum);
  MemoryBudget budget = valueOf(parseMemoryBudget("3MiB"));
  EXPECT_EQ(budget.kind, MemoryBudget::Kind::Bytes);
  EXPECT_EQ(budget.bytes, 3 << 20);
  EXPECT_EQ(budget.describe(), "3.00 MiB (3,145,728 B)");
  EXPECT_EQ(budget.resolve(10, 5), 3 << 20);
  expectContains(textOf(parseMemoryBudget("many")),
                 "--memory-budget: 'many' is not a byte size");
  expectContains(textOf(parseMemoryBudget("many")), "or 'min'");
  budget = valueOf(parseMemoryBudget(" 0.8x "));
  EXPECT_EQ(budget.kind, MemoryBudget::Kind::Ratio);
  EXPECT_EQ(budget.ratio, 0.8);
  for (const char *text : {"x", "2x", "0x", "minx", "-1x", "0.5xx"})
    EXPECT_FALSE(textOf(parseMemoryBudget(text)).empty()) << text;
  EXPECT_EQ(MemoryBudget().resolve(10, 5), std::numeric_limits<int64_t>::max());
}

TEST(ByteSize, Ratios) {
  using Kind = MemoryBudget::Kind;
  MemoryBudget half =
      valueOf(parseBudgetRatio("0.5", Kind::Ratio, "--budget-ratio"));
  EXPECT_EQ(half.resolve(1001, 400), 500);
  MemoryBudget part = valueOf(
      parseBudgetRatio("0.6", Kind::ActivationRatio, "--activation-ratio"));
  EXPECT_EQ(part.resolve(1000, 400), 760);
  EXPECT_EQ(valueOf(parseBudgetRatio("min", Kind::Ratio, "--x")).kind,
            Kind::Minimum);
  for (const char *text : {"0", "1.01", "-0.5", "nan", "inf", "", "half",
                           "0.5x", "1e-1", "0x1", "."}) {
    const std::string error =
        textOf(parseBudgetRatio(text, Kind::Ratio, "--budget-ratio"));
    expectContains(error, "--budget-ratio");
    expectContains(error, "is not a ratio");
  }
}

TEST(ByteSize, Printing) {
  EXPECT_EQ(groupDigits(0), "0");
  EXPECT_EQ(groupDigits(999), "999");
  EXPECT_EQ(groupDigits(3083264), "3,083,264");
  EXPECT_EQ(groupDigits(-1234), "-1,234");
  EXPECT_EQ(groupDigits(std::numeric_limits<int64_t>::min()),
            "-9,223,372,036,854,775,808");
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(1023), "1023 B");
  EXPECT_EQ(formatBytes(1024), "1.00 KiB");
  EXPECT_EQ(formatBytes(3083264), "2.94 MiB");
  EXPECT_EQ(formatBytes(1048575), "1.00 MiB");
  EXPECT_EQ(formatBytes(int64_t(10) << 20), "10.0 MiB");
  EXPECT_EQ(formatBytes(int64_t(500) << 30), "500 GiB");
  EXPECT_EQ(formatBytesExact(3083264), "2.94 MiB (3,083,264 B)");
  EXPECT_EQ(formatBytesExact(12), "12 B");
}
