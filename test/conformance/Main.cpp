//===- Main.cpp - runs ONNX backend test folders --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each case runs in a process of its own, forked from one that has everything
// loaded: a crash or a hang is that case's result. The list of known failures
// gives each a reason; the run fails when a case outside of it fails, and when
// one inside passes. An entry names the last folders of a case's path, as many
// as tell it from cases of its name in other corpora.
//
//===----------------------------------------------------------------------===//
#include "Check.h"
#include "ckopt/Base/Version.h"
#include "ckopt/Compiler/Phases.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace conformance;
namespace cl = llvm::cl;

static cl::list<std::string> roots(cl::Positional, cl::OneOrMore,
                                   cl::desc("FOLDER..."));
static cl::opt<bool> gradients("gradients",
                               cl::desc("check gradients, not outputs"));
static cl::opt<std::string> filter("filter",
                                   cl::desc("only names that match (regex)"));
static cl::opt<std::string>
    knownFile("known", cl::desc("known failures: lines NAME: REASON"));
static cl::opt<unsigned> jobs("j", cl::desc("cases at a time"), cl::init(0));
static cl::opt<unsigned> limit("timeout",
                               cl::desc("seconds of CPU time a case, of all "
                                        "its threads (ten times that in all)"),
                               cl::init(60));
static cl::opt<unsigned> every("every", cl::desc("each N-th case alone"),
                               cl::init(1));
static cl::opt<bool> verbose("v", cl::desc("print passed cases, too"));

namespace {
struct Running {
  const Case *test;
  int output, errors; ///< files in memory
};

class Runner {
public:
  llvm::Error collect();
  llvm::Error readKnown();
  void run();
  /// Prints what there is to say; the exit code.
  int report() const;

private:
  void start(const Case &test);
  void finish();
  void note(const Case &test, const Outcome &outcome);
  /// The entry of the list that names the case, "" where there is none.
  std::string entryOf(const Case &test) const;

  std::vector<Case> cases;
  std::map<std::string, std::string> known;
  std::map<std::string, unsigned> knownPassed, knownFailed;
  std::map<pid_t, Running> running;
  std::map<std::string, unsigned> refused, skipped;
  unsigned passed = 0, failed = 0, expected = 0;
};
} // namespace

llvm::Error Runner::collect() {
  llvm::Regex regex(filter.empty() ? "." : filter.getValue());
  std::string problem;
  if (!regex.isValid(problem))
    return llvm::createStringError("--filter: " + problem);
  unsigned number = 0;
  for (const std::string &root : roots) {
    auto found = findCases(root);
    if (!found)
      return found.takeError();
    for (Case &test : *found)
      if (regex.match(test.name) && number++ % every == 0)
        cases.push_back(std::move(test));
  }
  if (cases.empty())
    return llvm::createStringError("there are no cases (folders with a "
                                   "model.onnx) to run");
  return llvm::Error::success();
}

llvm::Error Runner::readKnown() {
  if (knownFile.empty())
    return llvm::Error::success();
  auto buffer = llvm::MemoryBuffer::getFile(knownFile);
  if (!buffer)
    return llvm::createStringError("cannot read '" + knownFile + "'");
  llvm::SmallVector<llvm::StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n');
  for (llvm::StringRef line : lines) {
    if (line.trim().empty() || line.starts_with("#"))
      continue;
    auto [name, reason] = line.split(':');
    if (reason.trim().empty())
      return llvm::createStringError("'" + knownFile +
                                     "': no reason in the line '" + line + "'");
    known[name.trim().str()] = reason.trim().str();
  }
  return llvm::Error::success();
}

void Runner::start(const Case &test) {
  Running entry{&test, memfd_create("outcome", 0), memfd_create("stderr", 0)};
  llvm::outs().flush();
  pid_t child = fork();
  if (child) {
    running[child] = entry;
    return;
  }
  dup2(entry.errors, STDERR_FILENO);
  // A busy machine makes no case fail.
  rlimit seconds{limit, limit + 1};
  setrlimit(RLIMIT_CPU, &seconds);
  alarm(10 * limit);
  Outcome outcome = gradients ? checkGradients(test) : checkForward(test);
  std::string text = char(outcome.verdict) + outcome.text;
  bool written =
      write(entry.output, text.data(), text.size()) == ssize_t(text.size());
  _exit(written ? 0 : 1);
}

