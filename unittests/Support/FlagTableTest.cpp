//===- FlagTableTest.cpp - command lines of the tools ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/FlagTable.h"
#include "gtest/gtest.h"

using namespace ckopt;

namespace {

struct Settings {
  double rate = 0;
  int64_t count = 0;
  uint64_t seed = 0;
  bool quiet = false;
  std::string file, kind = "a", model;
};

class FlagTableTest : public testing::Test {
protected:
  FlagTableTest() {
    table.add("rate", "R", 1, "a rate",
              flag::number<double>("rate", s.rate, 0, 1, /*open=*/true));
    table.add("count", "N", 3, "a count",
              flag::number<int64_t>("count", s.count, 1));
    table.add("seed", "N", 3, "a seed", flag::number<uint64_t>("seed", s.seed));
    table.add("quiet", "", 3, "say less", flag::turnOn(s.quiet));
    table.add("o", "FILE", 3, "output", flag::outputFile("o", s.file));
    table.add("kind", "NAME", 2, "a kind",
              flag::oneOf("kind", s.kind, {"a", "b"}));
    table.nameGroups({"first", "second"});
  }
  /// What is wrong with the arguments; empty: nothing.
  std::string parse(std::vector<std::string> arguments, unsigned groups = 1) {
    std::vector<char *> pointers;
    for (std::string &argument : arguments)
      pointers.push_back(argument.data());
    llvm::Error error = table.parse(
        pointers, groups,
        [&](llvm::StringRef text) -> llvm::Error {
          s.model = text.str();
          return llvm::Error::success();
        },
        &given);
    return takeErrorText(std::move(error)).text;
  }

  Settings s;
  FlagTable table;
  FlagTable::Given given;
};

} // namespace

TEST_F(FlagTableTest, EmptySettingsTakeNothingFromTheNext) {
  std::vector<GivenSetting> settings = {
      {"o", ""}, {"quiet", ""}, {"count", "7"}};
  EXPECT_EQ(takeErrorText(table.store(settings, 1)).text,
            "-o has an empty value; leave it out instead");
  EXPECT_EQ(s.file, "");
  EXPECT_EQ(s.count, 7);
  EXPECT_TRUE(s.quiet);
  settings = {{"quiet", "yes"}, {"cuont", "1"}, {"zzz", ""}};
  EXPECT_EQ(takeErrorText(table.store(settings, 1)).text,
            "--quiet takes no value\n"
            "unknown setting --cuont; did you mean --count?\n"
            "unknown setting --zzz");
}

TEST_F(FlagTableTest, StoresValues) {
  EXPECT_EQ(parse({"m", "--rate=0.5", "--count", "7", "-o", "f", "--quiet"}),
            "");
  EXPECT_EQ(s.model, "m");
  EXPECT_EQ(s.rate, 0.5);
  EXPECT_EQ(s.count, 7);
  EXPECT_EQ(s.file, "f");
  EXPECT_TRUE(s.quiet);
}

TEST_F(FlagTableTest, TellsAllMistakesAtOnce) {
  EXPECT_EQ(parse({"--rate=1", "--count=0", "--seed=-1", "--rate=nan",
                   "--quiet=yes", "--o=", "--cuont=1", "--zzz", "--seed"}),
            "--rate: '1' is no number from 0 to below 1\n"
            "--count: '0' is no integer of at least 1\n"
            "--seed: '-1' is no integer of at least 0\n"
            "--rate: 'nan' is no number from 0 to below 1\n"
            "--quiet takes no value\n"
            "-o has an empty value; leave it out instead\n"
            "unknown flag --cuont; did you mean --count?\n"
            "unknown flag --zzz (see --help-all)\n"
            "--seed needs a value (N)");
  EXPECT_EQ(s.rate, 0);
}

TEST_F(FlagTableTest, FlagsBelongToGroups) {
  EXPECT_EQ(parse({"--kind=b"}), "unknown flag --kind; it is one of second");
  EXPECT_EQ(parse({"--kind=b"}, 2), "");
  EXPECT_EQ(s.kind, "b");
  EXPECT_EQ(parse({"--kind=c"}, 2), "--kind: 'c' is not one of a, b");
}

TEST_F(FlagTableTest, HelpListsAGroupInLinesOf79) {
  table.beginSection("More");
  table.add("long", "[=WIDTH]", 2,
            std::string(40, 'x') + " " + std::string(30, 'y') + " z",
            flag::turnOn(s.quiet));
  std::string text;
  llvm::raw_string_ostream os(text);
  table.printHelp(os, 2);
  EXPECT_EQ(text.find("--rate"), std::string::npos);
  EXPECT_NE(text.find("  --count=N               a count\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\n\nMore:\n  --long[=WIDTH] "), std::string::npos)
      << text;
  EXPECT_EQ(table.count(2), 6u);
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).split(lines, '\n');
  for (llvm::StringRef line : lines)
    EXPECT_LE(line.size(), 79u) << line.str();
}

TEST_F(FlagTableTest, ShortHelpHasTheNamedFlagsOfAGroupInOrder) {
  std::string text;
  llvm::raw_string_ostream os(text);
  table.printHelp(os, 1, {"seed", "kind", "rate"});
  size_t seed = text.find("--seed"), rate = text.find("--rate");
  EXPECT_LT(seed, rate);
  EXPECT_NE(rate, std::string::npos);
  EXPECT_EQ(text.find("--kind"), std::string::npos);
  EXPECT_EQ(text.find("--count"), std::string::npos);
}
