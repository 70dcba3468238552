//===- RefusalsTest.cpp - command lines that are refused, and their words -===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// test/ckopt/refusals.txt has command lines that the tool must refuse, each
// with what it must say. To start a program for each would take most of the
// time: each runs in a child of this process, which has everything loaded.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"
#include "ckopt/Tool/Main.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace ckopt;

namespace {

/// One command line, and the lines that what it prints must match, in order:
/// text with regular expressions in {{}}.
struct Refusal {
  std::string command;
  std::vector<std::string> said;
};

/// Reads "$ COMMAND" lines, each followed by what is said; lines that begin
/// with # and empty ones are for the reader.
std::vector<Refusal> readRefusals(const std::string &path) {
  std::vector<Refusal> all;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (llvm::StringRef text = line; text.consume_front("$ "))
      all.push_back({text.str(), {}});
    else if (!text.empty() && !text.starts_with("#"))
      all.back().said.push_back(line);
  return all;
}

/// Splits at spaces outside of single quotes, and replaces lit's names of
/// folders; `%t` is a place to write to.
std::vector<std::string> splitWords(llvm::StringRef command,
                                    const std::string &place) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (char c : command)
    if (c == '\'')
      quoted = !quoted;
    else if (c == ' ' && !quoted)
      words.emplace_back();
    else
      words.back() += c;
  for (std::string &word : words)
    for (auto [name, folder] :
         {std::pair("%data", std::string(CKOPT_TEST_DATA)),
          std::pair("%inputs", std::string(CKOPT_TEST_DATA "/../ckopt/Inputs")),
          std::pair("%t", place)})
      if (size_t at = word.find(name); at != std::string::npos)
        word.replace(at, std::strlen(name), folder);
  return words;
}

struct Ended {
  int status = 0; ///< of waitpid()
  std::string text;
};

/// Runs the tool in a child; output and errors together.
Ended run(std::vector<std::string> words) {
  int ends[2];
  if (pipe(ends))
    return {};
  fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    std::vector<char *> argv;
    for (std::string &word : words)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    int code = driverMain(int(words.size()), argv.data());
    llvm::outs().flush();
    fflush(nullptr);
    _exit(code);
  }
  close(ends[1]);
  Ended result;
  char buffer[4096];
  for (ssize_t size; (size = read(ends[0], buffer, sizeof(buffer))) > 0;)
    result.text.append(buffer, size_t(size));
  close(ends[0]);
  waitpid(child, &result.status, 0);
  return result;
}

/// A regular expression for text with such expressions in {{}}.
std::string patternOf(llvm::StringRef text) {
  std::string pattern;
  while (!text.empty()) {
    auto [plain, rest] = text.split("{{");
    auto [expression, after] = rest.split("}}");
    pattern += llvm::Regex::escape(plain) + expression.str();
    text = after;
  }
  return pattern;
}

TEST(Refusals, SayWhatIsWrong) {
  std::vector<Refusal> all =
      readRefusals(CKOPT_TEST_DATA "/../ckopt/refusals.txt");
  ASSERT_GT(all.size(), 100u);
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("refusals", folder));
  std::string place = (folder + "/t").str();
  ASSERT_FALSE(llvm::sys::fs::create_directory(place));
  for (const Refusal &refusal : all) {
    SCOPED_TRACE(refusal.command);
    ASSERT_FALSE(refusal.said.empty());
    Ended ended = run(splitWords(refusal.command, place));
    SCOPED_TRACE(ended.text);
    EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) != 0)
        << "not refused, or killed";
    llvm::StringRef rest = ended.text;
    for (const std::string &line : refusal.said) {
      llvm::SmallVector<llvm::StringRef, 1> found;
      bool matches = llvm::Regex(patternOf(line), llvm::Regex::Newline)
                         .match(rest, &found);
      EXPECT_TRUE(matches) << "does not say: " << line;
      if (matches)
        rest = rest.substr(size_t(found[0].end() - rest.begin()));
    }
  }
  (void)llvm::sys::fs::remove_directories(folder);
}

} // namespace