static std::string contents(int file) {
  std::string text(size_t(lseek(file, 0, SEEK_END)), '\0');
  if (pread(file, text.data(), text.size(), 0) != ssize_t(text.size()))
    text.clear();
  close(file);
  return text;
}

/// The first lines of what a case said, as one.
static std::string shorten(llvm::StringRef text, size_t most = 400) {
  std::string line;
  for (char c : text.trim().take_front(most))
    line += c == '\n' ? ' ' : c;
  return line;
}

void Runner::finish() {
  int status = 0;
  pid_t child = wait(&status);
  Running entry = running.at(child);
  running.erase(child);
  std::string text = contents(entry.output), errors = contents(entry.errors);
  Outcome outcome;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !text.empty()) {
    outcome = {Verdict(text[0]), text.substr(1)};
    if (outcome.verdict == Verdict::Fail && !errors.empty())
      outcome.text += " | " + shorten(errors);
  } else {
    outcome.text =
        WIFSIGNALED(status)
            ? WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGXCPU
                  ? "takes more than " + std::to_string(limit) + " s"
                  : "dies of signal " + std::to_string(WTERMSIG(status))
            : "exits";
    outcome.text += " | " + shorten(errors);
  }
  note(*entry.test, outcome);
}

std::string Runner::entryOf(const Case &test) const {
  llvm::StringRef folder = test.model;
  folder.consume_back("/model.onnx");
  for (const auto &[name, reason] : known)
    if (folder == name || folder.ends_with("/" + name))
      return name;
  return "";
}

void Runner::note(const Case &test, const Outcome &outcome) {
  std::string entry = entryOf(test);
  bool isKnown = !entry.empty();
  switch (outcome.verdict) {
  case Verdict::Pass:
    ++passed;
    knownPassed[entry] += isKnown;
    if (verbose)
      llvm::outs() << "PASS " << test.name << "\n";
    return;
  case Verdict::Refused:
    ++refused[outcome.text];
    if (verbose)
      llvm::outs() << "REFUSED " << test.name << ": " << outcome.text << "\n";
    return;
  case Verdict::Skipped:
    ++skipped[outcome.text];
    if (verbose)
      llvm::outs() << "SKIP " << test.name << ": " << outcome.text << "\n";
    return;
  case Verdict::Fail:
    ++knownFailed[entry];
    ++(isKnown ? expected : failed);
    if (!isKnown || verbose)
      llvm::outs() << (isKnown ? "KNOWN " : "FAIL ") << test.name << ": "
                   << shorten(outcome.text, 600) << "\n";
    return;
  }
}

void Runner::run() {
  unsigned most = jobs ? jobs.getValue()
                       : std::max(1u, std::thread::hardware_concurrency());
  for (const Case &test : cases) {
    if (running.size() == most)
      finish();
    start(test);
  }
  while (!running.empty())
    finish();
}

int Runner::report() const {
  llvm::raw_ostream &os = llvm::outs();
  unsigned byDesign = 0;
  for (const auto &[family, count] : refused)
    byDesign += count;
  os << "\n"
     << cases.size() << " cases: " << passed << " pass, " << failed << " fail, "
     << expected << " known failures, " << byDesign << " refused by name\n";
  for (const auto &[family, count] : refused)
    os << "  refused, " << family << ": " << count << "\n";
  for (const auto &[reason, count] : skipped)
    os << "  nothing to check, " << reason << ": " << count << "\n";
  bool stale = false;
  for (const auto &[name, count] : knownPassed)
    if (count && !knownFailed.count(name)) {
      os << "PASSES NOW: " << name << " (take it out of " << knownFile << ")\n";
      stale = true;
    }
  // The list is for exceptions: one in fifty at most.
  bool many = expected * 50 > cases.size() - byDesign;
  if (many && every == 1 && filter.empty())
    os << "more than 2 % of the cases are known failures\n";
  else
    many = false;
  return failed || stale || many;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << ckopt::versionLine("ckopt-conformance", LLVM_VERSION_STRING) << "\n";
  });
  cl::ParseCommandLineOptions(argc, argv, "runs ONNX backend test folders\n");
  Runner runner;
  for (auto step : {&Runner::collect, &Runner::readKnown})
    if (llvm::Error error = (runner.*step)()) {
      llvm::errs() << "conformance: " << toString(std::move(error)) << "\n";
      return 64;
    }
  runner.run();
  return runner.report();
}
