//===- FuzzTest.cpp - the fuzz entries over seeds and mutations -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same entries that libFuzzer drives (fuzz/), over a corpus made here and a
// few thousand mutations of it.
//
//===----------------------------------------------------------------------===//
#include "PlannerFuzz.h"
#include "TestGraphs.h"
#include "ckopt/Planner/GraphJson.h"

#include <gtest/gtest.h>

using namespace ckopt::planner;
using namespace ckopt::planner::test;

namespace {

std::string json(const std::string &text) {
  return fuzzJson(reinterpret_cast<const uint8_t *>(text.data()), text.size());
}

std::vector<std::string> jsonCorpus() {
  std::vector<std::string> corpus;
  for (uint64_t seed = 0; seed < 4; ++seed)
    corpus.push_back(printGraph(randomGraph(seed, 9, seed % 2)));
  corpus.push_back(printGraph(chain(2)));
  corpus.push_back(
      R"({"format": "ckopt-plan/1", "budget": 9, "steps": [0, 1, 2, 1, 3, 4],
          "cost": 12, "peak": 7, "arena": 9, "status": "feasible",
          "offsets": [[0], [3], [0, 8], [1], [2], []], "initial": [[0, 0], [1, 4]]})");
  corpus.push_back("id,lower,upper,size\n0,0,5,12\n1,3,9,4\n");
  corpus.push_back(R"({"format": "ckopt-plan/1", "status": "infeasible",
          "budget": 1, "minimum_budget": 5, "proven_minimum": 3})");
  return corpus;
}

/// One to three edits of the kinds that reach into a reader.
std::string mutate(std::string text, std::mt19937_64 &rng) {
  static const char *const words[] = {"-1",
                                      "null",
                                      "1e30",
                                      "9223372036854775807",
                                      "18446744073709551615",
                                      "[]",
                                      "{}",
                                      "\"\"",
                                      "true",
                                      "1e999",
                                      "0.5",
                                      "[[",
                                      "]}",
                                      "-9223372036854775808",
                                      "\"id\":0,",
                                      "{\"id\":0}",
                                      ",",
                                      "\\u0000",
                                      "\xff"};
  for (uint64_t edits = 1 + rng() % 3; edits-- && !text.empty();) {
    size_t at = rng() % text.size();
    switch (rng() % 4) {
    case 0:
      text[at] = "0123456789-{}[],:\"ax"[rng() % 20];
      break;
    case 1:
      text.insert(at, words[rng() % std::size(words)]);
      break;
    case 2:
      text.erase(at, 1 + rng() % 12);
      break;
    default: { // A number or name becomes another one.
      size_t end = text.find_first_of(",:]}", at);
      if (end != std::string::npos)
        text.replace(at, end - at, words[rng() % std::size(words)]);
    }
    }
  }
  return text;
}

TEST(Fuzz, ReadersTakeAnyBytes) {
  std::mt19937_64 rng(7);
  for (const std::string &seed : jsonCorpus()) {
    ASSERT_EQ(json(seed), "") << seed;
    for (int i = 0; i < 600; ++i) {
      std::string damaged = mutate(seed, rng);
      ASSERT_EQ(json(damaged), "") << damaged;
    }
  }
  EXPECT_EQ(json(""), "");
  EXPECT_EQ(json(std::string(100000, '[')), "");
  EXPECT_EQ(json(std::string(1000, '\0')), "");
}

TEST(Fuzz, PlansAgreeWithExhaustiveSearch) {
  std::mt19937_64 rng(11);
  for (int i = 0; i < 4000; ++i) {
    std::vector<uint8_t> bytes(8 + rng() % 60);
    for (uint8_t &byte : bytes)
      byte = uint8_t(rng());
    ASSERT_EQ(fuzzPlanner(bytes.data(), bytes.size()), "") << "input " << i;
  }
}

} // namespace
